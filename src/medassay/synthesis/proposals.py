"""Private items: a model drafts, one of another family reviews, and only their owner approves.

A draft goes through at most so many rounds: accepted by the reviewer it is `reviewed` and waits for
its owner; what the reviewer rejects, or would still have revised after the last round,
`needs_revision`. Only a person makes an item `approved` or `rejected`.

Source: specification of bank synthesis, 10.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from medassay.bank.catalog import BANKS
from medassay.bank.folder import load_bank
from medassay.bank.loaders import demo
from medassay.bank.near_duplicates import NearIndex, compared_text, is_near, plain
from medassay.core.canonical import sha256_hex
from medassay.core.records.item import Bank
from medassay.core.records.item_object import FactObject, ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError
from medassay.judging.sanitize import delimit
from medassay.synthesis.author import Author
from medassay.synthesis.plan import Proposals, SynthesisPlan
from medassay.synthesis.project import Event, Place, Workshop, basis_of
from medassay.synthesis.question import (
    OPTIONS,
    checked_options,
    checked_text,
    contains,
    read_question,
    reply_record,
    shuffled,
)
from medassay.synthesis.records import DraftIssue, DraftVerdict, ItemDraft
from medassay.synthesis.steps import Stage, SynthesisStep, decision_on, register, value_of

State = Literal["draft", "reviewed", "approved", "rejected", "needs_revision"]
CRITERIA = ("correctness", "ambiguity", "answerability", "leakage", "duplicate")
_VERDICTS = ("accept", "revise", "reject")
_LONGEST = 6000  # characters of a case
_LONGEST_ANSWER = 3000


class ProposalMaker:
    """Makes private items; see `synthesis.jobs.Maker`."""

    def __init__(
        self, plan: SynthesisPlan, base: Path, workshop: Workshop, authors: Mapping[str, Author]
    ) -> None:
        options = plan.proposals
        if options is None:
            raise InputError("a plan without the table [proposals]")
        self._plan = plan
        self._proposals_plan: Proposals = options
        self._workshop = workshop
        self._proposer = authors[plan.generator]
        self._reviewer = authors[options.reviewer]
        self._topics = {sha256_hex(topic.encode())[:8]: topic for topic in options.topics}
        self._known = _KnownItems(base, options.against)
        self._jobs: dict[str, SynthesisStep] = {}
        self.ended: list[Event] = []

    def stages(self) -> Iterator[Stage]:
        """Yield drafts and verdicts, round by round."""
        going_on = list(self._topics)
        for number in range(1, self._proposals_plan.rounds + 1):
            yield "drafts", register((self._draft_job(t, number) for t in going_on), self._jobs)
            drafted = [topic for topic in going_on if self._draft(topic, number) is not None]
            yield "verdicts", register((self._verdict_job(t, number) for t in drafted), self._jobs)
            for topic in drafted:
                if self._verdict(topic, number)[0] == "reject":
                    self._end(topic, number, "rejected by the reviewer")
            going_on = [t for t in drafted if self._verdict(t, number)[0] == "revise"]
        for topic in going_on:
            why = f"needs revision after {self._proposals_plan.rounds} rounds"
            self._end(topic, self._proposals_plan.rounds, why)

    def _draft_job(self, topic: str, number: int) -> SynthesisStep:
        before = self._draft(topic, number - 1) if number > 1 else None
        verdict, issues = self._verdict(topic, number - 1) if number > 1 else ("", [])
        holes = {
            "domain": self._proposals_plan.domain,
            "topic": delimit(self._topics[topic], "topic"),
            "code": self._plan.language,
            "form": self._form,
            "draft": "" if before is None else delimit(draft_text(before), "draft"),
            "issues": delimit("\n".join(issues), "issues") if verdict == "revise" else "",
        }
        return SynthesisStep(
            step="draft",
            subject=_round(topic, number),
            author=self._proposer,
            part="make_mandate",
            holes=holes,
            read=lambda reply: read_draft(reply, self._form),
            sources=[("verdict", _round(topic, number - 1))] if number > 1 else [("plan", "plan")],
        )

    @property
    def _form(self) -> str:
        return "closed" if self._proposals_plan.form == "quiz" else "open"

    def _draft(self, topic: str, number: int) -> ItemDraft | None:
        job = self._jobs.get(f"draft:{_round(topic, number)}")
        return value_of(self._workshop, job, ItemDraft)

    def _verdict_job(self, topic: str, number: int) -> SynthesisStep:
        draft = self._draft(topic, number)
        assert draft is not None
        similar = self._similar(topic, number, draft)
        return SynthesisStep(
            step="verdict",
            subject=_round(topic, number),
            author=self._reviewer,
            part="make_verdict",
            holes={
                "draft": delimit(draft_text(draft), "draft"),
                "similar": delimit("\n".join(similar), "similar items") if similar else "",
            },
            read=read_verdict,
            sources=[("draft", _round(topic, number))],
        )

    def _similar(self, topic: str, number: int, draft: ItemDraft) -> list[str]:
        """Return near duplicates among the known items, and among the drafts of earlier topics by
        this round.

        Of earlier topics only, and never of later rounds: else a draft that was accepted could lose
        that to one that came after it.
        """
        nearest = self._known.near(draft.question)
        for other in self._topics:
            if other == topic:
                break
            rounds = (self._draft(other, n) for n in range(number, 0, -1))
            latest = next((verdict for verdict in rounds if verdict is not None), None)
            if latest is not None and is_near(draft.question, latest.question):
                nearest.append(f"the draft on '{self._topics[other][:60]}': {latest.question}")
        return nearest

    def _verdict(self, topic: str, number: int) -> tuple[str, list[str]]:
        """Return what the reviewer said of a round, "" where nothing.

        A near duplicate is never accepted.
        """
        job = self._jobs.get(f"verdict:{_round(topic, number)}")
        verdict = value_of(self._workshop, job, DraftVerdict)
        draft = self._draft(topic, number)
        if verdict is None or draft is None:
            return "", []
        if verdict.verdict == "accept" and (similar := self._similar(topic, number, draft)):
            return "revise", [f"duplicate: near duplicate of {item}" for item in similar]
        return verdict.verdict, list(map(str, verdict.issues))

    def _end(self, topic: str, number: int, why: str) -> None:
        """Note that a topic ended without acceptance: its owner decides about the last draft."""
        subject = _round(topic, number)
        draft = self._draft(topic, number)
        _, issues = self._verdict(topic, number)
        event = self._workshop.note_once(
            "end",
            subject,
            "queued",
            basis=basis_of(draft, issues, why),
            sources=[("verdict", subject)],
            result=draft,
            note=f"{why}: {'; '.join(issues)}",
            issues=issues,
        )
        self.ended.append(event)

    def records(self) -> Iterator[tuple[ItemObject, Sequence[Place]]]:
        """Yield the item of each draft that the reviewer accepted, or its owner took over."""
        ends = {event.place[1]: event for event in self.ended}
        for topic in self._topics:
            for number in range(1, self._proposals_plan.rounds + 1):
                subject = _round(topic, number)
                draft = self._draft(topic, number)
                if subject in ends:
                    draft = _taken_over(self._workshop, ends[subject])
                elif self._verdict(topic, number)[0] != "accept":
                    draft = None
                if draft is not None:
                    places: list[Place] = [
                        ("draft", subject),
                        ("verdict", subject),
                        ("end", subject),
                    ]
                    yield self._record(topic, draft), places

    def _record(self, topic: str, draft: ItemDraft) -> ItemObject:
        proposer, reviewer = self._proposer.spec, self._reviewer.spec
        item: ItemObject = {
            "id": f"{self._plan.name}-{topic}",
            "kind": "synthetic",
            "domain": self._proposals_plan.domain,
            "language": self._plan.language,
            "licence": self._plan.licence,
            "source": "; ".join(draft.sources),
            "meta": {
                "maker": "proposals",
                "question": topic,
                "generator": proposer.id,
                "family": proposer.family,
                "reviewer": reviewer.id,
                "reviewer_family": reviewer.family,
            },
        }
        item.update(_target(draft, self._plan.seed, topic))
        return item


def _round(topic: str, number: int) -> str:
    return f"{topic}/round-{number}"


def _taken_over(workshop: Workshop, event: Event) -> ItemDraft | None:
    """Return the draft that an owner took over from the queue, as it was or changed."""
    decided = decision_on(workshop, event)
    if decided is None or decided.status not in ("accept", "change"):
        return None
    return (event if decided.status == "accept" else decided).result_as(ItemDraft)


def _target(draft: ItemDraft, seed: int, name: str) -> ItemObject:
    if draft.options:
        letter = LETTERS[draft.options.index(draft.answer)]
        target_lines = [draft.question, draft.answer, draft.options, letter]
        mixed = shuffled(read_question(target_lines), seed, name)
        return {
            "answer_type": "closed",
            "question": draft.question,
            "options": list(mixed.options),
            "expected": mixed.letter,
        }
    facts: list[FactObject | str] = [
        {"id": f"f{at}", "text": text} for at, text in enumerate(draft.facts or (), 1)
    ]
    return {
        "answer_type": "open",
        "question": draft.question,
        "reference": draft.answer,
        "facts": facts,
    }


def draft_text(draft: ItemDraft) -> str:
    """Return a draft as a reviewer reads it."""
    lines = [f"Question: {draft.question}", f"Answer: {draft.answer}"]
    lines += [f"{LETTERS[at]}. {option}" for at, option in enumerate(draft.options or ())]
    lines += [f"Required fact: {fact}" for fact in draft.facts or ()]
    lines += [f"Source: {source}" for source in draft.sources]
    return "\n".join(lines)


class _DraftReply(msgspec.Struct, frozen=True, kw_only=True):
    question: Any
    answer: Any
    sources: Any


class _ClosedReply(_DraftReply, frozen=True, kw_only=True):
    options: Any


class _OpenReply(_DraftReply, frozen=True, kw_only=True):
    facts: Any


class _VerdictReply(msgspec.Struct, frozen=True):
    verdict: Any
    issues: Any


def read_draft(reply: str, form: str) -> ItemDraft:
    """Return a draft in a reply.

    Raises
    ------
    ValueError
        Saying which rule is broken.
    """
    value: _ClosedReply | _OpenReply = (
        reply_record(reply, _ClosedReply) if form == "closed" else reply_record(reply, _OpenReply)
    )
    question = checked_text(value.question, "question", _LONGEST)
    answer = checked_text(value.answer, "answer", _LONGEST_ANSWER)
    sources = _texts(value.sources, "sources", 1, 10)
    options: list[str] | UnsetType = UNSET
    facts: list[str] | UnsetType = UNSET
    if isinstance(value, _ClosedReply):
        options = list(checked_options(value.options))
        if answer not in options:
            raise ValueError(f"the answer is none of the {OPTIONS} options, word for word")
    else:
        facts = _texts(value.facts, "facts", 1, 12)
    if contains(question, answer):
        raise ValueError("the question contains its answer")
    return ItemDraft(
        question=question, answer=answer, sources=sources, options=options, facts=facts
    )


def read_verdict(reply: str) -> DraftVerdict:
    """Return a reviewer's verdict with its issues.

    Raises
    ------
    ValueError
        Saying which rule is broken.
    """
    value = reply_record(reply, _VerdictReply)
    verdict, issues = value.verdict, value.issues
    if verdict not in _VERDICTS:
        raise ValueError(f"verdict {verdict!r:.40}; expected {', '.join(_VERDICTS)}")
    if not isinstance(issues, list):
        raise ValueError(f"issues {issues!r:.40}; expected a list")
    read = []
    for issue in issues:
        if not isinstance(issue, dict) or issue.get("criterion") not in CRITERIA:
            raise ValueError(
                f"issue {issue!r:.60}; expected a criterion ({', '.join(CRITERIA)}) and a text"
            )
        text = checked_text(issue.get("text"), "the text of an issue", _LONGEST_ANSWER)
        read.append(DraftIssue(criterion=issue["criterion"], text=text))
    if (verdict == "accept") == bool(read):
        problem = "issues with an acceptance" if read else f"'{verdict}' without an issue"
        raise ValueError(f"{problem}; expected issues exactly where the draft is not accepted")
    return DraftVerdict(verdict=verdict, issues=read)


def _texts(value: Any, what: str, fewest: int, most: int) -> list[str]:
    if not isinstance(value, list) or not fewest <= len(value) <= most:
        raise ValueError(f"{what} {value!r:.40}; expected a list of {fewest} to {most} texts")
    return [checked_text(text, f"one of the {what}", _LONGEST_ANSWER) for text in value]


def _shipped() -> Iterator[Bank]:
    for entry in BANKS.values():
        if entry.checked == "shipped":
            yield entry.load(demo.SHIPPED / entry.folder)


def _banks_at(base: Path, patterns: Sequence[str]) -> Iterator[Bank]:
    """Yield the banks in the folders that patterns such as "../banks/*" name.

    Raises
    ------
    InputError
        When a pattern names no bank: a check against nothing must not look like one.
    """
    for pattern in patterns:
        places = map(Path, sorted(glob(str(base / pattern))))
        places_found = [place for place in places if (place / "bank.toml").is_file()]
        if not places_found:
            raise InputError(f"'proposals.against': '{pattern}' names no folder of a bank")
        yield from (load_bank(place, lock=None) for place in places_found)


class _KnownItems:
    """The items of some banks, and of those that ship, searched for near duplicates."""

    def __init__(self, base: Path, banks: Sequence[str]) -> None:
        self._names: list[str] = []
        texts: list[str] = []
        for bank in (*_shipped(), *_banks_at(base, banks)):
            for item in bank.items:
                self._names.append(f"{bank.name} {item.id}: {item.question}")
                texts.append(compared_text(item))
        self._index = NearIndex(texts)
        self._nearest_names: dict[str, list[str]] = {}

    def near(self, question: str) -> list[str]:
        """Return the names and texts of the items that a question is a near duplicate of."""
        if question not in self._nearest_names:
            nearest = self._index.near(plain(question))
            self._nearest_names[question] = [self._names[near.first] for near in nearest]
        return list(self._nearest_names[question])


def state_of(workshop: Workshop, event: Event) -> State:
    """Return the state of a private item or of a topic's last draft: only a person's decision makes
    one approved.
    """
    decided = decision_on(workshop, event)
    if decided is not None:
        return "approved" if decided.status in ("accept", "change") else "rejected"
    if event.place[0] == "item":
        return "reviewed"
    return "needs_revision" if event.place[0] == "end" else "draft"
