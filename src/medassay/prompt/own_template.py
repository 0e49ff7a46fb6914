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

from medassay.errors import InputError

_LONGEST = 256 * 1024  # bytes
_LANGUAGE = re.compile(r"\.([a-z]{2})\.txt\Z")
_LISTS = ("options", "facts", "criteria", "ids")  # holes that `for` may go through
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
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"template {path}: no such file; `medassay prompt copy NAME` writes one of medassay's"
            " to start from"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"template {path}: not readable as UTF-8 text ({error})") from None
    if len(data) > _LONGEST:
        raise InputError(f"template {path}: {len(data)} bytes; at most {_LONGEST} are read")
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
    for node in _all(tree):
        line = f"template {where} line {node.lineno}"
        if not isinstance(node, _ALLOWED):
            raise InputError(
                f"{line}: {type(node).__name__.lower()} is more than a template may do; it fills"
                " holes ({{ question }}), with if and for"
            )
        if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
            raise InputError(f"{line}: '{node.attr}' cannot be read")
        if isinstance(node, nodes.Filter) and (node.name not in _FILTERS or node.node is None):
            raise InputError(f"{line}: filter '{node.name}'; known are {', '.join(_FILTERS)}")
        if isinstance(node, nodes.Filter) and node.name == "replace" and not _shortens(node):
            raise InputError(
                f"{line}: replace takes two texts, the second not longer than the first"
            )
        if isinstance(node, nodes.For):
            over = node.iter.name if isinstance(node.iter, nodes.Name) else ""
            if over not in _LISTS or node.recursive or any(node.find_all(nodes.For)):
                raise InputError(
                    f"{line}: for goes through one of {', '.join(_LISTS)}, and not in another for"
                )


def _shortens(node: nodes.Filter) -> bool:
    """Return whether a replacement cannot make a text longer, however often it is repeated."""
    values = [arg.value if isinstance(arg, nodes.Const) else None for arg in node.args]
    texts = [value for value in values if isinstance(value, str)]
    return len(values) == len(texts) == 2 and len(texts[1]) <= len(texts[0]) > 0


def _all(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _all(child)


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
