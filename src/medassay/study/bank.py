"""What answers and texts say of a bank: hard items, items that tell nothing, suspected wrong keys, duplicates, leaks, habits of keys.

Everything here is a reason to look, none is a verdict: a person decides.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.records.item import Bank, Item
from medassay.core.wording import counted
from medassay.errors import IncompleteError, InputError
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.items import item_map
from medassay.statistic.draws import Floats
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run

_STRONG = 3  # strong models that must miss an item together
_AGREE = 2 / 3  # of them that give the same wrong answer, so that it may be the right one
_ALIKE = 0.7  # Jaccard likeness of runs of words from which on two texts are near-duplicates
_RUN = 3  # words
_COMMON = 60  # texts that share a run of words which then says nothing
_LISTED = 50
_WORD = re.compile(r"\w+")
_HIDDEN = "(private)"  # in place of what synthetic items, and banks that may not leave, hold
_SHORT = 120  # characters of a text shown


@dataclass(frozen=True)
class ItemScores:
    """Scores of models on items, shape (n_models, n_items), NaN where absent; `said` is what each answered."""

    models: tuple[str, ...]
    items: tuple[tuple[str, str], ...]
    scores: Floats
    said: Mapping[tuple[str, tuple[str, str]], str]
    keys: Mapping[tuple[str, str], str]


def bank_study(runs: Sequence[Run], banks: Sequence[Bank]) -> dict[str, Any]:
    """Return what answers say of items, and texts of each other.

    Parameters
    ----------
    runs : whose closed answers tell difficulty, discrimination and suspected keys; of several models in all
    banks : whose texts tell duplicates, leaks between splits, and habits of keys

    Returns
    -------
    dict
        items (id, difficulty, discrimination, n_models, suspect), suspects (strong models that miss it, what they say instead, whether
        they agree), models by accuracy, duplicates (pairs with likeness, within or across banks), leaks (pairs of a test and a dev item),
        keys (counts of positions with p of equal use, share of keys that are the longest option), review (all that should be looked at).
    """
    if not runs and not banks:
        raise InputError("bank: name runs (--run), banks, or both")
    found: dict[str, Any] = {"runs": [r.id for r in runs], "banks": [b.version for b in banks]}
    found |= _of_answers(_table(runs)) if runs else {"items": [], "suspects": [], "models": []}
    duplicates = list(_duplicates(banks))
    found["duplicates"] = [one for one in duplicates if not one["leak"]]
    found["leaks"] = [one for one in duplicates if one["leak"]]
    found["keys"] = [told for bank in banks if (told := _keys(bank)) is not None]
    found["review"] = list(_review(found))
    return found


def _table(runs: Sequence[Run]) -> ItemScores:
    """Return the answers of all runs as one table; baselines and scripted models tell nothing of items."""
    scores: dict[str, dict[tuple[str, str], list[float]]] = {}
    said: dict[tuple[str, tuple[str, str]], str] = {}
    keys: dict[tuple[str, str], str] = {}
    for run in runs:
        if not run.sealed:
            raise IncompleteError(
                f"run {run.id}: not finished; run its plan again to resume it"
            )
        items = RunItems(run.path, run.manifest["domains"])
        entries = run.manifest["models"]
        lines = read_jsonl(run.path / "trials.jsonl")
        for trial, score in zip(lines, read_jsonl(run.path / "scores.jsonl"), strict=True):
            provider = entries.get(trial["model"], {}).get("provider")
            if score["score"] is None or provider in ("baseline", "fake"):
                continue
            place = (trial["domain"], trial["item"])
            item = items.get(*place)
            if item.answer_type == "open" or item.form == "withheld":
                continue  # a text is neither right nor wrong, and may be private
            model = f"{trial['model']}, {trial['setting']}"
            scores.setdefault(model, {}).setdefault(place, []).append(score["score"])
            hidden = item.kind == "synthetic"
            said[model, place] = _HIDDEN if hidden else str(trial.get("value") or "")
            keys[place] = _HIDDEN if hidden else item.target
    if not scores:
        raise InputError(
            "bank: the runs hold no closed answer of a model that is neither a baseline nor scripted"
        )
    models = tuple(sorted(scores))
    places = tuple(sorted(keys))
    at = {place: number for number, place in enumerate(places)}
    table = np.full((len(models), len(places)), np.nan)
    for i, model in enumerate(models):
        for place, values in scores[model].items():
            table[i, at[place]] = sum(values) / len(values)
    return ItemScores(models, places, table, said, keys)


def _of_answers(table: ItemScores) -> dict[str, Any]:
    accuracy = np.nanmean(table.scores, axis=1)
    order = np.argsort(-accuracy)
    strong = [int(i) for i in order[: max(_STRONG, len(order) // 2)]]
    items: list[dict[str, Any]] = []
    suspects: list[dict[str, Any]] = []
    for j, place in enumerate(table.items):
        column = table.scores[:, j]
        known = ~np.isnan(column)
        if not known.any():
            continue
        missed = [i for i in strong if known[i]]
        all_miss = len(missed) >= _STRONG and not column[missed].any()
        items.append(
            {
                "item": "/".join(place),
                "difficulty": float(column[known].mean()),
                "discrimination": _discrimination(table.scores, j),
                "n_models": int(known.sum()),
                "suspect": all_miss,
            }
        )
        if all_miss:
            answers = Counter(table.said[table.models[i], place] for i in missed)
            answer, times = answers.most_common(1)[0]
            suspects.append(
                {
                    "item": "/".join(place),
                    "key": table.keys[place],
                    "said": dict(answers),
                    "agree": answer not in ("", _HIDDEN) and times >= _AGREE * len(missed),
                    "instead": answer,
                    "solved_by": int(np.nansum(column > 0)),
                    "n_models": int(known.sum()),
                }
            )
    suspects.sort(key=lambda one: (not one["agree"], -max(one["said"].values()), one["item"]))
    return {
        "items": items,
        "suspects": suspects,
        "models": [{"model": table.models[i], "accuracy": float(accuracy[i])} for i in order],
        "strong": [table.models[i] for i in strong],
    }


def _discrimination(scores: Floats, j: int) -> float | None:
    """Return the correlation over models of an item's score with the mean of all other items; None where either is constant."""
    column = scores[:, j]
    rest = np.delete(scores, j, axis=1)
    with np.errstate(invalid="ignore"):
        known = ~np.isnan(column) & ~np.isnan(rest).all(axis=1)
    if known.sum() < _STRONG:
        return None
    first = column[known] - column[known].mean()
    means = np.nanmean(rest[known], axis=1)
    second = means - means.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 1e-12 else None


def _duplicates(banks: Sequence[Bank]) -> Iterator[dict[str, Any]]:
    """Yield pairs of items whose questions are the same or nearly so.

    Texts are compared by their runs of three words; runs that very many share are left out of the search, not of the comparison.
    """
    texts: list[tuple[str, Item, frozenset[str], str, bool]] = []
    for bank in banks:
        for item in bank.items:
            words = _WORD.findall(f"{item.context or ''} {item.question}".casefold())
            runs = frozenset(
                " ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)
            )
            shown = " ".join([*words, "|", *sorted(o.casefold() for o in item.options)])
            private = item.kind == "synthetic" or not bank.may_leave
            texts.append((bank.name, item, runs, shown, private))
    where: dict[str, list[int]] = {}
    for number, (_, _, runs, shown, _) in enumerate(texts):
        for run in runs or (shown,):
            where.setdefault(run, []).append(number)
    shared: Counter[tuple[int, int]] = Counter()
    for found in where.values():
        if 1 < len(found) <= _COMMON:
            shared.update(combinations(found, 2))
    for (i, j), common in sorted(shared.items()):
        one, other = texts[i], texts[j]
        total = len(one[2] | other[2])
        likeness = len(one[2] & other[2]) / total if total else float(common > 0)
        same = one[3] == other[3]
        if not same and likeness < _ALIKE:
            continue
        yield {
            "first": f"{one[0]}/{one[1].id}",
            "second": f"{other[0]}/{other[1].id}",
            "likeness": 1.0 if same else likeness,
            "options_too": same,
            "across": one[0] != other[0],
            "leak": one[0] == other[0] and {one[1].split, other[1].split} == {"test", "dev"},
            "text": _HIDDEN if one[4] else _shown(one[1]),
        }


def _shown(item: Item) -> str:
    """Return the beginning of a question."""
    text = " ".join(item.question.split())
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _keys(bank: Bank) -> dict[str, Any] | None:
    """Return how keys are spread over positions and lengths, for the most common number of options."""
    from scipy.stats import binomtest, chisquare

    chosen = [item for item in bank.items if item.form == "choice" and item.expected]
    if not chosen:
        return None
    size = Counter(len(item.options) for item in chosen).most_common(1)[0][0]
    same = [item for item in chosen if len(item.options) == size]
    # Options that mean the same in every item (yes, no, maybe; classes) have no positions to speak of.
    if len({item.options for item in same}) == 1:
        return None
    positions = Counter(item.letters.index(item.expected or "") for item in same)
    counts = [positions[at] for at in range(size)]
    longest = sum(_is_longest(item) for item in same)
    return {
        "bank": bank.name,
        "options": size,
        "n": len(same),
        "counts": counts,
        "p_positions": float(chisquare(counts).pvalue),
        "longest": longest / len(same),
        "p_longest": float(
            binomtest(longest, len(same), 1 / size, alternative="greater").pvalue
        ),
    }


def _is_longest(item: Item) -> bool:
    lengths = [len(option) for option in item.options]
    key = lengths[item.letters.index(item.expected or "")]
    return key == max(lengths) and lengths.count(key) == 1


def _review(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a person should look at, the most telling first."""
    for one in found["suspects"]:
        said = f"{len(found['strong'])} strong models miss it" + (
            f" and say {one['instead']}" if one["agree"] else ""
        )
        yield {
            "item": one["item"],
            "reason": "suspected wrong key" if one["agree"] else "missed by strong models",
            "says": f"key {one['key']}; {said}",
        }
    for one in found["leaks"]:
        yield {
            "item": one["first"],
            "reason": "leak between splits",
            "says": f"like {one['second']}, {one['likeness']:.2f}",
        }
    for one in found["duplicates"]:
        reason = "duplicate across banks" if one["across"] else "duplicate"
        yield {
            "item": one["first"],
            "reason": reason,
            "says": f"like {one['second']}, {one['likeness']:.2f}",
        }
    for one in found["items"]:
        if (
            one["discrimination"] is not None
            and one["discrimination"] < -0.3
            and not one["suspect"]
        ):
            yield {
                "item": one["item"],
                "reason": "weaker models do better",
                "says": f"discrimination {one['discrimination']:.2f}",
            }


def bank_sheet(study: Mapping[str, Any]) -> ReportDocument:
    """Return the study as a sheet; its CSV is the list for review."""
    sections = []
    points = [one for one in study["items"] if one["discrimination"] is not None]
    if points:
        sections.append(_answers(study, points))
    if study["suspects"]:
        sections.append(_suspects(study))
    for title, key in (("Leaks between splits", "leaks"), ("Duplicates", "duplicates")):
        if study["banks"]:
            sections.append(_pairs(title, study[key]))
    if study["keys"]:
        sections.append(_positions(study["keys"]))
    return ReportDocument(
        name="bank",
        title="What answers and texts say of items",
        reading=reading(study),
        notes=[
            f"{len(study['review'])} items to look at stand in the CSV file. Each is a reason to look, none is a verdict.",
            "Discrimination: over models, an item's score against the mean of all other items. With few models it is coarse.",
            f"Near-duplicates share {_ALIKE:g} or more of their runs of {_RUN} words.",
        ],
        facts={key: ", ".join(study[key]) for key in ("runs", "banks") if study[key]},
        sections=sections,
        columns=["item", "reason", "says"],
        lines=study["review"],
        data=study,
    )


def reading(study: Mapping[str, Any]) -> str:
    """Return the study in one paragraph."""
    parts = []
    if study["items"]:
        n = len(study["items"])
        solved = sum(one["difficulty"] == 1 for one in study["items"])
        none = sum(one["difficulty"] == 0 for one in study["items"])
        agree = sum(one["agree"] for one in study["suspects"])
        parts.append(
            f"Of {n} items {solved} are solved by all {len(study['models'])} models and {none} by none: these tell no two models apart. "
            f"{len(study['suspects'])} are missed by the strong models together; on {agree} of them these agree on another answer, so the key may be wrong."
        )
    if study["banks"]:
        parts.append(
            f"{len(study['duplicates'])} pairs of questions are nearly the same, {len(study['leaks'])} of test and dev besides."
        )
    for one in study["keys"]:
        if one["p_positions"] < 0.001:
            parts.append(f"Keys of {one['bank']} are not spread evenly over positions.")
        if one["p_longest"] < 0.001:
            parts.append(
                f"The longest option of {one['bank']} is right in {100 * one['longest']:.0f} % of items, {100 / one['options']:.0f} % by chance."
            )
    return " ".join(parts)


def _answers(study: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Section:
    rows = [
        [
            one["model"],
            f"{100 * one['accuracy']:.1f}",
            "strong" if one["model"] in study["strong"] else "",
        ]
        for one in study["models"]
    ]
    return Section(
        title="Difficulty and discrimination",
        figure=("items", item_map(points)),
        grids=[Grid(heads=["model", "right, %", ""], rows=rows)],
    )


def _suspects(study: Mapping[str, Any]) -> Section:
    rows = [
        [
            one["item"],
            one["key"],
            one["instead"] if one["agree"] else "",
            ", ".join(f"{answer or 'nothing'} × {n}" for answer, n in one["said"].items()),
            f"{one['solved_by']} of {one['n_models']}",
        ]
        for one in study["suspects"][:_LISTED]
    ]
    heads = ["item", "key", "strong models agree on", "they say", "solved by"]
    more = len(study["suspects"]) - _LISTED
    return Section(
        title="Suspected wrong keys",
        text="Missed by all strong models; where these agree on another answer, it stands first."
        + (f" {more} more in the CSV file." if more > 0 else ""),
        grids=[Grid(heads=heads, rows=rows, names=5)],
    )


def _pairs(title: str, pairs: Sequence[Mapping[str, Any]]) -> Section:
    if not pairs:
        return Section(title=title, text="None.")
    rows = [
        [
            one["first"],
            one["second"],
            f"{one['likeness']:.2f}",
            "yes" if one["options_too"] else "no",
            one["text"],
        ]
        for one in sorted(pairs, key=lambda one: -one["likeness"])[:_LISTED]
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


def _positions(keys: Sequence[Mapping[str, Any]]) -> Section:
    rows = [
        [
            one["bank"],
            " ".join(
                f"{letter} {count}"
                for letter, count in zip("ABCDEFGHIJ", one["counts"], strict=False)
            ),
            f"{one['p_positions']:.3g}",
            f"{100 * one['longest']:.1f} % ({100 / one['options']:.0f} % by chance)",
            f"{one['p_longest']:.3g}",
            str(one["n"]),
        ]
        for one in keys
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
