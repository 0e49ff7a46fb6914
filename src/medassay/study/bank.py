"""What answers and texts say of a bank: hard items, items that tell nothing, suspected wrong keys,
duplicates, leaks, habits of keys.

Everything here is a reason to look, none is a verdict: a person decides.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.records.item import Bank, Item
from medassay.core.records.target import Choice, Withheld
from medassay.errors import InputError
from medassay.statistic.draws import Floats
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run

_STRONG = 3  # strong models that must miss an item together
_AGREE = 2 / 3  # of them that give the same wrong answer, so that it may be the right one
ALIKE = 0.7  # Jaccard likeness of runs of words from which on two texts are near-duplicates
RUN_LENGTH = 3  # words
_COMMON = 60  # texts that share a run of words which then says nothing
_AGAINST = -0.3  # discrimination below which weaker models do better than stronger ones
_WORD = re.compile(r"\w+")
_HIDDEN = "(private)"  # in place of what synthetic items, and banks that may not leave, hold
_SHORT = 120  # characters of a text shown


class ItemScores(msgspec.Struct, frozen=True):
    """Scores of models on items, shape (n_models, n_items), NaN where absent.

    `answers` are what each model answered.
    """

    models: tuple[str, ...]
    items: tuple[tuple[str, str], ...]
    scores: Floats
    answers: Mapping[tuple[str, tuple[str, str]], str]
    keys: Mapping[tuple[str, str], str]


class ItemPoint(msgspec.Struct, frozen=True, kw_only=True):
    """How one item tells models apart.

    `difficulty` is the share of the models' scores, 0 to 1; `discrimination` the correlation over
    models with the mean of the other items, −1 to 1; `suspect` whether all strong models miss it.
    """

    item: str
    difficulty: float
    discrimination: float | None
    n_models: int
    suspect: bool


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """An item that all strong models miss: its key, and what they say (answer → times).

    `agree` says that most of them give the same answer, `instead`.
    """

    item: str
    key: str
    said: dict[str, int]
    agree: bool
    instead: str
    solved_by: int
    n_models: int


class ModelAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The mean score of a model over the items that it was asked."""

    model: str
    accuracy: float


class AlikePair(msgspec.Struct, frozen=True, kw_only=True):
    """Two items with nearly the same question; a leak is a test item and a dev item of one bank."""

    first: str
    second: str
    likeness: float
    options_too: bool
    across: bool
    leak: bool
    text: str


class KeyHabits(msgspec.Struct, frozen=True, kw_only=True):
    """How the keys of a bank are spread over the positions, and how often the longest option is
    right; p-values of equal use (chi-square) and of chance (binomial, one-sided).
    """

    bank: str
    options: int
    n: int
    counts: list[int]
    p_positions: float
    longest: float
    p_longest: float


class ReviewReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a person should look at an item."""

    item: str
    reason: str
    says: str


class AnswerFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What answers say of items."""

    items: Sequence[ItemPoint] = ()
    suspects: Sequence[Suspect] = ()
    models: Sequence[ModelAccuracy] = ()
    strong: Sequence[str] = ()


class BankStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The study: what answers say of items, and texts of each other.

    `models` are in the order of their accuracy, the best first; `review` is all that should be
    looked at, the most telling first.
    """

    runs: Sequence[str]
    banks: Sequence[str]
    items: Sequence[ItemPoint]
    suspects: Sequence[Suspect]
    models: Sequence[ModelAccuracy]
    strong: Sequence[str]
    duplicates: Sequence[AlikePair]
    leaks: Sequence[AlikePair]
    keys: Sequence[KeyHabits]
    review: Sequence[ReviewReason]


def bank_study(runs: Sequence[Run], banks: Sequence[Bank]) -> BankStudy:
    """Return what answers say of items, and texts of each other.

    Parameters
    ----------
    runs : whose closed answers tell difficulty, discrimination and suspected keys; of several
        models in all
    banks : whose texts tell duplicates, leaks between splits, and habits of keys

    Raises
    ------
    InputError
        When neither is named, or the runs hold no closed answer of a model.
    IncompleteError
        When a run is not finished.
    """
    if not runs and not banks:
        raise InputError("bank: name runs (--run), banks, or both")
    answers = _of_answers(_table(runs)) if runs else AnswerFindings()
    pairs = list(_duplicates(banks))
    duplicates = [pair for pair in pairs if not pair.leak]
    leaks = [pair for pair in pairs if pair.leak]
    return BankStudy(
        runs=[run.id for run in runs],
        banks=[bank.version for bank in banks],
        **msgspec.structs.asdict(answers),
        duplicates=duplicates,
        leaks=leaks,
        keys=[keys for bank in banks if (keys := _keys(bank)) is not None],
        review=list(_review(answers, leaks, duplicates)),
    )


def _table(runs: Sequence[Run]) -> ItemScores:
    """Return the answers of all runs as one table.

    Baselines and scripted models tell nothing of items.
    """
    scores: dict[str, dict[tuple[str, str], list[float]]] = {}
    answers_said: dict[tuple[str, tuple[str, str]], str] = {}
    keys: dict[tuple[str, str], str] = {}
    for run in runs:
        run.refuse_unfinished()
        items = RunItems(run.path, run.manifest.domains)
        for trial, score in read_scored_trials(run.path):
            provider = run.manifest.provider_of(trial.model)
            if score.score is None or provider in ("baseline", "fake"):
                continue
            place = (trial.domain, trial.item)
            item = items.get(*place)
            if item.target.is_open or isinstance(item.target, Withheld):
                continue  # a text is neither right nor wrong, and may be private
            model = f"{trial.model}, {trial.setting}"
            scores.setdefault(model, {}).setdefault(place, []).append(score.score)
            hidden = item.kind == "synthetic"
            answers_said[model, place] = _HIDDEN if hidden else trial.value or ""
            keys[place] = _HIDDEN if hidden else item.target_text
    if not scores:
        raise InputError(
            "bank: the runs hold no closed answer of a model that is neither a baseline nor"
            " scripted"
        )
    models = tuple(sorted(scores))
    places = tuple(sorted(keys))
    at = {place: number for number, place in enumerate(places)}
    table = np.full((len(models), len(places)), np.nan)
    for i, model in enumerate(models):
        for place, values in scores[model].items():
            table[i, at[place]] = sum(values) / len(values)
    return ItemScores(models, places, table, answers_said, keys)


def _of_answers(table: ItemScores) -> AnswerFindings:
    accuracy = np.nanmean(table.scores, axis=1)
    order = np.argsort(-accuracy)
    strong = [int(i) for i in order[: max(_STRONG, len(order) // 2)]]
    items: list[ItemPoint] = []
    suspects: list[Suspect] = []
    for j, place in enumerate(table.items):
        column = table.scores[:, j]
        is_known = ~np.isnan(column)
        if not is_known.any():
            continue
        missed = [i for i in strong if is_known[i]]
        all_miss = len(missed) >= _STRONG and not column[missed].any()
        items.append(
            ItemPoint(
                item="/".join(place),
                difficulty=float(column[is_known].mean()),
                discrimination=_discrimination(table.scores, j),
                n_models=int(is_known.sum()),
                suspect=all_miss,
            )
        )
        if all_miss:
            answers = Counter(table.answers[table.models[i], place] for i in missed)
            answer, times = answers.most_common(1)[0]
            suspects.append(
                Suspect(
                    item="/".join(place),
                    key=table.keys[place],
                    said=dict(answers),
                    agree=answer not in ("", _HIDDEN) and times >= _AGREE * len(missed),
                    instead=answer,
                    solved_by=int(np.nansum(column > 0)),
                    n_models=int(is_known.sum()),
                )
            )
    suspects.sort(
        key=lambda suspect: (not suspect.agree, -max(suspect.said.values()), suspect.item)
    )
    return AnswerFindings(
        items=items,
        suspects=suspects,
        models=[ModelAccuracy(model=table.models[i], accuracy=float(accuracy[i])) for i in order],
        strong=[table.models[i] for i in strong],
    )


def _discrimination(scores: Floats, j: int) -> float | None:
    """Return the correlation over models of an item's score with the mean of all other items; None
    where either is constant.
    """
    column = scores[:, j]
    rest = np.delete(scores, j, axis=1)
    with np.errstate(invalid="ignore"):
        is_known = ~np.isnan(column) & ~np.isnan(rest).all(axis=1)
    if is_known.sum() < _STRONG:
        return None
    first = column[is_known] - column[is_known].mean()
    means = np.nanmean(rest[is_known], axis=1)
    second = means - means.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 1e-12 else None


def _duplicates(banks: Sequence[Bank]) -> Iterator[AlikePair]:
    """Yield pairs of items whose questions are the same or nearly so.

    Texts are compared by their runs of three words; runs that very many share are left out of the
    search, not of the comparison.
    """
    texts: list[tuple[str, Item, frozenset[str], str, bool]] = []
    for bank in banks:
        for item in bank.items:
            words = _WORD.findall(f"{item.context or ''} {item.question}".casefold())
            runs = frozenset(
                " ".join(words[at : at + RUN_LENGTH]) for at in range(len(words) - RUN_LENGTH + 1)
            )
            text = " ".join([*words, "|", *sorted(o.casefold() for o in item.options)])
            private = item.kind == "synthetic" or not bank.may_leave
            texts.append((bank.name, item, runs, text, private))
    where: dict[str, list[int]] = {}
    for number, (_, _, runs, text, _) in enumerate(texts):
        for run in runs or (text,):
            where.setdefault(run, []).append(number)
    shared: Counter[tuple[int, int]] = Counter()
    for places in where.values():
        if 1 < len(places) <= _COMMON:
            shared.update(combinations(places, 2))
    for (i, j), common in sorted(shared.items()):
        name, item, runs, text, private = texts[i]
        other_name, other, other_runs, other_text, _ = texts[j]
        total = len(runs | other_runs)
        likeness = len(runs & other_runs) / total if total else float(common > 0)
        same = text == other_text
        if not same and likeness < ALIKE:
            continue
        yield AlikePair(
            first=f"{name}/{item.id}",
            second=f"{other_name}/{other.id}",
            likeness=1.0 if same else likeness,
            options_too=same,
            across=name != other_name,
            leak=name == other_name and {item.split, other.split} == {"test", "dev"},
            text=_HIDDEN if private else _excerpt(item),
        )


def _excerpt(item: Item) -> str:
    text = " ".join(item.question.split())
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _keys(bank: Bank) -> KeyHabits | None:
    """Return how keys are spread over positions and lengths, for the most common number of
    options.
    """
    from scipy.stats import binomtest, chisquare

    targets = (item.target for item in bank.items)
    chosen = [t for t in targets if isinstance(t, Choice) and t.expected]
    if not chosen:
        return None
    size = Counter(len(choice.options) for choice in chosen).most_common(1)[0][0]
    same = [choice for choice in chosen if len(choice.options) == size]
    # Options that mean the same in every item (yes, no, maybe; classes) have no positions to speak
    # of.
    if len({choice.options for choice in same}) == 1:
        return None
    positions = Counter(choice.place for choice in same)
    counts = [positions[at] for at in range(size)]
    longest = sum(map(_is_longest, same))
    return KeyHabits(
        bank=bank.name,
        options=size,
        n=len(same),
        counts=counts,
        p_positions=float(chisquare(counts).pvalue),
        longest=longest / len(same),
        p_longest=float(binomtest(longest, len(same), 1 / size, alternative="greater").pvalue),
    )


def _is_longest(choice: Choice) -> bool:
    lengths = [len(option) for option in choice.options]
    key = lengths[choice.place]
    return key == max(lengths) and lengths.count(key) == 1


def _review(
    answers: AnswerFindings, leaks: Sequence[AlikePair], duplicates: Sequence[AlikePair]
) -> Iterator[ReviewReason]:
    """Yield what a person should look at, the most telling first."""
    for suspect in answers.suspects:
        sentence = f"{len(answers.strong)} strong models miss it" + (
            f" and say {suspect.instead}" if suspect.agree else ""
        )
        yield ReviewReason(
            item=suspect.item,
            reason="suspected wrong key" if suspect.agree else "missed by strong models",
            says=f"key {suspect.key}; {sentence}",
        )
    for pair in (*leaks, *duplicates):
        duplicate = "duplicate across banks" if pair.across else "duplicate"
        yield ReviewReason(
            item=pair.first,
            reason="leak between splits" if pair.leak else duplicate,
            says=f"like {pair.second}, {pair.likeness:.2f}",
        )
    for point in answers.items:
        if (
            point.discrimination is not None
            and point.discrimination < _AGAINST
            and not point.suspect
        ):
            yield ReviewReason(
                item=point.item,
                reason="weaker models do better",
                says=f"discrimination {point.discrimination:.2f}",
            )
