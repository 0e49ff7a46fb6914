"""What a run was made with: banks, models, templates, code, packages, machine."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import medassay.answer
from medassay.core import json_reply, lenient_json, reading, record_reply, refusal
from medassay.core.canonical import canonical, sha256_hex, short_hash
from medassay.core.item import Bank
from medassay.core.plan import Plan
from medassay.model.connection import proxies_set
from medassay.model.embedded import packaged_weights
from medassay.prompt.render import load_part
from medassay.runner.asking import request_constant, sampling_of
from medassay.runner.bench import Bench
from medassay.runner.docket import auditors
from medassay.runner.schedule import Schedule
from medassay.score import likeliest, medication, structure, text
from medassay.score.catalog import SCORERS
from medassay.task.text import WHOLE_REPLIES

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
    bench: Bench | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what must be equal for a run to be resumed: plan, banks, models, templates, judges."""
    plan = schedule.plan.to_dict()
    for name in ("budget", "engine"):  # a raised budget or another engine resumes the same run
        plan.pop(name, None)
    models = {name: spec.to_dict() for name, spec in sorted(schedule.specs.items())}
    return {
        "kind": "run",
        "plan": plan,
        "task": schedule.task.name,
        "banks": [bank_entry(bank) for bank in banks],
        "domains": schedule.domains,
        "models": models,
        "models_sha256": sha256_hex(canonical(models)),
        "template": schedule.template_ids,
        "methodology": methodology(schedule, bench, metrics),
        "sampling": {
            name: sampling_of(spec, schedule.plan.seed).to_dict()
            for name, spec in sorted(schedule.specs.items())
        },
        **_reading(schedule),
        "max_cut_off": schedule.plan.max_cut_off,
        **({"fallback": schedule.fallback} if schedule.fallback else {}),
        **({"metrics": metrics} if metrics else {}),
        **looking_up(schedule),
        **({} if bench is None else bench_entry(bench)),
    }


def _reading(schedule: Schedule) -> dict[str, Any]:
    """Return which parsers read replies, of tasks that once read them otherwise; {} of all others."""
    task = schedule.task
    return {"readers": task.parsers} if task.name in WHOLE_REPLIES else {}


def looking_up(schedule: Schedule) -> dict[str, Any]:
    """Return what prompts show besides the question and which tools are there, {} where there is nothing of it."""
    found: dict[str, Any] = {}
    if schedule.contexts is not None and schedule.contexts.described:
        found["retrieval"] = schedule.contexts.described
    if "tools" in schedule.plan.modes and schedule.plan.tools is not None:
        found["tools"] = {
            "rules": schedule.plan.tools.to_dict(),
            "schema": short_hash(schedule.tools.decode()),
            "template": load_part("tools").id,
        }
    return found


def bench_entry(bench: Bench) -> dict[str, Any]:
    """Return who judged whom, and by which rubric, as a run remembers it."""
    return {
        "judges": [spec.to_dict() for _, spec in sorted(bench.models.items())],
        "bench": {model: [spec.id for spec in seated] for model, seated in bench.seats.items()},
        "rubrics": {domain: judge.id for domain, judge in bench.judges.items()},
        "audited": bool(auditors(bench.judges)),
        **bench.rules,
    }


def bank_entry(bank: Bank) -> dict[str, Any]:
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
        **({"reviews": list(bank.reviews)} if bank.reviews else {}),
    }


def methodology(
    schedule: Schedule, bench: Bench | None = None, metrics: Mapping[str, Any] | None = None
) -> str:
    """Return the hash of everything but bank and model that decides what a number means.

    Which models a run asks is no part of it: a further model joins the series of the others. How each
    is sampled stands in the manifest beside it (`sampling`), model by model.
    """
    plan = schedule.plan
    return short_hash(
        {
            "task": schedule.task.name,
            "metric": schedule.task.metric,
            "template": schedule.template_ids,
            "extraction": plan.extraction,
            "parsers": parser_ids(),
            "scorers": scorer_ids(),
            "shuffle_options": plan.shuffle_options,
            "few_shot_k": plan.few_shot_k,
            "seed": plan.seed,
            "tools": [],
            **_reading(schedule),
            **looking_up(schedule),
            "judges": [] if bench is None else judging(bench, plan),
            "rank_rule": plan.rank_rule,
            "separation": plan.separation,
            **({"metrics": metrics} if metrics else {}),
        }
    )


def judging(bench: Bench, plan: Plan) -> dict[str, Any]:
    """Return who judges by what, whichever models are judged and so whoever sat out."""
    entry = bench_entry(bench)
    asked = {
        name: request_constant(spec, sampling_of(spec, bench.seed))
        for name, spec in sorted(bench.models.items())
        if name in plan.judges
    }
    return {
        "rubrics": entry["rubrics"],
        "steps": entry.get("steps"),
        "judges": sorted(plan.judges),
        "substitute": plan.substitute,
        "models": asked,
    }


def parser_ids() -> dict[str, str]:
    """Return name → hash of the modules that read answers: all of `answer`, and those of `core` that it stands on."""
    folder = Path(medassay.answer.__path__[0])
    files = {
        file.relative_to(folder).with_suffix("").as_posix().replace("/", "."): file
        for file in sorted(folder.rglob("*.py"))
    }
    below = (json_reply, lenient_json, reading, record_reply, refusal)
    files |= {
        f"core.{module.__name__.split('.')[-1]}": Path(module.__file__ or "")
        for module in below
    }
    return {name: _source_hash(file) for name, file in files.items()}


def scorer_ids() -> dict[str, str]:
    """Return name → id of every scorer, and of the modules that scorers stand on."""
    below = {"likeliest": likeliest, "medication": medication, "structure": structure}
    below |= {"record_reply": record_reply, "text": text}
    return {name: scorer.id for name, scorer in SCORERS.items()} | {
        name: _source_hash(Path(module.__file__ or "")) for name, module in below.items()
    }


def _source_hash(file: Path) -> str:
    return sha256_hex(file.read_bytes())[:12]


def code_of_today() -> dict[str, str | None]:
    """Return version and commit of this code."""
    return {"version": metadata.version("medassay"), "commit": _commit()}


def surroundings(models: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return code version and commit, packages, and the machine.

    Parameters
    ----------
    models : entries that are asked; of those whose weights come as a package, the weights' hash is told
    """
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    # Through none of them anything is asked; that they were set may explain what could not be reached.
    proxies = {"proxies": proxies_set()} if proxies_set() else {}
    packaged = any(m["path"].startswith("embedded:") for m in (models or {}).values())
    return {
        **proxies,
        **({"weights": packaged_weights()} if packaged else {}),
        "code": code_of_today(),
        "parsers": parser_ids(),
        "scorers": scorer_ids(),
        "python": platform.python_version(),
        "packages": packages,
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "gpu": _gpu(),
        },
    }


def _commit() -> str | None:
    """Return the commit of a checkout, with "+" when files differ from it; None when installed."""
    folder = Path(__file__).resolve().parents[3]
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return None
    head = _output(["git", "-C", str(folder), "rev-parse", "HEAD"])
    changed = _output(
        ["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"]
    )
    return None if not head else head + ("+" if changed else "")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), ""
    )


def _gpu() -> str | None:
    if shutil.which("nvidia-smi") is None:
        return None
    return (
        _output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
        or None
    )


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
