"""Private items: a model drafts, one of another family reviews, and only their owner approves.

A draft goes through at most so many rounds: accepted by the reviewer it is `reviewed` and waits for its owner; rejected it is
`rejected`; what is still to be revised after the last round `needs_revision` by a person.

Source: specification of bank synthesis, 10.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any, Literal

from medassay.bank import demo
from medassay.bank.catalog import BANKS
from medassay.bank.folder import load_bank
from medassay.bank.near import NearIndex, compared_text, plain
from medassay.core.canonical import sha256_hex
from medassay.core.item import LETTERS, Bank
from medassay.core.json_reply import read_json_reply
from medassay.errors import InputError
from medassay.judge.shown import fence
from medassay.synthesis.author import Author
from medassay.synthesis.items import note_items
from medassay.synthesis.jobs import Job, Stage, decision_on, value_of
from medassay.synthesis.plan import Proposals, SynthesisPlan
from medassay.synthesis.question import OPTIONS, checked_options, checked_text
from medassay.synthesis.workshop import BY_PROGRAM, Event, Place, Status, Workshop, basis_of

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
        wanted = plan.proposals
        if wanted is None:
            raise InputError("a plan without the table [proposals]")
        self._plan = plan
        self._wanted: Proposals = wanted
        self._workshop = workshop
        self._proposer = authors[plan.generator]
        self._reviewer = authors[wanted.reviewer]
        self._topics = {sha256_hex(topic.encode())[:8]: topic for topic in wanted.topics}
        self._known = _KnownItems(base, wanted.against)
        self._drafts: dict[str, Job] = {}
        self._reviews: dict[str, Job] = {}

    def stages(self) -> Iterator[Stage]:
        """Yield drafts and reviews, round by round; what the reviewer accepted becomes an item that waits for its owner."""
        open_topics = list(self._topics)
        for number in range(1, self._wanted.rounds + 1):
            yield "drafts", [self._draft_job(topic, number) for topic in open_topics]
            drafted = [topic for topic in open_topics if self._draft(topic, number) is not None]
            yield "reviews", [self._review_job(topic, number) for topic in drafted]
            for topic in drafted:
                if self._verdict(topic, number)[0] == "reject":
                    self._end(topic, number, "dropped", "rejected by the reviewer")
            open_topics = [t for t in drafted if self._verdict(t, number)[0] == "revise"]
        for topic in open_topics:
            why = f"needs revision after {self._wanted.rounds} rounds"
            self._end(topic, self._wanted.rounds, "queued", why)
        note_items(self._workshop, self._records())

    def _draft_job(self, topic: str, number: int) -> Job:
        before = self._draft(topic, number - 1) if number > 1 else None
        verdict, issues = self._verdict(topic, number - 1) if number > 1 else ("", [])
        holes = {
            "domain": self._wanted.domain,
            "topic": fence(self._topics[topic], "topic"),
            "code": self._plan.language,
            "form": self._form,
            "draft": "" if before is None else fence(told_draft(before), "draft"),
            "issues": fence("\n".join(issues), "issues") if verdict == "revise" else "",
        }
        job = Job(
            step="question",
            subject=_round(topic, number),
            author=self._proposer,
            part="make_mandate",
            holes=holes,
            read=lambda reply: read_draft(reply, self._form),
            sources=[("review", _round(topic, number - 1))]
            if number > 1
            else [("plan", "plan")],
        )
        self._drafts[job.subject] = job
        return job

    @property
    def _form(self) -> str:
        return "closed" if self._wanted.form == "quiz" else "open"

    def _draft(self, topic: str, number: int) -> dict[str, Any] | None:
        job = self._drafts.get(_round(topic, number))
        if job is None:
            return None
        found: dict[str, Any] | None = value_of(
            self._workshop, "question", job.subject, job.basis
        )
        return found

    def _review_job(self, topic: str, number: int) -> Job:
        draft = self._draft(topic, number)
        if draft is None:
            raise LookupError(topic)
        similar = self._similar(topic, draft)
        job = Job(
            step="review",
            subject=_round(topic, number),
            author=self._reviewer,
            part="make_verdict",
            holes={
                "draft": fence(told_draft(draft), "draft"),
                "similar": fence("\n".join(similar), "similar items") if similar else "",
            },
            read=read_verdict,
            sources=[("question", _round(topic, number))],
        )
        self._reviews[job.subject] = job
        return job

    def _similar(self, topic: str, draft: Mapping[str, Any]) -> list[str]:
        """Return near duplicates among the known banks and the other drafts of this workshop."""
        others = {
            f"draft {one.place[1]}": one.result["question"]
            for one in self._workshop.all_latest("question")
            if one.status == "made" and not one.place[1].startswith(topic)
        }
        return [*self._known.near(draft), *_near_among(others, draft)]

    def _verdict(self, topic: str, number: int) -> tuple[str, list[str]]:
        """Return what the reviewer said of a round, "" where nothing; a near duplicate is never accepted."""
        job = self._reviews.get(_round(topic, number))
        found = (
            None if job is None else value_of(self._workshop, "review", job.subject, job.basis)
        )
        draft = self._draft(topic, number)
        if found is None or draft is None:
            return "", []
        issues = [f"{one['criterion']}: {one['text']}" for one in found["issues"]]
        similar = self._similar(topic, draft)
        if similar and found["verdict"] == "accept":
            return "revise", [f"duplicate: near duplicate of {one}" for one in similar]
        return found["verdict"], issues

    def _end(self, topic: str, number: int, status: Status, why: str) -> None:
        """Note that a topic ended without acceptance: what is queued, a person decides about."""
        subject = _round(topic, number)
        draft = self._draft(topic, number)
        _, issues = self._verdict(topic, number)
        basis = basis_of(draft, issues, status)
        if self._workshop.done("select", subject, basis) is None:
            self._workshop.note(
                "select",
                subject,
                status,
                basis=basis,
                by=BY_PROGRAM,
                sources=[("review", subject)],
                result=draft,
                note=why,
                issues=issues,
            )

    def _records(self) -> Iterator[tuple[dict[str, Any], Sequence[Place]]]:
        for topic in self._topics:
            for number in range(1, self._wanted.rounds + 1):
                draft = self._draft(topic, number)
                if draft is None:
                    continue
                subject = _round(topic, number)
                given = self._workshop.latest("select", subject)
                taken = given is not None and self._taken_over(given)
                if self._verdict(topic, number)[0] == "accept" or taken:
                    if taken and given is not None:
                        decided = decision_on(self._workshop, given)
                        changed = decided is not None and decided.status == "change"
                        draft = decided.result if decided is not None and changed else draft
                    places: list[Place] = [("question", subject), ("review", subject)]
                    yield self._record(topic, draft), places

    def _taken_over(self, event: Event) -> bool:
        decided = decision_on(self._workshop, event)
        return decided is not None and decided.status in ("accept", "change")

    def _record(self, topic: str, draft: Mapping[str, Any]) -> dict[str, Any]:
        proposer, reviewer = self._proposer.spec, self._reviewer.spec
        return {
            "id": f"{self._plan.name}-{topic}",
            "kind": "synthetic",
            "domain": self._wanted.domain,
            "language": self._plan.language,
            "licence": self._plan.licence,
            "source": "; ".join(draft["sources"]),
            **_target(draft),
            "meta": {
                "maker": "proposals",
                "generator": proposer.id,
                "family": proposer.family,
                "reviewer": reviewer.id,
                "reviewer_family": reviewer.family,
            },
        }


def _round(topic: str, number: int) -> str:
    return f"{topic}/round-{number}"


def _target(draft: Mapping[str, Any]) -> dict[str, Any]:
    if "options" in draft:
        options = draft["options"]
        key = LETTERS[options.index(draft["answer"])]
        return {
            "answer_type": "closed",
            "question": draft["question"],
            "options": options,
            "expected": key,
        }
    facts = [{"id": f"f{at}", "text": text} for at, text in enumerate(draft["facts"], 1)]
    return {
        "answer_type": "open",
        "question": draft["question"],
        "reference": draft["answer"],
        "facts": facts,
    }


def told_draft(draft: Mapping[str, Any]) -> str:
    """Return a draft as a reviewer reads it."""
    lines = [f"Question: {draft['question']}", f"Answer: {draft['answer']}"]
    for at, option in enumerate(draft.get("options", ())):
        lines.append(f"{LETTERS[at]}. {option}")
    lines += [f"Required fact: {fact}" for fact in draft.get("facts", ())]
    lines += [f"Source: {source}" for source in draft["sources"]]
    return "\n".join(lines)


def read_draft(reply: str, form: str) -> dict[str, Any]:
    """Return a draft: question, answer, options or facts, sources.

    Raises
    ------
    ValueError
        Saying which rule is broken.
    """
    keys = {"question", "answer", "sources", "options" if form == "closed" else "facts"}
    found = _object(reply, keys)
    made: dict[str, Any] = {
        "question": checked_text(found["question"], "question", _LONGEST),
        "answer": checked_text(found["answer"], "answer", _LONGEST_ANSWER),
        "sources": _texts(found["sources"], "sources", 1, 10),
    }
    if form == "closed":
        options = list(checked_options(found["options"]))
        if made["answer"] not in options:
            raise ValueError(f"the answer is none of the {OPTIONS} options, word for word")
        made["options"] = options
    else:
        made["facts"] = _texts(found["facts"], "facts", 1, 12)
    if len(made["answer"]) >= 12 and plain(made["answer"]) in plain(made["question"]):
        raise ValueError("the question contains its answer")
    return made


def read_verdict(reply: str) -> dict[str, Any]:
    """Return a reviewer's verdict with its issues.

    Raises
    ------
    ValueError
        Saying which rule is broken.
    """
    found = _object(reply, {"verdict", "issues"})
    verdict, issues = found["verdict"], found["issues"]
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
        read.append({"criterion": issue["criterion"], "text": text})
    if (verdict == "accept") == bool(read):
        problem = "issues with an acceptance" if read else f"'{verdict}' without an issue"
        raise ValueError(f"{problem}; expected issues exactly where the draft is not accepted")
    return {"verdict": verdict, "issues": read}


def _object(reply: str, keys: set[str]) -> dict[str, Any]:
    found = read_json_reply(reply)
    if not isinstance(found.value, dict):
        raise ValueError(found.reason or "a list; expected one JSON object")
    if found.value.keys() != keys:
        shown = ", ".join(map(str, found.value))
        raise ValueError(f"keys {shown[:80]}; expected {', '.join(sorted(keys))}")
    return found.value


def _texts(given: Any, what: str, fewest: int, most: int) -> list[str]:
    if not isinstance(given, list) or not fewest <= len(given) <= most:
        raise ValueError(f"{what} {given!r:.40}; expected a list of {fewest} to {most} texts")
    return [checked_text(one, f"one of the {what}", _LONGEST_ANSWER) for one in given]


def _shipped() -> Iterator[Bank]:
    for entry in BANKS.values():
        if entry.checked == "shipped":
            yield entry.load(Path(demo.__file__).parent / entry.folder)


def _banks_at(base: Path, patterns: Sequence[str]) -> Iterator[Bank]:
    """Yield the banks in the folders that patterns such as "../banks/*" name.

    Raises
    ------
    InputError
        When a pattern names no bank: a check against nothing must not look like one.
    """
    for pattern in patterns:
        places = map(Path, sorted(glob(str(base / pattern))))
        found = [place for place in places if (place / "bank.toml").is_file()]
        if not found:
            raise InputError(f"'proposals.against': '{pattern}' names no folder of a bank")
        yield from (load_bank(place, lock=None) for place in found)


class _KnownItems:
    """The items of some banks, and of those that ship, searched for near duplicates."""

    def __init__(self, base: Path, banks: Sequence[str]) -> None:
        self._names: list[str] = []
        texts: list[str] = []
        for bank in (*_shipped(), *_banks_at(base, banks)):
            for item in bank.items:
                self._names.append(f"{bank.name} {item.id}")
                texts.append(compared_text(item))
        self._index = NearIndex(texts)

    def near(self, draft: Mapping[str, Any]) -> list[str]:
        """Return the names of the items that a draft is a near duplicate of."""
        found = self._index.near(plain(draft["question"]))
        return [f"{self._names[one.first]} ({one.similarity:.2f})" for one in found]


def _near_among(texts: Mapping[str, str], draft: Mapping[str, Any]) -> list[str]:
    index = NearIndex([plain(text) for text in texts.values()])
    names = list(texts)
    found = index.near(plain(draft["question"]))
    return [f"{names[one.first]} ({one.similarity:.2f})" for one in found]


def state_of(workshop: Workshop, item: Event) -> State:
    """Return the state of a private item: only a person's decision makes it approved."""
    decided = decision_on(workshop, item)
    if decided is None:
        return "reviewed"
    return "approved" if decided.status in ("accept", "change") else "rejected"
