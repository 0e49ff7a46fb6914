"""`medassay publish RUN --to DIR`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from medassay.cli import location
from medassay.cli.options import TRUST_CODE
from medassay.cli.output import out
from medassay.core.ledger import LEDGER
from medassay.core.wording import counted, listed
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.storage.run import Run


_RUNS = typer.Argument(
    ...,
    parser=location.read,
    metavar="runs",
    help=(
        "Sealed runs; several of the same banks and methodology are joined. Of a suite each run"
        " is a publication of its own."
    ),
)
_TO = typer.Option(..., help="The folder or address of the site; the publication goes to p/<id>/.")
_CALLED = typer.Option(None, "--id", help="Id of the publication; default: the run's id.")
_REASON = typer.Option(
    "", help="Why bank or methodology changed since the last publication; readers see it."
)
_VALIDATION = typer.Option(
    None,
    help=(
        "A folder of .md or .txt documents: methodology, study, limitations, replies to criticism."
    ),
)
_COMPACT = typer.Option(
    None,
    "--compact/--no-compact",
    help=(
        "One page that reads the answers from files, not a page a cell; default: above 5,000"
        " cells or 200,000 answers."
    ),
)
_REQUIRE_API = typer.Option(
    False, "--require-api", help="Refuse models that others cannot call, and imports."
)
_WITH_CODE = typer.Option(False, "--with-code", help="Publish own code that made the numbers, too.")
_BOARD = typer.Option(
    None,
    "--board",
    help=(
        "A TOML file: title, purpose, publisher, contact of the board and more; default: board.toml"
        " beside the folder of the site, where there is one."
    ),
)
_LANGUAGE = typer.Option(
    "en", "--language", help="Of the pages: en, de, or a catalogue of one's own (.json)."
)
_KEY = typer.Option(None, help="The private key that signs the log (`medassay keys new`).")
_YES = typer.Option(False, "--yes", help="Do not ask before anything becomes public.")


def command(
    runs: list[Path] = _RUNS,
    to: str = _TO,
    called: str | None = _CALLED,
    reason: str = _REASON,
    validation: Path | None = _VALIDATION,
    board: Path | None = _BOARD,
    language: str = _LANGUAGE,
    compact: bool | None = _COMPACT,
    require_api: bool = _REQUIRE_API,
    with_code: bool = _WITH_CODE,
    trust_code: bool = TRUST_CODE,
    key: Path | None = _KEY,
    yes: bool = _YES,
) -> None:
    """Write the board of runs as a static site; what is published never changes.

    In a terminal it asks first.
    """
    from medassay.publishing.publish import About, publish
    from medassay.storage.run import open_run
    from medassay.storage.signature import Signer
    from medassay.suite.places import runs_of, suites_among

    signer = None if key is None else Signer(key)
    suites = suites_among(runs)
    if suites and called is not None:
        raise UsageError("--id: each run of a suite has an id of its own; leave it out")
    groups = [[run] for suite in suites for _, run in runs_of(suite)]
    groups = groups or [[open_run(run) for run in runs]]
    opened = [run for group in groups for run in group]
    asks = not yes and not out.json and sys.stdin.isatty()
    if asks:
        out.say(f"becomes public: {_what_is_public(opened, with_code=with_code)}")
        typer.confirm("Make that public?", abort=True)
    about = About(
        reason=reason,
        validation=validation,
        compact=compact,
        require_api=require_api,
        with_code=with_code,
        trust_code=trust_code,
        board=board,
        language=language,
    )
    with location.changing(to, last=LEDGER) as folder:
        pages = [
            publish(group, folder, publication=called, signer=signer, about=about)
            for group in groups
        ]
    page = pages[-1]
    if not asks:
        out.say(f"now public: {_what_is_public(opened, with_code=with_code)}")
    out.tell(
        {"path": location.location_text(page.parent), "page": location.location_text(page)},
        *(f"board {location.location_text(page)}" for page in pages),
    )


class _PublishedItem(msgspec.Struct):
    """A line of a run's items, as far as it says whether the item becomes public."""

    domain: str
    id: str
    kind: str = "public"
    tombstone: str | None = None


def _what_is_public(runs: "Sequence[Run]", *, with_code: bool) -> str:
    from medassay.storage.jsonl import read_as

    public: dict[str, set[tuple[str, str]]] = {}  # bank → its items
    synthetic: set[tuple[str, str]] = set()
    for run in runs:
        for item in read_as(run.path / "items.jsonl", _PublishedItem):
            if item.tombstone is None:  # else it was deleted by law
                bank = public.setdefault(run.manifest.domains[item.domain], set())
                (synthetic if item.kind == "synthetic" else bank).add((item.domain, item.id))
    banks = [f"{bank} ({counted(len(items), 'item')})" for bank, items in public.items() if items]
    withheld = (
        f" Of {counted(len(synthetic), 'synthetic item')} no question, key, reply or rationale, but"
        " ids, domains, outcomes, scores and counts."
    )
    models = {name for run in runs for name in run.manifest.models}
    has_code = any(run.manifest.own_code and run.manifest.own_code.parts for run in runs)
    code = " Own code stays; --with-code publishes it."
    code = " Own code is published, too." if with_code else code
    entries = [
        entry for run in runs for entry in (*run.manifest.models.values(), *run.manifest.judges)
    ]
    addresses = [entry.url for entry in entries if entry.location == "local" and entry.url]
    places = sorted({*addresses, *(entry.path for entry in entries if entry.path)})
    where = f" Also where local models are: {listed(places)}." if places else ""
    texts = f"the questions, reports and targets of {listed(banks)}, and " if banks else ""
    return (
        f"{texts}all replies and scores of {counted(len(models), 'model')} in"
        f" {listed([run.id for run in runs])}.{withheld if synthetic else ''}{where}"
        f"{code if has_code else ''}"
    )
