"""A sealed run becomes a publication: pages, data, and the sums of every file.

The publication is assembled in a folder beside its place and moved there in one step: it is there
whole or not at all, and what was published is never touched again.
"""

import csv
import datetime as dt
import io
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from medassay.audit.verify import verify_run
from medassay.core.canonical import sha256_hex
from medassay.core.ledger import LEDGER, STATES, is_publication, status_of
from medassay.errors import GateError, IncompleteError, InputError, IntegrityError
from medassay.publication.board import OVERALL, Board, CellKey, ShownAnswer
from medassay.publication.page.catalog import PAGES
from medassay.publication.page.html import asset
from medassay.publication.page.ranking import ranking
from medassay.publication.site import site_files
from medassay.storage.jsonl import read_jsonl
from medassay.storage.ledger import append_entry, lock_site, read_ledger
from medassay.storage.run import SUMS, Run, file_sha256, sealed_names
from medassay.task.judged import TRIAL_KEY, by_trial
from medassay.task.scoring import RunItems

_ABSENT = dict.fromkeys(
    ("context", "question", "options", "expected", "range", "regex", "language")
)
_ASSETS = ("style.css", "script.js")
_SECRET = re.compile(
    rb"\b(sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}"
    rb"|AIza[0-9A-Za-z_-]{35}|xox[abp]-[0-9A-Za-z-]{10,})\b"
)


def publish(run: Run | str | Path, site: Path, *, publication: str | None = None) -> Path:
    """Write a publication of a sealed run into a site folder and return its first page.

    Parameters
    ----------
    publication : its id under `/p/`; default: the run's id

    Raises
    ------
    IntegrityError
        If the run is not what was sealed.
    GateError
        If the id is taken, or the run holds what must not become public (private items, banks that
        may not leave, text that looks like a secret). Nothing is written then.
    """
    found = run if isinstance(run, Run) else Run(Path(run))
    if not found.sealed:
        raise IncompleteError(
            f"run {found.path.name}: not finished; only sealed runs are published"
        )
    report = verify_run(found.path)
    if not report.ok:
        raise IntegrityError(f"run {found.id}: {report.first_mismatch}; it is not published")
    items = RunItems(found.path, found.manifest["domains"])
    _refuse_private(found, items)
    name = publication or found.id
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise InputError(
            f"publication id '{name}': expected a-z, 0-9, dot and hyphen; give one with --id"
        )
    if found.path.resolve() in (site.resolve(), *site.resolve().parents):
        raise InputError(f"{site}: lies in the run that is published; choose another folder")
    place = site / "p" / name
    board = _board(found, items, name)
    with lock_site(site):
        _refuse_foreign(site)
        if place.exists():
            _record(
                site, board, place
            )  # unless an earlier call was cut off just before its end
            raise GateError(f"{place}: this publication exists; published bytes never change")
        draft = site / "p" / f".{name}.part"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            _assemble(draft, board, found)
            draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        for path in place.rglob("*"):
            if path.is_file():
                path.chmod(0o444)
        _record(site, board, place)
    return place / "index.html"


def set_status(
    site: Path, publication: str, status: str, *, reason: str, following: str | None = None
) -> None:
    """Say of a publication that it is superseded, corrected or retracted; its own bytes stay.

    Parameters
    ----------
    following : the publication to read instead

    Raises
    ------
    InputError
        When the site has no such publication, the status is unknown or no reason is given.
    """
    if status not in STATES:
        raise InputError(f"status '{status}': expected one of {', '.join(STATES)}")
    if not reason.strip():
        raise InputError("--reason: empty; readers must learn why")
    if not (site / LEDGER).is_file():
        raise InputError(f"{site}: no site; expected a folder with {LEDGER}")
    with lock_site(site):
        known = status_of(read_ledger(site))
        for name in (publication, following):
            if name is not None and name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise InputError(f"{site}: no publication '{name}'; there are {listed}")
        if following == publication:
            raise InputError(f"--next: '{following}' is the publication itself")
        record = {"event": "status", "publication": publication, "status": status}
        more = {"schema_version": 1, "at": _now(), "reason": reason, "next": following}
        append_entry(site, {**record, **more})
        _write_site(site)


def _refuse_foreign(site: Path) -> None:
    """Refuse a site whose publications are not in its ledger's hand."""
    logged = {e.record["publication"] for e in read_ledger(site)}
    present = {path.parent.name for path in (site / "p").glob("*/index.html")}
    if not logged and len(present) > 1:
        raise GateError(
            f"{site}: holds publications and no {LEDGER}; publish into a new folder, or bring the "
            "ledger back"
        )


def _record(site: Path, board: Board, place: Path) -> None:
    """Enter a publication into the ledger, once, and make the site's own pages anew."""
    name = board.publication
    logged = {e.record["publication"] for e in read_ledger(site)}
    if name not in logged:
        record = {
            "schema_version": 1,
            "event": "publication",
            "at": _now(),
            "publication": name,
            "run": board.manifest["run"],
            "banks": [bank["version"] for bank in board.manifest["banks"]],
            "methodology": board.manifest["methodology"],
            "root": board.seal["root"],
            "sums_sha256": file_sha256(place / "data" / SUMS),
        }
        append_entry(site, record)
    if name == _published(site)[-1]:
        _front(site, board)
    _write_site(site)


def _published(site: Path) -> list[str]:
    """Return the publications of a site, oldest first."""
    return [e.record["publication"] for e in read_ledger(site) if is_publication(e)]


def _write_site(site: Path) -> None:
    for address, content in site_files(read_ledger(site)):
        _replace(site / address, content)


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _refuse_private(run: Run, items: RunItems) -> None:
    for bank in run.manifest["banks"]:
        if not bank["may_leave"]:
            raise GateError(
                f"bank '{bank['name']}' may not leave (may_leave = false): not published"
            )
    for item in items:
        if item.kind != "public":
            raise GateError(
                f"item '{item.id}' is {item.kind}: its text must stay private, and publishing with "
                "withheld items is not possible yet; nothing was written"
            )
    for name in sealed_names(run.path):
        with (run.path / name).open("rb") as file:
            for number, line in enumerate(file, 1):
                if _SECRET.search(line):
                    raise GateError(f"{name} line {number}: looks like a secret: not published")


def _board(run: Run, items: RunItems, name: str) -> Board:
    failures: dict[str, int] = {}
    totals: dict[str, list[float]] = {}
    timings = read_jsonl(run.path / "timings.jsonl")
    for trial, timing in zip(read_jsonl(run.path / "trials.jsonl"), timings, strict=True):
        if trial["outcome"] == "failed":
            failures[trial["model"]] = failures.get(trial["model"], 0) + 1
        elif timing.get("seconds"):
            totals.setdefault(trial["model"], []).append(timing["seconds"])
    return Board(
        publication=name,
        date=run.seal["sealed_at"][:10],
        manifest=run.manifest,
        statistics=run.statistics,
        seal=run.seal,
        failures=failures,
        seconds={model: sum(times) / len(times) for model, times in totals.items()},
        answers=lambda: _answers(run, items),
    )


def _answers(run: Run, items: RunItems) -> Iterator[tuple[CellKey, list[ShownAnswer]]]:
    with (run.path / "trials.jsonl").open("rb") as lines:
        digests = (sha256_hex(line.removesuffix(b"\n")) for line in lines)
        records = zip(
            read_jsonl(run.path / "trials.jsonl"),
            read_jsonl(run.path / "scores.jsonl"),
            digests,
            strict=True,
        )
        said = _verdicts(run)
        cell = lambda entry: tuple(entry[0][k] for k in ("domain", "model", "setting", "mode"))  # noqa: E731 -- a key
        for (domain, model, setting, mode), group in groupby(records, key=cell):
            answers = [
                ShownAnswer(
                    item={**_ABSENT, **items.record(domain, trial["item"])},
                    trial=trial,
                    score=score["score"],
                    because=score["because"],
                    sha256=digest,
                    verdicts=said(trial),
                )
                for trial, score, digest in group
            ]
            yield CellKey(domain=domain, model=model, setting=setting, mode=mode), answers


def _verdicts(run: Run) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """Return what gives the verdicts on each trial, asked in the order of the file."""
    path = run.path / "verdicts.jsonl"
    groups = by_trial(read_jsonl(path)) if path.exists() else iter(())
    waiting = next(groups, None)

    def said(trial: dict[str, Any]) -> list[dict[str, Any]]:
        nonlocal waiting
        if waiting is None or waiting[0] != tuple(trial[k] for k in TRIAL_KEY):
            return []
        found, waiting = waiting[1], next(groups, None)
        return found

    return said


def _assemble(folder: Path, board: Board, run: Run) -> None:
    data = folder / "data" / "run"
    data.mkdir(parents=True)
    for name in sealed_names(run.path):
        shutil.copyfile(run.path / name, data / name)
    for name in _ASSETS:
        (folder / name).write_bytes(asset(name))
    (folder / "data" / "leaderboard.csv").write_text(leaderboard_csv(board), encoding="utf-8")
    (folder / "data" / "pairs.csv").write_text(pairs_csv(board), encoding="utf-8")
    for pages in PAGES.values():
        for address, content in pages(board):
            target = folder / address
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    sums = "".join(f"{file_sha256(folder / name)}  {name}\n" for name in files)
    (folder / "data" / SUMS).write_text(sums, encoding="utf-8")


def _front(site: Path, board: Board) -> None:
    """Write the site's own first page: the newest ranking and the list of publications."""
    names = _published(site)
    _, content = ranking(board, OVERALL, board.modes[0], up=f"p/{board.publication}/")
    listed = "".join(
        f'<li><a href="p/{name}/index.html">{name}</a> '
        f'(<a href="status/{name}/index.html">status</a>)</li>'
        for name in reversed(names)
    )
    content = content.replace(
        "</main>",
        f'<h2>Publications</h2>\n<ul>{listed}</ul>\n<p><a href="log/index.html">Log of all '
        "publications</a></p>\n</main>",
    )
    _replace(site / "index.html", content.encode())


_COLUMNS = [
    "domain",
    "mode",
    "model",
    "setting",
    "metric",
    "score",
    "lo",
    "hi",
    "second_method",
    "second_lo",
    "second_hi",
    "n",
    "n_common",
    "coverage",
    "rank",
    "rank_lo",
    "rank_hi",
    "group",
    "unparsed_rate",
    "ambiguous_rate",
    "agreement",
    "unanimous",
    "hallucination_rate",
    "hallucination_lo",
    "hallucination_hi",
    "contradict_rate",
    "judge_failures",
    "flags",
]


def _table(columns: list[str], rows: Iterator[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        # A cell that a spreadsheet would run as a formula is text: model names come from outside.
        writer.writerow(
            {
                k: f"'{v}" if isinstance(v, str) and v[:1] in "=+-@" else v
                for k, v in row.items()
            }
        )
    return text.getvalue()


def leaderboard_csv(board: Board) -> str:
    """Return every ranking as one table."""

    def rows() -> Iterator[dict[str, Any]]:
        for domain, found in board.statistics["domains"].items():
            for row in found:
                second = row["second"] or {}
                ends = {f"second_{key}": second.get(key) for key in ("method", "lo", "hi")}
                rate = row.get("hallucination_rate") or {}
                ends |= {f"hallucination_{key}": rate.get(key) for key in ("lo", "hi")}
                ends["hallucination_rate"] = rate.get("score")
                yield {**row, **ends, "domain": domain, "flags": " ".join(row["flags"])}

    return _table(_COLUMNS, rows())


def pairs_csv(board: Board) -> str:
    """Return every pair of ranked rows as one table."""
    columns = [
        "domain",
        "mode",
        "first",
        "first_setting",
        "second",
        "second_setting",
        "difference",
        "lo",
        "hi",
        "test",
        "p",
        "p_holm",
        "p_max_t",
        "different",
        "separated",
        "ordered",
        "note",
    ]

    def rows() -> Iterator[dict[str, Any]]:
        for mode, fields in board.statistics["fields"].items():
            for domain, field in fields.items():
                for pair in field["pairs"]:
                    names = {
                        "first": pair["first"][0],
                        "first_setting": pair["first"][1],
                        "second": pair["second"][0],
                        "second_setting": pair["second"][1],
                    }
                    yield {**pair, **names, "domain": domain, "mode": mode}

    return _table(columns, rows())
