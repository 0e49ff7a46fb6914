"""One item of a bank file: from parsed JSON object to `Item`, or a refusal that names the place."""

import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from medassay.core.records.diagnosis import SEVERITY_MAPS
from medassay.core.records.health_record import origin_from, record_from
from medassay.core.records.item import LETTERS, Criterion, Fact, Form, Item, Range
from medassay.errors import InputError

_TEXT = (
    "context",
    "expected",
    "regex",
    "extract",
    "locale",
    "reference",
    "rationale",
    "source",
    "licence",
    "category",
    "condition",
    "path",
    "leaf",
    "difficulty",
    "cluster",
    "language",
    "split",
    "review_date",
    "commitment",
    "tombstone",
)
# The type each key must have; `object` where a later check looks closer.
_TYPES: dict[str, type] = {
    **dict.fromkeys((*_TEXT, "id", "domain", "question"), str),
    **dict.fromkeys(("revision", "year"), int),
    **dict.fromkeys(("meta", "approval"), dict),
    "harm": bool,
    **dict.fromkeys(
        (
            *("kind", "answer_type", "options", "range", "facts", "criteria", "lowest"),
            *("diagnoses", "severity", "record", "origin", "nice_to_have", "drug_names"),
        ),
        object,
    ),
}
ITEM_KEYS = frozenset(_TYPES)
# Fields of an `Item` that are copied as they stand in the file.
TEXT_FIELDS = tuple(key for key in _TEXT if key != "review_date")
_COPIED = frozenset((*TEXT_FIELDS, "id", "domain", "question", "revision", "kind", "year", "harm"))
_OPEN_TARGETS = frozenset(("facts", "criteria", "diagnoses", "record"))
_OPEN_FORMS: dict[str, Form] = {
    "criteria": "rubric",
    "diagnoses": "diagnoses",
    "record": "record",
}
_CLOSED_FORMS: dict[str, Form] = {
    "options": "choice",
    "regex": "regex",
    "range": "range",
    "expected": "key",
}
_KINDS = ("public", "synthetic")
_SPLITS = ("test", "dev")
_LEAST_POINTS, _MOST_POINTS = 1e-6, 1e6
_MATCH_LIMIT = 1.0  # seconds; `spec` for closed items


def check_record(
    record: Any, where: str, domains: Collection[str], *, imported: bool = False
) -> Form:
    """Return the form of the item in `record`, after every check.

    Parameters
    ----------
    record : parsed JSON value of one line
    where : what to name in errors, e.g. "items.jsonl row 118"
    domains : the card's domains
    imported : whether the item is of a run: then `expected` alone is a target (finished predictions
        carry no options), and keys that are not known are those of newer code

    Raises
    ------
    InputError
        With `where`, the field, what it holds and what was expected.
    """
    if not isinstance(record, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(record).__name__}")

    def refuse(field: str, problem: str) -> InputError:
        return InputError(f"{where}: field '{field}': {problem}")

    _check_keys(record, refuse, imported=imported)
    if record["domain"] not in domains:
        listed = ", ".join(sorted(domains))
        raise refuse("domain", f"'{record['domain']}' is not among the card's domains ({listed})")
    kind = record.get("kind", "public")
    if kind not in _KINDS:
        raise refuse("kind", f"'{kind}'; expected one of {', '.join(_KINDS)}")
    if record.get("split", "test") not in _SPLITS:
        raise refuse("split", f"'{record['split']}'; expected one of {', '.join(_SPLITS)}")
    if "commitment" in record or "tombstone" in record:
        _check_withheld(record, refuse, imported=imported)
    form = _form(record, refuse, imported=imported)
    _check_targets(record, form, refuse)
    if kind == "public" and not imported and not record.get("source"):
        raise refuse("source", "absent; a public item needs the reference it was made from")
    return form


def _check_targets(record: Mapping[str, Any], form: Form, refuse: "_Refuse") -> None:
    if form == "range":
        _check_range(record, refuse)
    if form == "open" or "facts" in record:
        _check_facts(record, refuse)
    if form == "text" and not record["reference"].strip():
        raise refuse("reference", "empty; an open item without facts needs one")
    if "nice_to_have" in record:
        _check_statements(record["nice_to_have"], form, refuse)
    if "criteria" in record:
        _check_criteria(record, refuse)
    if "diagnoses" in record or ("severity" in record and form != "withheld"):
        _check_diagnoses(record, refuse)
    if "drug_names" in record:
        _check_drug_names(record["drug_names"], form, refuse)
    if form in ("record", "report") or "origin" in record:
        _check_health_record(record, refuse)


def _check_drug_names(names: Any, form: Form, refuse: "_Refuse") -> None:
    """Refuse synonyms that are no table of names, or that stand where no drug is read."""
    if form not in ("record", "report", "withheld"):
        raise refuse("drug_names", f"on an item of form {form}; only health records have them")
    texts = isinstance(names, dict) and all(
        isinstance(others, list) and all(isinstance(o, str) and o.strip() for o in others)
        for others in names.values()
    )
    if not texts:
        raise refuse("drug_names", 'expected a table of lists, such as {"ASS": ["Aspirin"]}')


def build_item(record: Mapping[str, Any]) -> Item:
    """Return the item in a record that was checked before."""
    copied = {key: value for key, value in record.items() if key in _COPIED}
    copied.setdefault("question", "")
    if "options" in record:
        copied["options"] = tuple(record["options"])
    if "range" in record:
        bounds = record["range"]
        copied["range"] = Range(lo=float(bounds["lo"]), hi=float(bounds["hi"]))
    if "facts" in record:
        copied["facts"] = tuple(
            _fact(fact if isinstance(fact, dict) else {"text": fact}, number)
            for number, fact in enumerate(record["facts"], 1)
        )
    if "nice_to_have" in record:
        copied["nice_to_have"] = tuple(record["nice_to_have"])
    if "criteria" in record:
        copied["criteria"] = tuple(
            _criterion(criterion, number) for number, criterion in enumerate(record["criteria"], 1)
        )
    if "diagnoses" in record:
        copied["diagnoses"] = tuple(record["diagnoses"])
    if "severity" in record:
        copied["severity"] = record["severity"]
    if record.get("record") is not None:
        copied["record"] = record["record"]
        copied["origin"] = origin_from(record["origin"])
    if "drug_names" in record:
        copied["drug_names"] = record["drug_names"]
    if "lowest" in record:
        copied["lowest"] = float(record["lowest"])
    return Item(form=form_of(record), **copied)


def _criterion(entry: Mapping[str, Any], number: int) -> Criterion:
    return Criterion(
        id=str(entry.get("id", f"c{number}")),
        text=entry["text"],
        points=float(entry["points"]),
        tags=tuple(entry.get("tags", ())),
        harm=entry.get("harm", False),
    )


def _fact(entry: Mapping[str, Any], number: int) -> Fact:
    return Fact(
        id=str(entry.get("id", f"f{number}")),
        text=entry["text"],
        weight=float(entry.get("weight", 1)),
    )


def form_of(record: Mapping[str, Any]) -> Form:
    """Return the form of a record that was checked before."""
    if "commitment" in record or "tombstone" in record:
        return "withheld"
    if record.get("answer_type") != "open":
        return next((form for key, form in _CLOSED_FORMS.items() if key in record), "given")
    if record.get("record", 0) is None:
        return "report"
    if forms := [form for key, form in _OPEN_FORMS.items() if key in record]:
        return forms[0]
    return "text" if "reference" in record and "facts" not in record else "open"


_Refuse = Callable[[str, str], InputError]


def _check_keys(record: Mapping[str, Any], refuse: _Refuse, *, imported: bool) -> None:
    for key, value in record.items():
        kind = _TYPES.get(key)
        if kind is None:
            if imported:  # in a run that newer code has made
                continue
            raise refuse(key, f"unknown; known are {', '.join(sorted(ITEM_KEYS))} (own data: meta)")
        if kind is not object and type(value) is not kind:  # exact: true is no number
            expected = "text" if kind is str else kind.__name__
            raise refuse(key, f"{value!r}; expected {expected}")
    for key in ("id", "domain"):
        if not record.get(key, "").strip():
            raise refuse(key, "absent or empty; expected text")


def _form(record: Mapping[str, Any], refuse: _Refuse, *, imported: bool) -> Form:
    if "commitment" in record or "tombstone" in record:
        return "withheld"
    answer_type = record.get("answer_type", "closed")
    if answer_type not in ("closed", "open"):
        raise refuse("answer_type", f"'{answer_type}'; expected closed or open")
    if not imported and not record.get("question", "").strip():
        raise refuse("question", "absent or empty; expected text")
    if answer_type == "open":
        if len(targets := sorted(_OPEN_TARGETS & record.keys())) > 1:
            raise refuse(targets[0], f"beside {targets[1]}; an open item has one of the two")
        return form_of(record)
    for key in sorted({"criteria", "diagnoses", "record"} & record.keys()):
        raise refuse(key, 'in a closed item; expected "answer_type": "open"')
    forms = [key for key in ("options", "regex", "range") if key in record]
    if imported and not forms:
        return form_of(record)
    if len(forms) != 1:
        expected = " and ".join(forms) or "none"
        raise refuse("options", f"a closed item has one of options, regex, range; found {expected}")
    if forms == ["options"]:
        _check_choice(record, refuse)
        return "choice"
    if forms == ["regex"]:
        check_pattern(record["regex"], lambda problem: refuse("regex", problem))
        return "regex"
    return "range"


def _check_withheld(record: Mapping[str, Any], refuse: _Refuse, *, imported: bool) -> None:
    """Check an item whose text is not here: it holds a commitment and nothing to read."""
    key = "tombstone" if "tombstone" in record else "commitment"
    if not imported or (key == "commitment" and record.get("kind") != "synthetic"):
        raise refuse(key, "only items of a run or a publication have one")
    if not re.fullmatch("[0-9a-f]{64}", record[key]):
        raise refuse(key, "expected 64 hexadecimal digits")
    lowest = record.get("lowest", 0)
    if isinstance(lowest, bool) or not isinstance(lowest, int | float) or lowest > 0:
        raise refuse("lowest", f"{lowest!r}; expected a number, 0 or below")


def _check_choice(record: Mapping[str, Any], refuse: _Refuse) -> None:
    options = record["options"]
    if not isinstance(options, list) or not all(isinstance(o, str) and o.strip() for o in options):
        raise refuse("options", "expected a list of non-empty texts")
    if not 2 <= len(options) <= len(LETTERS):
        raise refuse("options", f"{len(options)} options; expected 2 to {len(LETTERS)}")
    letters = LETTERS[: len(options)]
    expected = record.get("expected")
    if not isinstance(expected, str) or len(expected) != 1 or expected not in letters:
        raise refuse(
            "expected", f"target '{expected}' is not among options {letters[0]}–{letters[-1]}"
        )


def _check_range(record: Mapping[str, Any], refuse: _Refuse) -> None:
    bounds = record["range"]
    if not isinstance(bounds, dict) or set(bounds) != {"lo", "hi"}:
        raise refuse("range", f'{bounds!r}; expected {{"lo": number, "hi": number}}')
    for end in bounds.values():
        if not _finite(end):
            raise refuse("range", f"{end!r:.40} is not a number")
    if bounds["lo"] > bounds["hi"]:
        raise refuse("range", f"lo {bounds['lo']} > hi {bounds['hi']}; expected lo <= hi")
    if record.get("locale", "en") not in ("en", "de"):
        raise refuse("locale", f"'{record['locale']}'; expected en or de")
    if "extract" in record:
        pattern = check_pattern(record["extract"], lambda problem: refuse("extract", problem))
        if pattern.groups != 1:
            raise refuse("extract", f"{pattern.groups} groups; expected exactly one")


def _check_diagnoses(record: Mapping[str, Any], refuse: _Refuse) -> None:
    names = record.get("diagnoses")
    if not isinstance(names, list) or not names:
        raise refuse("diagnoses", "absent or empty; expected the golden diagnosis and its names")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise refuse("diagnoses", f"{name!r:.40}; expected texts that are not empty")
    known_labels = sorted(
        {label for severity_map in SEVERITY_MAPS.values() for label in severity_map.levels}
    )
    if "severity" in record and record["severity"] not in known_labels:
        problem = (
            f"{record['severity']!r:.40}; expected one of {', '.join(known_labels)}, or nothing"
        )
        raise refuse("severity", problem)


def _check_health_record(record: Mapping[str, Any], refuse: _Refuse) -> None:
    """Check a reference record and where it comes from; a report without one has neither."""
    document = record.get("record")
    if document is None:
        if "origin" in record:
            raise refuse("origin", "of no record; expected both or none")
        return
    try:
        record_from(document)
    except ValueError as error:
        raise refuse("record", str(error)) from None
    try:
        origin_from(record.get("origin"))
    except ValueError as error:
        problem = f"{error}; expected who made the record: standing (gold or silver) and maker"
        raise refuse("origin", problem) from None


def _finite(value: Any) -> bool:
    """Return whether a value is a number that a double holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # exact for integers of any size; false for NaN


def _check_facts(record: Mapping[str, Any], refuse: _Refuse) -> None:
    entries = record.get("facts")
    if not isinstance(entries, list) or not entries:
        raise refuse(
            "facts", "absent or empty; an open item needs target facts, a reference or criteria"
        )
    names = []
    for number, fact in enumerate(entries, 1):
        # A fact given as text is {id: "f1", text, weight: 1}.
        entry = {"text": fact} if isinstance(fact, str) else fact
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("text"), str)
            or not entry["text"]
        ):
            raise refuse("facts", f"fact {number}: expected text or an object with a text")
        weight = entry.get("weight", 1)
        if not _finite(weight) or not weight > 0:
            problem = f"weight {weight!r:.40}; expected a number above 0"
            raise refuse("facts", f"fact {number}: {problem}")
        names.append(str(entry.get("id", f"f{number}")))
    if len(set(names)) != len(names):
        raise refuse("facts", "two facts share an id")


def _check_statements(statements: Any, form: Form, refuse: _Refuse) -> None:
    if form not in ("open", "text", "withheld"):
        raise refuse(
            "nice_to_have", "of an item without target facts or a reference; expected it beside"
        )
    is_list = isinstance(statements, list) and statements
    if not is_list or not all(
        isinstance(statement, str) and statement.strip() for statement in statements
    ):
        raise refuse("nice_to_have", f"{statements!r:.40}; expected a list of non-empty texts")


def _check_criteria(record: Mapping[str, Any], refuse: _Refuse) -> None:
    entries = record["criteria"]
    if not isinstance(entries, list) or not entries:
        raise refuse(
            "criteria", f"{entries!r:.40}; expected a list of objects with text and points"
        )
    names = []
    for number, criterion in enumerate(entries, 1):
        if not isinstance(criterion, dict) or not str(criterion.get("text") or "").strip():
            raise refuse("criteria", f"criterion {number}: expected an object with a text")
        if not isinstance(criterion["text"], str):
            raise refuse("criteria", f"criterion {number}: {criterion['text']!r:.40} is no text")
        strange = sorted(criterion.keys() - {"id", "text", "points", "tags", "harm"})
        if strange:
            problem = f"'{strange[0]}' is unknown; known are id, text, points, tags, harm"
            raise refuse("criteria", f"criterion {number}: {problem}")
        points: Any = criterion.get("points")
        if not _finite(points) or not _LEAST_POINTS <= abs(points) <= _MOST_POINTS:
            problem = (
                f"points {points!r:.40}; expected a number above or below 0, from a millionth to a"
                " million"
            )
            raise refuse("criteria", f"criterion {number}: {problem}")
        tags = criterion.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(t, str) and t for t in tags):
            raise refuse("criteria", f"criterion {number}: tags {tags!r:.40}; expected texts")
        if not isinstance(criterion.get("harm", False), bool):
            raise refuse("criteria", f"criterion {number}: harm is neither true nor false")
        names.append(str(criterion.get("id", f"c{number}")))
    if len(set(names)) != len(names):
        raise refuse("criteria", "two criteria share an id")
    if not any(criterion["points"] > 0 for criterion in entries):
        raise refuse("criteria", "none has points above 0; nothing could be reached")


def check_pattern(pattern: str, refuse: Callable[[str], InputError]) -> re.Pattern[str]:
    """Return the compiled pattern, or raise what `refuse` makes of the problem.

    A pattern must compile and must decide each of a set of awkward texts within one second: a
    pattern with nested repeats would otherwise hang on a hostile model reply.
    """
    import regex

    try:
        compiled = re.compile(pattern)
        timed = regex.compile(pattern)
    except (re.error, regex.error) as error:
        raise refuse(f"'{pattern}' is not a Python regular expression: {error}") from None
    # A repeated run of each character that the pattern knows is what makes nested repeats explode.
    characters = sorted({c for c in pattern if c.isalnum()} | set("a1 -.,"))[:40]
    try:
        for character in characters:
            timed.search(character * 3000 + "!", timeout=_MATCH_LIMIT)
    except TimeoutError:
        raise refuse(f"'{pattern}' is slow: a text of 3,000 '{character}' takes over 1 s") from None
    return compiled
