"""Answers said in other words by a model: what metrics should not care about."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from medassay.core.item import Item
from medassay.core.model import ModelSpec
from medassay.core.plan import Budget
from medassay.core.reading import strip_thoughts
from medassay.errors import IncompleteError, ModelError
from medassay.model.spec import load_models, named
from medassay.prompt.render import load_template, render
from medassay.runner.asking import Asker
from medassay.runner.bridge import run_async
from medassay.runner.providing import provide
from medassay.runner.stages import refuse_leaving
from medassay.storage.response import ResponseStore
from medassay.storage.run import Run

REPHRASINGS = 6
_TEMPERATURE = 1.0  # of entries that are greedy: six times the same text would say nothing


class Rephraser:
    """A model that says texts in other words; what it said once is kept in the response store.

    Parameters
    ----------
    name : an entry of the models file

    Raises
    ------
    InputError
        When there is no such entry.
    """

    def __init__(
        self, name: str, models_file: Path, *, secrets: Mapping[str, str], workspace: Path
    ) -> None:
        spec = named(load_models(models_file), name, "--rephraser:", models_file)
        self.spec: ModelSpec = replace(spec, temperature=spec.temperature or _TEMPERATURE)
        self._secrets, self._workspace = secrets, workspace

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
        name = self.spec.id
        wanted = sorted(set(texts))
        made: dict[str, list[str]] = {text: [] for text in wanted}
        with ResponseStore(self._workspace / "responses") as store:
            chats = {name: provide(self.spec, self._secrets)}
            asker = Asker({name: self.spec}, chats, store, Budget(), seed=seed)

            async def one(text: str, number: int, gate: asyncio.Semaphore) -> None:
                item = Item(
                    id=f"rephrasing-{number}", domain="study", question=text, form="text"
                )
                prompt = render(load_template("rephrase"), item)
                async with gate:
                    for repeat in range(REPHRASINGS):
                        reply = await asker.ask(
                            self.spec, prompt, {"study": "rephrase"}, repeat=repeat
                        )
                        if reply is not None:
                            said = strip_thoughts(reply.completion.text)[0].strip()
                            made[text] += [said] if said else []

            async def everything() -> None:
                gate = asyncio.Semaphore(self.spec.concurrency)
                async with asyncio.TaskGroup() as group:
                    for number, text in enumerate(wanted):
                        group.create_task(one(text, number, gate))

            try:
                run_async(lambda: asker.during(everything()))
            except* ModelError as errors:
                raise IncompleteError(
                    f"rephraser '{name}': {errors.exceptions[0]}; what it said is kept, the same command goes on"
                ) from None
        return {text: tuple(found) for text, found in made.items() if len(found) == REPHRASINGS}
