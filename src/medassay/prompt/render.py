"""item → prompt: filling a template, showing options, adding examples."""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import jinja2

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.records.context_config import BETWEEN, PromptContext
from medassay.core.records.document_schema import DocumentSchema
from medassay.core.records.item import Item
from medassay.core.records.prompt import Message, Prompt
from medassay.core.records.target import Choice
from medassay.errors import InputError
from medassay.prompt.catalog import MAKING, OPTIONS_AS_TEXTS, PARTS, SCHEMAS, TEMPLATES

Order = tuple[int, ...]
_HOLE = "{{ given }}"
# What an item fills in: the holes that a template may have.
HOLES = (
    *("condition", "context", "domain", "fields", "form", "given", "options", "question"),
    "skeleton",
)


@lru_cache(maxsize=256)
def _template(text: str) -> jinja2.Template:
    # Names that a template asks for and nobody gives are errors before any call.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.globals.clear()  # a template reads its item; copying globals took half the time
    return environment.from_string(text)


class PromptPart:
    """A text with holes in its languages, English where there is no other.

    `id` is `name@hash` over all its texts.
    """

    def __init__(self, name: str, texts: Mapping[str, str], more: bytes = b"") -> None:
        self._texts = {lang: _template(text) for lang, text in texts.items()}
        # Where a template has no hole for what is given, that stands before it.
        self._holes = {language for language, text in texts.items() if _HOLE in text}
        joined = "\x1f".join(f"{lang}\x1f{texts[lang]}" for lang in sorted(texts))
        self.name = name
        self.id = f"{name}@{sha256_hex(joined.encode() + more)[:12]}"

    def text(self, language: str, **holes: Any) -> str:
        """Return the text in a language with its holes filled."""
        return self._texts[self.language(language)].render(**holes)

    @property
    def languages(self) -> set[str]:
        """Return the languages that it has a text for; "" stands for any."""
        return set(self._texts)

    def language(self, language: str) -> str:
        """Return the language in which a text is given that is wanted in another."""
        if language in self._texts:
            return language
        return next((other for other in ("", "en") if other in self._texts), min(self._texts))


class Template(PromptPart):
    """What an item is asked with.

    `schema` is the canonical JSON Schema of the replies it asks for; empty if any text will do.
    With `options_as_texts` an answer is the text of an option, else its letter. `document` is the
    schema of the user's that a record shall have: what of it a prompt shows is filled in.
    """

    def __init__(
        self,
        name: str,
        texts: Mapping[str, str],
        *,
        options_as_texts: bool = False,
        schema: bytes = b"",
        document: DocumentSchema | None = None,
    ) -> None:
        self.options_as_texts = options_as_texts
        self.document = document
        schema = schema if document is None else document.reply_schema
        self.schema = schema
        super().__init__(name, texts, schema)

    def fill(self, item: Item, order: Order | None, context: PromptContext | None = None) -> str:
        """Return the text of one item, with what is given where the template has a hole for it,
        else before it. The option that is shown first is A, whatever its letter in the bank.
        """
        options = item.options if order is None else tuple(item.options[i] for i in order)
        evidence = "" if context is None else _evidence(context, item.language)
        document = self.document
        try:
            text = self.text(
                item.language,
                given=evidence,
                question=item.question,
                context=item.context or "",
                condition=item.condition or "",
                domain=item.domain,
                options=tuple(zip(item.letters, options, strict=True)),
                form=item.form,
                fields=() if document is None else document.fields,
                skeleton="" if document is None else document.skeleton,
            )
        except (jinja2.UndefinedError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise InputError(f"template '{self.id}', item '{item.id}': {error}") from None
        if not evidence or self.language(item.language) in self._holes:
            return text
        return f"{evidence}\n\n{text}"


def _evidence(context: PromptContext, language: str) -> str:
    """Return what is given in words; nothing where a search found nothing."""
    if not (context.passages or context.path or context.text):
        return ""
    passages = BETWEEN.join(context.passages)
    return load_part("evidence").text(
        language, passages=passages, path=context.path, text=context.text
    )


@lru_cache(maxsize=32)
def load_part(name: str) -> PromptPart:
    """Return a compiled text that stands beside a template."""
    return PromptPart(name, template_texts(name, (PARTS | MAKING)[name]))


@lru_cache(maxsize=16)
def load_template(name: str) -> Template:
    """Return a compiled template of medassay's."""
    if name not in TEMPLATES:
        raise InputError(
            f"template '{name}' is unknown; known are {', '.join(sorted(TEMPLATES))}. A template of"
            " your own is a file, as prompts/mine.txt"
        )
    return Template(
        name,
        template_texts(name, TEMPLATES[name]),
        options_as_texts=name in OPTIONS_AS_TEXTS,
        schema=canonical(SCHEMAS[name]) if name in SCHEMAS else b"",
    )


def own_template(
    name: str,
    texts: Mapping[str, str],
    like: Template,
    document: DocumentSchema | None = None,
) -> Template:
    """Return a compiled template of the user's.

    Parameters
    ----------
    like : the template that it stands for: replies are of the same form
    document : schema of the records that it asks for
    """
    return Template(
        name,
        texts,
        options_as_texts=like.options_as_texts,
        schema=like.schema,
        document=document,
    )


def document_template(name: str, document: DocumentSchema) -> Template:
    """Return a compiled template of medassay's that asks for records by a schema of the user's."""
    return Template(name, template_texts(name, TEMPLATES[name]), document=document)


def template_texts(name: str, languages: Sequence[str]) -> dict[str, str]:
    """Return language → text of a template of medassay's."""
    folder = files("medassay.prompt") / "templates"
    return {
        language: (folder / f"{name}.{language}.txt").read_text(encoding="utf-8")
        for language in languages
    }


def shown_order(item: Item, seed: int) -> Order | None:
    """Return a seeded order of the options, its own for each item; None for items without.

    The order is drawn for each item, not for the run: with one order for all, a model that prefers
    "A" would score by its habit.
    """
    if not item.options:
        return None
    order = list(range(len(item.options)))
    random.Random(f"{seed}\x1f{item.domain}\x1f{item.id}").shuffle(order)
    return tuple(order)


def example_answer(item: Item) -> str | None:
    """Return the reply that an example shows; None for items without one text that is right."""
    return item.target.expected if isinstance(item.target, Choice) else item.reference


def check_examples(dev: Sequence[Item], k: int, bank: str) -> None:
    """Refuse a bank whose dev split is too small for k examples."""
    usable = sum(example_answer(d) is not None for d in dev)
    if usable < k:
        raise InputError(
            f"setting few_shot: {k} examples asked for, the dev split of bank '{bank}' has {usable}"
            ' usable ones; lower few_shot_k, or give the bank items with split "dev"'
        )


def choose_examples(dev: Sequence[Item], item: Item, k: int, seed: int) -> tuple[Item, ...]:
    """Return k examples for `item` from the dev split, the same for its whole domain and form.

    Examples of the item's domain come first, then its form, then its language; the seed decides
    among equals.
    """
    rng = random.Random(f"{seed}\x1f{item.domain}\x1f{item.form}\x1f{item.language}")
    usable = [d for d in dev if example_answer(d) is not None]
    ranked = sorted(
        (
            (
                d.domain != item.domain,
                d.form != item.form,
                d.language != item.language,
                rng.random(),
            ),
            d.id,
            d,
        )
        for d in sorted(usable, key=lambda d: d.id)
    )
    return tuple(d for *_, d in ranked[:k])


def example_turns(template: Template, examples: Sequence[Item]) -> tuple[Message, ...]:
    """Return the examples as turns of a conversation: question, answer, question, answer …."""
    turns: list[Message] = []
    for example in examples:
        answer = example_answer(example) or ""
        if template.options_as_texts and isinstance(example.target, Choice):
            answer = example.options[example.target.place]
        turns.append({"role": "user", "content": template.fill(example, None)})
        turns.append({"role": "assistant", "content": answer})
    return tuple(turns)


def render(
    template: Template,
    item: Item,
    *,
    examples: Sequence[Message] = (),
    order: Order | None = None,
    system: str = "",
    system_role: str = "system",
    context: PromptContext | None = None,
) -> Prompt:
    """Return the prompt of one item: system line, examples as turns, question with what is given.

    With the `system_role` "none" the system line is left out, with "question" it stands before the
    question.
    """
    question_text = template.fill(item, order, context)
    if system and system_role == "question":
        system, question_text = "", f"{system}\n\n{question_text}"
    messages: list[Message] = []
    if system and system_role != "none":
        messages.append({"role": system_role, "content": system})
    messages.extend(examples)
    messages.append({"role": "user", "content": question_text})
    options = item.options if order is None else tuple(item.options[i] for i in order)
    return Prompt(
        item_id=item.id,
        messages=tuple(messages),
        encoded=canonical(messages),
        template=template.id if context is None else id_with_evidence(template),
        letters=item.letters,
        options=options,
        order=order,
        schema=template.schema,
        retrieved=() if context is None else context.retrieved,
        own_source=None if context is None else context.own_source,
    )


def id_with_evidence(template: Template) -> str:
    """Return the id of a template that shows retrieved or given texts."""
    return f"{template.id}+{load_part('evidence').id}"
