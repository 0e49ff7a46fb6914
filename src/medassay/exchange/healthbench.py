"""HealthBench results of others → a sealed run: answers with the criterion verdicts given for them.

A line is that of the bank (`bank/loaders/healthbench.py`) with `prompt_response` (turns) and
`responses`: for each criterion the judge's `response_dict` (`criteria_met`, `explanation`), as a
list or its text, as the HealthBench evaluation writes it. The verdicts are taken as given; scores
follow from them.
"""

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from medassay.bank.builder import Cell, read_records
from medassay.bank.check import build_item, check_record
from medassay.bank.loaders.healthbench import DOMAIN, RatedConversation, record_of
from medassay.bank.serialize import item_record
from medassay.core.canonical import content_hash, sha256_hex
from medassay.core.files import write_lines
from medassay.core.json import storable
from medassay.core.records.item import Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.trial import TrialKey
from medassay.core.records.verdict import CriterionVerdict, Verdict
from medassay.errors import InputError
from medassay.exchange.imported import (
    ImportSource,
    file_digest,
    import_manifest,
    imported_answer,
    imported_trial,
    imported_verdict,
    new_run,
    seal_import,
    write_trials,
)
from medassay.kinds.criteria.grader import CriteriaBody, CriteriaGrader
from medassay.kinds.criteria.tasks import RUBRIC
from medassay.runner.manifest import grader_entry
from medassay.runner.revisions import revision_ids, revisions
from medassay.storage.run import Run

_LONGEST = 2_000_000  # characters of one answer's verdicts
_UNREADABLE = (
    msgspec.ValidationError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
GIVEN = "given"  # the judge whose verdicts came with the file


class JudgedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One line: an item, the answer to it, and what was said of it."""

    item: Item
    text: str
    verdict: Verdict
    model: str = ""
    where: str = ""

    @property
    def place(self) -> TrialKey:
        """Return the key of the trial that the answer becomes."""
        return (DOMAIN, self.model, "zero_shot", "solo", self.item.id, 0)


class _Decision(msgspec.Struct):
    criteria_met: bool
    explanation: Cell = ""


class _Response(msgspec.Struct):
    points: int | float
    response_dict: _Decision


class _ModelTurn(msgspec.Struct):
    role: Literal["assistant"]
    content: str | None  # null is no answer


class _JudgedConversation(RatedConversation, kw_only=True):
    responses: str | list[_Response]
    prompt_response: list[_ModelTurn] | None = None
    score: Cell = None


def import_healthbench(
    files: Sequence[Path],
    *,
    models: Sequence[str] = (),
    runs: Path | None = None,
    to: Path | None = None,
) -> Run:
    """Return the sealed run made from files of HealthBench results, each of one model.

    Parameters
    ----------
    files : JSON Lines, or folders of these at any depth
    models : the names under which the answers are published, one a file; without any they are
        called as their files, which do not say it
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming the file, the row and what was expected; nothing is left half-written.
    """
    paths = [file for place in files for file in _files(place)]
    if any(not model.strip() for model in models):
        raise InputError("--model: empty; name the model that gave the answers")
    names = [*models] or [file.stem for file in paths]
    if len(names) != len(paths):
        raise InputError(
            f"--model: {len(names)} for {len(paths)} files ({', '.join(f.name for f in paths)});"
            " name one for each, or none: then they are called as their files"
        )
    for first, other in pairwise(sorted(names)):
        if first == other:
            raise InputError(f"two files are of model '{first}'; name each with --model")
    digests = [file_digest(file) for file in paths]
    source = ImportSource(
        file=paths[0],
        digest=digests[0] if len(paths) == 1 else sha256_hex("".join(digests).encode()),
        task=RUBRIC.name,
        limits="Imported answers: how they were asked for is known to the file's maker.",
        title="" if len(paths) == 1 else f"{paths[0].stem} and {len(paths) - 1} more",
    )
    return new_run(
        [source.digest, names[0] if len(names) == 1 else names],
        lambda folder, name: _fill(
            folder, source, dict(zip(names, paths, strict=True)), name, digests
        ),
        runs=runs,
        to=to,
    )


def _files(path: Path) -> list[Path]:
    """Return a file, or the JSON Lines of a folder at any depth."""
    if not path.is_dir():
        return [path]
    paths = sorted(path.rglob("*.jsonl"))
    if not paths:
        raise InputError(f"{path}: holds no *.jsonl, at any depth; expected HealthBench results")
    return paths


def read_healthbench(path: Path) -> Iterator[JudgedAnswer]:
    """Yield every judged answer of a file.

    Raises
    ------
    InputError
        Naming the row that is not of this form.
    """
    for number, row in enumerate(read_records(path), 1):
        where = f"{path.name} row {number}"
        try:
            line = msgspec.convert(row, _JudgedConversation)
            responses = _responses(line)
        except _UNREADABLE as error:
            raise InputError(
                f"{where}: expected prompt, prompt_id, example_tags, rubrics (criterion, points,"
                " tags), prompt_response and responses with points and response_dict.criteria_met;"
                f" {error}"
            ) from None
        record = record_of(line)
        if record is None or len(responses) != len(line.rubrics):
            raise InputError(
                f"{where}: {len(responses)} verdicts for {len(line.rubrics)} criteria; expected one"
                " for each, a question, and a criterion with points above 0"
            )
        if line.prompt_response is None:
            raise InputError(
                f"{where}: verdicts without the answer; expected it in prompt_response, as"
                ' [{"role": "assistant", "content": "…"}]'
            )
        text = "\n\n".join(turn.content or "" for turn in line.prompt_response)
        record |= {"kind": "public", "source": "HealthBench"}
        check_record(record, where, {DOMAIN})
        verdicts = [
            _verdict_of(f"c{at}", response.response_dict)
            for at, response in enumerate(responses, 1)
            if response.points  # one without points is no criterion of the item
        ]
        judged = JudgedAnswer(
            item=build_item(record),
            text=text,
            verdict=Verdict(valid=True, body=CriteriaBody(criteria=verdicts)),
            where=where,
        )
        _check_score(judged, line.score, where)
        yield judged


def _check_score(judged: JudgedAnswer, stored: Cell, where: str) -> None:
    """Refuse a file whose own score is not what its verdicts give."""
    score = CriteriaGrader().score(judged.item, judged.verdict)
    if not isinstance(stored, int | float) or isinstance(stored, bool) or score is None:
        return
    if not judged.text.strip():
        if stored:
            raise InputError(
                f"{where}: score {stored} for an empty answer, which meets no criterion and counts"
                " 0; expected the answer in prompt_response"
            )
    elif not math.isclose(stored, score, abs_tol=1e-6):
        raise InputError(f"{where}: score {stored}, but its verdicts give {score:.10g}")


def _verdict_of(criterion: str, decision: _Decision) -> CriterionVerdict:
    why = storable(str(decision.explanation))
    return CriterionVerdict(id=criterion, met=decision.criteria_met, why=why)


def _responses(line: _JudgedConversation) -> list[_Response]:
    """Return what was said of each criterion, which published files may hold as the text of a
    Python literal; the points beside it must be those of the rubric.
    """
    responses = line.responses
    if isinstance(responses, str):
        if len(responses) > _LONGEST:
            raise ValueError(f"{len(responses)} characters of verdicts")
        responses = msgspec.convert(ast.literal_eval(responses), list[_Response])
    for response, rubric in zip(responses, line.rubrics, strict=False):
        if response.points != rubric.points:
            raise ValueError("verdicts in another order than criteria")
    return responses


def _fill(
    folder: Path,
    source: ImportSource,
    files: Mapping[str, Path],
    name: str,
    digests: Sequence[str],
) -> None:
    judged = _read_all(source, files)
    records = _items_of(judged)
    judge = CriteriaGrader()
    write_lines(folder / "items.jsonl", (records[item] for item in sorted(records)))
    answers = [imported_answer(judged_.item, judged_.text, "text") for judged_ in judged]
    trials = (
        imported_trial(judged_.place, judged_.text, answer.outcome, answer.value, answer.reason)
        for judged_, answer in zip(judged, answers, strict=True)
    )
    write_trials(folder, trials)
    verdicts = (
        imported_verdict(judged_.place, GIVEN, judged_.item, judge, judged_.verdict, given=True)
        for judged_, answer in zip(judged, answers, strict=True)
        if answer.outcome == "answered"
    )
    write_lines(folder / "verdicts.jsonl", verdicts)
    logs = [
        {"file": file.name, "sha256": digest, "model": model}
        for (model, file), digest in zip(files.items(), digests, strict=True)
    ]
    more: dict[str, Any] = {"logs": logs} if len(logs) > 1 else {}
    manifest = import_manifest(
        source,
        domains=[DOMAIN],
        models=sorted(files),
        settings=["zero_shot"],
        n_items=len(records),
        content=content_hash(records.values()),
        **more,
    )
    assignment: ManifestObject = {
        "judges": [{"id": GIVEN, "model": "", "provider": "import", "family": "unknown"}],
        "bench": {model: [GIVEN] for model in sorted(files)},
        **grader_entry({DOMAIN: judge}),
        "revisions": revision_ids(revisions(RUBRIC, [judge])),
    }
    seal_import(folder, name, {**manifest, **assignment}, RUBRIC, {DOMAIN: judge})


def _read_all(source: ImportSource, files: Mapping[str, Path]) -> list[JudgedAnswer]:
    """Return the answers of all files by model and item, each once."""
    judged = sorted(
        (
            replace(judged_answer, model=model)
            for model, file in files.items()
            for judged_answer in read_healthbench(file)
        ),
        key=lambda judged: (judged.model, judged.item.id),
    )
    if not judged:
        raise InputError(f"{source.file.name}: no rows")
    for judged_, other in pairwise(judged):
        if (judged_.model, judged_.item.id) == (other.model, other.item.id):
            raise InputError(f"{other.where}: prompt_id '{judged_.item.id}' occurs twice")
    return judged


def _items_of(judged: Sequence[JudgedAnswer]) -> dict[str, ItemObject]:
    """Return the items by id; refuse one that asks something else in another file."""
    records: dict[str, ItemObject] = {}
    for judged_ in judged:
        record = item_record(judged_.item)
        if records.setdefault(judged_.item.id, record) != record:
            raise InputError(
                f"{judged_.where}: prompt_id '{judged_.item.id}' asks something else, or has other"
                " criteria, than in another file; import files of one benchmark together"
            )
    return records
