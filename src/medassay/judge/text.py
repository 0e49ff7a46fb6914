"""Prompt texts of judges: files in `templates/`, one for each language."""

import inspect
from collections.abc import Iterable
from functools import cached_property
from importlib.resources import files
from types import ModuleType
from typing import Any

import jinja2

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.trial import Prompt

LANGUAGES = ("en", "de", "es")


class JudgeText:
    """The prompt of a judge in its languages; English where an item's language has none."""

    def __init__(self, name: str, languages: tuple[str, ...] = LANGUAGES) -> None:
        self.name = name
        self._languages = languages

    @cached_property
    def _sources(self) -> dict[str, str]:
        folder = files("medassay.judge") / "templates"
        return {
            language: (folder / f"{self.name}.{language}.txt").read_text(encoding="utf-8")
            for language in self._languages
        }

    @cached_property
    def _templates(self) -> dict[str, jinja2.Template]:
        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        return {name: environment.from_string(text) for name, text in self._sources.items()}

    @property
    def texts(self) -> bytes:
        """Return all texts joined: what an id is the hash of."""
        return "\x1f".join(f"{k}\x1f{v}" for k, v in sorted(self._sources.items())).encode()

    @cached_property
    def id(self) -> str:
        """Return `name@hash` of the texts."""
        return f"{self.name}@{sha256_hex(self.texts)[:12]}"

    def render(self, language: str, **given: Any) -> str:
        """Return the text of a language filled with what is given."""
        template = self._templates.get(language) or self._templates["en"]
        return template.render(**given)

    def prompt(
        self,
        name: str,
        language: str,
        *,
        schema: dict[str, Any] | None = None,
        alternatives: int = 0,
        **given: Any,
    ) -> Prompt:
        """Return the prompt filled with what is given; `name` is the item's id, or the batch's."""
        messages = ({"role": "user", "content": self.render(language, **given)},)
        return Prompt(
            item_id=name,
            messages=messages,
            encoded=canonical(list(messages)),
            template=self.id,
            schema=b"" if schema is None else canonical(schema),
            alternatives=alternatives,
        )


def rubric_id(name: str, texts: Iterable[bytes], modules: Iterable[ModuleType]) -> str:
    """Return `name@hash`, the hash over prompt texts and the source of the modules that read replies."""
    sources = [inspect.getsource(module).encode() for module in modules]
    return f"{name}@{sha256_hex(b''.join([*texts, *sources]))[:12]}"
