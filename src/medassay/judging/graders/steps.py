"""Phase 1 of G-Eval: a judge writes the evaluation steps once; a person reads them.

They are frozen.

A file of steps is TOML: `judge`, `with_path`, `prompts` (hash of what was asked, by language),
`reviewed_by` (who read and approved them) and the table `[steps]`, language → text. Nothing is
scored by steps that nobody has read.

Source: specification of G-Eval, "Phases".
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.json import record_as
from medassay.core.keyed import KeyedRecord
from medassay.core.records.prompt import Prompt
from medassay.core.reply.thoughts import strip_thoughts
from medassay.core.toml import load_toml
from medassay.errors import InputError
from medassay.judging.grader_text import LANGUAGES, GraderText
from medassay.judging.graders.g_eval import CRITERIA

_WRITING = GraderText("g_eval_writing")
_LINE = re.compile(r"^\s*\d{1,2}[.)]\s+\S")
_LONGEST = 6_000  # characters; nobody reads longer steps
_FEWEST = 3


class EvaluationSteps(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """Evaluation steps by language, who wrote and who read them."""

    KEYS: ClassVar = ("judge", "with_path", "prompts", "reviewed_by", "texts")
    judge: str
    with_path: bool
    prompts: Mapping[str, str]
    reviewed_by: str
    texts: Mapping[str, str]

    def to_toml(self) -> str:
        """Return the file of these steps."""
        lines = [
            (
                "# Evaluation steps of G-Eval, written by a judge. Read them, mend them if need be,"
                " and put"
            ),
            "# your name or role into reviewed_by; until then no run takes them.",
            f'judge = "{_escaped(self.judge)}"',
            f"with_path = {str(self.with_path).lower()}",
            f'reviewed_by = "{_escaped(self.reviewed_by)}"',
            "\n[prompts]",
            *(f'{language} = "{digest}"' for language, digest in self.prompts.items()),
            "\n[steps]",
            *(f'{language} = """\n{_escaped(text)}\n"""' for language, text in self.texts.items()),
        ]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return text for between three quotes: what TOML reads otherwise is escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c == "\n" or c.isprintable() else f"\\U{ord(c):08x}" for c in plain)


def writing_prompt(language: str, *, with_path: bool) -> Prompt:
    """Return what asks a judge for the steps in one language."""
    criteria = CRITERIA.render(language, with_path=with_path).strip()
    return _WRITING.prompt(f"steps.{language}", language, criteria=criteria)


def read_steps(reply: str) -> str:
    """Return the numbered lines of a reply, with what belongs to each.

    Raises
    ------
    ValueError
        If there are fewer than three, or the list is longer than a person would read.
    """
    lines = strip_thoughts(reply)[0].strip().splitlines()
    numbered = [n for n, line in enumerate(lines) if _LINE.match(line)]
    if len(numbered) < _FEWEST:
        raise ValueError(f"{len(numbered)} numbered steps; expected at least {_FEWEST}")
    step_lines = [line.rstrip() for line in lines[numbered[0] :] if not line.startswith("```")]
    text = "\n".join(step_lines).strip()
    if len(text) > _LONGEST:
        raise ValueError(f"{len(text)} characters of steps; expected at most {_LONGEST}")
    return text


def prompt_hashes(texts: Mapping[str, str], *, with_path: bool) -> dict[str, str]:
    """Return language → SHA-256 of what was asked."""
    return {
        language: sha256_hex(writing_prompt(language, with_path=with_path).encoded)
        for language in texts
    }


class _StepsFile(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a file of steps."""

    judge: str
    with_path: bool
    reviewed_by: str
    prompts: dict[str, Any]
    steps: dict[str, Any]


def load_steps(path: Path) -> EvaluationSteps:
    """Return the reviewed steps in a file.

    Raises
    ------
    InputError
        Naming the file, the field and what was expected; also where nobody has reviewed them.
    """
    try:
        data = load_toml(path)
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file of steps; `medassay study steps` writes one"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable as TOML: {error}") from None
    file = record_as(data, _StepsFile, str(path), InputError)
    for name, table in (("prompts", file.prompts), ("steps", file.steps)):
        _check_texts(f"{path}: [{name}]", table)
    if not file.reviewed_by.strip():
        raise InputError(
            f"{path}: 'reviewed_by' is empty; read the steps and say who did, before a run takes"
            " them"
        )
    texts = {language: text.strip() for language, text in file.steps.items()}
    if file.prompts != prompt_hashes(texts, with_path=file.with_path):
        raise InputError(
            f"{path}: [prompts]: the steps were written for other criteria than those of today;"
            " have them written and reviewed anew with `medassay study steps`"
        )
    for language, text in texts.items():
        if len(text) > _LONGEST:
            raise InputError(
                f"{path}: [steps] {language}: {len(text)} characters; at most {_LONGEST}"
            )
    return EvaluationSteps(
        judge=file.judge,
        with_path=file.with_path,
        prompts=file.prompts,
        reviewed_by=file.reviewed_by,
        texts=texts,
    )


def _check_texts(where: str, table: Mapping[str, Any]) -> None:
    languages = ", ".join(LANGUAGES)
    if not table:
        raise InputError(f"{where}: empty; expected text for one of {languages}")
    for language, text in table.items():
        if language not in LANGUAGES or not isinstance(text, str) or not text.strip():
            raise InputError(f"{where} {language}: expected text for one of {languages}")
