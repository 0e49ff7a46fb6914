"""Logs of Inspect (`.eval`, a zip of zstd JSON, or one `.json`), read without importing Inspect."""

import sys
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.json import record_as
from medassay.errors import InputError
from medassay.exchange.imported import ImportSource, file_digest
from medassay.exchange.prediction import (
    Prediction,
    PredictionFile,
    UnfinishedLog,
    lenient_json,
    number_or_none,
)

if sys.version_info >= (3, 14):
    import zipfile

    from compression import zstd
else:  # the zipfile of older Pythons cannot unpack zstd
    from backports import zstd
    from backports.zstd import zipfile

_LONGEST = 64 * 2**20  # bytes of one member, unpacked
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


class _Eval(msgspec.Struct):
    task: str
    model: str
    packages: dict[str, str] | None = None


class _Header(msgspec.Struct):
    eval: _Eval
    status: Any = None
    results: Any = None
    invalidated: Any = None


class _ScoreName(msgspec.Struct):
    name: str
    scorer: str | None = None


class _Results(msgspec.Struct):
    scores: list[_ScoreName] | None = None
    completed_samples: int | None = None


class _MessagePart(msgspec.Struct):
    """A part of a message; one that is a picture has no text."""

    text: str | None = None


_Content = str | list[str | _MessagePart] | None


class _Message(msgspec.Struct):
    content: _Content = None


class _InspectScore(msgspec.Struct):
    value: Any


class _Output(msgspec.Struct):
    completion: str | None = None


class _InspectSample(msgspec.Struct):
    id: str | int
    epoch: int
    input: str | list[_Message]
    choices: list[str] | None = None
    scores: dict[str, _InspectScore] | None = None
    output: _Output | None = None
    target: _Content = None


def recognises(path: Path) -> bool:
    """Return whether a file looks like a log of Inspect."""
    if path.suffix == ".eval":
        return path.is_file()
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
        file.seek(max(0, path.stat().st_size - 4096))
        end = file.read()  # sorted keys put "version" there
    return b'"eval"' in start and b'"version"' in start + end


def read(path: Path, *, scorer: str = "") -> PredictionFile:
    """Return the predictions of a log: the eval's task is the domain, epochs are repeats.

    Parameters
    ----------
    scorer : which score to take where a log has several; default: the first of its header

    Raises
    ------
    InputError
        When it is no finished log, or has no such score.
    """
    digest = file_digest(path)
    expected = f"{path}: no log of Inspect; expected 'eval' with task and model"
    header = record_as(_header(path), _Header, expected, InputError)
    spec = header.eval
    if header.status != "success":
        raise UnfinishedLog(path, f"its status is '{header.status}'")
    if header.invalidated:
        raise UnfinishedLog(path, "samples in it were marked as invalid")
    # A scorer that gives several values has a score of each name; samples file them under the
    # scorer.
    expected = f"{path}: no log of Inspect; expected results with scores"
    results = record_as(header.results or {}, _Results, expected, InputError)
    names = {score.name: score.scorer or score.name for score in results.scores or ()}
    if not names or (scorer and scorer not in names):
        listed = ", ".join(names) or "none"
        raise InputError(f"{path}: no score '{scorer}'; the log has {listed}")
    version = (spec.packages or {}).get("inspect_ai", "unknown")
    limits = f"Imported from Inspect {version}: asked, answered and scored there."
    source = ImportSource(file=path, digest=digest, task="closed", limits=limits)
    scorer_taken = scorer or next(iter(names))
    return PredictionFile(
        source=source,
        predictions=_predictions(
            path, spec, scorer_taken, names[scorer_taken], results.completed_samples or 0
        ),
        remembered={"harness": "inspect_ai", "version": version, "score": scorer_taken},
    )


def _header(path: Path) -> dict[str, Any]:
    if path.suffix == ".eval":
        with _archive(path) as archive:
            header = _member(archive, "header.json", path)
    else:
        header = lenient_json(path.read_bytes(), path.name)
    if not isinstance(header, dict):
        raise InputError(f"{path}: no log of Inspect; expected a JSON object")
    return header


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path}: no log of Inspect: {error}") from None


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> Any:
    """Return a member of an archive, parsed."""
    where = f"{path.name}/{name}"
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise InputError(f"{path}: holds no {name}; expected a finished log of Inspect") from None
    if info.file_size > _LONGEST:
        raise InputError(f"{where}: {info.file_size} bytes; expected at most {_LONGEST}")
    try:
        data = archive.read(info)
    except (
        zipfile.BadZipFile,
        zlib.error,
        zstd.ZstdError,
        NotImplementedError,  # another packing
        RuntimeError,  # encrypted
        OSError,
        EOFError,
        ValueError,
    ) as error:
        raise InputError(f"{where}: damaged: {error}") from None
    return lenient_json(data, where)


def _samples(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix != ".eval":
        samples = _header(path).get("samples") or []
        if not isinstance(samples, list):
            raise InputError(f"{path.name}: 'samples' is no list")
        for number, sample in enumerate(samples, 1):
            yield f"{path.name} sample {number}", sample
        return
    with _archive(path) as archive:
        for name in archive.namelist():
            if name.startswith("samples/") and name.endswith(".json"):
                yield f"{path.name}/{name}", _member(archive, name, path)


def _predictions(
    path: Path, spec: _Eval, name: str, scorer: str, n_completed: int
) -> Generator[Prediction, None, None]:
    scored = n_asked = 0
    for where, document in _samples(path):
        expected = f"{where}: no sample of Inspect; expected id, epoch, output and scores"
        sample = record_as(document, _InspectSample, expected, InputError)
        score = (sample.scores or {}).get(scorer)
        value = None if score is None else score.value
        if isinstance(value, dict):
            value = value.get(name)
        n_asked += 1
        scored += value is not None
        yield Prediction(
            where=where,
            domain=spec.task,
            model=spec.model,
            item=str(sample.id),
            repeat=sample.epoch - 1,
            text=(sample.output and sample.output.completion) or "",
            score=_value(value, where),
            question=_question(sample),
            reference=_text(sample.target),
        )
    if n_asked < n_completed:
        raise InputError(
            f"{path.name}: holds {n_asked} of the {n_completed} samples that its results are of;"
            " expected the whole log"
        )
    if n_asked and not scored:
        raise InputError(f"{path.name}: none of {n_asked} samples has score '{name}'")


def _value(value: Any, where: str) -> float | None:
    """Return a score of Inspect: a grade, a truth value or a number."""
    if isinstance(value, str):
        if value in _GRADES:
            return _GRADES[value]
        try:
            value = float(value)
        except ValueError:
            raise InputError(
                f"{where}: score '{value:.40}'; expected C, P, I, N or a number"
            ) from None
    return number_or_none(value, where)


def _question(sample: _InspectSample) -> str:
    question = sample.input
    if not isinstance(question, str):
        question = "\n\n".join(_text(message.content) or "" for message in question)
    choices = sample.choices or []
    return "\n".join([question, *(f"{chr(65 + n)}) {choice}" for n, choice in enumerate(choices))])


def _text(content: _Content) -> str | None:
    """Return text that may come in parts."""
    if content is None or isinstance(content, str):
        return content
    return "; ".join(part if isinstance(part, str) else part.text or "" for part in content)
