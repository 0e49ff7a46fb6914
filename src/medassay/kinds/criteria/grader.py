"""The grader of criteria: for each line of a rubric, whether the answer meets it.

Points are not shown: a judge should say what an answer does, not what it is worth.

Source: specification of rubric judging; Arora et al. (2025), HealthBench, arXiv:2505.08775, which
asks for one criterion a prompt; here all that are left are asked together, by id.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from medassay.core.criteria_points import rubric_points
from medassay.core.json import unchecked
from medassay.core.json_schema import STRING, JsonSchema, enum_schema, list_schema, object_schema
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Criteria, Criterion
from medassay.core.records.verdict import Case, CriterionVerdict, Verdict, VerdictBody
from medassay.core.reply.json_objects import find_objects
from medassay.core.scale import Scale
from medassay.judging.grader_text import GraderText, OneTextGrader
from medassay.judging.sanitize import delimit

RETRIES = 2
_PROMPT = GraderText("criteria")
_LONGEST_REASON = 500  # characters that are kept of a reason


class CriteriaBody(VerdictBody, frozen=True, kw_only=True):
    """A verdict on each criterion of a rubric."""

    criteria: list[CriterionVerdict]


@dataclass(frozen=True, kw_only=True)
class CriteriaGrader(OneTextGrader):
    """Judges one answer at a time; asks again, at most twice, for what could not be read."""

    name: ClassVar[str] = "criteria"
    body_type: ClassVar[type[VerdictBody]] = CriteriaBody
    revision: ClassVar[int] = 1
    scale: Scale = Scale(floor=-sys.float_info.max)
    text: GraderText = _PROMPT

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdict when everything is read or the retries are
        used.
        """
        [case] = cases
        criteria = case.item.target_as(Criteria).criteria
        met_by_id: dict[str, CriterionVerdict] = {}
        repaired = False
        for reply in replies:
            ids_left = {c.id for c in criteria if c.id not in met_by_id}
            read, mended = read_criteria(reply.text, ids_left)
            met_by_id |= read
            repaired = repaired or mended
        missing = [c for c in criteria if c.id not in met_by_id]
        if missing and len(replies) <= RETRIES:
            return self._prompt(case, missing, again=bool(replies))
        if missing:
            names = ", ".join(c.id for c in missing)
            return [Verdict(valid=False, reason=f"no usable verdict: {names}")]
        body = CriteriaBody(criteria=[met_by_id[c.id] for c in criteria])
        return [Verdict(valid=True, body=body, repaired=repaired)]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the points of the criteria met over all positive points; None unless valid."""
        if not verdict.valid:
            return None
        met = [criterion.met for criterion in verdict.body_as(CriteriaBody).criteria]
        return rubric_points([{"points": c.points} for c in item.target_as(Criteria).criteria], met)

    def _prompt(self, case: Case, criteria: Sequence[Criterion], *, again: bool) -> Prompt:
        item = case.item
        question = f"{item.context}\n\n{item.question}" if item.context else item.question
        return self.text.prompt(
            item.id,
            item.language,
            schema=_schema([c.id for c in criteria]),
            question=question,
            criteria=criteria,
            ids=", ".join(c.id for c in criteria),
            again=again,
            answer=delimit(case.text, "answer"),
        )


class _CriterionLabel(msgspec.Struct, frozen=True):
    """What a judge says of a criterion; nothing of it is checked yet."""

    id: Any = ""
    met: Any = None
    why: Any = ""


def read_criteria(reply: str, ids: set[str]) -> tuple[dict[str, CriterionVerdict], bool]:
    """Return the usable verdicts of a reply by id, and whether its JSON was repaired.

    Two different objects in one reply are doubtful as a whole: one may be quoted from the answer.
    An id with two different verdicts has none; `met` must be true or false, nothing else.

    Examples
    --------
    >>> read_criteria('{"criteria": [{"id": "c1", "met": true, "why": "it says so"}]}', {"c1"})
    ({'c1': CriterionVerdict(met=True, id='c1', why='it says so')}, False)
    """
    objects = find_objects(reply, "criteria")
    if len(objects) != 1:
        return {}, False
    criteria: dict[str, CriterionVerdict] = {}
    doubtful: set[str] = set()
    listed = objects[0].value["criteria"]
    for entry in listed if isinstance(listed, list) else ():
        label = unchecked(entry if isinstance(entry, Mapping) else {}, _CriterionLabel)
        name, met = str(label.id), label.met
        if not isinstance(met, bool) or name not in ids:
            continue
        if name in criteria and criteria[name].met != met:
            doubtful.add(name)
        why = str(label.why)[:_LONGEST_REASON].encode("utf-8", "replace").decode()
        criteria[name] = CriterionVerdict(id=name, met=met, why=why)
    return {
        name: criterion for name, criterion in criteria.items() if name not in doubtful
    }, objects[0].repaired


def _schema(ids: Sequence[str]) -> JsonSchema:
    """Return the JSON Schema of a reply, for vendors that hold a model to one."""
    criterion = object_schema({"id": enum_schema(ids), "why": STRING, "met": {"type": "boolean"}})
    return object_schema({"criteria": list_schema(criterion)})
