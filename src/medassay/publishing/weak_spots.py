"""Where models fail: scores by category, and the lowest answers of each row."""

from collections import Counter, defaultdict
from collections.abc import Collection

from msgspec.structs import replace

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
_HELD = 20 * _SHOWN  # answers of a row that are held until they are sorted
_LONGEST = 160  # characters of a question

ItemKey = tuple[str, str]  # domain and id
Row = tuple[str, str, str]  # model, setting, mode
Order = tuple[float, bool, float, str, str]


def category_scores(run: Run, items: RunItems) -> list[CategoryScore]:
    """Return the scores of each row by category; none where items have no categories, or more than
    anybody reads.
    """
    categories = {item.category for item in items if item.category is not None}
    if not 2 <= len(categories) <= _MOST_CATEGORIES or run.statistics.n_trials > _MOST_TRIALS:
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
    wrong answer could harm, then those to items that others answer best.

    Answers at the better end of the scale are none. Baselines are no others, and have no list.
    """
    baselines = run.manifest.baselines
    parts = parts_of(items, run.manifest, task_of_run(run.manifest))
    scale_and_harm = {
        (item.domain, item.id): (part.task.scale, item.harm)
        for part in parts
        for item in part.items
    }
    sums, counts = _by_item(run, baselines)
    positions: Counter[CellKey] = Counter()
    answers_of: dict[Row, list[tuple[Order, WorstAnswer]]] = defaultdict(list)
    last_orders: dict[Row, Order] = {}  # of the last that is shown, of all that were sorted
    for line in read_scores(run.path):
        position, key = positions[line.cell], (line.domain, line.item)
        positions[line.cell] += 1
        if line.score is None or key not in scale_and_harm or line.model in baselines:
            continue
        scale, harm = scale_and_harm[key]
        sign = 1.0 if scale.better == "high" else -1.0
        if line.score * sign >= (scale.hi if scale.better == "high" else -scale.lo):
            continue
        others = (sums[key] - line.score) / (counts[key] - 1) if counts[key] > 1 else None
        order = (sign * line.score, not harm, -sign * (others or 0.0), *key)
        row = (line.model, line.setting, line.mode)
        if row in last_orders and order >= last_orders[row]:
            continue
        answer = WorstAnswer(
            domain=line.domain,
            item=line.item,
            repeat=line.repeat,
            position=position,
            question="",
            score=line.score,
            scale=(scale.ends[0], scale.ends[1]),
            others=others,
            harm=harm,
        )
        answers = answers_of[row]
        answers.append((order, answer))
        if len(answers) > _HELD:
            _keep_lowest(answers)
            last_orders[row] = answers[-1][0]
    for answers in answers_of.values():
        _keep_lowest(answers)
    return {
        row: [replace(answer, question=_question(items, answer)) for _, answer in answers]
        for row, answers in answers_of.items()
    }


def _by_item(run: Run, left_out: Collection[str]) -> tuple[dict[ItemKey, float], Counter[ItemKey]]:
    """Return the sum and the number of all scores of each item, some models left out."""
    sums: dict[ItemKey, float] = defaultdict(float)
    counts: Counter[ItemKey] = Counter()
    for line in read_scores(run.path):
        if line.score is not None and line.model not in left_out:
            sums[line.domain, line.item] += line.score
            counts[line.domain, line.item] += 1
    return sums, counts


def _keep_lowest(answers: list[tuple[Order, WorstAnswer]]) -> None:
    answers.sort(key=lambda entry: entry[0])
    del answers[_SHOWN:]


def _question(items: RunItems, answer: WorstAnswer) -> str:
    """Return the beginning of a question, "" of an item that is withheld or deleted."""
    text = " ".join(str(items.record(answer.domain, answer.item).get("question") or "").split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
