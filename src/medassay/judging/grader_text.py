"""Prompt texts of judges: files in `templates/`, one for each language."""

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, Protocol, runtime_checkable

import jinja2

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json_schema import JsonSchema
from medassay.core.records.prompt import Message, Prompt
from medassay.core.records.verdict import Grader, SingleQuestionGrader
from medassay.prompt.own_template import holes_in

LANGUAGES = ("en", "de", "es")


@lru_cache(maxsize=256)
def _template(source: str) -> jinja2.Template:
    # Compiling takes milliseconds, and every run and study makes its graders anew.
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)


class GraderText:
    """The prompt of a judge in its languages; English where an item's language has none."""

    def __init__(
        self,
        name: str,
        languages: tuple[str, ...] = LANGUAGES,
        *,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """Take the texts from the files of the package, or those that are given: language → text,
        "" for all others.
        """
        self.name = name
        self._languages = languages
        self._own_texts = texts

    @cached_property
    def sources(self) -> dict[str, str]:
        """Return language → text."""
        if self._own_texts is not None:
            return dict(self._own_texts)
        folder = files("medassay.judging") / "templates"
        return {
            language: (folder / f"{self.name}.{language}.txt").read_text(encoding="utf-8")
            for language in self._languages
        }

    @property
    def texts(self) -> bytes:
        """Return all texts joined: what an id is the hash of."""
        return "\x1f".join(f"{k}\x1f{v}" for k, v in sorted(self.sources.items())).encode()

    @cached_property
    def id(self) -> str:
        """Return `name@hash` of the texts."""
        return f"{self.name}@{sha256_hex(self.texts)[:12]}"

    @property
    def holes(self) -> set[str]:
        """Return the holes that are filled."""
        return set().union(*map(holes_in, self.sources.values()))

    def render(self, language: str, **values: Any) -> str:
        """Return the text of a language filled with what is given."""
        sources = self.sources
        languages = (language, "", "en", next(iter(sources)))
        source = next(sources[name] for name in languages if name in sources)
        return _template(source).render(**values)

    def prompt(
        self,
        name: str,
        language: str,
        *,
        schema: JsonSchema | None = None,
        alternatives: int = 0,
        **values: Any,
    ) -> Prompt:
        """Return the prompt filled with what is given; `name` is the item's id, or the batch's."""
        messages: tuple[Message] = ({"role": "user", "content": self.render(language, **values)},)
        return Prompt(
            item_id=name,
            messages=messages,
            encoded=canonical(list(messages)),
            template=self.id,
            schema=b"" if schema is None else canonical(schema),
            alternatives=alternatives,
        )


def shipped_grader_texts() -> dict[str, dict[str, str]]:
    """Return name → language → text of the prompts of judges that a user's own may replace."""
    return {
        name: GraderText(name).sources for name in ("criteria", "facts", "g_eval", "prometheus")
    }


@runtime_checkable
class TextGrader(Protocol):
    """A grader with one text, in whose place a user may put another."""

    @property
    def text(self) -> GraderText:
        """Return the text."""


@dataclass(frozen=True, kw_only=True)
class OneTextGrader(SingleQuestionGrader):
    """A grader that judges one answer at a time, by one text."""

    text: GraderText
    batch: int = 1
    alternatives: int = 0
    spot_check: None = None

    @property
    def prompts(self) -> tuple[str, ...]:
        """Return the ids of the texts that are asked."""
        return (self.text.id,)

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two such graders differ."""
        return (self.text.texts,)


@cache
def before_revisions() -> dict[str, dict[str, str]]:
    """Return what the last code that hashed its own source had: hashes of parsers and scorers,
    sources of graders.
    """
    packed = (files("medassay.judging") / "before_revisions.json.xz").read_bytes()
    document: dict[str, dict[str, str]] = json.loads(lzma.decompress(packed))
    return document


def hashed_id(grader: Grader) -> str:
    """Return `name@hash`: the id of a grader when ids were hashes of prompts, rules and source
    code.

    Methodologies are made of it, and draws of judged boards are seeded by methodologies. So the
    source of then is kept: with it a grader at revision 1 has the id, and a run the methodology,
    that they had. A grader that was added since never had a source: its texts make its id.
    """
    sources: dict[str, str] = before_revisions()["graders"]
    source = sources.get(grader.name.removesuffix("_names"), "").encode()
    return f"{grader.name}@{sha256_hex(b''.join([*grader.texts, source]))[:12]}"
