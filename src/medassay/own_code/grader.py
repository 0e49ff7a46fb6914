"""A grader of a user: the class asks the judge and reads its reply, medassay does the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from medassay.core.canonical import canonical
from medassay.core.records.answer import Answer
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.own_code import OWN_CODE, CodePart, OwnCode
from medassay.core.records.prompt import Message, Prompt
from medassay.core.records.verdict import Case, SingleQuestionGrader, Verdict, VerdictBody
from medassay.core.reply.thoughts import strip_thoughts
from medassay.core.scale import Scale
from medassay.judging.graders.weighted import ScoreBody
from medassay.own_code.functions import number_on
from medassay.own_code.process import OwnCodeError, process_of

RETRIES = 2
_ROLES = ("system", "user", "assistant")
_ROOM = "x" * 2000  # stands in previews for the words of a prompt that nobody may ask for yet


@dataclass(frozen=True, kw_only=True)
class OwnGrader(SingleQuestionGrader):
    """Judges one answer at a time by the class of a user; asks again, at most twice."""

    body_type: ClassVar[type[VerdictBody]] = ScoreBody
    revision: ClassVar[int] = 1
    own: OwnCode
    batch: int = 1
    alternatives: int = 0
    spot_check: None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """Return the name of the class with the hash of its file."""
        return self._part.id

    @property
    def scale(self) -> Scale:
        """Return the scale that the plan declares."""
        return self.own.score_scale

    @property
    def prompts(self) -> tuple[str, ...]:
        """Return the file that writes the prompts."""
        return (self._part.shown,)

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two such graders differ."""
        return (self._part.sha256.encode(), repr(self.own.scale).encode())

    @property
    def _part(self) -> CodePart:
        return self.own.parts["grader"]

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the prompt, or the verdict once a reply holds a score or the retries are used."""
        [case] = cases
        text_answer = Answer(item_id=case.item.id, outcome="answered", value=case.text, reason="")
        process = process_of(self.own, "grader")
        try:
            for reply in replies:
                text = strip_thoughts(reply.text)[0]
                value = process.call("verdict", case.item, text_answer, text)
                if value is not None:
                    score = number_on(value, self.scale, self._part, "score")
                    return [Verdict(valid=True, body=ScoreBody(score=score))]
            if len(replies) > RETRIES:
                return [Verdict(valid=False, reason="no score read in any reply")]
            messages = self._messages(process.call("prompt", case.item, text_answer))
        except OwnCodeError as error:
            return [Verdict(valid=False, reason=str(error))]
        return self._prompt(case, messages)

    def opening(self, cases: Sequence[Case]) -> list[Prompt]:
        """Return the only question; where the code may not run yet, one as long as it may be."""
        if self.own.runs:
            return super().opening(cases)
        [case] = cases
        question = f"{case.item.context or ''}{case.item.question}{case.item.target_text}"
        message: Message = {"role": "user", "content": f"{question}{case.text}{_ROOM}"}
        return [self._prompt(case, [message])]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the score; None unless the verdict is valid."""
        return verdict.body_as(ScoreBody).score if verdict.valid else None

    def _prompt(self, case: Case, messages: Sequence[Message]) -> Prompt:
        return Prompt(
            item_id=case.item.id,
            messages=tuple(messages),
            encoded=canonical(list(messages)),
            template=self._part.shown,
        )

    def _messages(self, value: Any) -> list[Message]:
        texts = [{"role": "user", "content": value}] if isinstance(value, str) else value
        read = [_message(entry) for entry in texts] if isinstance(texts, list) else []
        if not read or None in read:
            raise OwnCodeError(
                f"{OWN_CODE} {self._part.name}: 'prompt' returned {value!r:.60}; expected messages"
                ' as [{"role": "user", "content": "…"}]'
            )
        return cast(list[Message], read)


def _message(entry: Any) -> Message | None:
    """Return one message, None where it is none; mappings come from the process in a shell."""
    fields = entry.get("mapping", entry) if isinstance(entry, dict) else {}
    role, content = fields.get("role"), fields.get("content")
    if role not in _ROLES or not isinstance(content, str) or fields.keys() != {"role", "content"}:
        return None
    return {"role": role, "content": content}
