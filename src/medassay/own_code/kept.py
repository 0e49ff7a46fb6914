"""The text of own code beside the run that it made: kept, and executed again only where told to."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.records.own_code import CodePart, OwnCode, Role
from medassay.core.records.task import Task
from medassay.errors import InputError, IntegrityError

FOLDER = "own_code"  # of a run; no part of what is sealed, whose manifest holds the hashes


def keep(run: Path, code: OwnCode | None) -> None:
    """Write the files of own code beside a run."""
    for part in _files(code):
        folder = run / FOLDER
        folder.mkdir(exist_ok=True)
        (folder / _name(part)).write_bytes(part.text)


def copy_kept(source: Path, run: Path) -> None:
    """Copy the files of own code from one run to another, where there are any."""
    for path in sorted((source / FOLDER).glob("*.py")):
        (run / FOLDER).mkdir(exist_ok=True)
        (run / FOLDER / path.name).write_bytes(path.read_bytes())


def is_kept(task: Task, run: Path) -> bool:
    """Return whether the text of a task's own code is beside a run."""
    return all((run / FOLDER / _name(part)).is_file() for part in _files(task.own))


def recalled(task: Task, run: Path) -> Task:
    """Return the task of a run with its own code at hand, so that it runs.

    Raises
    ------
    InputError
        When the text of the code is not beside the run.
    IntegrityError
        When it is not the text that made the run.
    """
    code = task.own
    if code is None:
        return task
    parts = {role: _recalled(part, run) for role, part in code.parts.items()}
    return msgspec.structs.replace(task, own=replace(code, parts=parts, runs=True))


def not_executed(task: Task) -> Mapping[Role, CodePart]:
    """Return the parts of own code that may not be executed here, by role."""
    return {} if task.own is None or task.own.runs else task.own.parts


def trusted(task: Task, run: Path, *, trust_code: bool) -> Task:
    """Return the task of a run for computing its numbers anew.

    Raises
    ------
    InputError
        When these come from own code and nobody said that it may be executed.
    """
    if task.own is None or not task.own.parts:
        return task
    if trust_code is not True:  # a text such as "no" is no consent
        names = ", ".join(part.shown for part in task.own.parts.values())
        raise InputError(
            f"run {run.name}: made with own code {names}, which would be executed here; read it in"
            f" {FOLDER}/ of the run, then say --trust-code"
        )
    return recalled(task, run)


def _files(code: OwnCode | None) -> Iterator[CodePart]:
    for part in code.parts.values() if code is not None else ():
        if not part.package:
            yield part


def _name(part: CodePart) -> str:
    """Return the file of a part: two files of one name may lie in different folders."""
    return f"{part.sha256[:12]}-{part.file}"


def _recalled(part: CodePart, run: Path) -> CodePart:
    if part.package:
        return part
    if not part.file.replace(".py", "").replace("_", "").replace("-", "").isalnum():
        raise IntegrityError(f"manifest.json: own code in a file called '{part.file[:60]}'")
    path = run / FOLDER / _name(part)
    try:
        text = path.read_bytes()
    except OSError:
        raise InputError(
            f"run {run.name}: own code {part.shown} is not beside it ({FOLDER}/{path.name});"
            " whoever made the run has it"
        ) from None
    if sha256_hex(text) != part.sha256:
        raise IntegrityError(f"{FOLDER}/{path.name}: not the code that made the run")
    return replace(part, text=text)


def check_kept(run: Path, code: OwnCode | None) -> str | None:
    """Return the first file beside a run that is not the code that its manifest names, None where
    all are.
    """
    expected = {_name(part): part.sha256 for part in _files(code)}
    for path in sorted((run / FOLDER).glob("*")):
        if expected.get(path.name) != sha256_hex(path.read_bytes()):
            return f"{FOLDER}/{path.name}: not code that the manifest names"
    return None
