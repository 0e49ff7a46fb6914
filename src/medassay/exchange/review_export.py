"""From a closed study to the files that other commands read: labels for judges, answers for
metrics, votes for banks.
"""

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from medassay.bank.reviews import ReviewedBank
from medassay.core.records.trial import TRIAL_KEY, TrialKey
from medassay.errors import GateError, InputError
from medassay.review.agreement import LastReview, is_right
from medassay.review.exported import ExportedEntry, ExportedStudy
from medassay.review.form import FORMS
from medassay.review.store.reading import last_reviews
from medassay.review.store.schema import Study
from medassay.review.summary import by_qualification, counts, standings

_FACTS = ("contradict", "missing", "entail")  # worst first: ties go to the worse label
_CRITERIA = ("not met", "met")
_DECIDED = ("decided", "checked", "released")
Row = Mapping[str, Any]


def label_rows(study: ExportedStudy) -> list[Row]:
    """Return people's labels of answers as `medassay study judges --people` reads them.

    A label is what an adjudicator settled, else what most reviewers say (ties: the worse label),
    and of whole answers the mean from 1 to 5 brought to the run's scale. Facts and criteria where
    every answer has some, else scores. What nobody could judge is left out.

    Raises
    ------
    InputError
        When the study is not of answers of a run.
    """
    entries, scores_of = _answers(study)
    settled = _settled(study)
    parts = all(entry.parts for entry in entries.values())
    # Several judges of one answer are several entries of it: what people say of the answer is
    # pooled.
    scores: dict[TrialKey, list[Mapping[str, Any]]] = defaultdict(list)
    final: dict[TrialKey, Mapping[str, Any]] = {}
    of: dict[TrialKey, ExportedEntry] = {}
    for number, entry in entries.items():
        key = entry.trial.place
        of.setdefault(key, entry)
        scores[key] += scores_of[number]
        final[key] = {**final.get(key, {}), **settled.get(number, {})}
    rows: list[Row] = []
    for key, entry in of.items():
        trial = dict(zip(TRIAL_KEY, key, strict=True))
        if parts:
            labels = {name: _label(name, scores[key], final[key]) for name in entry.parts}
            if all(labels.values()):
                rows += [
                    {**trial, "fact": name.partition("-")[2], "verdict": label}
                    for name, label in labels.items()
                ]
            continue
        overall = _overall(scores[key], final[key])
        if overall is not None:
            lo, hi = entry.hidden.ends
            rows.append({**trial, "score": lo + (overall - 1) / 4 * (hi - lo)})
    return rows


def answer_rows(study: ExportedStudy) -> list[Row]:
    """Return answers with their references and people's mean score from 1 to 5, as `medassay study
    metrics --people people` reads them.
    """
    entries, scores_of = _answers(study)
    settled = _settled(study)
    rows: list[Row] = []
    for number, entry in entries.items():
        overall = _overall(scores_of[number], settled.get(number, {}))
        reference = entry.content.reference_text
        if overall is not None and reference:
            rows.append(
                {
                    "item": entry.item,
                    "model": entry.trial.model,
                    "prediction": entry.content.shown_answer,
                    "reference": reference,
                    "people": overall,
                }
            )
    return rows


def vote_rows(study: ExportedStudy) -> list[Row]:
    """Return the votes of a study as `medassay bank votes` reads them: of each entry the first k,
    by reviewers' pseudonyms.

    Entries with fewer than k votes are left out; an item that stands in a study more than once is
    told apart by its number.
    """
    form, overlap = FORMS[study.frozen.study.form], study.frozen.study.overlap
    entries = study.frozen.counted_entries
    times = Counter(entry.item for entry in entries.values())
    votes: dict[int, list[tuple[str, bool]]] = defaultdict(list)
    for review in study.frozen.reviews:
        if review.latest and review.entry in entries:
            last = LastReview(entry=0, reviewer=0, qualification="", content=review.review)
            if (vote := is_right(form, last)) is not None:
                votes[review.entry].append((review.reviewer, vote))
    return [
        {
            "item": entry.item if times[entry.item] == 1 else f"{entry.item} ({number})",
            "evaluator": reviewer,
            "vote": int(vote),
        }
        for number, entry in entries.items()
        if len(votes[number]) >= overlap
        for reviewer, vote in sorted(votes[number])[:overlap]
    ]


def bank_reviews(db: Session, study: Study) -> ReviewedBank:
    """Return what a closed study found of a bank's items, in numbers.

    Raises
    ------
    InputError
        When the study is not an item review of a bank.
    GateError
        When it is open.
    """
    source = study.chosen.source
    if study.form != "item" or not source.version:
        raise InputError(f"study '{study.id}' is no item review of a bank; only these describe one")
    if study.closed_at is None or study.frozen_sha256 is None:
        raise GateError(f"study '{study.id}' is open; close it first")
    reviews = last_reviews(db, study.id)
    summaries = counts(standings(reviews))
    return ReviewedBank(
        study=study.id,
        version=source.version,
        closed_at=study.closed_at,
        sha256=study.frozen_sha256,
        items=summaries.entries,
        any_low=summaries.any_low,
        below_nine=summaries.below_nine,
        flagged=summaries.flagged,
        harm=summaries.harm,
        groups=tuple(by_qualification(reviews)),
    )


def check_rows(tables: Sequence[tuple[Path, Sequence[Row]]]) -> None:
    """Refuse to write any of several files if one could not be written.

    Raises
    ------
    InputError
        When a file is there, is named twice, or would be empty.
    """
    for at, (path, rows) in enumerate(tables):
        if not rows:
            raise InputError(f"{path}: nothing to write; the study has no such reviews")
        if path.exists() or path in [other for other, _ in tables[:at]]:
            raise InputError(f"{path}: exists already; nothing was overwritten")


def write_rows(path: Path, rows: Sequence[Row]) -> int:
    """Write rows as CSV, whole or not at all, and return how many.

    Raises
    ------
    InputError
        When there is none, or the file is there already.
    """
    check_rows([(path, rows)])
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return len(rows)


def _answers(
    study: ExportedStudy,
) -> tuple[dict[int, ExportedEntry], dict[int, list[dict[str, Any]]]]:
    """Return the entries of a study of answers by number, and the reviewers' own ratings of
    each.
    """
    form = study.frozen.study.form
    if form not in ("answer", "judge"):
        name = study.frozen.study.name
        raise InputError(f"study '{name}' has the form '{form}'; labels are of answers of a run")
    entries = study.frozen.counted_entries
    scores: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for review in study.frozen.reviews:
        if review.latest and review.entry in entries:
            scores[review.entry].append(review.own_scores)
    return entries, scores


def _settled(study: ExportedStudy) -> dict[int, Mapping[str, Any]]:
    """Return entry → the final values that an adjudicator gave."""
    settled: dict[int, Mapping[str, Any]] = {}
    for ticket in study.tickets:
        decisions = [step for step in ticket.steps if step.verb == "decide"]
        if decisions and ticket.state in _DECIDED and decisions[-1].scores is not None:
            settled[ticket.entry] = decisions[-1].scores
    return settled


def _label(name: str, reviews: Sequence[Mapping[str, Any]], final: Mapping[str, Any]) -> str | None:
    if final.get(name):
        return str(final[name])
    votes = Counter(review[name] for review in reviews if review.get(name) is not None)
    order = _FACTS if name.startswith("fact-") else _CRITERIA
    return max(order, key=lambda label: votes[label]) if votes else None


def _overall(reviews: Sequence[Mapping[str, Any]], final: Mapping[str, Any]) -> float | None:
    settled = final.get("overall")
    if settled is not None:
        return float(settled)
    values = [value for review in reviews if (value := review.get("overall")) is not None]
    return sum(values) / len(values) if values else None
