"""`medassay bank flaws`: items that are hard or flawed, and a review of them by another family."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.options import listed
from medassay.cli.output import out
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.core.records.context_config import ToolRules
    from medassay.synthesis.flaws import Flaws, FlawsObject

_RUNS = typer.Argument(
    ..., metavar="RUN…", help="Sealed runs of one bank, with the setting zero_shot."
)
_LARGE = typer.Option(
    "",
    help="The two large models, comma-separated; default: the two of the largest stated size.",
)
_REVIEW = typer.Option(
    "",
    help=(
        "A model of another family that reviews each flawed item and proposes the simplest change."
    ),
)
_BANK = typer.Option(None, help="--review: the bank's folder.")
_TO = typer.Option(None, help="--review: the workshop of the corrections.")
_MODELS = typer.Option(Path("models.json"), help="--review: the models file.")
_TOOLS = typer.Option(
    None,
    help="--review: a TOML file with a table [tools], as in a plan: the reviewer may search.",
)
_AGAIN = typer.Option(
    [],
    help=(
        "--review: ask once more for a review in the queue, by its handle (review:ITEM), or"
        " failed for all of them."
    ),
)


def flaws(
    runs: list[Path] = _RUNS,
    large: str = _LARGE,
    review: str = _REVIEW,
    bank: Path | None = _BANK,
    to: Path | None = _TO,
    models: Path = _MODELS,
    tools: Path | None = _TOOLS,
    again: list[str] = _AGAIN,
) -> None:
    """Find items that are hard or flawed: wrong for both large models and for at least half of the
    small ones.
    """
    from medassay.cli.progress import watch
    from medassay.storage.run import open_run
    from medassay.synthesis.flaws import flaws_of_runs
    from medassay.synthesis.reviewing import ReviewerOptions, review_flaws

    named = listed(large)
    flawed = flaws_of_runs([open_run(run) for run in runs], named)
    document = flawed.to_dict()
    if review:
        if bank is None or to is None:
            raise UsageError("--review needs --bank and --to")
        options = ReviewerOptions(
            reviewer=review, models_file=models, bank=bank, tools=_tool_rules(tools)
        )
        review_found = review_flaws(
            flawed,
            options,
            to,
            secrets=os.environ,
            workspace=Path.cwd(),
            watch=watch,
            again=again,
        )
        document = {**document, **review_found}
    elif bank is not None or to is not None or tools is not None or again:
        raise UsageError("--bank, --to, --tools and --again go with --review")
    if flawed.unsized:
        out.say(
            f"sizes not stated, taken as small: {', '.join(flawed.unsized)}; --large names the"
            " large ones"
        )
    out.tell(document, _lines(flawed, document))
    if to is not None:
        out.say(f"nothing is changed before a person decides: medassay bank queue {to}")


def _lines(flawed: "Flaws", document: "FlawsObject") -> Iterator[str]:
    yield (
        f"{flawed.selected.items} items; wrong for {' and '.join(flawed.large)}:"
        f" {len(flawed.selected.candidates)}; wrong also for at least half of {len(flawed.small)}"
        f" small models: {len(flawed.selected.flaws)}"
    )
    for flaw in flawed.selected.flaws:
        types = document.get("reviewed", {}).get(flaw.item[1])
        summary = "" if types is None else f"; proposed type {', '.join(map(str, types)) or 'none'}"
        yield (
            f"  {flaw.item[1]}: {len(flaw.wrong_small)} of {flaw.n_small} small models"
            f" wrong{summary}"
        )
    for name, why in document.get("queue", {}).items():
        yield f"  no usable review of {name}: {why}"


def _tool_rules(path: Path | None) -> "ToolRules | None":
    if path is None:
        return None
    from medassay.core.plan_file import read_toml, typed
    from medassay.core.record_check import RecordError
    from medassay.core.records.context_config import ToolRules
    from medassay.errors import InputError

    table = read_toml(path, "--tools names a TOML file with a table [tools]", what="tools").get(
        "tools", {}
    )
    try:
        rules = typed(ToolRules, table, f"{path}: [tools]")
    except RecordError as error:
        raise InputError(f"{path}: {error.problem}") from None
    if "doc_retrieval" in rules.use:
        raise InputError(
            f"{path}: 'tools.use': doc_retrieval searches an index of a plan; leave it out here"
        )
    return rules
