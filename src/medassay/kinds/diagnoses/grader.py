"""The grader of ranked diagnoses: how severe each is, and how it stands to the golden diagnosis.

Names are compared first; the judge is asked for the relation of the rest only, and for every
severity. Each label says how it was found. A label that no reply gave is None, and the rule for
unjudged ranks applies; where not one of the relations asked for was given, the score is null: a
judge that fails is no verdict on the model.

Source: specification of differential-diagnosis scoring, "Judge contracts".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from medassay.core.canonical import canonical
from medassay.core.json import parse_json
from medassay.core.json_schema import JsonSchema, enum_schema, list_schema, object_schema
from medassay.core.records.completion import Completion
from medassay.core.records.diagnosis import EXACT, RELATIONS, SEVERITY_MAPS, Diagnosis
from medassay.core.records.item import Item
from medassay.core.records.plan import DdxRules
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Diagnoses
from medassay.core.records.verdict import Case, Verdict, VerdictBody
from medassay.core.reply.json_objects import find_objects
from medassay.core.revision import revision_id
from medassay.core.scale import Scale
from medassay.judging.grader_text import GraderText
from medassay.judging.sanitize import delimit
from medassay.kinds.diagnoses.names import NameMatcher
from medassay.kinds.diagnoses.parts import DiagnosesParts
from medassay.kinds.diagnoses.scorer import BEST, DiagnosesBody, score_labels

RETRIES = 2
MOST = 20  # entries of one call; longer lists are split
_SEVERITY = GraderText("ddx_severity", ("en",))
_RELATION = GraderText("ddx_relation", ("en",))
_ALIASES = {
    "exact group of diseases": "exact disease group",
    "broad group of diseases": "broad disease group",
    "not related disease": "not related",
}
Labels = dict[int, str]


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    """One list to be labelled: severities, or relations to a golden name; entries by id."""

    text: GraderText
    key: str
    labels: Mapping[str, int | None]  # known label → its code, None where labels have none
    entries: Mapping[int, str]
    golden: str = ""


class _Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the replies to one question gave."""

    labels: Labels
    repaired: bool
    strange: int


@dataclass(frozen=True, kw_only=True)
class DiagnosesGrader:
    """Judges one list at a time; with `asks` false names are compared and nobody is asked.

    `synonyms` are those of the plan's mappings, golden diagnosis → names; `files` the hashes of
    these.
    """

    revision: ClassVar[int] = 1
    body_type: ClassVar[type[VerdictBody]] = DiagnosesBody
    rules: DdxRules = field(default_factory=DdxRules)
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    asks: bool = True
    batch: int = 1
    alternatives: int = 0
    spot_check: None = None
    scale: Scale = Scale(hi=BEST)

    @property
    def id(self) -> str:
        """Return `name/revision`."""
        return revision_id(self.name, self.revision)

    @property
    def prompts(self) -> tuple[str, ...]:
        """Return the ids of the texts that are asked."""
        return (_SEVERITY.id, _RELATION.id)

    @property
    def _variant(self) -> dict[str, Any]:
        return {"rules": self.rules.to_dict(), "files": list(self.files)}

    @property
    def name(self) -> str:
        """Return "ddx", or "ddx_names" where nobody is asked."""
        return "ddx" if self.asks else "ddx_names"

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two such graders differ."""
        return (_SEVERITY.texts, _RELATION.texts, canonical(self._variant))

    @cached_property
    def _matching(self) -> NameMatcher:
        return NameMatcher(self.synonyms)

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdict when every list is labelled or the retries are
        used.
        """
        [case] = cases
        diagnoses = self._answer_list(case)
        heard: list[_Heard] = []
        waiting = iter(replies)
        questions = list(self._questions(case.item, diagnoses))
        for question in questions:
            answer = _ask(question, waiting, case.item)
            if isinstance(answer, Prompt):
                return answer
            heard.append(answer)
        return [self._verdict(case.item, diagnoses, questions, heard)]

    def opening(self, cases: Sequence[Case]) -> list[Prompt]:
        """Return all that is asked of a case at first: names may save some of it, retries come on
        top.
        """
        [case] = cases
        diagnoses = [replace(diagnosis, relation=None) for diagnosis in self._answer_list(case)]
        return [
            _prompt(question, question.entries, case.item, again=False)
            for question in self._questions(case.item, diagnoses)
        ]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the semantic score of the list, 0 to 16; None unless the verdict is valid."""
        return (
            score_labels(verdict.body_as(DiagnosesBody), self.rules).semantic
            if verdict.valid
            else None
        )

    def parts(self, item: Item, verdict: Verdict) -> dict[str, Any]:
        """Return what else the labels come to: severity score, hits, counts, the signed
        difference.
        """
        body = verdict.body_as(DiagnosesBody)
        scored = score_labels(body, self.rules)
        parts = DiagnosesParts(
            severity=scored.severity if body.severities_read else None,
            severity_shift=scored.severity_shift,
            golden_severity=body.golden_severity,
            all_places=scored.all_places,
            hit=scored.hit,
            n=scored.n,
            n_considered=scored.n_considered,
            unjudged=scored.unjudged,
        )
        return msgspec.structs.asdict(parts)

    def fits(self, case: Case, verdict: Verdict) -> bool:
        """Return whether a verdict holds the list of its answer, and the golden diagnosis of its
        item.
        """
        body = verdict.body_as(DiagnosesBody)
        listed = [(diagnosis.rank, diagnosis.name) for diagnosis in self._answer_list(case)]
        body_names = [(diagnosis.rank, diagnosis.name) for diagnosis in body.diagnoses]
        golden = (case.item.target_as(Diagnoses).golden, self.golden_severity(case.item))
        return listed == body_names and golden == (body.golden, body.golden_severity)

    def _answer_list(self, case: Case) -> list[Diagnosis]:
        """Return the list of an answer, with what the names alone tell."""
        diagnoses = []
        for entry in parse_json(case.text.encode(), "answer"):
            diagnosis = Diagnosis(rank=entry["rank"], name=entry["name"])
            first = self.rules.names_first or not self.asks
            rule = (
                self._matching.rule(diagnosis.name, case.item.target_as(Diagnoses).diagnoses)
                if first
                else ""
            )
            diagnoses.append(
                replace(diagnosis, relation=EXACT, relation_by=rule) if rule else diagnosis
            )
        return diagnoses

    def _questions(self, item: Item, diagnoses: Sequence[Diagnosis]) -> Iterator[_Question]:
        if not self.asks:
            return
        diagnoses_in_limit = {d.rank: d for d in diagnoses if d.rank <= self.rules.rank_limit}
        levels: dict[str, int | None] = dict.fromkeys(SEVERITY_MAPS[self.rules.severity_map].levels)
        golden = (
            [{1: item.target_as(Diagnoses).golden}] if self.golden_severity(item) is None else []
        )
        for entries in (
            *golden,
            *_split({rank: d.name for rank, d in diagnoses_in_limit.items()}),
        ):
            yield _Question(text=_SEVERITY, key="severity", labels=levels, entries=entries)
        for entries in _split(
            {rank: d.name for rank, d in diagnoses_in_limit.items() if not d.relation}
        ):
            yield _Question(
                text=_RELATION,
                key="relation",
                labels=dict(RELATIONS),
                entries=entries,
                golden=item.target_as(Diagnoses).golden,
            )

    def golden_severity(self, item: Item) -> str | None:
        """Return the golden severity that the bank gives, if it is a label of the map in use."""
        levels = SEVERITY_MAPS[self.rules.severity_map].levels
        severity = item.target_as(Diagnoses).severity
        return severity if severity in levels else None

    def _verdict(
        self,
        item: Item,
        diagnoses: Sequence[Diagnosis],
        questions: Sequence[_Question],
        heard: Sequence[_Heard],
    ) -> Verdict:
        golden, golden_by = self.golden_severity(item), "bank"
        severities: Labels = {}
        relations: Labels = {}
        answers = list(zip(questions, heard, strict=True))
        if golden is None:
            golden, golden_by = None, ""
            if answers:
                golden = answers.pop(0)[1].labels.get(1)
                golden_by = "judge" if golden else ""
        n_asked = {"severity": 0, "relation": 0}
        for question, answer in answers:
            n_asked[question.key] += len(question.entries)
            (severities if question.key == "severity" else relations).update(answer.labels)
        labelled = [_labelled(diagnosis, severities, relations) for diagnosis in diagnoses]
        if n_asked["relation"] and not any(diagnosis.relation for diagnosis in labelled):
            return Verdict(valid=False, reason="no usable relation", repaired=_mended(heard))
        body = DiagnosesBody(
            golden=item.target_as(Diagnoses).golden,
            golden_severity=golden,
            golden_severity_by=golden_by,
            diagnoses=labelled,
            severities_read=bool(severities) or (self.asks and not diagnoses),
            strange_ids=sum(reply.strange for reply in heard),
        )
        return Verdict(valid=True, body=body, repaired=_mended(heard))


def _labelled(diagnosis: Diagnosis, severities: Labels, relations: Labels) -> Diagnosis:
    if diagnosis.rank in severities:
        diagnosis = replace(diagnosis, severity=severities[diagnosis.rank], severity_by="judge")
    if diagnosis.rank in relations and diagnosis.relation is None:
        diagnosis = replace(diagnosis, relation=relations[diagnosis.rank], relation_by="judge")
    return diagnosis


def _mended(heard: Sequence[_Heard]) -> bool:
    return any(reply.repaired for reply in heard)


def _split(entries: Mapping[int, str]) -> Iterator[dict[int, str]]:
    listed = sorted(entries.items())
    for start in range(0, len(listed), MOST):
        yield dict(listed[start : start + MOST])


def _ask(question: _Question, replies: Iterator[Completion], item: Item) -> Prompt | _Heard:
    """Return the labels in the next replies, at most three of them, or the prompt that is still to
    ask.
    """
    labels: Labels = {}
    repaired, strange = False, 0
    for attempt in range(RETRIES + 1):
        missing = {at: name for at, name in question.entries.items() if at not in labels}
        if not missing:
            break
        reply = next(replies, None)
        if reply is None:
            return _prompt(question, missing, item, again=attempt > 0)
        read = read_labels(reply.text, missing, question.key, question.labels)
        labels |= read.labels
        repaired, strange = repaired or read.repaired, strange + read.strange
    return _Heard(labels=labels, repaired=repaired, strange=strange)


def _prompt(question: _Question, missing: Mapping[int, str], item: Item, *, again: bool) -> Prompt:
    listed = "\n".join(f"{at}. {name}" for at, name in missing.items())
    fields: dict[str, Any] = {
        "list": delimit(listed, "list"),
        "ids": list(missing),
        "again": again,
    }
    if question.golden:
        fields["golden"] = delimit(question.golden, "reference")
    else:
        fields |= {"levels": list(question.labels), "separate": "rare mild" in question.labels}
    return question.text.prompt(item.id, "en", schema=_schema(question, list(missing)), **fields)


def _schema(question: _Question, ids: Sequence[int]) -> JsonSchema:
    """Return the JSON Schema of a reply, for vendors that hold a model to one."""
    properties: dict[str, JsonSchema] = {"id": {"type": "integer", "enum": list(ids)}}
    if question.golden:
        properties["code"] = {"type": "integer", "enum": list(RELATIONS.values())}
    properties[question.key] = enum_schema([*question.labels])
    return object_schema({"items": list_schema(object_schema(properties))})


def read_labels(
    reply: str, entries: Mapping[int, str], key: str, known_labels: Mapping[str, int | None]
) -> _Heard:
    """Return the labels that a reply gives for the wanted ids; what is doubtful is left out.

    Doubtful is an unknown label, one with a bar, a code that contradicts it, an id with two
    different labels, and a whole reply with two different objects. Ids that were not asked for are
    counted.

    Examples
    --------
    >>> read_labels('{"items": [{"id": 1, "severity": "Rare"}]}', {1: "Gout"}, "severity", {
    ...     "rare": None}).labels
    {1: 'rare'}
    """
    objects = find_objects(reply, "items")
    listed = objects[0].value["items"] if len(objects) == 1 else None
    labels_by_id: dict[int, set[str | None]] = {}
    strange = 0
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, Mapping):
            continue
        at = _id(entry.get("id"))
        if at not in entries:
            strange += 1
            continue
        labels_by_id.setdefault(at, set()).add(_label(entry, key, known_labels))
    single = {at: next(iter(labels)) for at, labels in labels_by_id.items() if len(labels) == 1}
    return _Heard(
        labels={at: label for at, label in single.items() if label is not None},
        repaired=bool(objects) and objects[0].repaired,
        strange=strange,
    )


def _id(value: Any) -> int:
    """Return an id as a number, 0 for anything that is none."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def match_label(text: str, labels: Iterable[str]) -> str | None:
    """Return the label that a text is, None if it is none: case, blanks, "_" and "-" do not matter.

    Examples
    --------
    >>> match_label("Not_related disease", ["Not Related"])
    'Not Related'
    """
    plain = " ".join(text.casefold().replace("_", " ").replace("-", " ").split())
    plain = _ALIASES.get(plain, plain)
    return next((name for name in labels if name.casefold() == plain), None)


def _label(entry: Mapping[str, Any], key: str, labels: Mapping[str, int | None]) -> str | None:
    value = entry.get(key)
    label = match_label(value, labels) if isinstance(value, str) else None
    if label is None:
        return None
    code = labels[label]
    contradicts = code is not None and "code" in entry and _id(entry["code"]) != code
    return None if contradicts else label
