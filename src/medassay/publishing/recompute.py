"""Recompute everything that a sealed run says, and name the first record that differs.

Hashes are always checked (`sealed_files.py`). Answers, scores, verdicts and intervals are computed
again where the parts of the method that made them have the revision that they have here; else the
report says which differ: "not recomputed: parser choice/2, here choice/3".
"""

import math
import multiprocessing
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.json import parse_record
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.own_code import OWN_CODE, CodePart, Role
from medassay.core.records.score import TrialScore
from medassay.core.records.sealed_object import ScoreObject
from medassay.core.records.target import Withheld
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial, TrialKey
from medassay.core.revision import without_hash
from medassay.errors import IncompleteError, MedassayError
from medassay.judging.queue import must_judge
from medassay.kinds.catalog import parser_of, public_parts, task_of_run
from medassay.kinds.read_answer import prompt_as_shown, read_answer, read_likelihoods
from medassay.kinds.scoring import TaskScorer
from medassay.kinds.statistics import RunStatistics
from medassay.own_code.kept import is_kept, not_executed, recalled
from medassay.publishing.redaction import PUBLIC_FIELDS, SCORE_FIELDS, TRIAL_FIELDS
from medassay.publishing.report import Mismatch, VerificationReport
from medassay.publishing.reread_verdicts import VerdictReader
from medassay.publishing.sealed_files import check_joined, check_root, check_run_sums, check_seal
from medassay.runner.finish import read_judgements
from medassay.runner.manifest import code_of_today
from medassay.runner.revisions import other_revisions, revisions
from medassay.storage.jsonl import line_parts
from medassay.storage.records import StoredTrial, read_scored_trials, read_stored_trials
from medassay.storage.run import SEAL, SUMS, Run, open_run
from medassay.summary.leaderboard import without_judging

TOLERANCE = 1e-9
_ABSENT = object()
_MANY = 200_000  # trials, above which other processes help to recompute scores
_PART = 50_000  # trials that one of them checks at once


def verify_run(folder: Path, *, trust_code: bool = False) -> VerificationReport:
    """Return the report on one sealed run.

    Parameters
    ----------
    trust_code : whether own code beside the run may be executed; without it, what comes from own
        code is not computed again
    """
    report = VerificationReport()
    if (
        not (folder / SEAL).exists()
        and (folder / "manifest.json").exists()
        and not (folder / SUMS).exists()
    ):
        raise IncompleteError(
            f"{folder}: the run is not finished; only sealed runs can be verified"
        )
    steps = (
        ("seal", check_seal),
        ("files", check_run_sums),
        ("records", check_root),
        ("content", partial(_check_content, trust_code=trust_code)),
    )
    for name, step in steps:
        if not report.check(name, partial(step, folder)):
            return report
    joined = Run(folder)
    if joined.manifest.joined is not None and joined.seal.withheld is None:
        report.check("members", partial(check_joined, folder))
    return report


def _check_content(folder: Path, *, trust_code: bool = False) -> str:
    run = open_run(folder)
    task = task_of_run(run.manifest)
    is_here = is_kept(task, folder)
    task = recalled(task, folder) if trust_code and is_here else task
    untold = not_executed(task)
    why = "--trust-code executes it" if is_here else "its text is not published"
    items = RunItems(folder, run.manifest.domains)
    statistics = RunStatistics(items, run.manifest, task)
    judged = VerdictReader(run, items, task) if run.manifest.bench is not None else None
    graders = () if judged is None else judged.graders
    here = revisions(task, graders, forms=items.forms)
    others = partial(other_revisions, run.manifest, here, of_task=revisions(task, graders))
    other_scores = others(("parser", "reader", "scorer", "measure"))
    other_verdicts = None if judged is None else others(("grader", "panel", "sanitizer", "reader"))
    if "parser" in untold or "scorer" in untold:
        other_scores = other_scores or _named(untold, why)
    if "grader" in untold:
        other_verdicts = other_verdicts or _named(untold, why)
    other_statistics = others(("panel", "statistic"))
    if judged is not None:
        judged.compare(other_verdicts, this_code=_is_this_code(run))
    same_parts = other_scores is None
    many = (
        _may_help()
        and judged is None
        and task.own is None
        and len(items) * len(run.manifest.models) >= _MANY
    )
    checked = (
        _scores_beside(run, same_parts=same_parts)
        if many
        else _scores(run, items, task, judged, same_parts=same_parts)
    )
    for trial, score in checked:
        statistics.add(trial, score)
    withheld = Withheld.form in items.forms
    if judged is not None and judged.other is None and same_parts and not withheld:
        judged.check_end()
        judged.check_spot_check()
    judgements = None if withheld else read_judgements(run, items)
    if other_statistics is None:
        document = statistics.document(judgements)
        _check_statistics(run, canonical(document), withheld=withheld)
    intervals = "intervals, ranks and pairs " + _recomputed(other_statistics)
    scores = f"scores {_recomputed(other_scores)}"
    if judged is not None and judged.other is not None:
        scores += f"; verdicts not read again: {judged.other}"
    elif judged is not None and other_scores is not None:
        scores += "; neither were verdicts read again"
    if withheld:
        scores += "; those of withheld items, and what judges said of them, taken as published"
    return f"{intervals}; {scores}"


def _named(untold: Mapping[Role, CodePart], why: str) -> str:
    """Return own code that is not executed, for the report, and why not."""
    names = ", ".join(part.shown for part in untold.values())
    return f"{OWN_CODE} {names}; {why}"


def _recomputed(other: str | None) -> str:
    return "recomputed" if other is None else f"not recomputed: {other}"


def _check_statistics(run: Run, document: bytes, *, withheld: bool) -> None:
    """Compare what is computed from the scores with what was sealed."""
    if not withheld and document + b"\n" == (run.path / "statistics.json").read_bytes():
        return
    sealed = without_judging(run.statistics.document) if withheld else run.statistics.document
    own_code = run.manifest_document.get("code") == code_of_today()
    _compare(parse_record(document, "statistics.json"), sealed, "statistics.json", own_code)


def _is_this_code(run: Run) -> bool:
    """Return whether the very commit that runs now made a run.

    A changed checkout cannot be known again.
    """
    code, commit = run.manifest_document.get("code"), run.manifest.code.commit
    return code == code_of_today() and commit is not None and not commit.endswith("+")


class _LineRange(msgspec.Struct, frozen=True):
    """Some lines of trials.jsonl and scores.jsonl, next to each other: where they begin, and how
    many they are.
    """

    trials: int = 0  # offset in bytes
    scores: int = 0
    first: int = 1  # line number
    lines: int | None = None  # None: to the end


_WHOLE = _LineRange()


def _scores(
    run: Run,
    items: RunItems,
    task: Task,
    judged: VerdictReader | None,
    *,
    same_parts: bool,
    part: _LineRange = _WHOLE,
) -> Iterator[tuple[Trial, TrialScore]]:
    """Yield the trials of a part with their scores, each checked."""
    scoring = TaskScorer(task)
    last: TrialKey | tuple[()] = ()
    for number, stored in enumerate(_stored(run, part), part.first):
        trial = stored.trial
        last = _in_order(trial, last, number)
        item = items.get(trial.domain, trial.item)
        if isinstance(item.target, Withheld):
            if item.target.tombstone is not None:
                _check_deleted(stored.trial_line, number)
            else:
                _check_withheld(stored, number, public_parts(run.manifest))
        elif same_parts:
            _reread(trial, item, task, run, number)
            score = scoring.record(item, last, trial.answer, trial.text or "")
            if judged is not None and must_judge(task, trial, items):
                if judged.other is not None:
                    yield trial, stored.score
                    continue
                score = judged.score(trial, score.get("parts", {}))
            _compare_score(score, stored, number)
        yield trial, stored.score


def _compare_score(score: ScoreObject, stored: StoredTrial, number: int) -> None:
    record = stored.score_record
    if "measured" in record:  # by models of metrics, which need not be here
        score = {**score, "measured": record["measured"]}
    if score == record:
        return
    # A run that was sealed before there were revisions names its scorer with a hash.
    if score != {**record, "scorer": without_hash(record["scorer"])}:
        raise Mismatch(
            f"scores.jsonl line {number}: score {record.get('score')}, recomputed {score['score']}"
        )


def _stored(run: Run, part: _LineRange) -> Iterator[StoredTrial]:
    records = read_stored_trials(run.path, trials=part.trials, scores=part.scores, line=part.first)
    return islice(records, part.lines)


def _in_order(trial: Trial, last: TrialKey | tuple[()], number: int) -> TrialKey:
    place = trial.place
    if place <= last:
        raise Mismatch(f"trials.jsonl line {number}: out of order, or a trial that occurs twice")
    return place


def _may_help() -> bool:
    """Return whether other processes may be started: from our own command, not from a script that
    they would run again.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    is_medassay = spec is not None and spec.name.partition(".")[0] == "medassay"
    return is_medassay or Path(getattr(main, "__file__", "")).stem == "medassay"


def _scores_beside(run: Run, *, same_parts: bool) -> Iterator[tuple[Trial, TrialScore]]:
    """Yield all trials with their scores; other processes check them meanwhile, a part each."""
    parts = list(_parts(run))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as pool:
        checks = [pool.submit(_check_part, run.path, part, same_parts) for part in parts]
        try:
            last: TrialKey | tuple[()] = ()
            for number, (trial, score) in enumerate(read_scored_trials(run.path), 1):
                last = _in_order(trial, last, number)
                yield trial, score
            for check in checks:
                if (outcome := check.result()) is not None:
                    raise Mismatch(outcome)
        finally:
            pool.shutdown(cancel_futures=True)


def _parts(run: Run) -> Iterator[_LineRange]:
    """Yield the whole of a run in parts."""
    first = 1
    trials, scores = (
        line_parts(run.path / f"{name}.jsonl", _PART) for name in ("trials", "scores")
    )
    for (trial, lines), (score, _) in zip(trials, scores, strict=False):
        yield _LineRange(trial, score, first, lines)
        first += lines


def _check_part(folder: Path, part: _LineRange, same_parts: bool) -> str | None:
    """Return the first mismatch in a part, None if there is none."""
    try:
        run, items = _open_once(folder)
        task = task_of_run(run.manifest)
        for _ in _scores(run, items, task, None, same_parts=same_parts, part=part):
            pass
    except (Mismatch, MedassayError) as error:
        return str(error)
    return None


@lru_cache(maxsize=1)
def _open_once(folder: Path) -> tuple[Run, RunItems]:
    """Return a run and its items, once in each process that helps."""
    run = open_run(folder)
    return run, RunItems(folder, run.manifest.domains, check=False)  # checked before they started


def _check_deleted(trial_line: bytes, number: int) -> None:
    """Check that nothing of an answer is left beside its tombstone."""
    record = parse_record(trial_line, f"trials.jsonl line {number}")
    for name in record.keys() - {*TRIAL_FIELDS, "reason", "tombstone"}:
        raise Mismatch(f"trials.jsonl line {number}: '{name}' of a deleted item is still there")


def _check_withheld(stored: StoredTrial, number: int, public: Collection[str]) -> None:
    """Check that an answer to a synthetic item says nothing that must not be public."""
    trial = parse_record(stored.trial_line, f"trials.jsonl line {number}")
    score = stored.score_record
    allowed = {*TRIAL_FIELDS, "reason", "commitment"}
    for name in trial.keys() - allowed:
        raise Mismatch(f"trials.jsonl line {number}: '{name}' of a synthetic item is not withheld")
    strange = {f"parts.{name}" for name in score.get("parts", {}).keys() - {*public}}
    for name in strange | (score.keys() - {*SCORE_FIELDS, *PUBLIC_FIELDS}):
        raise Mismatch(f"scores.jsonl line {number}: '{name}' of a synthetic item is not withheld")
    if trial.get("reason", "ambiguous") != "ambiguous":
        raise Mismatch(f"trials.jsonl line {number}: 'reason' of a synthetic item is not withheld")


def _reread(trial: Trial, item: Item, task: Task, run: Run, number: int) -> None:
    """Read the stored reply again, as the runner did."""
    parser = task.readers[item.form][0]
    if parser is None or trial.outcome == "failed":
        return
    order = trial.order
    if trial.likelihoods is not None or trial.drawn is not None:
        answer = read_likelihoods(item, order, trial.likelihoods or (), trial.drawn)
    else:
        completion = Completion(text=trial.text or "", finish=trial.finish or "other")
        mode = run.manifest.plan.extraction
        answer = read_answer(
            item, prompt_as_shown(item, order), completion, parser_of(task, item.form), mode
        )
    sealed = trial.outcome, trial.reason, trial.value
    reread = answer.outcome, answer.reason, answer.value
    if sealed != reread:
        was, now = (f"{outcome}, {why}: {value!r:.80}" for outcome, why, value in (sealed, reread))
        raise Mismatch(f"trials.jsonl line {number}: read as {was}; reads as {now}")


def _compare(computed: Any, sealed: Any, where: str, own_code: bool) -> None:
    """Compare two documents; numbers may differ by 1e-9.

    Of a run of other code than this, fields that this code has added are no difference.
    """
    if isinstance(computed, dict) and isinstance(sealed, dict):
        for key in sorted((computed.keys() | sealed.keys()) if own_code else sealed.keys()):
            _compare(
                computed.get(key, _ABSENT),
                sealed.get(key, _ABSENT),
                f"{where}: {key}" if ":" not in where else f"{where}.{key}",
                own_code,
            )
    elif isinstance(computed, list) and isinstance(sealed, list) and len(computed) == len(sealed):
        for number, (computed_item, other) in enumerate(zip(computed, sealed, strict=True)):
            _compare(computed_item, other, f"{where}[{number}]", own_code)
    elif _number(computed) and _number(sealed):
        if not math.isclose(computed, sealed, rel_tol=0.0, abs_tol=TOLERANCE):
            raise Mismatch(f"{where}: {sealed} was sealed, {computed} is recomputed")
    elif computed is _ABSENT or sealed is _ABSENT or computed != sealed:
        raise Mismatch(f"{where}: differs from what is recomputed")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
