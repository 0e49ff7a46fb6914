"""What a site says beside its publications: ledger, log, status of each, first page.

These files change with every publication; each change is a line of the ledger. `log/SITE.sha256`
holds their sums, so that a copy of the site can be checked whole.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from medassay.core.clock import now
from medassay.core.files import write_whole
from medassay.core.keyed import keyed
from medassay.core.ledger import (
    HEAD,
    LEDGER,
    SITE_SUMS,
    STATES,
    LedgerEntry,
    LedgerObject,
    front_of,
    publications_in,
    status_of,
)
from medassay.core.private import open_to_all
from medassay.core.records.identity import BoardIdentity
from medassay.core.records.manifest import Manifest
from medassay.core.records.rerun import Rerun
from medassay.core.records.seal import Seal
from medassay.core.records.statistics import OVERALL
from medassay.errors import GateError, InputError
from medassay.publishing.board import board_of
from medassay.publishing.identity import kept_identity
from medassay.publishing.language import kept_texts
from medassay.publishing.secret_text import refuse_secret
from medassay.report.board import Board
from medassay.report.pages.ranking import ranking
from medassay.report.site import ADDRESSED, site_files
from medassay.report.texts import Texts
from medassay.runner.manifest import code_of_today
from medassay.storage.ledger import append_entry, head_line, lock_site, read_ledger
from medassay.storage.run import LEASES, PUBLISHED_RUN, SUMS, Run, file_sha256
from medassay.storage.signature import Signer

_OF_EVERY_LINE = ("schema_version", "at", "code")
_WHAT_A_STEP_IS_ABOUT = ("event", "publication", "dispute", "step")


def set_status(
    site: Path,
    publication: str,
    status: str,
    *,
    reason: str,
    following: str | None = None,
    signer: Signer | None = None,
) -> None:
    """Say of a publication that it is superseded, corrected or retracted; its own bytes stay.

    Parameters
    ----------
    following : the publication to read instead

    Raises
    ------
    InputError
        When the site has no such publication, the status is unknown or no reason is given.
    GateError
        When the reason looks like a secret: it would become public.
    """
    if status not in STATES:
        raise InputError(f"status '{status}': expected one of {', '.join(STATES)}")
    if not reason.strip():
        raise InputError("--reason: empty; readers must learn why")
    refuse_secret(reason, "--reason")
    with ledger_to_change(site, signer) as entries:
        refuse_unpublished(site, entries, publication, following)
        _refuse_circle(entries, publication, following)
        record: LedgerObject = {"event": "status", "publication": publication, "status": status}
        enter_step(site, {**record, "reason": reason, "next": following}, signer)


@contextmanager
def ledger_to_change(site: Path, signer: Signer | None) -> Iterator[list[LedgerEntry]]:
    """Yield the ledger of a site, which is locked meanwhile.

    Raises
    ------
    InputError
        When there is no site.
    GateError
        When the key lies in it.
    """
    if not (site / LEDGER).is_file():
        raise InputError(f"{site}: no site; expected a folder with {LEDGER}")
    refuse_key_inside(site, signer)
    with lock_site(site):
        yield read_ledger(site)


def refuse_unpublished(
    site: Path, entries: Sequence[LedgerEntry], publication: str, following: str | None = None
) -> None:
    """Refuse a publication that a site does not have, and one to read instead that is the same or
    that it does not have.
    """
    statuses = status_of(entries)
    for name in (publication, following):
        if name is not None and name not in statuses:
            listed = ", ".join(sorted(statuses)) or "none"
            raise InputError(f"{site}: no publication '{name}'; there are {listed}")
    if following == publication:
        raise InputError(f"--next: '{following}' is the publication itself")


def _refuse_circle(entries: Sequence[LedgerEntry], publication: str, following: str | None) -> None:
    """Refuse a publication to read instead that sends its readers back."""
    statuses = status_of(entries)
    passed: list[str] = []
    name = following
    while name is not None and name not in passed:
        passed.append(name)
        if name == publication:
            raise InputError(
                f"--next: '{following}' sends its readers on to {' and '.join(passed[1:])};"
                " expected a publication that is to be read instead"
            )
        name = statuses[name].next


def enter_step(site: Path, record: LedgerObject, signer: Signer | None) -> None:
    """Enter what became of a publication into the ledger of a locked site, and make the site's own
    pages anew.

    A step that is entered already makes the pages alone: a command that was interrupted between the
    two is given once more, maybe after others.
    """
    if not is_entered(read_ledger(site), record):
        append_entry(site, _line(record), signer)
    _write_site(site)


def is_entered(entries: Sequence[LedgerEntry], record: LedgerObject) -> bool:
    """Return whether the last line of its sort about the same publication or dispute says what a
    step says, whenever it was entered.
    """
    about = [record.get(name) for name in _WHAT_A_STEP_IS_ABOUT]
    for entry in reversed(entries):
        if [entry.record.get(name) for name in _WHAT_A_STEP_IS_ABOUT] == about:
            entered = {k: v for k, v in entry.record.items() if k not in _OF_EVERY_LINE}
            return entered == record
    return False


def refuse_key_inside(site: Path, signer: Signer | None) -> None:
    """Refuse a key that lies where everything becomes public."""
    if signer is not None and site.resolve() in signer.path.resolve().parents:
        raise GateError(f"{signer.path}: lies in the site; keep the key outside of it")


def refuse_foreign(site: Path, publication: str) -> None:
    """Refuse a site with a publication that its ledger does not know, save the one being published,
    and a folder that is no site yet and holds something else.
    """
    logged = {entry.event.publication for entry in read_ledger(site)}
    present = {path.parent.name for path in (site / "p").glob("*/index.html")}
    strange = sorted(p for p in present - logged - {publication} if not p.startswith("."))
    if strange:
        raise GateError(
            f"{site}: p/{strange[0]} is not in {LEDGER}; publish that one again if its publication"
            " was interrupted, else bring the ledger back or publish into a new folder"
        )
    # A publication that was interrupted has left pages of the site, of a mirror without its own.
    ours = (LEASES, "log", "p", "status")
    others = sorted(p.name for p in site.iterdir() if p.name not in ours and p.name[0] != ".")
    is_left = others == ["index.html"] and (site / "p").is_dir()
    if others and not is_left and not logged:
        raise GateError(
            f"{site}: holds other files ({', '.join(others[:3])}), and `verify` refuses a site with"
            " files that are not its own; publish into a new folder"
        )


def record_publication(site: Path, board: Board, place: Path, signer: Signer | None = None) -> None:
    """Enter a publication into the ledger, once, and make the site's own pages anew."""
    name = board.publication
    if name not in {entry.event.publication for entry in read_ledger(site)}:
        record: LedgerObject = {
            "event": "publication",
            "publication": name,
            **recorded(board.manifest, board.seal, board.rerun),
            "sums_sha256": file_sha256(place / "data" / SUMS),
        }
        append_entry(site, _line(record), signer)
    _write_site(site, board)


def recorded(manifest: Manifest, seal: Seal, rerun: Rerun | None) -> LedgerObject:
    """Return what a line of the ledger says of a publication's run.

    Lines of earlier versions lack `joined` and `rerun`.
    """
    record: LedgerObject = {
        "run": manifest.run,
        "banks": [bank.version for bank in manifest.banks],
        "methodology": manifest.methodology,
        "root": seal.root,
    }
    if manifest.plan.demonstration:
        record["demonstration"] = True
    if manifest.joined is not None:
        record["joined"] = [member.run for member in manifest.joined]
    if rerun is not None:
        record["rerun"] = {
            "run": rerun.of.run,
            **keyed(rerun, "differing", "trials", "within"),
        }
    return record


def front_board(site: Path, entries: Sequence[LedgerEntry], newest: Board | None = None) -> Board:
    """Return the board that a site opens with.

    `newest` where it is that one, so that it is not read again.
    """
    name = front_of(entries)
    if newest is not None and newest.publication == name:
        return newest
    return board_of(Run(site / "p" / name / PUBLISHED_RUN), name, front=True)


def front_page(board: Board, entries: Sequence[LedgerEntry]) -> bytes:
    """Return the first page of a site: a ranking, its status, what audits found of it, and the list
    of publications.
    """
    up = f"p/{board.publication}/"
    states = status_of(entries)
    publications = [states[event.publication] for event in publications_in(entries)[::-1]]
    state = states[board.publication]
    board_shown = replace(board, reruns=state.reruns or [])
    _, content = ranking(
        board_shown, OVERALL, board.modes[0], up=up, publications=publications, state=state
    )
    return content.encode()


def _write_site(site: Path, newest: Board | None = None) -> None:
    entries = read_ledger(site)
    _replace(site / "index.html", front_page(front_board(site, entries, newest), entries))
    pages = dict(site_files(entries, *site_words(site, entries)))
    for address, content in pages.items():
        _replace(site / address, content)
    for name in ADDRESSED - pages.keys():  # of a site whose address is no longer told
        (site / name).unlink(missing_ok=True)
    _replace(site / HEAD, head_line(entries))
    _replace(site / SITE_SUMS, site_sums(site, entries))


def site_sums(site: Path, entries: Sequence[LedgerEntry]) -> bytes:
    """Return the sums of every file of a site that is none of a publication's."""
    pages = site_files(entries, *site_words(site, entries))
    names = [HEAD, "index.html", LEDGER, *(address for address, _ in pages)]
    return "".join(f"{file_sha256(site / name)}  {name}\n" for name in sorted(names)).encode()


def site_words(site: Path, entries: Sequence[LedgerEntry]) -> tuple[BoardIdentity | None, Texts]:
    """Return what the newest publication that says who publishes it keeps of that, None where none
    does, and the texts of the language of the newest one.
    """
    places = [site / "p" / event.publication for event in publications_in(entries)[::-1]]
    identities = (kept_identity(place) for place in places)
    identity = next((identity for identity in identities if identity is not None), None)
    return identity, kept_texts(places[0])


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    open_to_all(path.parent)
    write_whole(path, content, mode=0o644)


def _line(record: LedgerObject) -> LedgerObject:
    """Return a record with what every line of a ledger says: when, and by which code."""
    return {**record, "schema_version": 1, "at": now(), "code": code_of_today()}
