"""Answers said in other words by a model: what metrics should not care about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medassay.core.item import Item
from medassay.core.model import ModelSpec
from medassay.core.reading import strip_thoughts
from medassay.errors import IncompleteError
from medassay.model.spec import load_models, named
from medassay.prompt.render import load_template, render
from medassay.runner.inquiry import Ask, inquire
from medassay.runner.stages import Watch, refuse_leaving
from medassay.storage.run import Run

REPHRASINGS = 6
_TEMPERATURE = 1.0  # of entries that are greedy: six times the same text would say nothing


class Rephraser:
    """A model that says texts in other words; what it said once is kept in the response store.

    Parameters
    ----------
    name : an entry of the models file
    engine : "local", or "ray" for several processes or machines

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
        watch: Watch | None = None,
    ) -> None:
        spec = named(load_models(models_file), name, "--rephraser:", models_file)
        self.spec: ModelSpec = replace(spec, temperature=spec.temperature or _TEMPERATURE)
        self._secrets, self._workspace = secrets, workspace
        self._engine, self._watch = engine, watch

    @property
    def id(self) -> str:
        """Return model and template, as results remember them."""
        return f"{self.spec.id}, temperature {self.spec.temperature:g}, {load_template('rephrase').id}"

    def refuse(self, run: Run) -> None:
        """Refuse a run over a bank that may not leave, where this model is at an external endpoint."""
        refuse_leaving(run.manifest["banks"], [self.spec])

    def rephrase(self, texts: Sequence[str], *, seed: int = 0) -> dict[str, tuple[str, ...]]:
        """Return text → its rephrasings, of those for which the model gave all of them, none blank.

        Raises
        ------
        IncompleteError
            When the model did not answer; what it said is kept, the same call goes on.
        """
        wanted = sorted(set(texts))
        findings = inquire(
            "rephrasings",
            _Texts(tuple(wanted)),
            self.spec,
            secrets=self._secrets,
            workspace=self._workspace,
            engine=self._engine,
            seed=seed,
            watch=self._watch,
        )
        if lost := [one.problem for one in findings if one.unanswered]:
            raise IncompleteError(
                f"rephraser '{self.spec.id}': {lost[0]}; what it said is kept, the same command goes on"
            )
        said = zip(wanted, (tuple(one.value) for one in findings), strict=True)
        return {text: found for text, found in said if len(found) == REPHRASINGS}


@dataclass(frozen=True)
class _Texts:
    """Texts that shall be said in other words."""

    texts: tuple[str, ...]
    study = "rephrase"

    def __len__(self) -> int:
        return len(self.texts)

    def length(self, subject: int) -> int:
        """Return the length of a text."""
        return len(self.texts[subject])

    async def about(self, subject: int, ask: Ask) -> list[str]:
        """Return the rephrasings of one text that are not blank."""
        text = self.texts[subject]
        item = Item(id=f"rephrasing-{subject}", domain="study", question=text, form="text")
        prompt = render(load_template("rephrase"), item)
        made = []
        for repeat in range(REPHRASINGS):
            reply = await ask(prompt, repeat=repeat)
            made.append(strip_thoughts(reply.text)[0].strip())
        return [one for one in made if one]
