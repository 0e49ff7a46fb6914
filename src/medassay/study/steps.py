"""Having a judge write the evaluation steps of G-Eval, once."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from medassay.errors import IncompleteError, InputError
from medassay.judge.steps import Steps, prompt_hashes, read_steps, writing_prompt
from medassay.judge.text import LANGUAGES
from medassay.model.spec import load_models, named
from medassay.runner.asking import Asker
from medassay.runner.bridge import run_async
from medassay.runner.providing import provide
from medassay.runner.spending import spending
from medassay.storage.response import ResponseStore

_ASKED = 3  # times at most, for each language


def write_steps(
    judge: str,
    models_file: Path,
    languages: Sequence[str],
    *,
    with_path: bool,
    secrets: Mapping[str, str],
    workspace: Path,
) -> Steps:
    """Return the steps that a judge writes, reviewed by nobody yet.

    Raises
    ------
    InputError
        When the judge or a language is unknown.
    IncompleteError
        When the judge replies without a list of steps.
    """
    spec = named(load_models(models_file), judge, "--judge:", models_file)
    strange = [language for language in languages if language not in LANGUAGES]
    if strange or not languages:
        raise InputError(
            f"--languages: {', '.join(strange) or 'none'}; known are {', '.join(LANGUAGES)}"
        )
    texts: dict[str, str] = {}
    with (
        ResponseStore(workspace / "responses") as store,
        spending(workspace, "studies/steps", {judge: spec}, store) as purse,
    ):
        asker = Asker({judge: spec}, {judge: provide(spec, secrets)}, store, purse, seed=0)

        async def ask_all() -> None:
            for language in languages:
                prompt, problem = writing_prompt(language, with_path=with_path), ""
                for attempt in range(_ASKED):
                    reply = await asker.ask(spec, prompt, {"study": "steps"}, attempt=attempt)
                    if reply is None:
                        raise IncompleteError(
                            f"{asker.tally.over_budget}; no steps were written"
                        )
                    try:
                        texts[language] = read_steps(reply.completion.text)
                        break
                    except ValueError as error:
                        problem = str(error)
                else:
                    raise IncompleteError(
                        f"judge '{judge}' wrote no usable steps in '{language}' when asked {_ASKED} "
                        f"times: {problem}"
                    )

        run_async(lambda: asker.during(ask_all()))
    return Steps(
        judge=judge,
        with_path=with_path,
        prompts=prompt_hashes(texts, with_path=with_path),
        reviewed_by="",
        texts=texts,
    )
