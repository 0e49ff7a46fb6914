"""Discipline scores from the predictions themselves: with intervals, and of which pairs a
difference is shown.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from medassay.bank.delimited import separator_of
from medassay.core.ranks import SIMULTANEOUS
from medassay.errors import InputError
from medassay.selection.candidate import Candidate, check_header, split_notes
from medassay.statistic import Options, Stratum, field_of, seed_of
from medassay.statistic.draws import Floats


class _AskedQuestion(msgspec.Struct):
    """What a row says of its question; its other cells are what the models predicted."""

    question_id: str
    category: str
    answer: str


_NEEDED = _AskedQuestion.__struct_fields__


class OtherScore(msgspec.Struct, frozen=True, kw_only=True):
    """A discipline whose score in the table of candidates is not that of the predictions.

    `table_right` is how many questions the table's score means, where these are as many.
    """

    discipline: str
    n: int
    right: int
    score: float
    table_right: int
    table_score: float


class RecomputedModel(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a model over the disciplines, which all weigh the same, with its ranks."""

    model: str
    mean: float | None
    lo: float | None
    hi: float | None
    n: int
    blank: int
    rank: int | None
    rank_lo: int | None
    rank_hi: int | None
    disciplines: dict[str, float]
    other_scores: list[OtherScore]


class RecomputedPair(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two models; `noise` where its p, by Holm over all, is 0.05 or more."""

    first: str
    second: str
    difference: float
    lo: float
    hi: float
    p_holm: float
    noise: bool


class Recomputed(msgspec.Struct, frozen=True, kw_only=True):
    """What predictions say of the models of a shortlist, best mean first."""

    models: list[RecomputedModel] = []
    pairs: list[RecomputedPair] = []


class DisciplineScores(msgspec.Struct, frozen=True, kw_only=True):
    """Right or wrong, for each discipline an array (n_models, n_items).

    A blank prediction is wrong, and counted.
    """

    models: tuple[str, ...]
    right: dict[str, Floats]
    blank: dict[str, int]

    def accuracy(self, model: str) -> dict[str, float]:
        """Return the share of right predictions by discipline."""
        row = self.models.index(model)
        return {name: float(part[row].mean()) for name, part in self.right.items()}

    def of(self, candidates: Sequence[Candidate]) -> "DisciplineScores":
        """Return the scores of those candidates that have predictions, under the candidates' names.

        A candidate that names no column is looked for by its own name.
        """
        for c in candidates:
            if c.predictions and c.predictions not in self.models:
                raise InputError(
                    f"model '{c.model}': the predictions have no column '{c.predictions}'"
                )
        rows = {
            c.model: self.models.index(name)
            for c in candidates
            if (name := c.predictions or c.model) in self.models
        }
        return DisciplineScores(
            models=tuple(rows),
            right={name: part[list(rows.values())] for name, part in self.right.items()},
            blank={model: self.blank[self.models[row]] for model, row in rows.items()},
        )

    def recomputed(self, candidates: Mapping[str, Candidate]) -> Recomputed:
        """Return means over the disciplines with intervals and ranges of ranks, and every pair's
        difference; draws are shared, so that differences are paired (`field_of`).
        """
        if not self.models:
            return Recomputed()
        strata = []
        start = 0
        for name, part in self.right.items():
            n = part.shape[1]
            clusters = np.arange(start, start + n)
            strata.append(Stratum(name=name, scores=part, clusters=clusters, seed=seed_of(name)))
            start += n
        options = Options(pool_seed=seed_of(*self.right), rule=SIMULTANEOUS)
        field = field_of([(model, "") for model in self.models], strata, options)
        models = []
        for standing in field.standings:
            estimate, rank = standing.estimate, standing.rank
            models.append(
                RecomputedModel(
                    model=standing.row[0],
                    mean=estimate and estimate.value,
                    lo=estimate and estimate.lo,
                    hi=estimate and estimate.hi,
                    n=standing.n_own,
                    blank=self.blank[standing.row[0]],
                    rank=rank.rank,
                    rank_lo=rank.lo,
                    rank_hi=rank.hi,
                    disciplines=self.accuracy(standing.row[0]),
                    other_scores=list(self._other_scores(candidates[standing.row[0]])),
                )
            )
        pairs = [
            RecomputedPair(
                first=pair.first[0],
                second=pair.second[0],
                difference=pair.difference.value,
                lo=pair.ends[0],
                hi=pair.ends[1],
                p_holm=pair.p_holm,
                noise=not pair.better,
            )
            for pair in field.pairs
            if pair.ends is not None
        ]
        models.sort(key=lambda row: (-(row.mean or 0.0), row.model))
        return Recomputed(models=models, pairs=pairs)

    def _other_scores(self, candidate: Candidate) -> Iterator[OtherScore]:
        """Yield the disciplines whose score in the table is another one, to the four decimals that
        tables print.
        """
        row = self.models.index(candidate.model)
        for name, part in self.right.items():
            share, score = float(part[row].mean()), candidate.scores.get(name)
            if score is not None and round(share, 4) != round(score, 4):
                n = part.shape[1]
                yield OtherScore(
                    discipline=name,
                    n=n,
                    right=int(part[row].sum()),
                    score=share,
                    table_right=round(score * n),
                    table_score=score,
                )


def load_predictions(path: Path, disciplines: Sequence[str]) -> DisciplineScores:
    """Return who predicted what rightly, from a CSV with `question_id`, `category`, `answer` and a
    column for each model.

    Raises
    ------
    InputError
        Naming file, line, and what was expected; a question that stands twice, or a discipline
        without questions.
    """
    right: dict[str, list[list[float]]] = {name: [] for name in disciplines}
    like = {name.casefold(): name for name in disciplines}
    seen_ids: set[str] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            n_notes, table = split_notes(file)
            reader = csv.DictReader(table, delimiter=separator_of("".join(table)), strict=True)
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            models = [name for name in reader.fieldnames or () if name not in _NEEDED]
            if len(models) + len(_NEEDED) != len(reader.fieldnames or ()) or not models:
                raise InputError(
                    f"{path.name}: expected columns {', '.join(_NEEDED)} and one for each model"
                )
            check_header(reader.fieldnames or (), path.name)
            blank = dict.fromkeys(models, 0)
            for row in reader:
                where = f"{path.name} line {n_notes + reader.reader.line_num}"
                if None in row or None in row.values():
                    raise InputError(f"{where}: not as many cells as columns")
                question = _asked_question(row, where, like)
                if question.question_id in seen_ids:
                    raise InputError(f"{where}: question {question.question_id} stands twice")
                seen_ids.add(question.question_id)
                key = question.answer.casefold()
                if question.category in right:
                    predictions = (row[model].strip().casefold() for model in models)
                    right[question.category].append([float(text == key) for text in predictions])
                    for model in models:
                        blank[model] += not row[model].strip()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    for name, rows in right.items():
        if not rows:
            raise InputError(f"{path.name}: no question of the discipline '{name}'")
    arrays = {name: np.array(rows, dtype=np.float64).T for name, rows in right.items()}
    return DisciplineScores(models=tuple(models), right=arrays, blank=blank)


def _asked_question(row: Mapping[str, str], where: str, like: Mapping[str, str]) -> _AskedQuestion:
    """Return what a row says of its question.

    Parameters
    ----------
    like : disciplines by their name in small letters
    """
    question = msgspec.convert({name: cell.strip() for name, cell in row.items()}, _AskedQuestion)
    for name in ("question_id", "answer"):
        if not getattr(question, name):
            raise InputError(f"{where}: '{name}' is blank")
    discipline = like.get(question.category.casefold(), question.category)
    if discipline != question.category:
        raise InputError(
            f"{where}: category '{question.category}'; expected '{discipline}', as the table of"
            " models has it"
        )
    return question
