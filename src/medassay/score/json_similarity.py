"""JSON structural similarity: how far a reply's JSON agrees with a record, leaf by leaf, in any
order of arrays.

Lexical only: it does not see that a stopped drug listed as current is worse than a misspelt street.
What that means for a patient is measured beside it (`medassay.kinds.record.medication`).

Source: specification of JSON structural similarity.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from medassay.core.reply.json_value import MOST_LEVELS, read_json_reply

# What a reply may hold: alignment costs its size times that of what is expected.
MOST_TIMES = 20  # times what is expected, but always so many values and characters
LEAST_VALUES, LEAST_CHARACTERS = 1_000, 100_000
# What any document may hold, and how long an alignment may take: so that every call ends within
# about a second.
MOST_VALUES = 50_000
MOST_PATHS = 5_000_000  # characters of the paths of all leaves
MOST_STEPS = 400_000  # a step is a pair of values, or of so many pairs of characters
_PAIRS_A_STEP = 30_000
Path = tuple[str | int, ...]
# A JSON value whose leaves are texts; null stays null.
Tree = dict[str, "Tree"] | list["Tree"] | str | None
_ANY = -1  # in a path to leave out: every index
_STEP = re.compile(r'\.?([^.\[\]"]+)|\[(\d+|\*)\]|\.?\[("(?:[^"\\]|\\.)*")\]')
_PLAIN_KEY = re.compile(r'[^.\[\]"]+')


class JsonSimilarity(msgspec.Struct, frozen=True, kw_only=True):
    """How far a reply's JSON agrees with the expected one; all scores in [0, 1].

    `overall` is the mean over the leaves expected, `by_section` over those below each top-level
    key, or each key below a sole one, and `leaf_scores` holds each. `missing` are leaves expected
    and not found, `extra` leaves found and not expected: they cost nothing. `reason` says why
    nothing could be read (`parsed` False, `overall` 0, no sections).
    """

    overall: float
    by_section: Mapping[str, float] = msgspec.field(default_factory=dict)
    leaf_scores: Mapping[str, float] = msgspec.field(default_factory=dict)
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    duplicate_keys: tuple[str, ...] = ()
    parsed: bool = True
    reason: str = ""

    @property
    def no_expected_paths(self) -> bool:
        """Return whether nothing was expected, so that the 0 says nothing of the reply."""
        return not self.leaf_scores


def json_similarity(
    expected: Any,
    actual: Any,
    *,
    exclude: Iterable[str] = (),
    strict: bool = False,
    group_depth: int | Literal["auto"] = "auto",
) -> JsonSimilarity:
    """Return how far `actual` agrees with `expected` in structure and text.

    Leaves are compared by normalised Levenshtein similarity over code points. Elements of an array
    find their partners greedily, in the order expected; equal candidates by lowest index. A tuple,
    and any other sequence, is an array. A reply that would take longer than about a second is not
    compared: `parsed` is False, `reason` says why.

    Parameters
    ----------
    expected : JSON object or array, as text or parsed
    actual : a reply as text, in which the longest JSON object or array counts, or a parsed value
    exclude : paths left out on both sides with all below them, `[*]` for any index
    strict : whether a null that is absent counts as missing; by default it agrees
    group_depth : how many keys deep sections begin; "auto" goes below a sole key first;
        with a number sections are named by their whole path

    Raises
    ------
    ValueError
        When `expected` is no JSON object or array, nested beyond reason or of more than 50,000
        values, or a path cannot be read.

    Examples
    --------
    >>> json_similarity({"a": "x", "b": ["p", "q"]}, '{"b": ["q"], "a": "x"}').overall
    0.6666666666666666
    """
    if isinstance(exclude, str):
        raise ValueError("exclude: a list of paths is needed, not one text")
    if group_depth != "auto" and (not isinstance(group_depth, int) or group_depth < 0):
        raise ValueError(f'group_depth: {group_depth!r} is neither "auto" nor a number from 0')
    paths = [_read_path(path) for path in exclude]
    if isinstance(expected, str):
        try:
            expected = json.loads(expected, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"expected: not valid JSON: {error}") from None
    if not _is_nested(expected):
        raise ValueError("expected: a JSON object or array is needed")
    gold = _Tree(paths)
    try:
        gold.build(expected)
    except ValueError as error:
        raise ValueError(f"expected: {error}") from None
    if isinstance(actual, str):
        reply = read_json_reply(actual)
        actual, reason, twice = reply.value, reply.reason, reply.duplicate_keys
    else:
        reason, twice = "no JSON object or array", ()
    absent_null = 0.0 if strict else 1.0
    if _is_nested(actual):
        try:
            tree = _Tree(paths, expected=gold)
            tree.build(actual)
            scores = _Scores(absent_null=absent_null)
            scores.score(gold.root, tree.root, ())
        except ValueError as error:
            reason = str(error)
        else:
            return scores.result(gold.root, group_depth, duplicate_keys=twice)
    scores = _Scores(absent_null=absent_null)
    scores.lose(gold.root, ())
    return scores.result(gold.root, group_depth, reason=reason)


def path_text(path: Path) -> str:
    """Return a path as printed: keys by dots, indices in brackets, keys that are no plain words
    quoted.

    Examples
    --------
    >>> path_text(("medications", 0, "name")), path_text(("a.b",))
    ('medications[0].name', '["a.b"]')
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def _read_path(text: str) -> Path:
    if not isinstance(text, str):
        raise ValueError(f"exclude: {text!r} is no path")
    steps: list[str | int] = []
    position = 0
    while position < len(text) and (step := _STEP.match(text, position)):
        key, index, quoted = step.groups()
        if index is not None:
            steps.append(_ANY if index == "*" else int(index))
        else:
            steps.append(key if key is not None else json.loads(quoted))
        position = step.end()
    if not steps or position < len(text):
        raise ValueError(
            f"exclude: '{text}' is no path; expected something like medications.current[*].dose"
        )
    return tuple(steps)


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or _is_array(value)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


class _Tree:
    """A value with texts as leaves, without what is excluded, and how much it holds.

    Elements of arrays that are excluded stay as something empty, so that the others keep their
    index.
    """

    def __init__(self, exclude: list[Path], expected: "_Tree | None" = None) -> None:
        self.root: Tree = None
        self.values = self.characters = 0
        self._paths = 0
        self._exclude = exclude
        self._most: tuple[float, float] = (MOST_VALUES, math.inf)
        if expected is not None:
            self._most = (
                min(MOST_VALUES, max(LEAST_VALUES, MOST_TIMES * expected.values)),
                max(LEAST_CHARACTERS, MOST_TIMES * expected.characters),
            )

    def build(self, value: Any) -> None:
        """Take a parsed value.

        Raises
        ------
        ValueError
            When it is nested too deep, or holds more than can be compared, or far more than what is
            expected.
        """
        self.root = self._tree(value, self._exclude, 0, 0)

    def _tree(self, value: Any, paths: list[Path], level: int, width: int) -> Tree:
        """Return a value as a tree; `width` is how many characters its path has."""
        self.values += 1
        if level > MOST_LEVELS:
            raise ValueError(f"nested deeper than {MOST_LEVELS} levels")
        if self.values > self._most[0]:
            raise ValueError(f"more than {self._most[0]:,} values")
        if isinstance(value, dict):
            pairs = ((str(key), part) for key, part in value.items())
            return {
                key: self._tree(part, _below(paths, key), level + 1, width + len(key) + 1)
                for key, part in pairs
                if (key,) not in paths
            }
        if _is_array(value):
            return [
                {} if (i,) in paths else self._tree(part, _below(paths, i), level + 1, width + 4)
                for i, part in enumerate(value if (_ANY,) not in paths else ())
            ]
        leaf = _leaf(value)
        self.characters += len(leaf or "")
        if self.characters > self._most[1]:
            raise ValueError(f"more than {self._most[1]:,} characters of text")
        self._paths += width
        if self._paths > MOST_PATHS:
            raise ValueError(f"more than {MOST_PATHS:,} characters of paths")
        return leaf


def _below(paths: list[Path], step: str | int) -> list[Path]:
    """Return what is left of the paths below a step."""
    if not paths:
        return paths
    fits = (step, _ANY) if isinstance(step, int) else (step,)
    return [path[1:] for path in paths if path[0] in fits]


def _leaf(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _leaves(tree: Tree, path: Path) -> Iterator[tuple[Path, str | None]]:
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(tree, list):
        for i, part in enumerate(tree):
            yield from _leaves(part, (*path, i))
    else:
        yield path, tree


class _Alignment:
    """Finds partners, and counts what that takes: two documents of a megabyte could keep it busy
    for minutes.
    """

    def __init__(self) -> None:
        from rapidfuzz.distance import Levenshtein  # most commands compare no records

        self._likeness = Levenshtein.normalized_similarity
        self._steps = 0

    def similarity(self, gold: str, actual: str) -> float:
        """Return how alike two texts are.

        Raises
        ------
        ValueError
            When too many steps were taken.
        """
        if gold == actual:
            return 1.0
        self._take(len(gold) * len(actual) // _PAIRS_A_STEP)
        return self._likeness(gold, actual)

    def _take(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise ValueError(f"too large to compare: more than {MOST_STEPS:,} steps")

    def shared(self, gold: Tree, actual: Tree) -> tuple[float, int]:
        """Return the sum of similarities over the leaves that both have, and their number."""
        self._take(1)
        total, n = 0.0, 0
        if isinstance(gold, dict):
            if isinstance(actual, dict):
                for key, part in gold.items():
                    if key in actual:
                        more, leaves = self.shared(part, actual[key])
                        total, n = total + more, n + leaves
        elif isinstance(gold, list):
            if isinstance(actual, list):
                for partner in self.partners(gold, actual):
                    if partner is not None:
                        total, n = total + partner[1], n + partner[2]
        elif gold is None or actual is None:
            if not isinstance(actual, dict | list):
                return float(gold is actual), 1
        elif isinstance(actual, str):
            return self.similarity(gold, actual), 1
        return total, n

    def partners(self, gold: list[Tree], actual: list[Tree]) -> list[tuple[int, float, int] | None]:
        """Return for each element expected its partner: the free one most similar, if at all.

        A partner is its index with what `shared` says of the pair, which nobody then computes
        again: alignment stays polynomial however deep arrays are nested.
        """
        free = list(range(len(actual)))
        partners: list[tuple[int, float, int] | None] = []
        for element in gold:
            best = 0.0
            partner: tuple[int, float, int] | None = None
            for i in free:
                total, n = self.shared(element, actual[i])
                if n and total / n > best:
                    best, partner = total / n, (i, total, n)
                    if best == 1.0:
                        break
            partners.append(partner)
            if partner is not None:
                free.remove(partner[0])
        return partners


class _Scores(msgspec.Struct):
    """What is collected on the way down: scores of leaves, and what is missing or extra."""

    absent_null: float
    of: dict[Path, float] = msgspec.field(default_factory=dict)
    missing: list[Path] = msgspec.field(default_factory=list)
    extra: list[Path] = msgspec.field(default_factory=list)
    alignment: _Alignment = msgspec.field(default_factory=_Alignment)

    def score(self, gold: Tree, actual: Tree, path: Path) -> None:
        if isinstance(gold, dict) and isinstance(actual, dict):
            for key, part in gold.items():
                if key in actual:
                    self.score(part, actual[key], (*path, key))
                else:
                    self.absent(part, (*path, key))
            for key, part in actual.items():
                if key not in gold:
                    self.add(part, (*path, key))
        elif isinstance(gold, list) and isinstance(actual, list):
            self._arrays(gold, actual, path)
        elif isinstance(gold, str) and isinstance(actual, str):
            self.of[path] = self.alignment.similarity(gold, actual)
        elif actual is None:
            self.absent(gold, path, null=True)
        elif gold is None:
            self.of[path] = 0.0
            self.add(actual, path)
        else:
            self.lose(gold, path)
            self.add(actual, path)

    def _arrays(self, gold: list[Tree], actual: list[Tree], path: Path) -> None:
        partners = [partner and partner[0] for partner in self.alignment.partners(gold, actual)]
        for i, partner in enumerate(partners):
            if partner is None:
                self.lose(gold[i], (*path, i))
            else:
                self.score(gold[i], actual[partner], (*path, i))
        for i in sorted(set(range(len(actual))) - set(partners)):
            self.add(actual[i], (*path, i))

    def absent(self, gold: Tree, path: Path, *, null: bool = False) -> None:
        """Score leaves for which the reply has nothing, or null: a null agrees with null."""
        for at, leaf in _leaves(gold, path):
            # Only a null that is expected may be left out.
            agrees = 0.0 if leaf is not None else 1.0 if null and at == path else self.absent_null
            self.of[at] = agrees
            if not agrees:
                self.missing.append(at)

    def lose(self, gold: Tree, path: Path) -> None:
        """Score leaves whose place in the reply holds something else, or that found no partner."""
        for at, _ in _leaves(gold, path):
            self.of[at] = 0.0
            self.missing.append(at)

    def add(self, actual: Tree, path: Path) -> None:
        self.extra.extend(at for at, _ in _leaves(actual, path))

    def result(
        self, gold: Tree, group_depth: int | Literal["auto"], **options: Any
    ) -> JsonSimilarity:
        parsed = not options.get("reason")
        sections: dict[str, list[float]] = {}
        depth = _sole_keys(gold) if group_depth == "auto" else group_depth
        for path, value in self.of.items():
            if parsed and len(path) > depth and isinstance(key := path[depth], str):
                name = key if group_depth == "auto" else path_text(path[: depth + 1])
                sections.setdefault(name, []).append(value)
        return JsonSimilarity(
            overall=_mean(self.of.values()),
            by_section={key: _mean(values) for key, values in sections.items()},
            leaf_scores={path_text(path): value for path, value in self.of.items()},
            missing=tuple(path_text(path) for path in self.missing),
            extra=tuple(path_text(path) for path in self.extra),
            parsed=parsed,
            **options,
        )


def _sole_keys(gold: Tree) -> int:
    """Return how many keys stand alone, one above the other, before the sections begin."""
    depth = 0
    while isinstance(gold, dict) and len(gold) == 1:
        [gold] = gold.values()
        depth += isinstance(gold, dict)
    return depth


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0
