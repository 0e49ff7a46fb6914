"""Check a run, a publication, a site or its copy on a server, down to the first record that
differs.
"""

import re
import tempfile
from pathlib import Path

from medassay.core.canonical import canonical, record_line
from medassay.core.json import parse_record
from medassay.core.ledger import HEAD, LEDGER, SITE_SUMS, LedgerEntry, publications_in, status_of
from medassay.core.records.trend import Trend
from medassay.errors import IncompleteError, InputError
from medassay.publishing.changes import (
    CHANGES,
    changes_between,
    earlier_publication,
    read_changes,
)
from medassay.publishing.fetch import ReadLimits, fetch_site, is_address
from medassay.publishing.history import (
    front_board,
    front_page,
    recorded,
    site_sums,
    site_words,
)
from medassay.publishing.recompute import verify_run
from medassay.publishing.report import Mismatch, VerificationReport
from medassay.publishing.reruns import RERUNS, read_reruns, reruns_in_series
from medassay.publishing.sealed_files import check_sums
from medassay.publishing.tree import files_in, of_the_host
from medassay.publishing.trend import TREND, extended, read_trend, series_of
from medassay.report.site import site_files
from medassay.runner.manifest import code_of_today
from medassay.runner.replication import rerun_of
from medassay.storage.ledger import head_line, head_of, is_locked, read_ledger
from medassay.storage.merkle import consistency_proof, extends
from medassay.storage.object_store import mirror_of
from medassay.storage.run import JOURNALS, LEASES, PUBLISHED_RUN, SEAL, SUMS, Run, file_sha256

OUTSIDE = (
    "hashes show that nothing changed since publication, not that scores are right; excluding a "
    "rewritten history needs an outside copy of the log (--since)"
)

UNSEEN = (
    "of a web server only the files that its lists name were seen: verify the folder itself to find"
    " others beside them"
)

# Ledger first, pages after it: a command that was cut off between leaves this, and nothing else.
# Of what the ledger says of a run: what not every run has.
_OPTIONAL = {"demonstration", "joined", "rerun"}
_ONCE_MORE = "; if a command was interrupted here, give it once more: it makes the pages anew"


def verify(
    place: Run | str | Path, *, since: str = "", signed_by: str = "", trust_code: bool = False
) -> VerificationReport:
    """Return the report on a run, a publication or a whole site, in a folder or at an address.

    Parameters
    ----------
    place : a folder, or the http(s) address of a site or a publication
    since : what was kept of the site's ledger: the path of a `head.json`, or the hash of a line
    signed_by : the public key that must have signed the ledger's last line
    trust_code : whether own code beside a run may be executed; without it, what comes from own code
        is not computed again

    Raises
    ------
    InputError
        If there is neither a run, nor a publication, nor a site; or `since` cannot be read.
    IncompleteError
        When something is wrong with a site that another process is publishing to, or a run is not
        finished.

    Examples
    --------
    >>> import medassay
    >>> from medassay import verify
    >>> report = verify(medassay.example_run().path)
    >>> report.ok, [check["name"] for check in report.checks][:2]
    (True, ['seal', 'files'])
    """
    trust_code = trust_code is True  # a text such as "no" is no consent
    if isinstance(place, Run):
        place = place.path
    if not isinstance(place, str | Path):
        raise InputError(f"verify: expected a path, an address or a Run; got {place!r:.60}")
    if is_address(place):
        with tempfile.TemporaryDirectory(prefix="medassay-") as scratch:
            copy = fetch_site(str(place), Path(scratch), ReadLimits())
            return verify(copy, since=since, signed_by=signed_by, trust_code=trust_code)
    folder = Path(place).resolve()  # the place itself may be reached by a link
    if not folder.is_dir():
        raise InputError(
            f"{place}: no folder; expected a run, a publication or a site, or an http(s) address"
        )
    report = VerificationReport()
    try:
        files_in(folder, may_be_empty=_may_be_empty(folder))
    except Mismatch as error:  # nothing is opened then: it may hang, or lie elsewhere
        report.add("files", str(error), ok=False)
        return _unless_locked(folder, report)
    if (folder / "p").is_dir() or (folder / LEDGER).exists():
        return _unless_locked(folder, _verify_site(folder, since, signed_by, trust_code=trust_code))
    if since or signed_by:
        raise InputError(f"{folder}: holds no {LEDGER}; --since and --signed-by need a site")
    if (folder / PUBLISHED_RUN).is_dir():
        return _verify_publication(folder, trust_code=trust_code)
    if any((folder / name).exists() for name in (SEAL, "manifest.json", SUMS)):
        return verify_run(folder, trust_code=trust_code)
    raise InputError(
        f"{folder}: neither a run, nor a publication, nor a site; expected one of them"
    )


def _unless_locked(folder: Path, report: VerificationReport) -> VerificationReport:
    """Return a report; a site that another process is publishing to is not wrong, but not ready."""
    if not report.ok and is_locked(folder):
        raise IncompleteError(
            f"{folder}: another process is publishing to this site; verify it again when it is done"
        )
    return report


def _may_be_empty(folder: Path) -> tuple[str, ...]:
    """Return the folders that work leaves: in a run that was killed just behind its seal, in the
    stand-in of an object store.
    """
    if (folder / SEAL).is_file():
        return (*JOURNALS, LEASES)
    return () if mirror_of(folder) is None else (LEASES,)


def _verify_site(
    folder: Path, since: str, signed_by: str, *, trust_code: bool
) -> VerificationReport:
    report = VerificationReport()
    strange = [p for p in folder.glob("p/*") if not p.is_dir() or p.name[0] == "."]
    places = [p for p in sorted(folder.glob("p/*/")) if not p.name.startswith(".")]
    if not places and not (folder / LEDGER).exists():
        raise InputError(f"{folder}: a site without publications; nothing to verify")
    head_kept = _kept_head(since) if since else None
    if signed_by and not re.fullmatch("[0-9a-fA-F]{64}", signed_by.strip()):
        raise InputError(f"--signed-by '{signed_by}': expected a public key, 64 hexadecimal digits")
    steps = [
        ("log", lambda: _check_ledger(folder, {p.name for p in places})),
        ("signature", lambda: _check_signatures(read_ledger(folder), signed_by)),
        ("pages of the site", lambda: _check_pages(folder)),
    ]
    if head_kept is not None:
        steps.append(("history", lambda: _check_history(read_ledger(folder), head_kept)))
    if strange:
        is_partial = strange[0].suffix == ".part"
        why = "; an interrupted publication left it: remove it" if is_partial else ""
        report.add("log", f"p/{strange[0].name}: no publication{why}", ok=False)
    elif all(report.check(name, step) for name, step in steps):
        for place in places:
            report.merge(_verify_publication(place, trust_code=trust_code), place.name)
        if report.ok:
            report.check("trend", lambda: _check_trends(folder))
    return report


def _check_trends(folder: Path) -> str:
    """Check that every publication says of the earlier ones what they say: their points in its
    trend, the audits among them, and what changed.
    """
    _check_reruns(folder)
    _check_changes(folder)
    names = [event.publication for event in publications_in(read_ledger(folder))]
    before = Trend()
    for name in names:
        place = folder / "p" / name
        trend = read_trend(place)
        if (place / TREND).exists():  # boards of earlier versions have none
            reason = next((m.reason for m in trend.markers if m.publication == name), "")
            expected = record_line(extended(before, Run(place / PUBLISHED_RUN), name, reason))
            stored = parse_record((place / TREND).read_bytes(), str(TREND))
            if parse_record(expected, str(TREND)) != stored:
                raise Mismatch(f"p/{name}/{TREND.as_posix()}: not what its publications say")
            before = trend
    n, changes = len(before.series), len(before.markers)
    return (
        f"{n} publication{'s' if n != 1 else ''}, {changes} change{'s' if changes != 1 else ''} of"
        " series"
    )


def _check_reruns(folder: Path) -> None:
    entries = read_ledger(folder)
    for position, entry in enumerate(entries):
        place = folder / "p" / entry.event.publication
        if entry.event.is_publication:
            expected = reruns_in_series(entries[:position], series_of(Run(place / PUBLISHED_RUN)))
            if read_reruns(place) != expected:
                raise Mismatch(f"p/{place.name}/{RERUNS.as_posix()}: not what {LEDGER} says")


def _check_changes(folder: Path) -> None:
    """Check that what each publication says otherwise than the one before it is what both say."""
    entries = read_ledger(folder)
    for position, entry in enumerate(entries):
        name = entry.event.publication
        place = folder / "p" / name
        if not entry.event.is_publication:
            continue
        earlier = earlier_publication(entries[:position])
        if read_changes(place) is None:
            # Boards of earlier versions have none, nor has the first of a site.
            if earlier is not None and entry.record.get("code") == code_of_today():
                raise Mismatch(f"p/{name}/{CHANGES.as_posix()}: missing")
            continue
        if earlier is None:
            raise Mismatch(f"p/{name}/{CHANGES.as_posix()}: nothing was published before it")
        markers = read_trend(place).markers
        reason = next((marker.reason for marker in markers if marker.publication == name), "")
        before, now = ((each, Run(folder / "p" / each / PUBLISHED_RUN)) for each in (earlier, name))
        expected = changes_between(before, now, entries[:position], reason)
        if (place / CHANGES).read_bytes() != record_line(expected):
            raise Mismatch(f"p/{name}/{CHANGES.as_posix()}: not what p/{earlier} and p/{name} say")


def _verify_publication(folder: Path, *, trust_code: bool) -> VerificationReport:
    report = VerificationReport()
    if report.check("files", lambda: check_sums(folder, folder / "data" / SUMS, of_run=False)):
        report.merge(verify_run(folder / PUBLISHED_RUN, trust_code=trust_code), "run")
    return report


def _check_ledger(folder: Path, present: set[str]) -> str:
    """Check the chain, that it lists just what is there, and what it says of each publication."""
    entries = read_ledger(folder)
    if not entries:
        raise Mismatch(f"{LEDGER}: missing")
    names = [event.publication for event in publications_in(entries)]
    for name in sorted(present.symmetric_difference(names)):
        raise Mismatch(
            f"p/{name}: not in {LEDGER}" if name in present else f"p/{name}: in {LEDGER}, missing"
        )
    if len(set(names)) != len(names):
        raise Mismatch(f"{LEDGER}: a publication occurs twice")
    for entry in (entry for entry in entries if entry.event.is_publication):
        record, name = dict(entry.record), entry.event.publication
        sums = folder / "p" / name / "data" / SUMS
        if not sums.is_file() or file_sha256(sums) != entry.event.sums_sha256:
            raise Mismatch(f"p/{name}/data/{SUMS}: not the file of {LEDGER}")
        run = Run(folder / "p" / name / PUBLISHED_RUN)
        of_run = {**recorded(run.manifest, run.seal, rerun_of(run))}
        for key in sorted(of_run.keys() | (record.keys() & _OPTIONAL)):
            # Lines that were written before these were told lack them.
            earlier = key in ("joined", "rerun") and key not in record
            if not earlier and (key not in of_run or record[key] != of_run[key]):
                raise Mismatch(f"p/{name}: {LEDGER} says another {key}")
    for name, state in status_of(entries).items():
        path = folder / "status" / f"{name}.json"
        if not path.is_file() or path.read_bytes() != record_line(state):
            raise Mismatch(f"status/{name}.json: not what {LEDGER} says{_ONCE_MORE}")
    return f"{len(entries)} lines, last hash {entries[-1].hash}"


def _check_signatures(entries: list[LedgerEntry], signed_by: str) -> str:
    """Tell who signed; every signature there is was checked when the ledger was read."""
    last = entries[-1].signer
    if signed_by and last != signed_by.strip().lower():
        raise Mismatch(
            f"{LEDGER}: its last line is {f'signed by {last}' if last else 'unsigned'}, expected "
            f"the signature of {signed_by}"
        )
    if last is None:
        count = sum(entry.signer is not None for entry in entries)
        return f"unsigned ({count} of {len(entries)} lines are signed, the last is not)"
    first = next(n for n, entry in enumerate(entries, 1) if entry.signer)
    return (
        f"signed by {last}, and with it every line before; the first signature is on line {first}"
    )


def _check_pages(folder: Path) -> str:
    """Check the files beside the publications: those of the ledger anew, the pages by their
    sums.
    """
    entries = read_ledger(folder)
    head = folder / HEAD
    if not head.is_file() or head.read_bytes() != head_line(entries):
        raise Mismatch(f"{HEAD}: not what {LEDGER} says{_ONCE_MORE}")
    sums = folder / SITE_SUMS
    if not sums.is_file():
        raise Mismatch(f"{SITE_SUMS}: missing")
    expected = site_sums(folder, entries)
    if sums.read_bytes() != expected:
        listed = sums.read_bytes().splitlines()
        own_lines = expected.splitlines()
        changed = next((line for line in own_lines if line not in listed), b"")
        name = changed.decode().partition("  ")[2] or SITE_SUMS
        raise Mismatch(f"{name}: its bytes are not those listed in {SITE_SUMS}")
    listed_names = {line.partition("  ")[2] for line in expected.decode().splitlines()}
    present = files_in(folder, may_be_empty=_may_be_empty(folder))
    # Who publishes to an object store holds a lease beside the site; nobody is served that folder.
    others = ("p/", f"{LEASES}/") if mirror_of(folder) is not None else ("p/",)
    beside = {n for n in present if not n.startswith(others) and not of_the_host(n)}
    for name in sorted(beside - listed_names - {SITE_SUMS}):
        raise Mismatch(f"{name}: not among the files of {SITE_SUMS}")
    # Sums vouch for themselves only: where this code made the pages, they are made once more.
    if entries[-1].record.get("code") != code_of_today():
        return f"{len(listed_names)} files, not made anew: other code"
    pages = dict(site_files(entries, *site_words(folder, entries)))
    pages["index.html"] = front_page(front_board(folder, entries), entries)
    for name, content in pages.items():
        if (folder / name).read_bytes() != content:
            raise Mismatch(f"{name}: not the page that {LEDGER} and the newest ranking make")
    return f"{len(listed_names)} files, made anew"


def _kept_head(since: str) -> tuple[int, str] | str:
    """Return (size, root) of a kept head, or the kept hash of a line."""
    if re.fullmatch("[0-9a-f]{64}", since.lower()):
        return since.lower()
    try:
        record = parse_record(Path(since).read_bytes(), since)
    except OSError:
        record = None
    size, root = (record.get(k) for k in ("size", "root")) if isinstance(record, dict) else (0, 0)
    if type(size) is not int or size < 1 or not re.fullmatch("[0-9a-f]{64}", str(root)):
        raise InputError(
            f"--since '{since}': expected the hash of a line of {LEDGER}, or a file kept from"
            f" {HEAD}"
        )
    return size, str(root)


def _check_history(entries: list[LedgerEntry], head_kept: tuple[int, str] | str) -> str:
    """Check that the ledger has only grown since something of it was kept."""
    if isinstance(head_kept, str):
        numbers = [n for n, entry in enumerate(entries, 1) if entry.hash == head_kept]
        if not numbers:
            raise Mismatch(
                f"{LEDGER}: no line has the kept hash {head_kept}: history was rewritten"
            )
        return f"line {numbers[0]} of {len(entries)} is the kept one"
    size, root = head_kept
    records = [canonical(entry.record) for entry in entries]
    head = head_of(entries)
    if size > len(records):
        raise Mismatch(f"{LEDGER}: {len(records)} lines, the kept head has {size}: lines are gone")
    proof = consistency_proof(records, size)
    later = (head.size, bytes.fromhex(head.root))
    if not extends((size, bytes.fromhex(root)), later, proof):
        raise Mismatch(
            f"{LEDGER}: does not begin with the {size} kept lines: history was rewritten"
        )
    return f"the {size} kept lines are the first of {len(records)}: {len(proof)} hashes prove it"
