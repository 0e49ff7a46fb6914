"""A sealed run becomes a publication: pages, data, and the sums of every file.

The publication is assembled in a folder beside its place and moved there in one step: it is there
whole or not at all, and what was published is never touched again.
"""

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.canonical import record_line
from medassay.core.ledger import PUBLICATION_ID, publications_in
from medassay.core.plan_file import read_toml
from medassay.core.private import open_to_all
from medassay.core.records.context_config import MOST_UNAVAILABLE
from medassay.core.records.statistics import LookupCounts
from medassay.core.records.trial import ToolCalls
from medassay.errors import GateError, IncompleteError, InputError, IntegrityError
from medassay.kinds.pages import PAGES
from medassay.own_code.kept import FOLDER, copy_kept
from medassay.publishing.board import board_of
from medassay.publishing.changes import CHANGES, changes_between, earlier_publication
from medassay.publishing.data_files import write_archive, write_data
from medassay.publishing.history import record_publication, refuse_foreign, refuse_key_inside
from medassay.publishing.identity import BOARD_FILE, write_identity
from medassay.publishing.language import chosen_texts, write_language
from medassay.publishing.recompute import verify_run
from medassay.publishing.reruns import write_reruns
from medassay.publishing.secret_text import refuse_secret
from medassay.publishing.shingles import leaking_file
from medassay.publishing.trend import series_of, write_trend
from medassay.publishing.withhold import secrets_of, write_public
from medassay.report.badge import badges
from medassay.report.board import VALIDATION, Board
from medassay.report.pages.html import asset
from medassay.runner.merge import join_runs
from medassay.storage.ledger import lock_site, read_ledger
from medassay.storage.run import PUBLISHED_RUN, SUMS, Run, file_sha256, refuse_inside, sealed_names
from medassay.storage.signature import Signer

_LONGEST_DOCUMENT = 2**20
_ASSETS = ("style.css", "script.js", "cells.js", "icon.svg")


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a publisher says of a publication besides its runs.

    Parameters
    ----------
    reason : why bank or methodology changed since the last publication, for the trend
    validation : folder of documents (.md, .txt) on methodology, study, limitations, replies to
        criticism
    compact : whether one page shows all cells, reading files; None: above 5,000 cells or 200,000
        answers
    require_api : refuse models that others cannot call, and imported ones, of which nobody knows
        who was asked
    with_code : publish own code that made the numbers, too
    trust_code : compute what it says again before anything is published
    board : the file that says who publishes the board and what for; None: `board.toml` beside the
        folder of the site, where there is one
    language : of the pages: "en", "de", or the path of a catalogue (`.json`)
    """

    reason: str = ""
    validation: Path | str | None = None
    compact: bool | None = None
    require_api: bool = False
    with_code: bool = False
    trust_code: bool = False
    board: Path | str | None = None
    language: str = "en"


def publish(
    runs: Run | str | Path | Sequence[Run | str | Path],
    site: Path | str,
    *,
    publication: str | None = None,
    signer: Signer | None = None,
    about: About = About(),
) -> Path:
    """Write a publication of sealed runs into a site folder and return its first page.

    A publication does not change any more; the site's log has a line for it.

    Several runs of the same banks and methodology are joined first, into a run beside the first of
    them. Of synthetic items only commitments and numbers are published.

    Parameters
    ----------
    publication : its id under `/p/`; default: the run's id
    signer : signs the line of the log, a `medassay.storage.signature.Signer`
    about : what else the publisher says, a `medassay.publishing.publish.About`

    Raises
    ------
    IntegrityError
        If the run is not what was sealed.
    GateError
        If the id is taken, or what would become public must not (banks that may not leave, words of
        a synthetic item, text that looks like a secret). Nothing is written then.

    Examples
    --------
    >>> from medassay import publish
    >>> import tempfile, medassay
    >>> site = tempfile.mkdtemp()
    >>> page = publish(medassay.example_run(), site, publication="first")
    >>> page.relative_to(site).as_posix(), medassay.verify(site).ok
    ('p/first/index.html', True)
    """
    chosen_texts(about.language)  # a wrong one is told before anything is read
    opened = _run_to_publish(runs)
    _refuse_broken(opened, trust_code=about.trust_code is True)
    items = RunItems(opened.path, opened.manifest.domains)
    _refuse_private(opened)
    _refuse_blind(opened)
    refuse_secret(about.reason, "--reason")
    if about.require_api:
        _refuse_uncallable(opened)
    name = publication or opened.id
    if not PUBLICATION_ID.fullmatch(name):
        raise InputError(
            f"publication id '{name}': expected a-z, 0-9, dot and hyphen, at most 200; give one"
            " with --id"
        )
    site = Path(site)
    refuse_inside(site)
    place = site / "p" / name
    refuse_key_inside(site, signer)
    with lock_site(site):
        refuse_foreign(site, name)
        _refuse_beside(site, opened)
        if name in {entry.event.publication for entry in read_ledger(site)}:
            # An earlier call may have been interrupted before the site's pages.
            board = board_of(Run(place / PUBLISHED_RUN), name)
            record_publication(site, board, place, signer)
            raise GateError(f"{place}: this publication exists; published bytes never change")
        if place.exists():
            # A call was interrupted before its line, so that nothing is published: it may have been
            # of another run, or asked for in another way.
            shutil.rmtree(place)
        draft = site / "p" / f".{name}.part"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            board = _assemble(draft, opened, items, site, name, about=about)
            draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            with suppress(OSError):  # of a site that was none before, and has a publication else
                draft.parent.rmdir()
        _open_to_all(place)
        record_publication(site, board, place, signer)
    return place / "index.html"


def _open_to_all(publication: Path) -> None:
    """Let everybody read a publication, whatever the umask of whoever published it.

    Nobody may write to it.
    """
    open_to_all(publication.parent)
    for path in (publication, *publication.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o444)


def _copy_documents(folder: Path, validation: Path | str | None) -> None:
    if validation is None:
        return
    documents = Path(validation)
    paths = sorted(documents.glob("*")) if documents.is_dir() else []
    if not paths:
        raise InputError(f"{documents}: no documents; expected a folder of .md or .txt files")
    (folder / VALIDATION).mkdir()
    for path in paths:
        is_plain_file = path.is_file() and not path.is_symlink()
        data = path.read_bytes() if is_plain_file else b""
        fits = path.suffix in (".md", ".txt") and 0 < len(data) <= _LONGEST_DOCUMENT
        if not fits or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", path.name):
            raise InputError(
                f"{path}: expected a .md or .txt file with a plain name, not empty, at most "
                f"{_LONGEST_DOCUMENT} bytes"
            )
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path}: not UTF-8") from None
        refuse_secret(data, str(path))
        (folder / VALIDATION / path.name).write_bytes(data)


def _run_to_publish(runs: Run | str | Path | Sequence[Run | str | Path]) -> Run:
    """Return the run to publish: the only one, or what joins them all."""
    places = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [run if isinstance(run, Run) else Run(Path(run)) for run in places]
    if not opened:
        raise InputError("no run to publish; name at least one")
    if len(opened) == 1:
        return opened[0]
    for run in opened:
        _refuse_broken(run)
    return join_runs(opened, opened[0].path.resolve().parent)


def _refuse_broken(run: Run, *, trust_code: bool = False) -> None:
    """Refuse a run that is not finished, or not what was sealed."""
    if not run.sealed:
        raise IncompleteError(f"run {run.path.name}: not finished; only sealed runs are published")
    report = verify_run(run.path, trust_code=trust_code)
    if not report.ok:
        raise IntegrityError(f"run {run.id}: {report.first_mismatch}; it is not published")


def _refuse_private(run: Run) -> None:
    for bank in run.manifest.banks:
        if not bank.may_leave:
            raise GateError(f"bank '{bank.name}' may not leave (may_leave = false): not published")
    for name in sealed_names(run.path):
        with (run.path / name).open("rb") as file:
            for number, line in enumerate(file, 1):
                refuse_secret(line, f"{name} line {number}")


def _refuse_blind(run: Run) -> None:
    """Refuse a run whose tools could not be reached too often: its series would measure the
    network.
    """
    for statistics in run.statistics.by_metric:
        if "lookups" not in statistics.document:
            continue
        calls = statistics.part("lookups", LookupCounts).calls or ToolCalls()
        share = calls.unavailable_share or 0.0
        if share <= MOST_UNAVAILABLE:
            continue
        raise GateError(
            f"run {run.id}: {calls.unavailable} of {calls.calls} calls of tools were"
            f" unavailable ({100 * share:.1f} %, at most {100 * MOST_UNAVAILABLE:.0f} %); run it"
            " again with --fresh where the services can be reached, or publish a plan of mode solo"
        )


def _refuse_beside(site: Path, run: Run) -> None:
    """Refuse a demonstration beside measurements, and the other way round: their trend would show
    scripted points among real ones.
    """
    for event in publications_in(read_ledger(site)):
        if event.demonstration != run.manifest.plan.demonstration:
            shown, other = "a demonstration", "measurements"
            if event.demonstration:
                shown, other = "no demonstration", "demonstrations"
            raise GateError(
                f"{site}: holds {other}, as publication {event.publication}, and run {run.id} is"
                f" {shown}; publish it into a site of its own"
            )


def _refuse_uncallable(run: Run) -> None:
    """Refuse models that readers could not ask again: of somebody's own machine, without an address
    for others, or imported, so that nobody knows who was asked.
    """
    reasons: dict[str, list[str]] = {}
    for name, spec in sorted(run.manifest.models.items()):
        if spec.provider == "import":
            reasons.setdefault("were imported: who was asked is not known", []).append(name)
        elif spec.provider != "baseline" and (spec.location != "external" or not spec.api):
            reasons.setdefault("cannot be called by others", []).append(name)
    if reasons:
        listed = "; ".join(f"{', '.join(names)} {why}" for why, names in reasons.items())
        raise GateError(f"--require-api: {listed}; publish without them, or without --require-api")


def _copy_code(run: Run, public_run: Run) -> None:
    """Copy own code beside the public copy of a run, where there is any."""
    copy_kept(run.path, public_run.path)
    for path in (public_run.path / FOLDER).glob("*"):
        refuse_secret(path.read_bytes(), path.name)


def _board_file(site: Path, named: Path | str | None) -> Path | None:
    if named is not None:
        return Path(named)
    beside = site.resolve().parent / BOARD_FILE
    if not beside.is_file() or "banks" in read_toml(beside, ""):  # a plan that is called so
        return None
    return beside


def _assemble(
    folder: Path,
    run: Run,
    items: RunItems,
    site: Path,
    name: str,
    *,
    about: About,
) -> Board:
    """Write a publication into an empty folder; its pages are made of its public data alone."""
    data = folder / PUBLISHED_RUN
    data.mkdir(parents=True)
    if items.withholding:
        public_run = write_public(run, items, data)
    else:
        for file in sealed_names(run.path):
            shutil.copyfile(run.path / file, data / file)
        public_run = Run(data)
    write_trend(folder, site, public_run, name, about.reason)
    entries = read_ledger(site)
    write_reruns(folder, entries, series_of(public_run))
    if (earlier := earlier_publication(entries)) is not None:
        before = (earlier, Run(site / "p" / earlier / PUBLISHED_RUN))
        changes = changes_between(before, (name, public_run), entries, about.reason)
        (folder / CHANGES).write_bytes(record_line(changes))
    _copy_documents(folder, about.validation)
    if (board_file := _board_file(site, about.board)) is not None:
        write_identity(folder, board_file)
    write_language(folder, about.language)
    if about.with_code:
        _copy_code(run, public_run)
    board = board_of(public_run, name, compact=about.compact)
    for file in _ASSETS:
        (folder / file).write_bytes(asset(file, board.texts))
    write_data(folder / "data", board, public_run)
    write_archive(folder / "data", name)
    for address, badge in badges(board):
        (folder / address).parent.mkdir(parents=True, exist_ok=True)
        (folder / address).write_text(badge, encoding="utf-8")
    names = [path.relative_to(folder / "data") for path in (folder / "data").rglob("*.*")]
    board = replace(board, data_files=sorted(path.as_posix() for path in names))
    for pages in PAGES.values():
        for address, content in pages(board):
            target = folder / address
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a", encoding="utf-8") as page:  # a long file comes in parts
                page.write(content)
    if items.withholding and (leak := leaking_file(folder, secrets_of(run, items))):
        where, what = leak[0].relative_to(folder), leak[1]
        raise GateError(f"{where}: holds words of {what}, which stays private; not published")
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    sums = "".join(f"{file_sha256(folder / file)}  {file}\n" for file in files)
    (folder / "data" / SUMS).write_text(sums, encoding="utf-8")
    return board
