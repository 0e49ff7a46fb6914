"""The grader of target facts: entail, missing or contradict for every fact, and false claims.

Source: specification of rubric judging, "Open items".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from medassay.core.json import unchecked
from medassay.core.json_schema import STRING, JsonSchema, enum_schema, list_schema, object_schema
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Fact, Facts
from medassay.core.records.verdict import (
    CLAIM_KINDS,
    FACT_VERDICTS,
    Case,
    FactVerdict,
    FalseClaim,
    Verdict,
    VerdictBody,
)
from medassay.core.reply.json_objects import find_objects
from medassay.core.reply.thoughts import plain
from medassay.core.scale import Scale
from medassay.judging.grader_text import GraderText, OneTextGrader
from medassay.judging.sanitize import delimit

RETRIES = 2
_QUOTES = " .…\"'“”„«»"  # judges put quotes into quotation marks, and end them with dots


def fact_score(
    verdicts: Sequence[str], weights: Sequence[float] | None = None, lam: float = 1.0
) -> float:
    """Return one judge's score of one answer, in [0, 1]: max(0, Σ w·v / Σ w).

    v is 1 for entail, 0 for missing and −`lam` for contradict: a contradiction costs more than an
    omission, since a wrong dose is worse than none.

    Examples
    --------
    >>> fact_score(["entail", "missing", "contradict"], [3, 1, 1])
    0.4
    """
    worth = {"entail": 1.0, "missing": 0.0, "contradict": -lam}
    fact_weights = [1.0] * len(verdicts) if weights is None else list(weights)
    if not verdicts or len(fact_weights) != len(verdicts):
        raise ValueError(
            f"{len(verdicts)} verdicts with {len(fact_weights)} weights; expected one each"
        )
    total = sum(w * worth[v] for w, v in zip(fact_weights, verdicts, strict=True))
    return max(0.0, total / sum(fact_weights))


class _FactReply(msgspec.Struct, frozen=True):
    """What one reply gave: verdicts by fact, claims (None if they could not be read)."""

    facts: dict[str, FactVerdict]
    claims: list[FalseClaim] | None
    repaired: bool = False
    unsupported: int = 0


class FactsBody(VerdictBody, frozen=True, kw_only=True):
    """A verdict on each target fact, and the false claims beyond them."""

    facts: list[FactVerdict]
    claims: list[FalseClaim]


@dataclass(frozen=True, kw_only=True)
class FactGrader(OneTextGrader):
    """Judges one answer at a time; asks again, at most twice, for what could not be read."""

    name: ClassVar[str] = "facts"
    body_type: ClassVar[type[VerdictBody]] = FactsBody
    revision: ClassVar[int] = 1
    lam: float = 1.0
    scale: Scale = Scale()
    text: GraderText = field(default_factory=lambda: GraderText("facts"))

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two such graders differ."""
        return (self.text.texts, repr(self.lam).encode())

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdict when everything is read or the retries are
        used.
        """
        [case] = cases
        facts: dict[str, FactVerdict] = {}
        claims: list[FalseClaim] | None = None
        repaired, unsupported = False, 0
        for reply in replies:
            facts_left = [fact for fact in case.item.target_as(Facts).facts if fact.id not in facts]
            part = read_reply(reply.text, facts_left, case.text, claims=claims is None)
            facts |= part.facts
            claims = part.claims if claims is None else claims
            repaired, unsupported = repaired or part.repaired, unsupported + part.unsupported
        left = [fact for fact in case.item.target_as(Facts).facts if fact.id not in facts]
        if (left or claims is None) and len(replies) <= RETRIES:
            return self._prompt(case, left, claims=claims is None, again=bool(replies))
        if left or claims is None:
            missing = [f"fact {fact.id}" for fact in left] + ["claims"] * (claims is None)
            return [Verdict(valid=False, reason=f"no usable verdict: {', '.join(missing)}")]
        listed = [facts[fact.id] for fact in case.item.target_as(Facts).facts]
        body = FactsBody(facts=listed, claims=claims)
        return [Verdict(valid=True, body=body, repaired=repaired, unsupported_quotes=unsupported)]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the judge score; None unless the verdict is valid."""
        if not verdict.valid:
            return None
        verdicts = [fact.verdict for fact in verdict.body_as(FactsBody).facts]
        return fact_score(verdicts, [fact.weight for fact in item.target_as(Facts).facts], self.lam)

    def _prompt(self, case: Case, facts: Sequence[Fact], *, claims: bool, again: bool) -> Prompt:
        item = case.item
        question = f"{item.context}\n\n{item.question}" if item.context else item.question
        return self.text.prompt(
            item.id,
            item.language,
            schema=reply_schema([f.id for f in facts], claims=claims),
            question=question,
            facts=facts,
            ids=", ".join(f.id for f in facts),
            claims=claims,
            again=again,
            answer=delimit(case.text, "answer"),
        )


def reply_schema(ids: Sequence[str], *, claims: bool) -> JsonSchema:
    """Return the JSON Schema of a reply, for vendors that hold a model to one."""
    fact = {
        "id": enum_schema(ids) if ids else STRING,
        "verdict": enum_schema(["entail", "missing", "contradict"]),
        "evidence": STRING,
    }
    properties = {"facts": list_schema(object_schema(fact))}
    if claims:
        claim = {"quote": STRING, "why": STRING, "kind": enum_schema(CLAIM_KINDS)}
        properties |= {"extra_false_claims": list_schema(object_schema(claim))}
    return object_schema(properties)


def read_reply(reply: str, facts_asked: Iterable[Fact], answer: str, *, claims: bool) -> _FactReply:
    """Return what can be used of a reply; whatever is doubtful is left out and asked again.

    Two different objects in one reply are doubtful as a whole: one may be quoted from the answer.
    A quote that the shown text does not contain is dropped and counted.
    """
    objects = find_objects(reply, "facts") or find_objects(reply, "extra_false_claims")
    if len(objects) != 1:
        return _FactReply({}, None)
    value, answer = objects[0].value, plain(answer)
    facts, unsupported = _facts(value.get("facts"), {fact.id for fact in facts_asked}, answer)
    listed: list[FalseClaim] | None = None
    if claims:
        listed, dropped = _claims(value.get("extra_false_claims"), answer)
        unsupported += dropped
    return _FactReply(facts, listed, objects[0].repaired, unsupported)


class _FactLabel(msgspec.Struct, frozen=True):
    """What a judge says of a fact; nothing of it is checked yet."""

    id: Any = ""
    verdict: Any = None
    evidence: Any = None


class _Claim(msgspec.Struct, frozen=True):
    """What a judge says of a false claim; nothing of it is checked yet."""

    quote: Any = None
    kind: Any = None
    why: Any = ""


def _facts(entries: Any, ids: set[str], answer: str) -> tuple[dict[str, FactVerdict], int]:
    facts: dict[str, FactVerdict] = {}
    doubtful: set[str] = set()
    unsupported = 0
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, Mapping):
            continue
        label = unchecked(entry, _FactLabel)
        name, verdict = str(label.id), label.verdict
        if name not in ids or verdict not in FACT_VERDICTS:
            continue
        if name in facts and facts[name].verdict != verdict:
            doubtful.add(name)
        evidence = _quote(label.evidence, answer)
        unsupported += evidence is None
        facts[name] = FactVerdict(id=name, verdict=verdict, evidence=evidence or "")
    return {name: fact for name, fact in facts.items() if name not in doubtful}, unsupported


def _claims(entries: Any, answer: str) -> tuple[list[FalseClaim] | None, int]:
    if not isinstance(entries, list):
        return None, 0
    claims: list[FalseClaim] = []
    unsupported = 0
    for entry in entries:
        claim = unchecked(entry, _Claim) if isinstance(entry, Mapping) else _Claim()
        if not isinstance(claim.quote, str):
            return None, 0
        quote = _quote(claim.quote, answer)
        if not quote:
            unsupported += 1
            continue
        why = str(claim.why)[:500].encode("utf-8", "replace").decode()
        kind = claim.kind if claim.kind in CLAIM_KINDS else "other"
        claims.append(FalseClaim(quote=quote, why=why, kind=kind))
    return claims, unsupported


def _quote(value: Any, answer: str) -> str | None:
    """Return a quote as it was given, "" for none, None if the shown text does not contain it."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        return None
    bare = plain(value).strip(_QUOTES)
    if bare not in answer:
        return None
    return value.encode("utf-8", "replace").decode() if bare else ""
