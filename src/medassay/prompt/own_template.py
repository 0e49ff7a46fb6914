"""Prompts in files of the user's own: read, checked, and never able to execute anything.

A template may fill holes, decide by `if` and go through a list by `for`. Whatever else the language
of templates can do (calls, arithmetic, nested loops) is refused when it is read: a plan may come
from a stranger, and its prompts are shown before anybody agreed to run it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import jinja2
from jinja2 import meta, nodes

from medassay.core.small_file import read_small
from medassay.errors import InputError

_LONGEST = 256 * 1024  # bytes
_LONGEST_BETWEEN = 40  # characters of a text that a filter takes
_MOST_PARTS, _DEEPEST = 3000, 20  # of a template
_PARTS = ("about", "id", "path", "points", "text", "weight")  # of what lists hold
_LANGUAGE = re.compile(r"\.([a-z]{2})\.txt\Z")
_LISTS = ("options", "facts", "criteria", "fields", "ids")  # holes that `for` may go through
_FILTERS = ("join", "length", "lower", "replace", "title", "trim", "upper")
_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.If, nodes.For),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Const),
    *(nodes.Tuple, nodes.Getitem, nodes.Getattr, nodes.Filter, nodes.Neg),
)


def is_file(name: str) -> bool:
    """Return whether a plan means a file by the name of a template, not one of medassay's.

    Examples
    --------
    >>> is_file("prompts/mine.txt"), is_file("closed")
    (True, False)
    """
    return name.endswith(".txt")


def read_template(path: Path) -> dict[str, str]:
    """Return language → text of a prompt.

    `mine.de.txt` is German; `mine.txt` is for every language that has no file of its own beside it.

    Raises
    ------
    InputError
        When a file cannot be read, or does more than fill holes.
    """
    language = _LANGUAGE.search(path.name)
    stem = path.name[: language.start()] if language else path.name.removesuffix(".txt")
    files = {language[1] if language else "": path}
    for other in sorted(path.parent.glob("*.txt")):
        match = _LANGUAGE.search(other.name)
        if match and other.name[: match.start()] == stem:
            files[match[1]] = other
    return {name: _read(file) for name, file in sorted(files.items())}


def _read(path: Path) -> str:
    hint = "; `medassay prompt copy NAME` writes one of medassay's to start from"
    data = read_small(path, _LONGEST, f"template {path}", absent=hint)
    try:
        text = data.decode("utf-8-sig")
    except ValueError as error:
        raise InputError(f"template {path}: not readable as UTF-8 text ({error})") from None
    text = text.replace("\r\n", "\n")
    _check_language(text, str(path))
    return text


def _check_language(text: str, where: str) -> None:
    """Refuse what a template may not do."""
    try:
        tree = jinja2.Environment().parse(text)
    except jinja2.TemplateSyntaxError as error:
        raise InputError(f"template {where} line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise InputError(f"template {where}: nested too deeply") from None
    for node in _all(tree, where):
        for fault in _faults(node):
            raise InputError(f"template {where} line {node.lineno}: {fault}")


def _faults(node: nodes.Node) -> Iterator[str]:
    """Yield what one part of a template may not do."""
    match node:
        case nodes.Filter():
            yield from _faults_of_filter(node)
        case nodes.For(iter=over):
            name = over.name if isinstance(over, nodes.Name) else ""
            if name not in _LISTS or node.recursive or any(node.find_all(nodes.For)):
                yield f"for goes through one of {', '.join(_LISTS)}, and not in another for"
        case nodes.Getattr(attr=attribute) if attribute not in _PARTS:
            yield f"'{attribute}' cannot be read; known are {', '.join(_PARTS)}"
        case nodes.Getitem(arg=place) if not _is_place(place):
            yield "brackets take a number, the place in a list"
        case nodes.Neg() if not _is_place(node):
            yield "a sign stands before a number alone"
        case nodes.Compare(ops=operands) if any(part.op not in ("eq", "ne") for part in operands):
            yield "a comparison is == or !="
        case node if not isinstance(node, _ALLOWED):
            word = type(node).__name__.lower()
            yield (
                f"{word} is more than a template may do; it fills holes ({{{{ question }}}}), with"
                " if and for"
            )


def _faults_of_filter(node: nodes.Filter) -> Iterator[str]:
    if node.name not in _FILTERS or node.node is None:
        yield f"filter '{node.name}'; known are {', '.join(_FILTERS)}"
    elif not _is_small(node):
        yield (
            f"filter '{node.name}' takes texts in quotes; join goes through a list, as"
            " {{ ids|join(', ') }}"
        )
    elif node.name == "replace" and not _shortens(node):
        yield "replace takes two texts, the second not longer than the first"


def _shortens(node: nodes.Filter) -> bool:
    """Return whether a replacement cannot make a text longer, however often it is repeated."""
    values = [arg.value if isinstance(arg, nodes.Const) else None for arg in node.args]
    texts = [value for value in values if isinstance(value, str)]
    return len(values) == len(texts) == 2 and len(texts[1]) <= len(texts[0]) > 0


def _is_place(node: nodes.Node) -> bool:
    """Return whether a part of a template is a whole number as it stands, maybe negative."""
    inner = node.node if isinstance(node, nodes.Neg) else node
    return isinstance(inner, nodes.Const) and type(inner.value) is int


def _is_small(node: nodes.Filter) -> bool:
    """Return whether what a filter gives is about as long as what it takes."""
    texts = [arg.value if isinstance(arg, nodes.Const) else None for arg in node.args]
    plain = all(isinstance(text, str) and len(text) <= _LONGEST_BETWEEN for text in texts)
    counts = {"join": (0, 1), "replace": (2,)}.get(node.name, (0,))
    over_list = isinstance(node.node, nodes.Name) and node.node.name in _LISTS
    return plain and not node.kwargs and len(texts) in counts and (node.name != "join" or over_list)


def _all(tree: nodes.Node, where: str) -> Iterator[nodes.Node]:
    """Yield the parts of a template; refuse one that is too large, or too deep to be compiled."""
    waiting = [(tree, 0)]
    n = 0
    while waiting:
        node, depth = waiting.pop()
        n += 1
        if n > _MOST_PARTS or depth > _DEEPEST:
            raise InputError(f"template {where}: too large or nested too deeply for a prompt")
        yield node
        waiting += [(child, depth + 1) for child in node.iter_child_nodes()]


def holes_in(text: str) -> set[str]:
    """Return the holes of a template."""
    return meta.find_undeclared_variables(jinja2.Environment().parse(text))


def check_holes(
    name: str, texts: Mapping[str, str], holes: Collection[str], needed: Collection[str]
) -> None:
    """Refuse a template with a hole that nobody fills, or without one that it needs.

    Parameters
    ----------
    needed : holes of which each text must have one

    Raises
    ------
    InputError
        Naming the hole.
    """
    for language, text in texts.items():
        where = f"template '{name}'" + (f" ({language})" if language else "")
        used = holes_in(text)
        for hole in sorted(used - set(holes)):
            raise InputError(
                f"{where}: hole '{hole}' is unknown here; known are {', '.join(sorted(holes))}"
            )
        if not used & set(needed):
            shown = " or ".join(f"{{{{ {hole} }}}}" for hole in needed)
            raise InputError(f"{where}: has no hole {shown}; the model would not be shown it")
