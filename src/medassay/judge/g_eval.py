"""G-Eval: an open answer against its reference answer and reasoning path, an integer 0 to 10.

Phase 1, the evaluation steps, was done once: the frozen text lies beside the prompts and is part of
the judge's id. Phase 2 asks for a CSV of scores for a batch of answers.

Source: specification of G-Eval; Liu et al. (2023), doi:10.18653/v1/2023.emnlp-main.153.
"""

import csv
import inspect
import io
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from medassay.core.canonical import sha256_hex
from medassay.core.item import Item
from medassay.core.reading import strip_thoughts
from medassay.core.trial import Prompt, Scale
from medassay.core.verdict import Case, Verdict
from medassay.judge.shown import fence
from medassay.judge.text import JudgeText

RETRIES = 2
BEST = 10
_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_LEAST_MASS = 0.5  # of the probability on integers 0..10; below it the sampled integer stands


def read_scores(reply: str, ids: Sequence[str]) -> dict[str, int]:
    """Return id → score for the ids that a CSV reply scores validly; the others are asked again.

    Valid is an integral value from 0 to 10. Nothing is clamped or rounded; an id with two different
    scores has none; rows may come in any order; unknown ids are ignored.
    """
    text = _FENCE.sub("", strip_thoughts(reply)[0]).strip()
    try:
        rows = list(csv.reader(text.replace("\0", "").splitlines()[:10_000]))
    except csv.Error:  # a field beyond all measure
        return {}
    header = next(
        (
            n
            for n, row in enumerate(rows)
            if {"question_id", "score"} <= {c.strip() for c in row}
        ),
        None,
    )
    if header is None:
        return {}
    names = [cell.strip() for cell in rows[header]]
    at, value = names.index("question_id"), names.index("score")
    found: dict[str, set[int | None]] = {}
    for row in rows[header + 1 :]:
        if len(row) > max(at, value) and row[at].strip() in ids:
            found.setdefault(row[at].strip(), set()).add(_integral(row[value]))
    single = {name: next(iter(scores)) for name, scores in found.items() if len(scores) == 1}
    return {name: score for name, score in single.items() if score is not None}


def _integral(text: str) -> int | None:
    match = re.fullmatch(r"\s*(\d{1,2})(?:\.0+)?\s*", text, re.ASCII)
    return int(match[1]) if match and int(match[1]) <= BEST else None


def weighted_score(
    top: Mapping[str, float], sampled: int, next_after_1: Mapping[str, float] | None = None
) -> tuple[float, bool]:
    """Return (score, whether it is weighted by probability) at the position of the score's token.

    Parameters
    ----------
    top : candidate token → probability; tokens that are an integer 0..10 count, variants are merged
    sampled : the integer that was sampled; stands where the integers have less than half the mass
    next_after_1 : candidates of the next position, where the tokenizer writes 10 as "1" and "0"

    Examples
    --------
    >>> weighted_score({"7": 0.5, "8": 0.3, "9": 0.2}, 7)
    (7.7, True)
    >>> weighted_score({"7": 0.2, "x": 0.8}, 7)
    (7.0, False)
    """
    mass: dict[int, float] = {}
    for token, p in top.items():
        score = _integral(token)
        if score is not None:
            mass[score] = mass.get(score, 0.0) + p
    if next_after_1 is not None and 1 in mass:
        ten = sum(p for token, p in next_after_1.items() if token.strip() == "0")
        mass[BEST] = mass.get(BEST, 0.0) + mass[1] * ten
        mass[1] *= 1 - ten
    total = math.fsum(mass.values())
    if total < _LEAST_MASS:
        return float(sampled), False
    return math.fsum(score * p for score, p in mass.items()) / total, True


def rescaled(score: float, lo: float, hi: float) -> int:
    """Return a score of 0 to 10 as an integer of the scale lo..hi, halves up.

    Examples
    --------
    >>> rescaled(7, 1, 5), rescaled(5, 1, 5)
    (4, 3)
    """
    return math.floor(lo + (hi - lo) * score / BEST + 0.5)


@dataclass(frozen=True, kw_only=True)
class GEval:
    """Judges a batch of answers in one prompt; ids that came without a valid score are asked again.

    `with_path` says whether the reasoning path is an input: with and without are two metrics.
    """

    batch: int = 3
    with_path: bool = True
    scale: Scale = Scale(hi=float(BEST))

    @property
    def text(self) -> JudgeText:
        """Return the prompt texts."""
        return JudgeText("g_eval")

    @cached_property
    def id(self) -> str:
        """Return `g_eval@hash`, the hash over prompts, frozen steps, code and variant."""
        source = inspect.getsource(sys.modules[__name__]).encode()
        variant = f"{self.batch} {self.with_path}".encode()
        return f"g_eval@{sha256_hex(self.text.texts + source + variant)[:12]}"

    def step(self, cases: Sequence[Case], replies: Sequence[str]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdicts.

        Asked are all cases; then, at most twice, those without a valid score; then these singly.
        """
        names = [f"q{number}" for number in range(1, len(cases) + 1)]
        empty = {name for name, case in zip(names, cases, strict=True) if not case.text.strip()}
        scores: dict[str, int] = dict.fromkeys(empty, 0)  # an empty answer is worth 0, no call
        singly: list[str] | None = None
        for number, reply in enumerate(replies):
            left = [name for name in names if name not in scores]
            if number > RETRIES:
                singly = left if singly is None else singly
                asked, singly = singly[:1], singly[1:]
                scores |= read_scores(reply, asked)
            else:
                scores |= read_scores(reply, left)
        left = [name for name in names if name not in scores]
        if left and len(replies) <= RETRIES:
            return self._prompt(cases, names, left)
        if left and self.batch > 1 and (singly is None or singly):
            return self._prompt(cases, names, (left if singly is None else singly)[:1])
        return [
            Verdict(valid=True, body={"score": scores[name]})
            if name in scores
            else Verdict(valid=False, reason="no valid score")
            for name in names
        ]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the score, 0 to 10; None unless the verdict is valid."""
        return float(verdict.body["score"]) if verdict.valid else None

    def _prompt(
        self, cases: Sequence[Case], names: Sequence[str], left: Sequence[str]
    ) -> Prompt:
        chosen = [(n, c) for n, c in zip(names, cases, strict=True) if n in left]
        with_path = self.with_path and all(case.item.path for _, case in chosen)
        columns = [
            "question_id",
            "question",
            "reasoning_path",
            "real_answer",
            "predicted_answer",
        ]
        if not with_path:
            columns.remove("reasoning_path")
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\r\n")
        writer.writerow(columns)
        for name, case in chosen:
            item = case.item
            question = f"{item.context}\n\n{item.question}" if item.context else item.question
            path = [item.path] if with_path else []
            real = item.reference or item.target
            writer.writerow([name, question, *path, real, case.text])
        first = cases[0].item
        return self.text.prompt(
            first.id,
            first.language,
            table=fence(table.getvalue(), "samples"),
            ids=", ".join(left),
            with_path=with_path,
        )
