"""HealthBench results of others → a sealed run: answers with the criterion verdicts given for them.

A line is that of the bank (`bank/loaders/healthbench.py`) with `prompt_response` (turns) and `responses`: for
each criterion the judge's `response_dict` (`criteria_met`, `explanation`), as a list or its text, as
the HealthBench evaluation writes it. The verdicts are taken as given; scores follow from them.
"""

import ast
import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from medassay.bank.builder import read_records
from medassay.bank.check import build_item, check_record
from medassay.bank.loaders.healthbench import DOMAIN, record_of
from medassay.bank.run_items import RunItems
from medassay.bank.serialize import item_record
from medassay.core.canonical import canonical, content_hash, sha256_hex
from medassay.core.records.item import Item
from medassay.core.records.trial import Completion, Prompt
from medassay.core.records.verdict import Verdict
from medassay.errors import InputError
from medassay.exchange.imported import ImportSource, file_digest, import_manifest, new_run
from medassay.judging.queue import Answers
from medassay.kinds.criteria.grader import CriteriaGrader
from medassay.kinds.criteria.tasks import RUBRIC
from medassay.kinds.parsers import PARSERS
from medassay.kinds.read_answer import read_answer
from medassay.runner.finish import finish, write_judged_scores, write_scores
from medassay.runner.judge_stage import verdict_fields
from medassay.runner.manifest import grader_entry
from medassay.runner.revisions import revision_ids, revisions
from medassay.storage.run import Run, create_run

_LONGEST = 2_000_000  # characters of one answer's verdicts
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
GIVEN = "given"  # the judge whose verdicts came with the file


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One line: an item, the answer to it, and what was said of it."""

    item: Item
    text: str
    verdict: Verdict
    model: str = ""
    where: str = ""


def import_healthbench(
    files: Sequence[Path],
    *,
    models: Sequence[str] = (),
    runs: Path | None = None,
    to: Path | None = None,
) -> Run:
    """Return the sealed run made from files of HealthBench results, each of one model.

    Parameters
    ----------
    files : JSON Lines, or folders of these at any depth
    models : the names under which the answers are published, one a file; without any they are called as their files, which do not say it
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming the file, the row and what was expected; nothing is left half-written.
    """
    found = [file for given in files for file in _files(given)]
    if any(not model.strip() for model in models):
        raise InputError("--model: empty; name the model that gave the answers")
    names = [*models] or [file.stem for file in found]
    if len(names) != len(found):
        raise InputError(
            f"--model: {len(names)} for {len(found)} files ({', '.join(f.name for f in found)}); name one for "
            "each, or none: then they are called as their files"
        )
    for one, other in pairwise(sorted(names)):
        if one == other:
            raise InputError(f"two files are of model '{one}'; name each with --model")
    digests = [file_digest(file) for file in found]
    source = ImportSource(
        file=found[0],
        digest=digests[0] if len(found) == 1 else sha256_hex("".join(digests).encode()),
        task=RUBRIC.name,
        limits="Imported answers: how they were asked for is known to the file's maker.",
        title="" if len(found) == 1 else f"{found[0].stem} and {len(found) - 1} more",
    )
    return new_run(
        [source.digest, names[0] if len(names) == 1 else names],
        lambda folder, name: _fill(
            folder, source, dict(zip(names, found, strict=True)), name, digests
        ),
        runs=runs or Path("runs"),
        to=to,
    )


def _files(given: Path) -> list[Path]:
    """Return a file, or the JSON Lines of a folder at any depth."""
    if not given.is_dir():
        return [given]
    found = sorted(given.rglob("*.jsonl"))
    if not found:
        raise InputError(
            f"{given}: holds no *.jsonl, at any depth; expected HealthBench results"
        )
    return found


def read_healthbench(path: Path) -> Iterator[Judged]:
    """Yield every judged answer of a file.

    Raises
    ------
    InputError
        Naming the row that is not of this form.
    """
    for number, row in enumerate(read_records(path), 1):
        where = f"{path.name} row {number}"
        try:
            record = record_of(row)
            said = _listed(row["responses"])
            turns = row.get("prompt_response") or []
            text = "\n\n".join(_said(turn) for turn in turns)
            met = [_one(given, row["rubrics"][at]) for at, given in enumerate(said)]
        except _UNREADABLE:
            raise InputError(
                f"{where}: expected prompt, prompt_id, example_tags, rubrics (criterion, points, tags), "
                "prompt_response and responses with points and response_dict.criteria_met"
            ) from None
        if record is None or len(met) != len(row["rubrics"]):
            raise InputError(
                f"{where}: {len(met)} verdicts for {len(row['rubrics'])} criteria; expected one for "
                "each, a question, and a criterion with points above 0"
            )
        record |= {"kind": "public", "source": "HealthBench"}
        check_record(record, where, {DOMAIN})
        by_id = {f"c{at}": one for at, one in enumerate(met, 1)}
        body = [{"id": c["id"], **by_id[c["id"]]} for c in record["criteria"]]
        one = Judged(
            item=build_item(record),
            text=text,
            verdict=Verdict(valid=True, body={"criteria": body}),
            where=where,
        )
        _check_score(one, row.get("score"), where)
        yield one


def _check_score(one: Judged, stored: Any, where: str) -> None:
    """Refuse a file whose own score is not what its verdicts give."""
    score = CriteriaGrader().score(one.item, one.verdict)
    given = isinstance(stored, int | float) and not isinstance(stored, bool)
    if given and score is not None and not math.isclose(stored, score, abs_tol=1e-6):
        raise InputError(f"{where}: score {stored}, but its verdicts give {score:.10g}")


def _listed(given: Any) -> Any:
    """Return a list that may be written as text: published files hold Python literals."""
    if isinstance(given, str) and len(given) > _LONGEST:
        raise ValueError(f"{len(given)} characters of verdicts")
    return ast.literal_eval(given) if isinstance(given, str) else given


def _said(turn: Any) -> str:
    """Return what a turn of the model says; null is no answer."""
    content = turn["content"]
    if turn["role"] != "assistant" or not isinstance(content, str | None):
        raise TypeError(f"{turn!r:.40} is no text of a model")
    return content or ""


def _one(given: Any, rubric: Any) -> dict[str, Any]:
    """Return what was said of one criterion; the points beside it must be those of the rubric."""
    if given["points"] != rubric["points"]:
        raise ValueError("verdicts in another order than criteria")
    met = given["response_dict"]["criteria_met"]
    if not isinstance(met, bool):
        raise TypeError("criteria_met is neither true nor false")
    why = str(given["response_dict"].get("explanation", ""))
    return {"met": met, "why": why.encode("utf-8", "replace").decode()}


def _fill(
    folder: Path,
    source: ImportSource,
    files: Mapping[str, Path],
    name: str,
    digests: Sequence[str],
) -> None:
    judged = sorted(
        (
            replace(one, model=model)
            for model, file in files.items()
            for one in read_healthbench(file)
        ),
        key=lambda one: (one.model, one.item.id),
    )
    if not judged:
        raise InputError(f"{source.file.name}: no rows")
    for one, other in pairwise(judged):
        if (one.model, one.item.id) == (other.model, other.item.id):
            raise InputError(f"{other.where}: prompt_id '{one.item.id}' occurs twice")
    records: dict[str, dict[str, Any]] = {}
    for one in judged:
        record = item_record(one.item)
        if records.setdefault(one.item.id, record) != record:
            raise InputError(
                f"{one.where}: prompt_id '{one.item.id}' asks something else, or has other criteria, than in another "
                "file; import files of one benchmark together"
            )
    judge = CriteriaGrader()
    with (folder / "items.jsonl").open("wb") as items:
        for item in sorted(records):
            items.write(canonical(records[item]) + b"\n")
    with (
        (folder / "trials.jsonl").open("wb") as trials,
        (folder / "timings.jsonl").open("wb") as timings,
        (folder / "verdicts.jsonl").open("wb") as verdicts,
    ):
        for one in judged:
            trial = _trial(one)
            trials.write(canonical(trial) + b"\n")
            timings.write(b"{}\n")
            if trial["outcome"] == "answered":
                verdicts.write(canonical(_verdict(one, trial, judge)) + b"\n")
    logs = [
        {"file": file.name, "sha256": digest, "model": model}
        for (model, file), digest in zip(files.items(), digests, strict=True)
    ]
    manifest = import_manifest(
        source,
        domains=[DOMAIN],
        models=sorted(files),
        settings=["zero_shot"],
        n_items=len(records),
        content=content_hash(records.values()),
        **({"logs": logs} if len(logs) > 1 else {}),
    )
    bench = {
        "judges": [{"id": GIVEN, "model": "", "provider": "import", "family": "unknown"}],
        "bench": {model: [GIVEN] for model in sorted(files)},
        **grader_entry({DOMAIN: judge}),
        "revisions": revision_ids(revisions(RUBRIC, [judge])),
    }
    run = create_run(folder.parent, folder.name, {**manifest, **bench, "run": name})
    run_items = RunItems(run.path, run.manifest["domains"])
    write_scores(run, RUBRIC, run_items)
    write_judged_scores(run, Answers(run, run_items, RUBRIC), {DOMAIN: judge}, 1)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    finish(run, RUBRIC, run_items, [], sealed_at=now)


def _trial(one: Judged) -> dict[str, Any]:
    prompt = Prompt(item_id=one.item.id, messages=(), encoded=b"", template="")
    completion = Completion(text=one.text)
    answer = read_answer(one.item, prompt, completion, PARSERS["text"])
    return {
        "schema_version": 1,
        "domain": DOMAIN,
        "model": one.model,
        "setting": "zero_shot",
        "mode": "solo",
        "item": one.item.id,
        "repeat": 0,
        "text": one.text,
        "finish": "stop",
        "outcome": answer.outcome,
        "value": answer.value,
        "reason": answer.reason,
    }


def _verdict(one: Judged, trial: dict[str, Any], judge: CriteriaGrader) -> dict[str, Any]:
    kept = ("schema_version", "domain", "model", "setting", "mode", "item", "repeat")
    return {
        **{key: trial[key] for key in kept},
        "judge": GIVEN,
        "seat": 0,
        "given": True,
        "rubric": judge.id,
        **verdict_fields(one.verdict),
        "masked": 0,
        "cut": 0,
        "score": judge.score(one.item, one.verdict),
    }
