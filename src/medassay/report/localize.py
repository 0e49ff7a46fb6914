"""Templates in another language: the text between their tags is exchanged when they are loaded.

A text is what stands between two tags, of HTML or of Jinja, with the expressions in it as `{0}`,
`{1}` …: `Mean of {{ n }} domains` is the text `Mean of {0} domains`. So templates are written in
English, as plain as they are read, and a catalogue (`texts/*.json`) has these texts in another
language, in which expressions may stand in another order. Attributes that are read aloud or shown
are texts, too. What stands in `<code>`, `<pre>`, `<script>` and `<style>` is none.
"""

import re
from collections.abc import Callable

import jinja2

# A comment, a statement or an expression of Jinja; a tag of HTML, in which expressions may stand.
_JINJA = r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}"
_TAG = rf"<(?:{_JINJA}|\"(?:{_JINJA}|[^\"])*\"|'(?:{_JINJA}|[^'])*'|[^>\"'])*>"
_TOKEN = re.compile(rf"{_JINJA}|{_TAG}|[^<{{]+|.", re.DOTALL)
_ATTRIBUTE = re.compile(
    rf'\b(data-label|aria-label|title|alt|placeholder)="((?:{_JINJA}|[^"])*)"', re.DOTALL
)
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_LITERAL_PLACE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_LITERAL = re.compile(r'"([^"\\]*)"')
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_TEXT = re.compile(r"<(code|pre|script|style|kbd|samp|var)\b", re.IGNORECASE)
Translate = Callable[[str], str | None]  # text with `{0}` → its translation, None where it has none


def localized(source: str, translate: Translate, literal: Translate = lambda _: None) -> str:
    """Return a template with its texts exchanged.

    Parameters
    ----------
    literal : words in double quotes, in an expression or statement → their translation

    Examples
    --------
    >>> localized("<p>Mean of {{ n }} domains</p>", {"Mean of {0} domains": "{0} Domänen"}.get)
    '<p>{{ n }} Domänen</p>'
    """
    parts: list[str] = []
    waiting: list[str] = []  # text and expressions since the last tag
    closing = ""  # end of an element whose content is no text

    def flush() -> None:
        parts.append(_exchanged("".join(waiting), translate))
        waiting.clear()

    for token in _TOKEN.findall(source):
        if closing:
            parts.append(token)
            if token.lower().startswith(closing):
                closing = ""
        elif token.startswith("<") and len(token) > 1:
            flush()
            parts.append(_ATTRIBUTE.sub(lambda m: f'{m[1]}="{_exchanged(m[2], translate)}"', token))
            if opening := _NO_TEXT.match(token):
                closing = f"</{opening[1].lower()}"
        elif token.startswith(("{%", "{#")):
            flush()
            parts.append(token)
        else:
            waiting.append(token)
    flush()
    return _LITERAL_PLACE.sub(lambda m: _with_literals(m[0], literal), "".join(parts))


def _with_literals(code: str, literal: Translate) -> str:
    """Return a statement or expression with its words in quotes exchanged."""

    def exchanged(match: re.Match[str]) -> str:
        translation = literal(match[1])
        return match[0] if translation is None else f'"{translation}"'

    return _LITERAL.sub(exchanged, code)


def _exchanged(text: str, translate: Translate) -> str:
    """Return a text with its expressions in another language, the blanks around it kept."""
    # "[{{ lo }}, {{ hi }}]", too: where points are commas, ends are held apart otherwise.
    if not _WORD.search(_EXPRESSION.sub("", text)) and "[{{" not in text:
        return text
    stripped = text.strip()
    start = text.index(stripped)
    expressions = _EXPRESSION.findall(stripped)
    numbers = iter(range(len(expressions)))
    key = _EXPRESSION.sub(lambda _: f"{{{next(numbers)}}}", stripped)
    translation = translate(" ".join(key.split()))
    if translation is None:
        return text
    source = re.sub(r"\{(\d+)\}", lambda m: expressions[int(m[1])], translation)
    return text[:start] + source + text[start + len(stripped) :]


class LocalizedLoader(jinja2.BaseLoader):
    """Loads templates of another loader with their texts exchanged.

    Parameters
    ----------
    translate, literal : as in `localized`
    """

    def __init__(self, loader: jinja2.BaseLoader, translate: Translate, literal: Translate) -> None:
        self._loader, self._translate, self._literal = loader, translate, literal

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return the source of a template in the other language."""
        source, path, is_current = self._loader.get_source(environment, template)
        return localized(source, self._translate, self._literal), path, is_current
