"""Health records in the published form, Markdown with six numbered fields, read into the record of
this project.

The form has no field of its own for stopped drugs: it tells of them in a note. What is read here is
as near as the form allows, and is marked `converted`.

Source: specification of health-record extraction, "Contradictions and rules".
"""

import re
from collections.abc import Iterator

import msgspec

from medassay.core.records.health_record import (
    DateAndSource,
    Drug,
    HealthRecord,
    Measurement,
    Medications,
)

_FIELD = re.compile(
    r"^\s*(?P<n>[1-6])\.[\s*]*(?P<label>[^:*\n]{1,60})(?:\*{0,2}\s*:|:)[\s*]*", re.MULTILINE
)
_LABELS = {
    "categories": "categor",
    "date_and_source": "date",
    "diagnosis": "diagnos",
    "relevant_metrics": "metric",
    "medications": "medication",
    "follow_up": "follow",
}
_MARKS = re.compile(r"[*_`]+")
_DATE = re.compile(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})\Z")
_LIST = re.compile(
    r"(?P<current>aktuelle|current|bisherige)|(?P<advised>empfohlen|verschrieben|verordnet|"
    r"advi[sc]ed|"
    r"recommended|prescribed)",
    re.IGNORECASE,
)
_STOPPED = re.compile(
    r"(?:hinweis|note)?\s*:?\s*(?P<drug>[^;:.]+?)\s+(?:wurde|wird|werden|wurden|was|is|were)\s+"
    r"(?:abgesetzt|beendet|gestoppt|stopped|discontinued)",
    re.IGNORECASE,
)
_DRUG = re.compile(
    r"(?P<name>.+?)(?:\s+(?P<dose>\d[\d.,/]*\s*(?:mg|g|µg|mcg|ml|IE|IU|"
    r"%)(?:/\w+)?))?\s*(?:\((?P<schedule>[^)]*)\))?\Z"
)
_METRIC = re.compile(
    r"(?P<name>[^:]+):\s*(?P<value>[<>≤≥~]?\s*[-+]?\d+(?:[.,/]\d+)*)\s*"
    r"(?P<unit>[^(\s\d][^(]*?)?\s*(?:\((?P<note>[^)]*)\))?\Z"
)


class _Sections(msgspec.Struct, frozen=True):
    """The texts of the six fields."""

    categories: str
    date_and_source: str
    diagnosis: str
    relevant_metrics: str
    medications: str
    follow_up: str


def read_markdown_record(text: str) -> HealthRecord:
    """Return the record in a text of six numbered fields.

    What stands before their heading is not read.

    Raises
    ------
    ValueError
        Naming the first of the six fields that is absent.
    """
    sections = _sections(text)
    date, _, source = sections.date_and_source.partition(";")
    return HealthRecord(
        categories=tuple(_split(sections.categories, ",")),
        date_and_source=DateAndSource(date=_date(date.strip()), source=source.strip() or None),
        diagnosis=tuple(_split(sections.diagnosis, ",")),
        relevant_metrics=tuple(map(_metric, _split(sections.relevant_metrics, ";"))),
        medications=_medications(sections.medications),
        follow_up=tuple(_split(sections.follow_up, ";")),
    )


def _sections(text: str) -> _Sections:
    """Return the content of each field, the last numbered list of the text, without marks."""
    starts = [m for m in _FIELD.finditer(text)]
    first = max((at for at, m in enumerate(starts) if m["n"] == "1"), default=0)
    fields = {}
    for match, following in zip(starts[first:], [*starts[first + 1 :], None], strict=True):
        end = len(text) if following is None else following.start()
        content = text[match.end() : end].split("\n---", maxsplit=1)[0]
        label = match["label"].casefold()
        for name, part in _LABELS.items():
            if part in label and name not in fields:
                fields[name] = _MARKS.sub("", content).strip()
                break
    for name, label in _LABELS.items():
        if name not in fields:
            raise ValueError(f"{name}: no numbered field whose label holds '{label}'")
    return _Sections(**fields)


def _split(text: str, mark: str) -> Iterator[str]:
    """Yield the parts of a list; marks within parentheses and decimal commas are none."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        decimal = text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()
        if character == mark and depth == 0 and not decimal:
            yield from filter(None, [_clean(text[start:at])])
            start = at + 1
    yield from filter(None, [_clean(text[start:])])


def _clean(text: str) -> str:
    """Return a part without bullets, outer blanks and final stops."""
    return " ".join(text.split()).strip(" -•.")


def _date(text: str) -> str | None:
    match = _DATE.match(text)
    if match is None:
        return text or None
    year, month, day = match.group("y", "m", "d")
    return f"{year}-{int(month):02}-{int(day):02}"


def _metric(text: str) -> Measurement:
    match = _METRIC.match(text)
    if match is None:
        name, _, value = text.partition(":")
        return Measurement(name=name.strip(), value=value.strip(), unit=None, note=None)
    name, value, unit, note = match.group("name", "value", "unit", "note")
    return Measurement(
        name=name.strip(),
        value=value.strip(),
        unit=(unit or "").strip() or None,
        note=(note or "").strip() or None,
    )


def _medications(text: str) -> Medications:
    """Return drugs by list: those of lines with a heading, and those that a note says are
    stopped.
    """
    lists: dict[str, list[Drug]] = {"current": [], "advised": [], "discontinued": []}
    for line in text.splitlines():
        heading, colon, content = line.partition(":")
        match = _LIST.search(heading) if colon else None
        if match is None:
            content, place = line, ""
        else:
            place = "current" if match["current"] else "advised"
        for part in _split(content, ";"):
            stopped = _STOPPED.match(part)
            if stopped is not None:
                lists["discontinued"].append(_drug(stopped["drug"].strip()))
            elif place:
                lists[place] += [_drug(drug) for drug in _split(part, ",")]
    return Medications(**{name: tuple(drugs) for name, drugs in lists.items()})


def _drug(text: str) -> Drug:
    match = _DRUG.match(text)
    assert match is not None  # the name takes whatever there is
    name, dose, schedule = match.group("name", "dose", "schedule")
    return Drug(name=name.strip(), dose=dose, schedule=schedule)
