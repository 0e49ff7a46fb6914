"""Having a judge write the evaluation steps of G-Eval, once."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from medassay.core.records.prompt import Prompt
from medassay.errors import IncompleteError, InputError
from medassay.judging.grader_text import LANGUAGES
from medassay.judging.graders.steps import (
    EvaluationSteps,
    prompt_hashes,
    read_steps,
    writing_prompt,
)
from medassay.model.spec import load_models, named
from medassay.runner.batch_prompts import Ask, UnusableReply, prompt_batch
from medassay.runner.progress import ProgressFactory

_ASKED = 3  # times at most, for each language


def write_steps(  # noqa: PLR0913 -- each is an option of the study
    judge: str,
    models_file: Path,
    languages: Sequence[str],
    *,
    with_path: bool,
    secrets: Mapping[str, str],
    workspace: Path,
    watch: ProgressFactory | None = None,
    again: Collection[str] = (),
) -> EvaluationSteps:
    """Return the steps that a judge writes, reviewed by nobody yet.

    Parameters
    ----------
    again : languages in which the judge is asked once more, or "failed" for those in which it wrote
        no usable steps

    Raises
    ------
    InputError
        When the judge or a language is unknown.
    ModelError
        When the judge does not answer.
    IncompleteError
        When the judge replies without a list of steps three times.
    """
    spec = named(load_models(models_file), judge, "--judge:", models_file)
    strange = [language for language in languages if language not in LANGUAGES]
    if strange or not languages:
        raise InputError(
            f"--languages: {', '.join(strange) or 'none'}; known are {', '.join(LANGUAGES)}"
        )
    findings = prompt_batch(
        "steps",
        _Languages(tuple(languages), with_path),
        spec,
        secrets=secrets,
        workspace=workspace,
        watch=watch,
        again=again,
    )
    texts: dict[str, str] = {}
    for language, finding in zip(languages, findings, strict=True):
        if finding.value is None:
            raise IncompleteError(
                f"judge '{judge}' wrote no usable steps in '{language}': {finding.problem}; no"
                " steps were written, --again failed asks once more"
            )
        texts[language] = finding.value
    return EvaluationSteps(
        judge=judge,
        with_path=with_path,
        prompts=prompt_hashes(texts, with_path=with_path),
        reviewed_by="",
        texts=texts,
    )


class _Languages(msgspec.Struct, frozen=True):
    """The languages in which a judge shall write its steps."""

    languages: tuple[str, ...]
    with_path: bool
    study = "steps"
    repeats = 1

    def __len__(self) -> int:
        return len(self.languages)

    def handle(self, subject: int) -> str:
        """Return the language."""
        return self.languages[subject]

    def first(self, subject: int) -> Prompt:
        """Return what asks for the steps in a language."""
        return writing_prompt(self.languages[subject], with_path=self.with_path)

    async def about(self, subject: int, ask: Ask) -> str:
        """Return the steps in a language.

        Asked for at most three times, `UnusableReply` where none are usable.
        """
        problem = ""
        for attempt in range(_ASKED):
            try:
                return read_steps((await ask(self.first(subject), attempt=attempt)).text)
            except ValueError as error:
                problem = str(error)
        raise UnusableReply(f"{problem}, when asked {_ASKED} times")
