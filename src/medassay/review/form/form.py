"""`Form`: what a reviewer is asked about an entry, and how what was filled in becomes a review.

A form is filled in as flat fields (name → text), whether by a page, a script or a draft;
`read_review` turns them into a review or says at which field something is missing. Texts are
English and serve as keys of the catalogues in other languages.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from medassay.core.json import record_as
from medassay.review.rating import FEEDBACK_BELOW
from medassay.statistic.agreement.alpha import Level

Value = int | str
Extra = Literal["total", "correction", "harm", "source", "marks"]
Content = Mapping[str, Any]  # of an entry, as the store keeps it; `content_of` reads it
SCALE: tuple[tuple[Value, str], ...] = (
    (1, "poor"),
    (2, "weak"),
    (3, "fair"),
    (4, "good"),
    (5, "excellent"),
)
SEVERITIES = ("mild", "moderate", "severe", "life-threatening")
MARKS = {
    "guideline": "Follows current guidelines",
    "education": "Fit for the education of patients",
}
CANNOT = "0"  # the value of "cannot judge", as its key
LONGEST = 20_000  # characters of a text that a reviewer writes


class ContentOption(msgspec.Struct, frozen=True):
    """An option of the item that is reviewed, by its letter."""

    letter: str
    text: str


class ContentPart(msgspec.Struct, frozen=True):
    """A target fact or a criterion of the item that is reviewed; its id is the bank's own."""

    id: Any
    text: str


class FormContent(msgspec.Struct, frozen=True, kw_only=True):
    """What of the content of an entry decides what is asked about it.

    `swapped` says that of two answers the second stands on the left.
    """

    options: list[ContentOption] = []
    expected: str | None = None
    path: str | None = None
    facts: list[ContentPart] = []
    criteria: list[ContentPart] = []
    swapped: bool = False

    @property
    def letters(self) -> list[str]:
        """Return the letters of the options."""
        return [option.letter for option in self.options]


def content_of(content: Content) -> FormContent:
    """Return what decides what is asked about an entry.

    Raises
    ------
    IntegrityError
        When the entry holds something else.
    """
    return record_as(content, FormContent, "the entry")


class Aspect(msgspec.Struct, frozen=True, kw_only=True):
    """One question with a few possible values.

    `kind` groups aspects that are alike in all entries, such as facts.
    """

    name: str
    label: str
    values: tuple[tuple[Value, str], ...] = SCALE
    level: Level = "ordinal"
    kind: str = ""
    text: str = ""  # of the entry: the fact, the criterion

    @property
    def group(self) -> str:
        """Return what its values are pooled under."""
        return self.kind or self.name

    def value(self, text: str) -> Value | None:
        """Return the value that a field holds, None where it holds none."""
        return {f"{value}": value for value, _ in self.values}.get(text)

    def number(self, value: Value) -> int:
        """Return a value as the number that agreement is computed from: its place, counted from
        1.
        """
        return [name for name, _ in self.values].index(value) + 1


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps a form from being submitted: the field, and a sentence with its values."""

    field: str
    says: str
    values: Mapping[str, str] = msgspec.field(default_factory=dict)


class FormTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that forms have besides those of their aspects, as they were filled in."""

    comment: str = ""
    reason: str = ""
    source: str = ""
    harm: str = ""
    severity: str = ""
    verdict: str = ""
    option: str = ""
    text: str = ""


def form_texts(fields: Mapping[str, str]) -> FormTexts:
    """Return the fields of a form besides those of its aspects."""
    return msgspec.convert(fields, FormTexts)


class FormReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a filled-in form says: a review, or the problems that keep it from being one."""

    review: dict[str, Any]
    problems: tuple[Problem, ...]


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One of the forms: its aspects for an entry, what else it asks, and when a comment is needed.

    `then` are asked once the first part is submitted and can no longer be changed: nobody who rates
    first has seen what follows.
    """

    name: str
    title: str
    asks: str
    aspects: Callable[[Content], tuple[Aspect, ...]]
    comment_needed: Callable[[Mapping[str, Value]], str] = lambda scores: ""
    extras: frozenset[Extra] = frozenset()
    then: tuple[Aspect, ...] = ()

    def asked(self, content: Content, *, second: bool = False) -> tuple[Aspect, ...]:
        """Return the aspects of the part that is to be filled in."""
        return self.then if second else self.aspects(content)

    def all_aspects(self, content: Content) -> tuple[Aspect, ...]:
        """Return the aspects of both parts."""
        return (*self.aspects(content), *self.then)

    def aspect(self, content: Content, name: str) -> Aspect | None:
        """Return an aspect by its name, None where the form has none so called."""
        aspects = (aspect for aspect in self.all_aspects(content) if aspect.name == name)
        return next(aspects, None)

    def known(self, content: Content) -> frozenset[str]:
        """Return the names of all fields that the form can have for an entry."""
        names = {"comment", "reason"}
        for aspect in self.all_aspects(content):
            names |= {aspect.name, f"why-{aspect.name}"}
        if "correction" in self.extras:
            names |= {"option", "text"}
        if "harm" in self.extras:
            names |= {"harm", "severity"}
        if "source" in self.extras:
            names.add("source")
        if "marks" in self.extras:
            names |= {f"mark-{name}" for name in MARKS}
        return frozenset(names)


def comment_on_low(scores: Mapping[str, Value]) -> str:
    """Return what is asked for where a score is below 3."""
    low = any(isinstance(score, int) and score < FEEDBACK_BELOW for score in scores.values())
    return "A score is below 3: say what is wrong." if low else ""


def read_review(
    form: Form, content: Content, fields: Mapping[str, str], *, second: bool = False
) -> FormReading:
    """Return a filled-in form as a review, with what is missing or wrong in it.

    Parameters
    ----------
    second : read the part that follows the first one
    """
    problems: list[Problem] = []
    scores, cannot = _scores(form.asked(content, second=second), fields, problems)
    scores_given = {name: value for name, value in scores.items() if value is not None}
    comment = clean(form_texts(fields).comment)
    review: dict[str, Any] = {"scores": scores, "cannot": cannot, "comment": comment}
    if not comment and (why := form.comment_needed(scores_given)):
        problems.append(Problem(field="comment", says=why))
    if not second:
        review |= _extras(form, content, fields, scores_given, problems)
    too_long = [name for name, text in fields.items() if len(text) > LONGEST]
    problems += [
        Problem(
            field=name,
            says="This text is longer than {most} characters.",
            values={"most": f"{LONGEST:,}"},
        )
        for name in too_long
    ]
    return FormReading(review=review, problems=tuple(problems))


def clean(text: str) -> str:
    """Return what somebody wrote without the characters that no text has; lines stay lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        c for c in lines if c in "\n\t" or not (ord(c) < 32 or 0xD800 <= ord(c) < 0xE000)
    ).strip()


def _scores(
    aspects: Sequence[Aspect], fields: Mapping[str, str], problems: list[Problem]
) -> tuple[dict[str, Value | None], dict[str, str]]:
    scores: dict[str, Value | None] = {}
    cannot: dict[str, str] = {}
    for aspect in aspects:
        text = fields.get(aspect.name, "")
        if text == CANNOT:
            scores[aspect.name] = None
            cannot[aspect.name] = clean(fields.get(f"why-{aspect.name}", ""))
            if not cannot[aspect.name]:
                says = "Say why you cannot judge this."
                problems.append(Problem(field=f"why-{aspect.name}", says=says))
            continue
        scores[aspect.name] = value = aspect.value(text)
        if value is None:
            problems.append(Problem(field=aspect.name, says="Choose one, or “cannot judge”."))
    return scores, cannot


def _extras(
    form: Form,
    content: Content,
    fields: Mapping[str, str],
    scores: Mapping[str, Value],
    problems: list[Problem],
) -> dict[str, Any]:
    readers: dict[str, Callable[[], Any]] = {
        "correction": lambda: _correction(content, fields, scores, problems),
        "harm": lambda: _harm(fields, problems),
        "source": lambda: clean(form_texts(fields).source),
        "marks": lambda: _marks(fields),
    }
    return {name: read() for name, read in readers.items() if name in form.extras}


def _marks(fields: Mapping[str, str]) -> dict[str, bool]:
    marks = {name: fields.get(f"mark-{name}", "") for name in MARKS}
    return {name: word == "yes" for name, word in marks.items() if word in ("yes", "no")}


def _correction(
    content: Content,
    fields: Mapping[str, str],
    scores: Mapping[str, Value],
    problems: list[Problem],
) -> dict[str, str]:
    """Return the right option or text; it is needed where the answer is found wrong."""
    letters = content_of(content).letters
    texts = form_texts(fields)
    option, text = texts.option, clean(texts.text)
    if option and option not in letters:
        problems.append(Problem(field="option", says="Choose one of the options of the item."))
    parts = {"option": option if option in letters else "", "text": text}
    correction = {name: part for name, part in parts.items() if part}
    answer = scores.get("answer")
    if isinstance(answer, int) and answer < 3 and not correction and not option:
        problems.append(
            Problem(
                field="option" if letters else "text",
                says=(
                    "The answer has less than 3: choose the right option or write the right answer."
                ),
            )
        )
    return correction


def _harm(fields: Mapping[str, str], problems: list[Problem]) -> dict[str, str] | None:
    texts = form_texts(fields)
    severity = texts.severity
    if texts.harm != "yes":
        return None
    if severity not in SEVERITIES:
        problems.append(Problem(field="severity", says="Say how severe the harm could be."))
    return {"severity": severity}
