"""What a run asks once more, and what of its replies could not be used."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from medassay.core.again import Again, trial_class, verdict_class
from medassay.core.json import record_as
from medassay.core.records.own_code import OWN_CODE
from medassay.core.records.sealed_object import JournalObject
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import TrialVerdict
from medassay.core.wording import counted
from medassay.errors import IncompleteError
from medassay.runner.answer_stage import Attempt
from medassay.storage.journal import VERDICTS, Journal, NumberOf
from medassay.storage.jsonl import read_jsonl
from medassay.storage.records import read_scores, read_trials, read_verdicts
from medassay.storage.run import Run

_NAMED = 3  # ways in which own code failed
USABLE = 0.95  # the share of a judge's verdicts below which a run is not sealed without a word


def journalled(journal: Journal) -> Iterator[tuple[int, JournalObject]]:
    """Yield number and record of what a journal holds."""
    for line in journal.lines():
        yield line.number, msgspec.json.decode(line.record)


def sealed(path: Path, number_of: NumberOf) -> Iterator[tuple[int, JournalObject]]:
    """Yield number and record of what a sealed run holds in a file."""
    for record in read_jsonl(path) if path.exists() else ():
        if (number := number_of(record)) is not None:
            yield number, record


def trials_again(
    records: Iterable[tuple[int, JournalObject]], again: Again
) -> tuple[dict[int, Attempt], list[int]]:
    """Return which attempt counts, by the number of a trial, and the numbers of those that are
    asked again.
    """
    attempts: dict[int, Attempt] = {}
    chosen = []
    for number, record in records:
        trial = msgspec.convert(record, Trial)
        kind, attempt = trial_class(trial), trial.attempt
        if again.wants(kind, trial.model):
            attempts[number] = (attempt + 1, again.scope(kind))
            chosen.append(number)
        elif attempt:
            attempts[number] = (attempt, trial.again or "")
    return attempts, chosen


def verdicts_again(
    records: Iterable[tuple[int, JournalObject]], again: Again
) -> tuple[dict[int, int], list[int]]:
    """Return which attempt counts, by the place of a verdict, and the places of those whose judge
    is asked again.
    """
    attempts: dict[int, int] = {}
    chosen = []
    for place, record in records:
        verdict = record_as(record, TrialVerdict, "a verdict")
        is_wanted = again.wants(verdict_class(verdict), verdict.judge)
        if attempt := verdict.attempt + is_wanted:
            attempts[place] = attempt
        if is_wanted:
            chosen.append(place)
    return attempts, chosen


def refuse_unusable(run: Run, journal: Journal, seats: Mapping[str, int]) -> None:
    """Refuse to seal a run of which a judge gave too few verdicts that can be used.

    Parameters
    ----------
    seats : judge → how many verdicts it was to give

    Raises
    ------
    IncompleteError
        Naming each judge with its counts, and what asks it again.
    """
    records = (record for _, record in journalled(journal))
    verdicts = (record_as(record, TrialVerdict, "journal: a verdict") for record in records)
    counts = _unusable_counts(verdicts)
    lines = []
    for judge, n_seats in sorted(seats.items()):
        unusable = counts.get(judge, Counter())
        usable = n_seats - unusable.total()
        if usable < USABLE * n_seats:
            reasons = ", ".join(f"{n} × {why}" for why, n in unusable.most_common(3))
            lines.append(f"judge '{judge}': {usable} of {n_seats} verdicts can be used ({reasons})")
    if lines:
        raise IncompleteError(
            f"run {run.id}: {'; '.join(lines)}; fewer than {USABLE:.0%} are too few: the same"
            " command with `--again unusable` asks these once more, --accept-failures seals the"
            " run as it is"
        )


def _unusable_counts(verdicts: Iterable[TrialVerdict]) -> dict[str, Counter[str]]:
    """Return judge → reason → how many of its verdicts cannot be used for it."""
    counters: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        if verdict_class(verdict):
            # Runs of before told no kinds.
            counters.setdefault(verdict.judge, Counter())[verdict.unusable or verdict.reason] += 1
    return counters


def own_code_lines(run: Run) -> Iterator[str]:
    """Yield a line for each way in which own code left answers of a sealed run without a score."""
    code = run.manifest.own_code
    if code is None or not code.parts:
        return
    reasons = Counter(
        score.because for score in read_scores(run.path) if score.because.startswith(OWN_CODE)
    )
    verdicts = run.path / f"{VERDICTS}.jsonl"
    if verdicts.exists():
        verdict_reasons = (verdict.reason for verdict in read_verdicts(verdicts))
        reasons.update(reason for reason in verdict_reasons if reason.startswith(OWN_CODE))
    for reason, n in reasons.most_common(_NAMED):
        yield f"{counted(n, 'answer')} without a score: {reason}"
    if len(reasons) > _NAMED:
        yield f"and {len(reasons) - _NAMED} more ways; `because` in scores.jsonl names each"


def unusable_lines(run: Run) -> Iterator[str]:
    """Yield a line for each model and judge of a sealed run of which some replies could not be
    used.
    """
    replies: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    baselines = run.manifest.baselines
    for trial in read_trials(run.path):
        if trial.model in baselines:  # computed: the same again
            continue
        counts[trial.model] += 1
        if kind := trial_class(trial):
            replies.setdefault(trial.model, Counter())[kind] += 1
    for model, kinds in sorted(replies.items()):
        counted = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
        yield (
            f"{model}: {kinds.total()} of {counts[model]} replies cannot be used: {counted}; "
            f"`--again {','.join(sorted(kinds))}` asks these once more"
        )
    verdicts = run.path / f"{VERDICTS}.jsonl"
    if not verdicts.exists():
        return
    seats: Counter[str] = Counter(verdict.judge for verdict in read_verdicts(verdicts))
    for judge, why in sorted(_unusable_counts(read_verdicts(verdicts)).items()):
        counted = ", ".join(f"{n} {reason}" for reason, n in why.most_common(3))
        yield (
            f"judge {judge}: {why.total()} of {seats[judge]} verdicts cannot be used: {counted}; "
            "`--again unusable` asks these once more"
        )
