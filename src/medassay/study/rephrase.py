"""Answers said in other words by a model: what metrics should not care about."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.records.item import Item
from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Reference
from medassay.core.reply.thoughts import strip_thoughts
from medassay.errors import IncompleteError
from medassay.model.spec import load_models, named
from medassay.prompt.render import load_template, render
from medassay.runner.batch_prompts import Ask, UnusableReply, prompt_batch
from medassay.runner.progress import ProgressFactory
from medassay.runner.stages import refuse_leaving
from medassay.storage.run import Run

REPHRASINGS = 6
_TEMPERATURE = 1.0  # of entries that are greedy: six times the same text would say nothing


class Rephraser:
    """A model that says texts in other words; what it said once is kept in the response store.

    Parameters
    ----------
    name : an entry of the models file
    engine : "local", or "ray" for several processes or machines
    again : "failed" asks once more for rephrasings that came back blank

    Raises
    ------
    InputError
        When there is no such entry.
    """

    def __init__(
        self,
        name: str,
        models_file: Path,
        *,
        secrets: Mapping[str, str],
        workspace: Path,
        engine: str = "local",
        watch: ProgressFactory | None = None,
        again: Collection[str] = (),
    ) -> None:
        spec = named(load_models(models_file), name, "--rephraser:", models_file)
        self.spec: ModelSpec = replace(spec, temperature=spec.temperature or _TEMPERATURE)
        self._secrets, self._workspace = secrets, workspace
        self._engine, self._watch, self._again = engine, watch, again

    @property
    def id(self) -> str:
        """Return model and template, as results remember them."""
        return (
            f"{self.spec.id}, temperature {self.spec.temperature:g}, {load_template('rephrase').id}"
        )

    def refuse(self, run: Run) -> None:
        """Refuse a run over a bank that may not leave, where this model is at an external
        endpoint.
        """
        refuse_leaving(run.manifest.leaving, [self.spec])

    def rephrase(self, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return text → its rephrasings, of those for which the model gave all of them, none blank.

        Raises
        ------
        ModelError, IncompleteError
            When the model did not answer, or not always; what it said is kept, the same call goes
            on.
        """
        texts_wanted = sorted(set(texts))
        findings = prompt_batch(
            "rephrasings",
            _Texts(tuple(texts_wanted)),
            self.spec,
            secrets=self._secrets,
            workspace=self._workspace,
            engine=self._engine,
            watch=self._watch,
            again=self._again,
        )
        if lost := [finding.problem for finding in findings if finding.unanswered]:
            raise IncompleteError(
                f"rephraser '{self.spec.id}': {lost[0]}; what it said is kept, the same command"
                " goes on"
            )
        values = [finding.value for finding in findings]
        versions = {
            text: tuple(values[REPHRASINGS * at : REPHRASINGS * (at + 1)])
            for at, text in enumerate(texts_wanted)
        }
        return {text: texts for text, texts in versions.items() if None not in texts}


class _Texts(msgspec.Struct, frozen=True):
    """Texts that shall be said in other words; a subject is one rephrasing of one of them."""

    texts: tuple[str, ...]
    study = "rephrase"
    repeats = REPHRASINGS

    def __len__(self) -> int:
        return len(self.texts) * REPHRASINGS

    def handle(self, subject: int) -> str:
        """Return a hash of the text, with the number of its rephrasing from 0."""
        number, repeat = divmod(subject, REPHRASINGS)
        return f"{sha256_hex(self.texts[number].encode())[:12]}.{repeat}"

    def first(self, subject: int) -> Prompt:
        """Return what asks for a rephrasing."""
        number = subject // REPHRASINGS
        item = Item(
            id=f"rephrasing-{number}",
            domain="study",
            question=self.texts[number],
            target=Reference(),
        )
        return render(load_template("rephrase"), item)

    async def about(self, subject: int, ask: Ask) -> str:
        """Return one rephrasing of a text; raise `UnusableReply` where it is blank."""
        reply = await ask(self.first(subject), repeat=subject % REPHRASINGS)
        text = strip_thoughts(reply.text)[0].strip()
        if not text:
            raise UnusableReply("the rephrasing is blank")
        return text
