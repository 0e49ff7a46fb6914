"""G-Eval: an open answer against its reference answer and reasoning path, a score from 0 to 10.

Phase 1, the evaluation steps, is done once (`steps.py`): the frozen text is part of the judge's id.
Phase 2 asks for a CSV of scores for a batch of answers.

Source: specification of G-Eval; Liu et al. (2023), doi:10.18653/v1/2023.emnlp-main.153.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.verdict import Case, SingleQuestionGrader, Verdict, VerdictBody
from medassay.core.scale import Scale
from medassay.judging.grader_text import LANGUAGES, GraderText
from medassay.judging.graders.csv_scores import BEST, read_scores
from medassay.judging.graders.weighted import ScoreBody, weigh
from medassay.judging.sanitize import delimit

RETRIES = 2
CANDIDATES = 20  # of each token: the most that endpoints name
CRITERIA = GraderText("g_eval_criteria")
_STEPS = GraderText("g_eval_steps")
_PROMPT = GraderText("g_eval")


def rescaled(score: float, lo: float, hi: float) -> int:
    """Return a score of 0 to 10 as an integer of the scale lo..hi, halves up.

    Examples
    --------
    >>> rescaled(7, 1, 5), rescaled(5, 1, 5)
    (4, 3)
    """
    return math.floor(lo + (hi - lo) * score / BEST + 0.5)


@dataclass(frozen=True, kw_only=True)
class GEval(SingleQuestionGrader):
    """Judges a batch of answers in one prompt; ids that came without a valid score are asked again.

    `with_path` says whether the reasoning path is an input, `weighted` whether scores are weighted
    by the probability of each integer: each is a metric of its own. `steps` are evaluation steps by
    language, in place of those that come with the judge.
    """

    name: ClassVar[str] = "g_eval"
    body_type: ClassVar[type[VerdictBody]] = ScoreBody
    revision: ClassVar[int] = 1
    batch: int = 3
    with_path: bool = True
    weighted: bool = False
    steps: Mapping[str, str] = field(default_factory=dict)
    scale: Scale = Scale(hi=float(BEST))
    text: GraderText = _PROMPT

    @property
    def prompts(self) -> tuple[str, ...]:
        """Return the ids of the texts that are asked."""
        return (CRITERIA.id, _STEPS.id, self.text.id)

    @property
    def _variant(self) -> list[int | dict[str, str]]:
        return [self.batch, self.with_path, self.weighted, dict(self.steps)]

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two such graders differ."""
        return (CRITERIA.texts, _STEPS.texts, self.text.texts, canonical(self._variant))

    @property
    def alternatives(self) -> int:
        """Return how many candidates of each token the judging model must name."""
        return CANDIDATES if self.weighted else 0

    @property
    def spot_check(self) -> "GEval | None":
        """Return what repeats a sample of the answers singly, to see what the batch does to a
        score.
        """
        return replace(self, batch=1) if self.batch > 1 else None

    def language(self, language: str) -> str:
        """Return the language of a prompt: that of the item where there is a text for it, or
        English.
        """
        languages = sorted(self.steps) or LANGUAGES
        if language in languages:
            return language
        return "en" if "en" in languages else languages[0]

    def _steps(self, language: str, *, with_path: bool) -> str:
        """Return the steps; where an item lacks the path that given ones speak of, our own."""
        path_steps = self.steps.get(language) if with_path == self.with_path else None
        return path_steps or _STEPS.render(language, with_path=with_path)

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdicts.

        Asked are all cases; then, at most twice, those without a valid score; then these singly.
        """
        # Of a single answer the id has no digit, so that the score is the only integer.
        names = [f"q{n}" for n in range(1, len(cases) + 1)] if self.batch > 1 else ["q"]
        empty = {name for name, case in zip(names, cases, strict=True) if not case.text.strip()}
        scores = {name: self._body(0) for name in empty}  # worth 0, no call
        singly: list[str] | None = None
        for number, reply in enumerate(replies):
            names_left = [name for name in names if name not in scores]
            if number > RETRIES:
                singly = names_left if singly is None else singly
                singles, singly = singly[:1], singly[1:]
            else:
                singles = names_left
            for name, score in read_scores(reply.text, singles).items():
                scores[name] = self._body(score, reply)
        names_left = [name for name in names if name not in scores]
        if names_left and len(replies) <= RETRIES:
            return self._prompt(cases, names, names_left)
        if names_left and self.batch > 1 and (singly is None or singly):
            return self._prompt(cases, names, (names_left if singly is None else singly)[:1])
        return [
            (
                Verdict(valid=True, body=scores[name])
                if name in scores
                else Verdict(valid=False, reason="no valid score")
            )
            for name in names
        ]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the score, 0 to 10; None unless the verdict is valid."""
        return float(verdict.body_as(ScoreBody).score) if verdict.valid else None

    def _body(self, score: int, reply: Completion | None = None) -> ScoreBody:
        if self.weighted and reply is not None:
            return weigh(reply, score)
        return ScoreBody(score=score)

    def _prompt(
        self, cases: Sequence[Case], names: Sequence[str], names_left: Sequence[str]
    ) -> Prompt:
        chosen = [(n, c) for n, c in zip(names, cases, strict=True) if n in names_left]
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
            real = item.reference or item.target_text
            writer.writerow([name, question, *path, real, case.text])
        language = self.language(cases[0].item.language)
        return self.text.prompt(
            cases[0].item.id,
            language,
            alternatives=self.alternatives,
            criteria=CRITERIA.render(language, with_path=with_path).strip(),
            steps=self._steps(language, with_path=with_path).strip(),
            table=delimit(table.getvalue(), "samples"),
            ids=", ".join(names_left),
        )
