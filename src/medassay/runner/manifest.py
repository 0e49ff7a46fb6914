"""What a run was made with: banks, models, templates, code, packages, machine."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict

from medassay.core.canonical import canonical, sha256_hex, short_hash
from medassay.core.json import MOST_EXACT
from medassay.core.records.item import Bank
from medassay.core.records.manifest import Manifest
from medassay.core.records.manifest_object import BankObject, ManifestObject, MetricEntry
from medassay.core.records.plan import Plan
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.judging.assignment import JudgeAssignment
from medassay.judging.grader_text import before_revisions, hashed_id
from medassay.judging.queue import spot_check_graders
from medassay.model.connection import proxies_set
from medassay.model.embedded import packaged_weights
from medassay.prompt.render import load_part
from medassay.runner.ask import RequestConstant, request_constant, sampling_of
from medassay.runner.revisions import Revisions, applied_anew, raised, revision_ids, revisions
from medassay.runner.schedule import Schedule

_PACKAGES = (
    "aiohttp",
    "jinja2",
    "numpy",
    "pydantic",
    "regex",
    "rfc8785",
    "scipy",
    "torch",
    "transformers",
)


def run_identity(
    schedule: Schedule,
    banks: Sequence[Bank],
    assignment: JudgeAssignment | None = None,
    metrics: Mapping[str, MetricEntry] | None = None,
) -> ManifestObject:
    """Return what must be equal for a run to be resumed: plan, banks, models, templates, judges."""
    plan = schedule.plan.to_dict()
    if not schedule.plan.task and schedule.task.name != "closed":
        plan.pop("task", None)
    for name in ("budget", "engine"):  # a raised budget or another engine resumes the same run
        plan.pop(name, None)
    models = {name: spec.to_dict() for name, spec in sorted(schedule.specs.items())}
    return {
        "kind": "run",
        "plan": plan,
        "task": schedule.task.name,
        **tasks_entry(schedule.task),
        **own_entry(schedule.task),
        "banks": [bank_entry(bank) for bank in banks],
        "domains": schedule.domains,
        "models": models,
        "models_sha256": sha256_hex(canonical(models)),
        "template": schedule.template_ids,
        "methodology": methodology(schedule, assignment, metrics),
        "sampling": {
            name: sampling_of(spec, schedule.plan.seed).to_dict()
            for name, spec in sorted(schedule.specs.items())
        },
        **_reading(schedule),
        "max_cut_off": schedule.plan.max_cut_off,
        **({"fallback": schedule.fallback} if schedule.fallback else {}),
        **({"metrics": metrics} if metrics else {}),
        **looking_up(schedule),
        **({} if assignment is None else assignment_entry(assignment)),
        "revisions": _revisions(schedule, assignment),
    }


def _revisions(schedule: Schedule, assignment: JudgeAssignment | None) -> dict[str, list[str]]:
    graders = graders_in(assignment)
    return revision_ids(revisions(schedule.task, graders, forms=schedule.forms))


def tasks_entry(task: Task) -> ManifestObject:
    """Return which task asks which form, {} where one asks all."""
    return {"tasks": {form: part.name for form, part in task.parts.items()}} if task.parts else {}


def own_entry(task: Task) -> ManifestObject:
    """Return what a task takes from files of its user, {} where nothing."""
    return {} if task.own is None else {"own_code": task.own.to_dict()}


def graders_in(assignment: JudgeAssignment | None) -> list[Grader]:
    """Return the graders of an assignment, one for each domain."""
    return [] if assignment is None else list(assignment.graders.values())


def _reading(schedule: Schedule) -> ManifestObject:
    """Return the parsers of a task that once read replies otherwise; {} for all others."""
    task = schedule.task
    return {"readers": task.parsers} if task.parser_before else {}


def looking_up(schedule: Schedule) -> ManifestObject:
    """Return what prompts show besides the question and which tools are there, {} where there is
    nothing of it.
    """
    entry: ManifestObject = {}
    if schedule.contexts is not None and schedule.contexts.described:
        entry["retrieval"] = schedule.contexts.described
    if "tools" in schedule.plan.modes and schedule.plan.tools is not None:
        entry["tools"] = {
            "rules": schedule.plan.tools.to_dict(),
            "schema": short_hash(schedule.tools.decode()),
            "template": load_part("tools").id,
        }
    return entry


def assignment_entry(assignment: JudgeAssignment) -> ManifestObject:
    """Return who judged whom, and by which rubric, as a run remembers it."""
    return {
        "judges": [spec.to_dict() for _, spec in sorted(assignment.models.items())],
        "bench": {
            model: [spec.id for spec in seated] for model, seated in assignment.seats.items()
        },
        **grader_entry(assignment.graders),
        "audited": bool(spot_check_graders(assignment.graders)),
        **assignment.rules,
    }


def grader_entry(graders: Mapping[str, Grader]) -> ManifestObject:
    """Return by which grader the answers of each domain are judged, and the hashes of its
    prompts.
    """
    return {
        "rubrics": {domain: grader.id for domain, grader in graders.items()},
        "judge_prompts": {domain: list(grader.prompts) for domain, grader in graders.items()},
    }


def bank_entry(bank: Bank) -> BankObject:
    """Return a bank's card as a run remembers it."""
    return {
        "name": bank.name,
        "version": bank.version,
        "content_sha256": bank.content_hash,
        "title": bank.title,
        "licence": bank.licence,
        "limits": bank.limits,
        "domains": list(bank.domains),
        "may_leave": bank.may_leave,
        "contradiction_penalty": float(bank.card.get("contradiction_penalty", 1.0)),
        "items": len(bank.items),
        "created": bank.created,
        "kept": bank.kept,
        "dropped": bank.dropped,
        "changes": bank.changes,
        **({"reviews": bank.reviews} if bank.reviews else {}),
    }


def methodology(
    schedule: Schedule,
    assignment: JudgeAssignment | None = None,
    metrics: Mapping[str, MetricEntry] | None = None,
) -> str:
    """Return the hash of everything but bank and model that decides what a number means.

    Which models a run asks is no part of it: a further model joins the series of the others. How
    each is sampled stands in the manifest beside it (`sampling`), model by model.
    """
    plan = schedule.plan
    return short_hash(
        {
            "task": schedule.task.name,
            **tasks_entry(schedule.task),
            **own_entry(schedule.task),
            "metric": schedule.task.metric,
            "template": schedule.template_ids,
            "extraction": plan.extraction,
            # What stands in every methodology for parts at revision 1; only later ones are added.
            "parsers": before_revisions()["parsers"],
            "scorers": before_revisions()["scorers"],
            "shuffle_options": plan.shuffle_options,
            "few_shot_k": plan.few_shot_k,
            "seed": plan.seed if plan.seed <= MOST_EXACT else str(plan.seed),
            "tools": [],
            **({"demonstration": True} if plan.demonstration else {}),
            **_reading(schedule),
            **looking_up(schedule),
            "judges": [] if assignment is None else judging_entry(assignment, plan),
            "rank_rule": plan.rank_rule,
            "separation": plan.separation,
            **({"metrics": _hashed_metrics(metrics)} if metrics else {}),
            **raised_entry(_revisions(schedule, assignment)),
        }
    )


def _hashed_metrics(metrics: Mapping[str, MetricEntry]) -> dict[str, MetricEntry]:
    """Return the metrics as a methodology knows them: why one is unavailable changes no number, so
    each has the words that were hashed first.
    """
    return {
        name: {"unavailable": f"{name}: pip install 'medassay[metrics]'"}
        if "unavailable" in entry
        else entry
        for name, entry in metrics.items()
    }


def raised_entry(ids: Mapping[str, list[str]]) -> dict[str, dict[str, list[str]]]:
    """Return what a methodology says of parts beyond revision 1, {} where there are none.

    Parameters
    ----------
    ids : the parts as the manifest holds them
    """
    later = raised(ids)
    return {"revisions": later} if later else {}


def import_methodology(
    task: Task, ids: Mapping[str, list[str]], *, rank_rule: str, separation: str
) -> str:
    """Return the methodology of an import: how its answers are scored and ranked.

    Parameters
    ----------
    ids : the parts that score them, as the manifest holds them
    """
    return short_hash(
        {
            "task": task.name,
            **tasks_entry(task),
            "import": True,
            "scorers": before_revisions()["scorers"],
            "rank_rule": rank_rule,
            "separation": separation,
            **raised_entry(ids),
        }
    )


def rejudged_methodology(
    source: Manifest, task: Task, parts: Revisions, assignment: JudgeAssignment, plan: Plan
) -> str:
    """Return the methodology of a run whose answers are judged again.

    Parameters
    ----------
    source : of the run whose answers they are
    parts : what this code uses for them
    """
    later = raised_entry(applied_anew(parts)).values()
    return short_hash([source.methodology, task.name, judging_entry(assignment, plan), *later])


def rescored_methodology(
    source: Manifest, parts: Revisions, graders: Mapping[str, Grader], penalty: float | None
) -> str:
    """Return the methodology of a run whose answers are scored again.

    Parameters
    ----------
    source : of the run whose answers they are
    parts : what this code uses for them
    """
    scorers = before_revisions()["scorers"]
    rubrics = {domain: hashed_id(grader) for domain, grader in graders.items()} or None
    later = raised_entry(applied_anew(parts)).values()
    return short_hash([source.methodology, scorers, rubrics, penalty, *later])


class JudgingEntry(TypedDict):
    """Who judges by what, as a methodology knows it."""

    rubrics: dict[str, str]
    steps: Mapping[str, Any] | None
    judges: list[str]
    substitute: str
    models: dict[str, RequestConstant]


def judging_entry(assignment: JudgeAssignment, plan: Plan) -> JudgingEntry:
    """Return who judges by what, whichever models are judged and so whoever sat out."""
    entry = assignment_entry(assignment)
    requests = {
        name: request_constant(spec, sampling_of(spec, assignment.seed))
        for name, spec in sorted(assignment.models.items())
        if name in plan.judges
    }
    return {
        "rubrics": {domain: hashed_id(grader) for domain, grader in assignment.graders.items()},
        "steps": entry.get("steps"),
        "judges": sorted(plan.judges),
        "substitute": plan.substitute,
        "models": requests,
    }


def code_of_today() -> dict[str, str | None]:
    """Return version and commit of this code."""
    folder = Path(__file__).resolve().parents[3]
    return {"version": _version("medassay"), "commit": _commit(folder)}


def surroundings(*, packaged: bool = False) -> ManifestObject:
    """Return code version and commit, packages, and the machine.

    Parameters
    ----------
    packaged : whether weights that come as a package are asked: then their hash is told
    """
    # Through none of them anything is asked; that they were set may explain what could not be
    # reached.
    proxies: ManifestObject = {"proxies": proxies_set()} if proxies_set() else {}
    return {
        **proxies,
        **({"weights": packaged_weights()} if packaged else {}),
        "code": code_of_today(),
        "python": platform.python_version(),
        "packages": dict(_packages()),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "gpu": _gpu(),
        },
    }


@cache
def _packages() -> dict[str, str]:
    """Return the versions of the packages that may matter to a result and are installed."""
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = _version(name)
        except metadata.PackageNotFoundError:
            continue
    return packages


def _version(package: str) -> str:
    """Return the version of an installed package. `metadata.version` parses all of its metadata as
    an e-mail, a millisecond each.
    """
    text = metadata.distribution(package).read_text("METADATA") or ""
    stated = re.search(r"^Version: *(\S+)", text, re.MULTILINE)
    return metadata.version(package) if stated is None else stated[1]


@cache
def _commit(folder: Path) -> str | None:
    """Return the commit of a checkout, with "+" when files differ from it; None when installed.

    It is looked at once: what is committed while a process runs is not the code that it runs.
    """
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return None
    status = ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch"]
    lines = _output([*status, "--no-ahead-behind", "--untracked-files=no"]).splitlines()
    head = "# branch.oid "
    commit = next((line.removeprefix(head) for line in lines if line.startswith(head)), None)
    changed = any(not line.startswith("#") for line in lines)
    return None if commit in {None, "(initial)"} else f"{commit}{'+' if changed else ''}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), ""
    )


@cache
def _gpu() -> str | None:
    if shutil.which("nvidia-smi") is None:
        return None
    return (
        _output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) or None
    )


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
