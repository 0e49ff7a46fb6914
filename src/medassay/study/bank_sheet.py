"""The study of a bank as a sheet; its CSV is the list for review."""

from collections.abc import Sequence

import msgspec

from medassay.core.wording import counted
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.items import ItemPosition, item_map
from medassay.study.bank import ALIKE, RUN_LENGTH, AlikePair, BankStudy, ItemPoint, KeyHabits

_LISTED = 50


def bank_sheet(study: BankStudy) -> ReportDocument:
    """Return the study as a sheet; its CSV is the list for review."""
    sections = []
    points = [item for item in study.items if item.discrimination is not None]
    if points:
        sections.append(_answers(study, points))
    if study.suspects:
        sections.append(_suspects(study))
    if study.banks:
        sections.append(_pairs("Leaks between splits", study.leaks))
        sections.append(_pairs("Duplicates", study.duplicates))
    if study.keys:
        sections.append(_positions(study.keys))
    return ReportDocument(
        name="bank",
        title="What answers and texts say of items",
        reading=reading(study),
        notes=[
            (
                f"{len(study.review)} items to look at stand in the CSV file. Each is a reason"
                " to look, none is a verdict."
            ),
            (
                "Discrimination: over models, an item's score against the mean of all other items."
                " With few models it is coarse."
            ),
            f"Near-duplicates share {ALIKE:g} or more of their runs of {RUN_LENGTH} words.",
        ],
        facts={
            name: ", ".join(ids)
            for name, ids in (("runs", study.runs), ("banks", study.banks))
            if ids
        },
        sections=sections,
        columns=["item", "reason", "says"],
        lines=msgspec.to_builtins(study.review),
        data=msgspec.to_builtins(study),
    )


def reading(study: BankStudy) -> str:
    """Return the study in one paragraph."""
    parts = []
    if study.items:
        n = len(study.items)
        solved = sum(item.difficulty == 1 for item in study.items)
        none = sum(item.difficulty == 0 for item in study.items)
        agree = sum(suspect.agree for suspect in study.suspects)
        parts.append(
            f"Of {n} items {solved} are solved by all {len(study.models)} models and {none} by"
            f" none: these tell no two models apart. {len(study.suspects)} are missed by the"
            f" strong models together; on {agree} of them these agree on another answer, so the key"
            " may be wrong."
        )
    if study.banks:
        parts.append(
            f"{len(study.duplicates)} pairs of questions are nearly the same,"
            f" {len(study.leaks)} of test and dev besides."
        )
    for key in study.keys:
        if key.p_positions < 0.001:
            parts.append(f"Keys of {key.bank} are not spread evenly over positions.")
        if key.p_longest < 0.001:
            parts.append(
                f"The longest option of {key.bank} is right in {100 * key.longest:.0f} % of"
                f" items, {100 / key.options:.0f} % by chance."
            )
    return " ".join(parts)


def _answers(study: BankStudy, points: Sequence[ItemPoint]) -> Section:
    rows = [
        [
            model.model,
            f"{100 * model.accuracy:.1f}",
            "strong" if model.model in study.strong else "",
        ]
        for model in study.models
    ]
    positions = msgspec.convert(points, list[ItemPosition], from_attributes=True)
    return Section(
        title="Difficulty and discrimination",
        figure=("items", item_map(positions)),
        grids=[Grid(heads=["model", "right, %", ""], rows=rows)],
    )


def _suspects(study: BankStudy) -> Section:
    rows = [
        [
            suspect.item,
            suspect.key,
            suspect.instead if suspect.agree else "",
            ", ".join(f"{answer or 'nothing'} × {n}" for answer, n in suspect.said.items()),
            f"{suspect.solved_by} of {suspect.n_models}",
        ]
        for suspect in study.suspects[:_LISTED]
    ]
    heads = ["item", "key", "strong models agree on", "they say", "solved by"]
    more = len(study.suspects) - _LISTED
    return Section(
        title="Suspected wrong keys",
        text="Missed by all strong models; where these agree on another answer, it stands first."
        + (f" {more} more in the CSV file." if more > 0 else ""),
        grids=[Grid(heads=heads, rows=rows, names=5)],
    )


def _pairs(title: str, pairs: Sequence[AlikePair]) -> Section:
    if not pairs:
        return Section(title=title, text="None.")
    rows = [
        [
            pair.first,
            pair.second,
            f"{pair.likeness:.2f}",
            "yes" if pair.options_too else "no",
            pair.text,
        ]
        for pair in sorted(pairs, key=lambda pair: -pair.likeness)[:_LISTED]
    ]
    more = len(pairs) - _LISTED
    return Section(
        title=title,
        text=f"{counted(len(pairs), 'pair')}."
        + (f" The {_LISTED} likest are shown, all in the CSV file." if more > 0 else ""),
        grids=[
            Grid(
                heads=["first", "second", "likeness", "options too", "question"],
                rows=rows,
                names=5,
            )
        ],
    )


def _positions(keys: Sequence[KeyHabits]) -> Section:
    rows = [
        [
            key.bank,
            " ".join(
                f"{letter} {count}" for letter, count in zip("ABCDEFGHIJ", key.counts, strict=False)
            ),
            f"{key.p_positions:.3g}",
            f"{100 * key.longest:.1f} % ({100 / key.options:.0f} % by chance)",
            f"{key.p_longest:.3g}",
            str(key.n),
        ]
        for key in keys
    ]
    heads = [
        "bank",
        "keys by position",
        "p, chi-square",
        "longest option is right",
        "p, binomial",
        "items",
    ]
    return Section(title="Habits of keys", grids=[Grid(heads=heads, rows=rows, names=2)])
