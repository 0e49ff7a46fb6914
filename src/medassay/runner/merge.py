"""Several sealed runs of the same banks and methodology → one run, as if their models had run
together.

The joined run is sealed like any other; its manifest names its members and their roots, which can
be recomputed from its own records. The same runs always give the same bytes, save the salt of
synthetic items where a member has none.
"""

import hashlib
import heapq
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.files import whole_folder, write_lines
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.sealed_object import TimingObject, TrialKeys, place_of
from medassay.errors import IncompleteError, InputError
from medassay.kinds.catalog import task_of_run
from medassay.own_code.kept import copy_kept
from medassay.runner.revisions import revisions_named
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import (
    JUDGED,
    SALT,
    Run,
    file_sha256,
    open_run,
    read_document,
    write_new,
)

_SAME = (
    "task",
    "template",
    "methodology",
    "domains",
    "steps",
    "ddx",
    "graphs",
)
_SAME_PLAN = ("n_resamples", "sample", "seed", "rank_rule", "separation", "demonstration")


def join_runs(runs: Sequence[Run], folder: Path) -> Run:
    """Return the run that joins others, made in `folder` unless it is there already.

    Raises
    ------
    IncompleteError
        When one of them is not sealed.
    InputError
        When they differ in banks or methodology, or have a model, setting and mode in common.
    """
    for run in runs:
        if not run.sealed:
            raise IncompleteError(f"run {run.path.name}: not finished; only sealed runs are joined")
    members = sorted(runs, key=lambda run: run.seal.root)
    _refuse_unlike(members)
    drawn_as = _drawn_as(members)
    seals = [run.seal.hash for run in members]
    name = f"joined-{sha256_hex(chr(31).join(seals).encode())[:12]}"
    place = folder / name
    if place.exists():
        return open_run(place)
    with whole_folder(place) as draft:
        _fill(draft, members, name, drawn_as)
    return open_run(place)


def _drawn_as(members: Sequence[Run]) -> str:
    """Return the name that seeds the draws of a joined run: that of its members where they share
    one, as imports on a bank do.
    """
    names = {run.manifest.drawn_as for run in members}
    if len(names) == 1 and (name := names.pop()):
        return name
    return sha256_hex("\x1f".join(run.seal.root for run in members).encode())


def _refuse_unlike(members: Sequence[Run]) -> None:
    first = members[0]
    owners: dict[str, str] = {}
    for run in members:
        for key in _SAME:
            if canonical(run.manifest_document.get(key)) != canonical(
                first.manifest_document.get(key)
            ):
                raise InputError(
                    f"run {run.id} differs from {first.id} in {key}; only runs of the same banks"
                    " and methodology join (compare them with `medassay compare`)"
                )
        if (named := revisions_named(run.manifest)) != revisions_named(first.manifest):
            raise InputError(
                f"run {run.id} was scored by other code than {first.id} ({named}); only runs of the"
                " same revisions join (score both anew with `medassay score`)"
            )
        for key in _SAME_PLAN:
            if getattr(run.manifest.plan, key) != getattr(first.manifest.plan, key):
                raise InputError(
                    f"run {run.id} has another {key} than {first.id}; only runs of the same plan"
                    " but for models and settings join"
                )
        if file_sha256(run.path / "items.jsonl") != file_sha256(first.path / "items.jsonl"):
            raise InputError(f"run {run.id} asked other items than {first.id}; they do not join")
        if _banks(run) != _banks(first):
            raise InputError(
                f"run {run.id} has other bank contents than {first.id}; only runs of the same banks"
                " join"
            )
        for cell in _cells(run):
            if cell in owners:
                cell_text = ", ".join(cell.split("\x1f"))
                raise InputError(
                    f"runs {owners[cell]} and {run.id} both hold {cell_text}; a row is of one run,"
                    " leave one out"
                )
            owners[cell] = run.id


def _banks(run: Run) -> list[tuple[str, str]]:
    return sorted((bank.version, bank.content_sha256) for bank in run.manifest.banks)


def _cells(run: Run) -> list[str]:
    rows = (row for domain in run.statistics.domains for row in run.statistics.rows(domain))
    return sorted({"\x1f".join((*row.key, row.mode)) for row in rows})


def _fill(folder: Path, members: Sequence[Run], name: str, drawn_as: str) -> None:
    from medassay.runner.finish import finish

    shutil.copyfile(members[0].path / "items.jsonl", folder / "items.jsonl")
    copy_kept(members[0].path, folder)
    trials, timings = folder / "trials.jsonl", folder / "timings.jsonl"
    with trials.open("wb") as trials_file, timings.open("wb") as other:
        for trial, timing in heapq.merge(*map(_timed, members), key=lambda pair: place_of(pair[0])):
            trials_file.write(canonical(trial) + b"\n")
            other.write(canonical(timing) + b"\n")
    for file in ("scores.jsonl", *JUDGED):
        if (members[0].path / file).exists():
            lines = heapq.merge(*(read_jsonl(run.path / file) for run in members), key=place_of)
            write_lines(folder / file, lines)
    manifest = _manifest(members, drawn_as)
    write_new(
        folder / "manifest.json",
        canonical({"schema_version": 1, **manifest, "run": name}) + b"\n",
    )
    merged = Run(folder)
    items = RunItems(folder, merged.manifest.domains)
    findings = [f for run in members for f in read_jsonl(run.path / "findings.jsonl")]
    sealed_at = max(run.seal.sealed_at for run in members)
    task = task_of_run(merged.manifest)
    finish(merged, task, items, findings, sealed_at=sealed_at, secret=_secret(members))


def _timed(run: Run) -> Iterator[tuple[TrialKeys, TimingObject]]:
    return zip(
        read_jsonl(run.path / "trials.jsonl"),
        read_jsonl(run.path / "timings.jsonl"),
        strict=True,
    )


def _manifest(members: Sequence[Run], drawn_as: str) -> ManifestObject:
    """Return the first member's manifest with the models and judges of all."""
    manifest: dict[str, Any] = {
        k: v for k, v in members[0].manifest_document.items() if k not in ("run", "schema_version")
    }
    documents = cast(list[dict[str, Any]], [run.manifest_document for run in members])
    for key in ("models", "sampling", "bench"):
        joined_entries = {n: v for document in documents for n, v in document.get(key, {}).items()}
        if joined_entries:
            manifest[key] = dict(sorted(joined_entries.items()))
    judges = {
        judge.id: entry
        for run in members
        for judge, entry in zip(
            run.manifest.judges, run.manifest_document.get("judges", []), strict=True
        )
    }
    if judges:
        manifest |= {"judges": [judges[name] for name in sorted(judges)]}
    manifest["banks"] = [
        {**entry, "limits": _limits(members, bank.version)}
        for entry, bank in zip(manifest["banks"], members[0].manifest.banks, strict=True)
    ]
    plans = [run.manifest_document["plan"] for run in members]
    plan = dict(plans[0])
    for key in ("models", "settings", "modes"):
        if key in plan:
            plan[key] = sorted({value for member_plan in plans for value in member_plan[key]})
    joined = [
        {
            "run": run.id,
            "root": run.seal.root,
            "seal": run.seal.hash,
            "created_at": run.manifest.created_at,
            "machine": run.manifest.machine,
            "cells": _cells(run),
            **({"source": run.manifest.source} if run.manifest.source is not None else {}),
        }
        for run in members
    ]
    manifest.pop("source", None)  # each import is of its own
    return cast(ManifestObject, manifest | {"plan": plan, "drawn_as": drawn_as, "joined": joined})


def _limits(members: Sequence[Run], version: str) -> str:
    """Return all that members say of the limits of a bank: an import may say more than others."""
    told = {
        bank.limits for run in members for bank in run.manifest.banks if bank.version == version
    }
    return " ".join(sorted(text for text in told if not any(text in o for o in told - {text})))


def _secret(members: Sequence[Run]) -> str | None:
    """Return the secret behind the commitments of a joined run: it follows from those of its
    members.
    """
    salts = [run.path / SALT for run in members]
    if not all(path.is_file() for path in salts):
        return None
    secrets = sorted(str(read_document(path)["secret"]) for path in salts)
    return hashlib.sha256("".join(secrets).encode()).hexdigest()
