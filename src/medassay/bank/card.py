"""The card of a bank: bank.toml, its checks, and versions."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from medassay.core.json import record_as, unchecked
from medassay.core.records.card_object import CardObject
from medassay.core.toml import load_toml
from medassay.errors import InputError

_CARD_TEXT = ("name", "question_bank_version", "licence", "created", "limits", "title")
_VERSION = re.compile(r"(?P<name>.+)-(?P<year>\d{4})\.(?P<number>\d+)\Z")


def existing(path: Path) -> Path:
    """Return a file of a bank's folder; raises InputError where it is not there."""
    if not path.is_file():
        raise InputError(
            f"{path.parent.resolve().name}/{path.name}: no such file; a bank is a folder with "
            "bank.toml and items.jsonl"
        )
    return path


class BankCard(msgspec.Struct, frozen=True, kw_only=True):
    """What bank.toml says of a bank.

    Attributes
    ----------
    may_leave : whether its items may be sent to endpoints elsewhere
    contradiction_penalty : what a contradicted fact costs, in [0, 1]
    dropped : by reason, the records that became no items
    """

    name: str
    question_bank_version: str
    licence: str
    domains: list[str]
    title: str = ""
    limits: str = ""
    created: str = ""
    may_leave: bool = True
    contradiction_penalty: float = 1.0
    content_sha256: str | None = None
    dropped: dict[str, int] = {}


_CARD_KEYS = frozenset([*BankCard.__struct_fields__, "kept"])


def read_card(folder: Path) -> BankCard:
    """Return the checked content of bank.toml.

    Raises
    ------
    InputError
        Naming the field and what was expected.
    """
    return card_from(read_card_document(folder), folder)


def card_from(document: CardObject, folder: Path) -> BankCard:
    """Return the card in a document that `read_card_document` checked; raises as `read_card`."""
    return record_as(document, BankCard, f"{folder.resolve().name}/bank.toml", InputError)


def read_card_document(folder: Path) -> CardObject:
    """Return the checked content of bank.toml as it stands there, for those who write it again;
    raises as `read_card`.
    """
    path = existing(folder / "bank.toml")
    where = f"{folder.resolve().name}/bank.toml"
    try:
        card: dict[str, Any] = load_toml(path)
    except ValueError as error:
        raise InputError(f"{where}: not valid TOML: {error}") from None
    created = card.get("created")
    if isinstance(created, dt.date):
        card |= {"created": created.isoformat()}
    for field, problem in _card_problems(card):
        raise InputError(f"{where}: field '{field}': {problem}")
    return cast(CardObject, card)


class _CardValues(msgspec.Struct, frozen=True):
    """What stands under some keys of a card; nothing of it is checked yet but that names are
    texts.
    """

    name: str = ""
    question_bank_version: str = ""
    domains: Any = None
    may_leave: Any = True
    contradiction_penalty: Any = 1
    dropped: Any = msgspec.field(default_factory=dict)


def _card_problems(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (field, problem); types come first, so that later checks may rely on them."""
    for key, value in card.items():
        if key not in _CARD_KEYS:
            yield key, f"unknown; known are {', '.join(sorted(_CARD_KEYS))}"
        if key in (*_CARD_TEXT, "content_sha256") and not isinstance(value, str):
            yield key, f"{value!r}; expected text"
    for key in ("name", "question_bank_version", "licence"):
        if not card.get(key, "").strip():
            yield key, "absent or empty; expected text"
    values = unchecked(card, _CardValues)
    name, version = values.name, values.question_bank_version
    if not re.fullmatch(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*", name):
        yield "name", f"{name!r}; expected a name without slashes, not hidden"
    match = _VERSION.match(version)
    if match is None or match["name"] != name:
        yield "question_bank_version", f"'{version}'; expected {name}-<year>.<n>"
    domains = values.domains
    if not isinstance(domains, list) or not all(isinstance(d, str) and d for d in domains or [0]):
        yield "domains", "expected a list of at least one name"
    elif "overall" in domains:
        yield "domains", "'overall' names the ranking over all domains"
    if not isinstance(values.may_leave, bool):
        yield "may_leave", "expected true or false"
    yield from _rule_problems(values)


def _rule_problems(values: _CardValues) -> Iterator[tuple[str, str]]:
    penalty = values.contradiction_penalty
    if type(penalty) not in (int, float) or not 0 <= penalty <= 1:
        yield "contradiction_penalty", f"{penalty!r}; expected a number from 0 to 1"
    dropped = values.dropped
    if not isinstance(dropped, dict) or not all(type(n) is int for n in dropped.values()):
        yield "dropped", "expected a table of reasons and counts"


def card_text(card: CardObject) -> str:
    """Return a flat card as TOML; JSON's strings, numbers and lists are TOML's."""
    flat = {k: v for k, v in card.items() if not isinstance(v, dict)}
    tables = {k: v for k, v in card.items() if isinstance(v, dict) and v}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in flat.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [
            f"{json.dumps(k, ensure_ascii=False)} = {json.dumps(v)}" for k, v in table.items()
        ]
    return ("\n".join(lines) + "\n").replace("\x7f", "\\u007f")


def next_version(version: str, year: int) -> str:
    """Return the version after `version`: `demo-2026.1` becomes `demo-2026.2`.

    Examples
    --------
    >>> next_version("demo-2026.1", 2026), next_version("demo-2026.7", 2027)
    ('demo-2026.2', 'demo-2027.1')
    """
    match = _VERSION.match(version)
    if match is None:
        raise InputError(f"version '{version}': expected <name>-<year>.<n>")
    number = int(match["number"]) + 1 if int(match["year"]) == year else 1
    return f"{match['name']}-{year}.{number}"
