"""Records whose fields are checked by their types, whoever makes them: a file or Python."""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from medassay.errors import InputError

T = TypeVar("T")
# Whether a record is being read: then all its fields were checked before it is made.
_IS_READ = ContextVar("is_read", default=False)
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


class RecordError(InputError):
    """Say what is wrong with a record as it is made.

    `problem` is that without the record's name.
    """

    def __init__(self, record: object, problem: str) -> None:
        super().__init__(f"{type(record).__name__}: {problem}")
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process, which is told of the error, has no record to make it of.
        return _error_again, (str(self), self.problem)


def _error_again(message: str, problem: str) -> RecordError:
    error = RecordError.__new__(RecordError, message)
    error.problem = problem
    return error


def check_types(record: Any) -> None:
    """Refuse a frozen record whose values have other types than a file may give them.

    Lists become tuples. What `read_record` makes was checked as a whole.

    Raises
    ------
    RecordError
        Naming the first field that is wrong, of records in it as well.
    """
    if _IS_READ.get():
        return
    for name, hint in hints_of(type(record)).items():  # type: ignore[arg-type]
        value = getattr(record, name)
        if isinstance(value, list):
            object.__setattr__(record, name, tuple(value))
        takes_mappings = get_origin(hint) in (dict, Mapping)
        if isinstance(value, Mapping) and not takes_mappings:
            raise RecordError(record, f"'{name}' is a mapping; expected a record")
        if is_dataclass(value) and takes_mappings:
            raise RecordError(record, f"'{name}' is a record; expected a mapping")
        if (problem := _unwritable(value)) is not None:
            raise RecordError(record, f"'{name}' {problem}")
    try:
        read_record(type(record), json.dumps(record, default=_as_in_a_file))
    except ValidationError as error:
        place, problem = first_wrong(error)
        raise RecordError(record, f"'{place}': {problem}" if place else problem) from None


@cache  # whose callers have to waive that a class is hashable
def hints_of(record: type) -> dict[str, Any]:
    """Return the type of each field of a record."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record)}


def _as_in_a_file(value: Any) -> Any:
    """Return what JSON cannot hold as a file would: a record as its table."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


def _unwritable(value: Any) -> str | None:
    """Return why no file could hold a value; None where one could."""
    try:
        json.dumps(value, default=_as_in_a_file, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate has no form in UTF-8
        return "holds half a character; expected valid Unicode"
    except (ValueError, RecursionError):
        return "holds itself, or is nested too deeply; expected what JSON can hold"
    return None


def adapter_of(record: type[T]) -> TypeAdapter[T]:
    """Return what checks the fields of a record; made when the first is read, for most commands
    read few kinds.
    """
    if record not in _ADAPTERS:
        _ADAPTERS[record] = TypeAdapter(record)
    return _ADAPTERS[record]


def read_record(record: type[T], text: str, *, strict: bool = True) -> T:
    """Return the record in a JSON text.

    Parameters
    ----------
    strict : whether "3" is no number and true no integer; a list is a tuple all the same

    Raises
    ------
    ValidationError
        Of pydantic, with the place of each value that has another type.
    """
    token = _IS_READ.set(True)
    try:
        return adapter_of(record).validate_json(text, strict=strict)
    finally:
        _IS_READ.reset(token)


def first_wrong(error: ValidationError, record: str = "") -> tuple[str, str]:
    """Return the place of the first value that is wrong, and what is wrong with it.

    The place joins its keys and numbers by dots: `price.input`; `record` names the record itself.
    """
    first = error.errors()[0]
    problem = "unknown key" if first["type"] == "unexpected_keyword_argument" else first["msg"]
    return ".".join(map(str, first["loc"])) or record, problem
