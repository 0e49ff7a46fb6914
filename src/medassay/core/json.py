"""Reading JSON that may be broken or hostile: one error, whatever is wrong with it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any, Generic, TypeVar

import msgspec

from medassay.core.small_file import utf16_problem
from medassay.errors import InputError, IntegrityError, MedassayError

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
_BOM = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * 16
MOST_EXACT = 2**53 - 1  # of whole numbers that every reader of JSON takes as they are
_KEY_ENDS = re.compile(rb'"\s*:')


def storable(text: str) -> str:
    r"""Return text that can be stored: lone surrogates, which are no characters, become "?".

    Examples
    --------
    >>> storable("a\ud800b")
    'a?b'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def storable_value(value: Any) -> Any:
    """Return a JSON value whose texts can be stored."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [storable_value(part) for part in value]
    if isinstance(value, dict):
        return {storable(key): storable_value(part) for key, part in value.items()}
    return value


def parse_json(data: bytes, where: str, wrong: type[MedassayError] = InputError) -> Any:
    """Return the JSON value in `data` (UTF-8, a byte order mark is allowed).

    Raises
    ------
    InputError
        Or the error that is named: saying `where`, of broken UTF-8, broken JSON, NaN, numbers or
        nesting beyond reason.
    """
    try:
        return _decode(data.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        problem = utf16_problem(data) or f"not valid JSON: {error}"
        raise wrong(f"{where}: {problem}") from None


def record_as(
    value: Any, kind: type[T], where: str, wrong: type[MedassayError] = IntegrityError
) -> T:
    """Return a JSON value as a record, or another type.

    Raises
    ------
    IntegrityError
        Or the error that is named: saying `where`, and which field is wrong.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise wrong(f"{where}: {error}") from None


def unchecked(value: Mapping[str, Any], kind: type[R]) -> R:
    """Return the values under the keys of a record, of an object of which nothing is known yet.

    No value is checked, and other keys are not looked at: judges and models write what they like.

    Examples
    --------
    >>> class Label(msgspec.Struct):
    ...     id: Any = ""
    >>> unchecked({"id": 3, "more": True}, Label)
    Label(id=3)
    """
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return kind(**{field: value[name] for field, name in names if name in value})


def texts_in(value: Any) -> Iterator[str]:
    """Return every text in a JSON value, however deep; keys are none of them.

    Examples
    --------
    >>> list(texts_in({"a": "x", "b": [1, ["y"]]}))
    ['x', 'y']
    """
    return (leaf for leaf in leaves_in(value) if isinstance(leaf, str))


def leaves_in(value: Any) -> Iterator[Any]:
    """Yield every value in a JSON value that holds no others, however deep; keys are none.

    Examples
    --------
    >>> list(leaves_in({"a": "x", "b": [1, [None]]}))
    ['x', 1, None]
    """
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves_in(inner)
    else:
        yield value


def parse_record(data: bytes, where: str, wrong: type[MedassayError] = InputError) -> Any:
    """Return a JSON value that we wrote: canonical JSON has no other numbers than floats, so that
    large whole ones are floats.

    Raises
    ------
    InputError
        As `parse_json`.

    Examples
    --------
    >>> parse_record(b'{"value":772517361823506000000,"n":7}', "scores.jsonl line 1")
    {'value': 7.72517361823506e+20, 'n': 7}
    """
    value = parse_json(data, where, wrong)
    try:
        return _with_floats(value) if _has_long_number(data) else value
    except OverflowError:
        raise wrong(f"{where}: a number beyond reason") from None


def _has_long_number(data: bytes) -> bool:
    # A regular expression for 16 digits would take as long as the parsing.
    return _LONG in data.translate(_ZEROS)


class RecordDecoder(Generic[T]):
    """Decodes lines of JSON that we wrote as a typed record, a `msgspec.Struct`.

    What the record has no field for is not read. Errors name file and line: `name` and `line` are
    made into a text only then, since a run has millions of lines.

    Parameters
    ----------
    declared : whether the record says of each number that it holds whether it is a float, so that
        msgspec makes floats of those that canonical JSON writes as large whole numbers
    """

    def __init__(self, kind: type[T], *, declared: bool = False) -> None:
        self._kind, self._declared = kind, declared
        decoder = msgspec.json.Decoder(kind)
        self._decode, self._decode_lines = decoder.decode, decoder.decode_lines

    def __call__(self, data: bytes, name: str, line: int) -> T:
        """Return the record.

        Raises
        ------
        InputError
            As `parse_record`, or saying which field is absent or of another type.
        """
        if self._may_lack_floats(data):
            return self.with_document(data, name, line)[0]
        try:
            return self._decode(data)
        except (ValueError, RecursionError):
            return self.with_document(data, name, line)[0]  # fails as well, and says where

    def _may_lack_floats(self, data: bytes) -> bool:
        return not self._declared and _has_long_number(data)

    def lines(self, data: bytes, name: str, first: int) -> Iterable[T]:
        """Return the records of some lines, decoded in one go where nothing is wrong with any.

        Parameters
        ----------
        first : number of the first line

        Raises
        ------
        InputError
            As `__call__`, when the records before the line were taken.
        """
        if not self._may_lack_floats(data):
            try:
                records = self._decode_lines(data)
            except (ValueError, RecursionError):
                records = []
            if len(records) == data.count(b"\n"):  # a blank line is passed over there
                return records
        return (self(line, name, number) for number, line in enumerate(BytesIO(data), first))

    def with_document(self, data: bytes, name: str, line: int) -> tuple[T, Any]:
        """Return the record, and the JSON value that it was read from; raises as `__call__`."""
        try:
            document = _decode(data)
            if _has_long_number(data):
                document = _with_floats(document)
            return msgspec.convert(document, self._kind), document
        except msgspec.ValidationError as error:
            raise InputError(f"{name} line {line}: {error}") from None
        except OverflowError:
            raise InputError(f"{name} line {line}: a number beyond reason") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name} line {line}: not valid JSON: {error}") from None


def _with_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_floats(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_floats(inner) for inner in value]
    large = isinstance(value, int) and abs(value) > MOST_EXACT
    return float(value) if large else value


def refuse_twins(text: bytes, value: Any, where: str) -> None:
    """Refuse JSON in which a key stands twice in one object: `value` holds the last of the two.

    Raises
    ------
    InputError
        Saying `where`, and which key.
    """
    if len(msgspec.json.encode(value)) == len(text.strip()):  # nothing was left out
        return
    # What looks like the end of a key within a text only adds to the count: where as many keys are
    # there, none was left out.
    if len(_KEY_ENDS.findall(text)) == _n_keys(value):
        return
    try:
        json.loads(text, object_pairs_hook=without_twins)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def _n_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_n_keys, value.values()))
    return sum(map(_n_keys, value)) if isinstance(value, list) else 0


def without_twins(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return pairs as an object; ValueError where a key stands twice."""
    unique: dict[Any, Any] = {}
    for key, value in pairs:
        if key in unique:
            raise ValueError(f"the key '{key}' stands twice in one object")
        unique[key] = value
    return unique
