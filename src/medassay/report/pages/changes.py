"""What changed since the publication before: who moved and why, and what left."""

from collections import Counter
from collections.abc import Iterator

from medassay.core.records.changes import ChangedRow, PublicationChanges
from medassay.core.records.statistics import OVERALL
from medassay.core.wording import counted, listed
from medassay.report.board import Board
from medassay.report.pages.html import Page, render
from medassay.report.texts import Texts

_MOST_ROWS = 300  # the others are in data/changes.json
_MOST_ITEMS = 300


def pages(board: Board) -> Iterator[Page]:
    """Yield the page, of a publication that has one before it."""
    changes = board.changes
    if changes is None:
        return
    # What moved stands before rows of which only the score is another.
    rows = sorted(changes.rows, key=lambda row: (row.domain != OVERALL, not row.moved))
    yield render(
        "changes.html",
        board,
        "changes/",
        changes=changes,
        sentence=changes_sentence(changes, board.texts),
        rows=[(row, board.texts.said(why_text(row, changes))) for row in rows[:_MOST_ROWS]],
        rows_left_out=max(0, len(rows) - _MOST_ROWS),
        items=changes.items[:_MOST_ITEMS],
        items_left_out=max(0, len(changes.items) - _MOST_ITEMS),
        several_metrics=len({row.metric for row in changes.rows}) > 1,
    )


def changes_sentence(changes: PublicationChanges, texts: Texts) -> str:
    """Return in a sentence how many rows of the overall rankings moved, are new, or left."""
    overall = [row for row in changes.rows if row.domain == OVERALL]
    n_new = sum(row.before is None for row in overall)
    n_left = sum(row.after is None for row in overall)
    n_moved = sum(row.moved for row in overall) - n_new - n_left
    parts = [f"{counted(n_moved, 'row')} with another range of ranks"] if n_moved else []
    parts += [f"{counted(n_new, 'new row')}"] if n_new else []
    parts += [f"{counted(n_left, 'row')} that left"] if n_left else []
    if not parts:
        return texts.said(
            "In the overall ranking no row is new, none left, and no range of ranks is another."
        )
    are = "is" if n_moved + n_new + n_left == 1 else "are"
    names = texts.listed([texts.said(part) for part in parts])
    return texts.said(f"In the overall ranking there {are} {names}.")


def why_text(row: ChangedRow, changes: PublicationChanges) -> str:
    """Return why a row is not what it was."""
    models = {model.model: model for model in changes.models}
    model = models.get(row.model)
    if row.before is None:
        return "new model" if model is not None and model.what == "new" else "not ranked before"
    if row.after is None:
        is_gone = model is not None and model.what == "left"
        return "the model is not in this publication" if is_gone else "not asked here any more"
    reasons = _item_reasons(row, changes)
    if row.answers:
        reasons.append(
            f"{counted(row.answers, 'answer')} to unchanged items "
            f"{'is' if row.answers == 1 else 'are'} other ones"
        )
    if row.rescored:
        reasons.append(f"{counted(row.rescored, 'equal answer')} scored otherwise")
    if model is not None:
        names = listed([field.name.replace("_", " ") for field in model.fields])
        reasons.append(f"the model's entry changed: {names}")
    if row.moved:
        reasons += _beside(row, changes)
    if not reasons:
        return "its answers and scores are the same; the rows beside it are not"
    return "; ".join(reasons)


def _item_reasons(row: ChangedRow, changes: PublicationChanges) -> list[str]:
    """Return how many items of a ranking were corrected, added and removed."""
    counts = Counter(item.what for item in changes.items if row.domain in (OVERALL, item.domain))
    return [
        f"{counted(counts[what], 'item')} {what}"
        for what in ("corrected", "added", "removed")
        if counts[what]
    ]


def _beside(row: ChangedRow, changes: PublicationChanges) -> list[str]:
    """Return how many rows of the same ranking are new, or left."""
    ranking = (row.metric, row.domain, row.mode)
    rows = [other for other in changes.rows if (other.metric, other.domain, other.mode) == ranking]
    n_new = sum(other.before is None for other in rows)
    n_left = sum(other.after is None for other in rows)
    reasons = [f"{counted(n_new, 'new row')} in this ranking"] if n_new else []
    return reasons + ([f"{counted(n_left, 'row')} left it"] if n_left else [])
