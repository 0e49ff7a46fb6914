"""Recompute everything a sealed run or a publication says, and name the first record that differs.

Hashes and intervals are always checked. Scores and parsed answers are recomputed where the code
that made them is this code; otherwise the report says "not recomputed: other code".
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medassay.answer.catalog import PARSERS
from medassay.answer.parse import read_answer
from medassay.audit.rejudge import Mismatch, Rejudging
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.item import Item
from medassay.core.ledger import LEDGER, is_publication, status_of
from medassay.core.trial import Completion, Prompt
from medassay.errors import IncompleteError, InputError, MedassayError
from medassay.publication.site import status_document
from medassay.runner.finish import read_judgements
from medassay.runner.manifest import code_of_today, parser_ids, scorer_ids
from medassay.storage.jsonl import read_jsonl
from medassay.storage.ledger import read_ledger
from medassay.storage.run import (
    JOURNALS,
    LOCK,
    SEAL,
    SUMS,
    Run,
    file_sha256,
    open_run,
    read_document,
    record_root,
)
from medassay.task.catalog import TASKS
from medassay.task.scoring import RunItems, must_judge, score_trials
from medassay.task.standings import Table, leaderboard_document
from medassay.task.task import Task

TOLERANCE = 1e-9
_ABSENT = object()


@dataclass
class Report:
    """What was checked, in order; `first_mismatch` names the first record that differs."""

    checks: list[dict[str, Any]] = field(default_factory=list)
    first_mismatch: str | None = None

    @property
    def ok(self) -> bool:
        """Return whether everything agrees."""
        return self.first_mismatch is None

    def add(self, name: str, detail: str, *, ok: bool = True) -> None:
        """Note one check."""
        self.checks.append({"name": name, "ok": ok, "detail": detail})
        if not ok and self.first_mismatch is None:
            self.first_mismatch = detail

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {"ok": self.ok, "checks": self.checks, "first_mismatch": self.first_mismatch}


def verify(path: str | Path) -> Report:
    """Return the report on a run's folder, a publication's folder, or a whole site.

    Raises
    ------
    InputError
        If the folder is none of these.
    """
    folder = Path(path)
    if (folder / "p").is_dir() or (folder / LEDGER).exists():
        return _verify_site(folder)
    if (folder / "data" / "run").is_dir():
        return _verify_publication(folder)
    if (
        (folder / SEAL).exists()
        or (folder / "manifest.json").exists()
        or (folder / SUMS).exists()
    ):
        return verify_run(folder)
    raise InputError(
        f"{folder}: neither a run, nor a publication, nor a site; expected one of them"
    )


def _verify_site(folder: Path) -> Report:
    report = Report()
    places = sorted(folder.glob("p/*/"))
    places = [place for place in places if not place.name.startswith(".")]
    if not places and not (folder / LEDGER).exists():
        raise InputError(f"{folder}: a site without publications; nothing to verify")
    if _checked(report, "log", lambda: _check_ledger(folder, {p.name for p in places})):
        for place in places:
            _merge(report, _verify_publication(place), place.name)
    return report


def _check_ledger(folder: Path, present: set[str]) -> str:
    """Check the chain, that it lists just what is there, and what it says of each publication."""
    entries = read_ledger(folder)
    if not entries:
        raise Mismatch(f"{LEDGER}: missing")
    published = [entry.record for entry in entries if is_publication(entry)]
    names = [record["publication"] for record in published]
    for name in sorted(present.symmetric_difference(names)):
        raise Mismatch(
            f"p/{name}: not in {LEDGER}"
            if name in present
            else f"p/{name}: in {LEDGER}, missing"
        )
    if len(set(names)) != len(names):
        raise Mismatch(f"{LEDGER}: a publication occurs twice")
    for record in published:
        sums = folder / "p" / record["publication"] / "data" / SUMS
        if not sums.is_file() or file_sha256(sums) != record["sums_sha256"]:
            raise Mismatch(f"p/{record['publication']}/data/{SUMS}: not the file of {LEDGER}")
    for name, state in status_of(entries).items():
        path = folder / "status" / f"{name}.json"
        if not path.is_file() or path.read_bytes() != status_document(state):
            raise Mismatch(f"status/{name}.json: not what {LEDGER} says")
    return f"{len(entries)} lines, last hash {entries[-1].hash}"


def _merge(into: Report, report: Report, name: str) -> None:
    for check in report.checks:
        detail = check["detail"] if check["ok"] else f"{name}: {check['detail']}"
        into.add(f"{name}: {check['name']}", detail, ok=check["ok"])


def _verify_publication(folder: Path) -> Report:
    report = Report()
    if _checked(report, "files", lambda: _check_sums(folder, folder / "data" / SUMS)):
        _merge(report, verify_run(folder / "data" / "run"), "run")
    return report


def verify_run(folder: Path) -> Report:
    """Return the report on one sealed run."""
    report = Report()
    if (
        not (folder / SEAL).exists()
        and (folder / "manifest.json").exists()
        and not (folder / SUMS).exists()
    ):
        raise IncompleteError(
            f"{folder}: the run is not finished; only sealed runs can be verified"
        )
    steps = (
        ("seal", _check_seal),
        ("files", _check_run_sums),
        ("records", _check_root),
        ("content", _check_content),
    )
    for name, step in steps:
        if not _checked(report, name, lambda step=step: step(folder)):
            break
    return report


def _checked(report: Report, name: str, check: Any) -> bool:
    try:
        report.add(name, check())
    except Mismatch as error:
        report.add(name, str(error), ok=False)
    except MedassayError as error:
        report.add(name, f"unreadable: {error}", ok=False)
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OSError,
    ) as error:
        report.add(name, f"unreadable: {type(error).__name__}: {error}", ok=False)
    return report.ok


def _check_seal(folder: Path) -> str:
    if not (folder / SEAL).is_file():
        raise Mismatch(f"{SEAL}: missing")
    seal = read_document(folder / SEAL)
    given = seal.pop("hash", None)
    if (
        sha256_hex(canonical(seal)) != given
        or (folder / SEAL).read_bytes() != canonical({**seal, "hash": given}) + b"\n"
    ):
        raise Mismatch(f"{SEAL}: its content does not have its own hash")
    if not (folder / SUMS).is_file() or file_sha256(folder / SUMS) != seal["sums_sha256"]:
        raise Mismatch(f"{SUMS}: not the file that was sealed")
    return f"seal {given[:16]}"


def _check_run_sums(folder: Path) -> str:
    return _check_sums(folder, folder / SUMS)


def _check_sums(folder: Path, sums: Path) -> str:
    if not sums.is_file():
        raise Mismatch(f"{sums.name}: missing")
    listed: dict[str, str] = {}
    for line in sums.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    own = (
        {sums.relative_to(folder).as_posix(), SEAL}
        if (folder / SEAL).exists()
        else {sums.relative_to(folder).as_posix()}
    )
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - own
    # What a kill just behind the seal leaves is no part of the run; `run` removes it.
    left = tuple(f"{name}/" for name in JOURNALS)
    present = {n for n in present if n != LOCK and not n.startswith(left)}
    for name in sorted(listed.keys() | present):
        if name not in present:
            raise Mismatch(f"{name}: missing")
        if name not in listed:
            raise Mismatch(f"{name}: not among the files of {sums.name}")
        if file_sha256(folder / name) != listed[name]:
            raise Mismatch(_changed_record(folder / name, name))
    return f"{len(listed)} files"


def _changed_record(path: Path, name: str) -> str:
    """Name the file, and where its lines are canonical records the first that is none."""
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    whole = canonical(json.loads(line)) + b"\n" == line
                except (ValueError, MedassayError):
                    whole = False
                if not whole:
                    return f"{name} line {number}: not the record that was sealed"
    return f"{name}: its bytes are not those that were sealed"


def _check_root(folder: Path) -> str:
    seal = read_document(folder / SEAL)
    root, count = record_root(folder)
    if (root, count) != (seal["root"], seal["count"]):
        raise Mismatch(
            f"trials.jsonl, scores.jsonl: {count} records with root {root[:16]}, sealed were {seal['count']} with {seal['root'][:16]}"
        )
    return f"{count} records, root {root[:16]}"


def _check_content(folder: Path) -> str:
    run = open_run(folder)
    task = TASKS[run.manifest["task"]]
    items = RunItems(folder, run.manifest["domains"])
    same_code = (
        run.manifest["scorers"] == scorer_ids() and run.manifest["parsers"] == parser_ids()
    )
    table = Table(items)
    judged = Rejudging(run, items, task) if "bench" in run.manifest else None
    for trial, score in _scores(run, items, task, judged, same_code=same_code):
        table.add(trial, score)
    if judged is not None and same_code:
        judged.audit()
    recomputed = leaderboard_document(table, run.manifest, task, read_judgements(run, items))
    own_code = run.manifest.get("code") == code_of_today()
    _compare(json.loads(canonical(recomputed)), run.statistics, "statistics.json", own_code)
    return "intervals, ranks and pairs recomputed; scores " + (
        "recomputed" if same_code else "not recomputed: other code"
    )


def _scores(
    run: Run, items: RunItems, task: Task, judged: Rejudging | None, *, same_code: bool
) -> Iterator[tuple[dict[str, Any], float | None]]:
    stored = read_jsonl(run.path / "scores.jsonl")
    last: tuple[Any, ...] = ()
    for number, ((trial, score), record) in enumerate(
        zip(score_trials(run.path, items, task), stored, strict=True), 1
    ):
        place = tuple(
            trial[k] for k in ("domain", "model", "setting", "mode", "item", "repeat")
        )
        if place <= last:
            raise Mismatch(
                f"trials.jsonl line {number}: out of order, or a trial that occurs twice"
            )
        last = place
        if same_code:
            _reread(trial, items.get(trial["domain"], trial["item"]), task, run, number)
            if judged is not None and must_judge(task, trial, items):
                score = judged.score(trial)  # noqa: PLW2901 -- what the verdicts come to
            if json.loads(canonical(score)) != record:
                raise Mismatch(
                    f"scores.jsonl line {number}: score {record.get('score')}, recomputed {score['score']}"
                )
        yield trial, record["score"]


def _reread(trial: dict[str, Any], item: Item, task: Task, run: Run, number: int) -> None:
    """Read the stored reply again, as the runner did."""
    parser = task.readers[item.form][0]
    if parser is None or trial["outcome"] == "failed":
        return
    order = tuple(trial["order"]) if "order" in trial else None
    shown = item.options if order is None else tuple(item.options[i] for i in order)
    prompt = Prompt(
        item_id=item.id,
        messages=(),
        encoded=b"",
        template="",
        letters=item.letters,
        options=shown,
        order=order,
    )
    completion = Completion(text=trial["text"], finish=trial["finish"])
    answer = read_answer(
        item, prompt, completion, PARSERS[parser], run.manifest["plan"]["extraction"]
    )
    if (answer.outcome, answer.value, answer.reason) != (
        trial["outcome"],
        trial["value"],
        trial["reason"],
    ):
        was, now = (
            f"{outcome}, {reason}: {value!r:.80}"
            for outcome, reason, value in (
                (trial["outcome"], trial["reason"], trial["value"]),
                (answer.outcome, answer.reason, answer.value),
            )
        )
        raise Mismatch(f"trials.jsonl line {number}: read as {was}; reads as {now}")


def _compare(found: Any, sealed: Any, where: str, own_code: bool) -> None:
    """Compare two documents; numbers may differ by 1e-9.

    Of a run of other code than this, fields that this code has added are no difference.
    """
    if isinstance(found, dict) and isinstance(sealed, dict):
        for key in sorted((found.keys() | sealed.keys()) if own_code else sealed.keys()):
            _compare(
                found.get(key, _ABSENT),
                sealed.get(key, _ABSENT),
                f"{where}: {key}" if ":" not in where else f"{where}.{key}",
                own_code,
            )
    elif isinstance(found, list) and isinstance(sealed, list) and len(found) == len(sealed):
        for number, (one, other) in enumerate(zip(found, sealed, strict=True)):
            _compare(one, other, f"{where}[{number}]", own_code)
    elif _number(found) and _number(sealed):
        if not math.isclose(found, sealed, rel_tol=0.0, abs_tol=TOLERANCE):
            raise Mismatch(f"{where}: {sealed} was sealed, {found} is recomputed")
    elif found is _ABSENT or sealed is _ABSENT or found != sealed:
        raise Mismatch(f"{where}: differs from what is recomputed")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
