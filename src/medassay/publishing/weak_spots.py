"""Where models fail: scores by category, and the lowest answers of each row."""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medassay.bank.run_items import RunItems
from medassay.core.records.trial import CellKey
from medassay.kinds.breakdowns import breakdowns
from medassay.kinds.catalog import task_of_run
from medassay.kinds.statistics import parts_of
from medassay.report.weak_spots import CategoryScore, WorstAnswer
from medassay.storage.records import read_scores
from medassay.storage.run import Run

_MOST_CATEGORIES = 40
_MOST_TRIALS = 200_000  # above, every draw of every category would take minutes
_SHOWN = 10
_LONGEST = 160  # characters of a question

ItemKey = tuple[str, str]  # domain and id
Row = tuple[str, str, str]  # model, setting, mode


def category_scores(run: Run, items: RunItems) -> list[CategoryScore]:
    """Return the scores of each row by category; none where items have no categories, or more than
    anybody reads.
    """
    if run.statistics.n_trials > _MOST_TRIALS:
        return []
    categories = {item.category for item in items if item.category is not None}
    if not 2 <= len(categories) <= _MOST_CATEGORIES:
        return []
    return [
        CategoryScore(
            category=group.value,
            model=group.model,
            setting=group.setting,
            mode=group.mode,
            metric=group.metric,
            scale=(group.scale[0], group.scale[1]),
            estimate=group.estimate,
        )
        for group in breakdowns(run, ["category"])["category"]
    ]


def worst_answers(run: Run, items: RunItems) -> dict[Row, list[WorstAnswer]]:
    """Return (model, setting, mode) → its lowest answers: among equal scores those first where a
    wrong answer could harm, then those to items to which other answers are best.

    Answers at the better end of the scale are none. Answers of baselines do not count, and have no
    list.
    """
    scale_and_harm = {
        (domain, name): (part.task.scale, bool(harm))
        for part in parts_of(items, run.manifest, task_of_run(run.manifest))
        for domain in part.items.domains
        for name, harm in zip(part.items.names(domain), part.items.harm[domain], strict=True)
    }
    keys = sorted(scale_and_harm)
    scales = [scale_and_harm[key][0] for key in keys]
    sign = np.array([1.0 if scale.better == "high" else -1.0 for scale in scales])
    best = np.array([scale.best for scale in scales])
    is_harmful = np.array([scale_and_harm[key][1] for key in keys], dtype=bool)
    answers = _known_scores(run, {key: place for place, key in enumerate(keys)})
    if not len(answers.score):
        return {}
    item, score = answers.item, answers.score
    count = np.bincount(item)[item]
    with np.errstate(invalid="ignore"):
        others = (np.bincount(item, score)[item] - score) / (count - 1)  # NaN where there are none
    # lexsort sorts by its last key first, and is stable: equal answers keep the run's order.
    order = np.lexsort(
        (item, -sign[item] * np.nan_to_num(others), ~is_harmful[item], sign[item] * score)
    )
    order = order[(sign[item] * (score - best[item]) < 0)[order]]
    lowest: dict[Row, list[WorstAnswer]] = {}
    for number, row in enumerate(answers.rows):
        for at in order[answers.row[order] == number][:_SHOWN]:
            domain, name = keys[item[at]]
            scale = scales[item[at]]
            answer = WorstAnswer(
                domain=domain,
                item=name,
                repeat=answers.repeat[at],
                position=answers.position[at],
                question=_question(items, domain, name),
                score=float(score[at]),
                scale=(scale.ends[0], scale.ends[1]),
                others=None if count[at] == 1 else float(others[at]),
                harm=bool(is_harmful[item[at]]),
            )
            lowest.setdefault(row, []).append(answer)
    return lowest


@dataclass(frozen=True)
class _Scores:
    """Scores as columns: of which item and row, by number, and where among the answers of their
    cell.
    """

    rows: list[Row]
    item: NDArray[np.int64]
    row: NDArray[np.int64]
    score: NDArray[np.float64]
    position: "array[int]"
    repeat: "array[int]"


def _known_scores(run: Run, places: Mapping[ItemKey, int]) -> _Scores:
    """Return all scores that are known of rows that are no baselines.

    Parameters
    ----------
    places : of the items that are scored, by domain and id
    """
    baselines = run.manifest.baselines
    rows: dict[Row, int] = {}
    positions: Counter[CellKey] = Counter()
    item, row, position, repeat = (array("q") for _ in range(4))
    score = array("d")
    for line in read_scores(run.path):
        at = positions[line.cell]
        positions[line.cell] += 1
        place = places.get((line.domain, line.item))
        if line.score is None or place is None or line.model in baselines:
            continue
        item.append(place)
        row.append(rows.setdefault((line.model, line.setting, line.mode), len(rows)))
        score.append(line.score)
        position.append(at)
        repeat.append(line.repeat)
    return _Scores([*rows], np.array(item), np.array(row), np.array(score), position, repeat)


def _question(items: RunItems, domain: str, name: str) -> str:
    """Return the beginning of a question, "" of an item that is withheld or deleted."""
    text = " ".join(str(items.record(domain, name).get("question") or "").split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
