"""Ranked diagnoses of others → a sealed run, from the CSV files of Kernel29.

Two forms are known. A table of labels has a row for each diagnosis (`patient_id`, `model_name`, `prompt_name`,
`golden_diagnosis`, `golden_diagnosis_severity`, `rank`, `differential_diagnosis`, and the severity and
relationship that a judge gave): its labels are taken as given. Files `diagnoses_<bench>_<model>.csv` hold the
raw reply of a model to each case (`GT`, `Diagnosis 1`): lists are read from them, and names compared by rule.
"""

import ast
import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from medassay.answer.catalog import PARSERS
from medassay.answer.parse import read_answer
from medassay.bank.draft import need_columns, read_csv
from medassay.core.canonical import canonical, short_hash
from medassay.core.diagnosis import EXACT, RELATIONS, SEVERITY_MAPS, Diagnosis
from medassay.core.item import Item
from medassay.core.model import ModelSpec
from medassay.core.plan import DdxRules
from medassay.core.trial import Completion, Prompt
from medassay.core.verdict import Case, Judge, Verdict
from medassay.errors import InputError
from medassay.exchange.imported import Source, file_digest, import_manifest, new_run
from medassay.judge.ddx import known_label
from medassay.runner.finish import finish, write_judged_scores, write_scores
from medassay.runner.judging import RULE, Answers, Bench, verdict_fields
from medassay.runner.manifest import bench_entry
from medassay.score.names import Matching
from medassay.storage.run import Run, create_run
from medassay.task.ddx import DDX, DDX_NAMES, remembered_rules
from medassay.task.judged import judges_of
from medassay.task.scoring import RunItems
from medassay.task.task import Task

_LABELS = {
    "patient_id",
    "model_name",
    "golden_diagnosis",
    "rank",
    "differential_diagnosis",
    "differential_diagnosis_severity_name",
    "differential_diagnosis_semantic_relationship_name",
}
_RAW = {"GT", "Diagnosis 1"}
_FILE = re.compile(r"diagnoses_(?P<bench>(?:[A-Z0-9]+_)*[A-Z0-9]+)_(?P<model>[^A-Z].*)\Z")
_FAILED = ("", "ERROR")  # what a row holds whose call failed
_LONGEST = 200_000  # characters of a reply
_MOST_RANK = 1000
_NOTHING = ("", "null", "none", "nan", "na", "n/a")
_DISAGREEMENTS = 200  # that a run remembers
GIVEN = ModelSpec(id="given", provider="import", family="unknown")


@dataclass(frozen=True, kw_only=True)
class ListedCase:
    """One list: whose it is, of which case, and what came with it."""

    domain: str
    model: str
    setting: str
    item: str
    text: str
    failed: bool = False
    labels: tuple[Diagnosis, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lists:
    """What was read: items by (domain, id), lists, how many cases had no golden diagnosis."""

    task: Task
    items: Mapping[tuple[str, str], Mapping[str, Any]]
    lists: Sequence[ListedCase]
    dropped: int = 0


def import_ddx(
    path: Path,
    *,
    rules: DdxRules | None = None,
    runs: Path | None = None,
    to: Path | None = None,
) -> Run:
    """Return the sealed run made from ranked diagnoses; no model is asked.

    Parameters
    ----------
    path : a table of labels, a file of raw replies, or a folder of these files
    rules : how lists are scored and cases aggregated; `names` are read from where one stands
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming file, row, column and what was expected; nothing is left half-written.
    """
    rules = rules or DdxRules()
    if (problem := rules.problem()) is not None:
        raise InputError(problem)
    files = _files(path)
    digest = sha256("".join(file_digest(file) for file in files).encode()).hexdigest()
    found = _labelled(files[0]) if _is_labels(files[0]) else _raw(files)
    source = Source(
        file=path,
        digest=digest if len(files) > 1 else file_digest(files[0]),
        task=found.task.name,
        limits="Imported lists: how they were asked for is known to the files' maker.",
    )
    return new_run(
        [source.digest, rules.to_dict()],
        lambda folder, name: _fill(folder, name, source, found, rules),
        runs=runs or Path("runs"),
        to=to,
    )


def names_against_labels(
    lists: Iterable[ListedCase],
    golden: Mapping[tuple[str, str], Sequence[str]],
    matching: Matching,
) -> dict[str, Any]:
    """Return how far names compared by rule agree with the Exact Synonym of a judge.

    Returns
    -------
    dict
        both, names_only, judge_only, neither (counts of labels), and the disagreements, at most 200.
    """
    counts = {"both": 0, "names_only": 0, "judge_only": 0, "neither": 0}
    differing: list[dict[str, Any]] = []
    for one in lists:
        for label in one.labels:
            if label.relation is None:
                continue
            names = golden[one.domain, one.item]
            rule, exact = matching.rule(label.name, names), label.relation == EXACT
            kind = ("both" if exact else "names_only") if rule else ""
            kind = kind or ("judge_only" if exact else "neither")
            counts[kind] += 1
            if kind in ("names_only", "judge_only") and len(differing) < _DISAGREEMENTS:
                differing.append(
                    {
                        "item": one.item,
                        "model": one.model,
                        "rank": label.rank,
                        "golden": names[0],
                        "name": label.name,
                        "judge": label.relation,
                        "rule": rule,
                    }
                )
    return {**counts, "disagreements": differing}


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    found = sorted(path.glob("diagnoses_*.csv")) or sorted(path.glob("*labels*.csv"))[:1]
    if not found:
        raise InputError(
            f"{path}: holds neither diagnoses_*.csv nor a table of labels (*labels*.csv)"
        )
    return found


def _is_labels(file: Path) -> bool:
    for row in read_csv(file):
        return need_columns(file, row, _LABELS, _RAW) == 0
    raise InputError(f"{file.name}: no rows below the header")


def _labelled(file: Path) -> Lists:
    """Return the lists in a table of labels, each with its labels as given."""
    items: dict[tuple[str, str], dict[str, Any]] = {}
    listed: dict[tuple[str, str, str, str], list[Diagnosis]] = {}
    for number, row in enumerate(read_csv(file), 2):
        where = f"{file.name} row {number}"
        domain = row.get("bench_name") or "ddx"
        item = {
            "id": f"patient-{_text(row, 'patient_id', where)}",
            "domain": domain,
            "kind": "public",
            "answer_type": "open",
            "diagnoses": [_text(row, "golden_diagnosis", where)],
        }
        severity = _severity(row.get("golden_diagnosis_severity") or "", where)
        item |= {} if severity is None else {"severity": severity}
        key = (domain, str(item["id"]))
        if items.setdefault(key, item) != item:
            raise InputError(
                f"{where}: case '{row['patient_id']}' has another golden diagnosis or severity in an "
                "earlier row"
            )
        model, prompt = _text(row, "model_name", where), row.get("prompt_name") or "zero_shot"
        place = (domain, model, prompt, key[1])
        found = listed.setdefault(place, [])
        rank = _rank(row["rank"], where)
        if rank in {one.rank for one in found}:
            raise InputError(f"{where}: a second row for rank {rank} of this list")
        found.append(
            Diagnosis(
                rank=rank,
                name=_text(row, "differential_diagnosis", where),
                relation=_relation(
                    row["differential_diagnosis_semantic_relationship_name"], where
                ),
                relation_by="given",
                severity=_severity(row["differential_diagnosis_severity_name"], where),
                severity_by="given",
            )
        )
    lists = [
        _with_labels(place, sorted(found, key=lambda one: one.rank))
        for place, found in sorted(listed.items())
    ]
    return Lists(task=DDX, items=items, lists=lists)


def _with_labels(place: tuple[str, str, str, str], labels: list[Diagnosis]) -> ListedCase:
    domain, model, setting, item = place
    text = canonical([{"rank": one.rank, "name": one.name} for one in labels]).decode()
    return ListedCase(
        domain=domain, model=model, setting=setting, item=item, text=text, labels=tuple(labels)
    )


def _raw(files: Sequence[Path]) -> Lists:
    """Return the raw replies of one or several models to the same cases."""
    items: dict[tuple[str, str], dict[str, Any]] = {}
    lists: list[ListedCase] = []
    without: set[tuple[str, str]] = set()
    for file in files:
        named = _FILE.match(file.stem)
        domain = named["bench"].lower() if named else "ddx"
        model = named["model"] if named else file.stem
        for number, row in enumerate(read_csv(file)):
            where = f"{file.name} row {number + 2}"
            need_columns(file, row, _RAW)
            golden = _golden(row["GT"], where)
            key = (domain, f"row-{number:04}")
            if not golden:
                without.add(key)
                continue
            item = {"id": key[1], "domain": domain, "kind": "public", "answer_type": "open"}
            known = items.setdefault(key, {**item, "diagnoses": golden})
            if known["diagnoses"] != golden or key in without:
                raise InputError(
                    f"{where}: GT differs from that of the same row in another file"
                )
            reply = row["Diagnosis 1"]
            if len(reply) > _LONGEST:
                raise InputError(
                    f"{where}: {len(reply)} characters; expected at most {_LONGEST}"
                )
            lists.append(
                ListedCase(
                    domain=domain,
                    model=model,
                    setting="zero_shot",
                    item=key[1],
                    text=reply,
                    failed=reply.strip() in _FAILED,
                )
            )
    if not lists:
        raise InputError(f"{files[0].name}: no row with a golden diagnosis")
    return Lists(task=DDX_NAMES, items=items, lists=lists, dropped=len(without))


def _text(row: Mapping[str, str], column: str, where: str) -> str:
    value = (row[column] or "").strip()
    if not value:
        raise InputError(f"{where}: '{column}' is empty; expected text")
    return value


def _rank(text: str, where: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text.strip()) or not 1 <= int(text) <= _MOST_RANK:
        raise InputError(f"{where}: 'rank' is '{text:.40}'; expected a whole number from 1")
    return int(text)


def _severity(text: str, where: str) -> str | None:
    return _label(text, SEVERITY_MAPS["published"].levels, "severity", where)


def _relation(text: str, where: str) -> str | None:
    return _label(text, RELATIONS, "relationship", where)


def _label(text: str, known: Iterable[str], what: str, where: str) -> str | None:
    """Return a label, None for what says that there is none; NULL is a word in these files."""
    if text.strip().casefold() in _NOTHING:
        return None
    label = known_label(text, known)
    if label is None:
        raise InputError(f"{where}: {what} '{text:.40}'; expected {', '.join(known)}, or NULL")
    return label


def _golden(text: str, where: str) -> list[str]:
    """Return the names in a cell that holds a Python list; an empty list names none."""
    try:
        value = ast.literal_eval(text) if len(text) < _LONGEST else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(isinstance(n, str) and n.strip() for n in value):
        raise InputError(f"{where}: 'GT' is '{text:.40}'; expected a list of names in brackets")
    return list(dict.fromkeys(value))


def _fill(folder: Path, name: str, source: Source, found: Lists, rules: DdxRules) -> None:
    golden = [item["diagnoses"] for item in found.items.values()]
    remembered = remembered_rules(rules, golden, Path.cwd())
    more: dict[str, Any] = {"cases_without_golden_diagnosis": found.dropped}
    if found.task is DDX:
        names = {key: item["diagnoses"] for key, item in found.items.items()}
        matching = Matching(remembered["synonyms"])
        more["names_against_labels"] = names_against_labels(found.lists, names, matching)
    models = sorted({one.model for one in found.lists})
    manifest = import_manifest(
        source,
        domains=sorted({domain for domain, _ in found.items}),
        models=models,
        settings=sorted({one.setting for one in found.lists}),
        n_items=len(found.items),
        **more,
    )
    judges = judges_of(found.task, {**manifest, "ddx": remembered})
    spec = GIVEN if found.task is DDX else RULE
    bench = Bench(
        judges=judges,
        seats=dict.fromkeys(models, (spec,)),
        seed=0,
        rules={"ddx": remembered},
    )
    manifest["methodology"] = short_hash([manifest["methodology"], remembered])
    run = create_run(
        folder.parent, folder.name, {**manifest, **bench_entry(bench), "run": name}
    )
    with (run.path / "items.jsonl").open("wb") as items:
        for _, listed in sorted(found.items.items()):
            items.write(canonical(listed) + b"\n")
    run_items = RunItems(run.path, run.manifest["domains"])
    with (
        (run.path / "trials.jsonl").open("wb") as trials,
        (run.path / "timings.jsonl").open("wb") as timings,
    ):
        for one in sorted(found.lists, key=_order):
            trial = _trial(one, run_items.get(one.domain, one.item))
            trials.write(canonical(trial) + b"\n")
            timings.write(b"{}\n")
    write_scores(run, found.task, run_items)
    answers = Answers(run, run_items, found.task)
    labels = {_order(one): one.labels for one in found.lists}
    with (run.path / "verdicts.jsonl").open("wb") as verdicts:
        for number in answers.open:
            trial = answers.trial(number)
            item = run_items.get(trial["domain"], trial["item"])
            judge = judges[trial["domain"]]
            place = tuple(trial[k] for k in ("domain", "model", "setting", "item"))
            record = (
                _given(trial, item, judge, labels[place])
                if found.task is DDX
                else _by_rule(trial, answers.case(trial)[0], judge)
            )
            verdicts.write(canonical(record) + b"\n")
    write_judged_scores(run, answers, judges, 1)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    finish(run, found.task, run_items, [], sealed_at=now)


def _order(one: ListedCase) -> tuple[str, str, str, str]:
    return (one.domain, one.model, one.setting, one.item)


def _trial(one: ListedCase, item: Item) -> dict[str, Any]:
    record: dict[str, Any] = {
        "schema_version": 1,
        "domain": one.domain,
        "model": one.model,
        "setting": one.setting,
        "mode": "solo",
        "item": one.item,
        "repeat": 0,
    }
    if one.failed:
        said = one.text.strip()
        reason = f"the file says {said}" if said else "the file holds no reply"
        return record | {"outcome": "failed", "value": None, "reason": reason}
    prompt = Prompt(item_id=one.item, messages=(), encoded=b"", template="")
    answer = read_answer(item, prompt, Completion(text=one.text), PARSERS["diagnoses"])
    return record | {
        "text": one.text,
        "finish": "stop",
        "outcome": answer.outcome,
        "value": answer.value,
        "reason": answer.reason,
    }


def _given(
    trial: dict[str, Any], item: Item, judge: Judge, labels: Sequence[Diagnosis]
) -> dict[str, Any]:
    """Return the verdict that came with a list."""
    body = {
        "golden": item.diagnoses[0],
        "golden_severity": item.severity,
        "golden_severity_by": "bank" if item.severity else "",
        "diagnoses": [_told(one).to_dict() for one in labels],
        "severities_read": any(one.severity for one in labels) or not labels,
        "strange_ids": 0,
    }
    return _verdict(trial, GIVEN.id, item, judge, Verdict(valid=True, body=body), given=True)


def _told(one: Diagnosis) -> Diagnosis:
    """Return a diagnosis without a source for labels that it has not."""
    return replace(
        one,
        relation_by=one.relation_by if one.relation else "",
        severity_by=one.severity_by if one.severity else "",
    )


def _by_rule(trial: dict[str, Any], case: Case, judge: Judge) -> dict[str, Any]:
    step = judge.step([case], [])
    if isinstance(step, Prompt):
        raise TypeError("a rule asks nobody")
    record = _verdict(trial, RULE.id, case.item, judge, step[0])
    return record | {"prompt_sha256": [], "responses": [], "replies": []}


def _verdict(
    trial: dict[str, Any], name: str, item: Item, judge: Judge, verdict: Verdict, **more: Any
) -> dict[str, Any]:
    kept = ("schema_version", "domain", "model", "setting", "mode", "item", "repeat")
    return {
        **{key: trial[key] for key in kept},
        "judge": name,
        "seat": 0,
        **more,
        "rubric": judge.id,
        **verdict_fields(verdict),
        "masked": 0,
        "cut": 0,
        "score": judge.score(item, verdict),
    }
