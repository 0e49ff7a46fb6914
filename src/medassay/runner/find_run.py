"""Which run of a plan is to be done: a finished one, one that was interrupted, or a new one."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from medassay.core.again import Again, read_again
from medassay.core.canonical import canonical
from medassay.core.clock import now
from medassay.core.log import log
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.plan import Plan
from medassay.core.records.statistics import OVERALL
from medassay.errors import InputError, UsageError
from medassay.runner.manifest import surroundings
from medassay.runner.prepare import PreparedRun
from medassay.runner.replication import stored_run
from medassay.storage.object_store import carry_home, left_behind
from medassay.storage.run import Run, create_run, latest, open_run, runs_of_plan, tidy


class RunOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is known by, and the earlier run that it repeats or goes on from.

    `stored` is the run that a fresh one is held against. `again` says which replies are asked once
    more, of the sealed run `source`, or of the unfinished one itself.
    """

    identity: ManifestObject
    stored: Run | None = None
    again: Again | None = None
    source: Run | None = None


def origin_of(prepared: PreparedRun, runs: Path, *, fresh: bool, again: str) -> RunOrigin:
    """Return what a run is known by.

    Parameters
    ----------
    again : as in `medassay.pipeline.run`

    Raises
    ------
    InputError
        When nothing was run yet of which something could be asked again.
    """
    plan, identity = prepared.schedule.plan, prepared.identity()
    stored = None
    if fresh:
        stored = stored_run(runs, plan.hash, [bank.content_hash for bank in prepared.banks])
        identity |= {"fresh_of": stored.id if stored else None}
    if not again:
        return RunOrigin(identity=identity, stored=stored)
    again_rule, source = repeated_run(runs, plan, again, fresh=fresh)
    if source is not None:
        identity |= {"again_of": again_of(source, again_rule)}
    return RunOrigin(identity=identity, stored=stored, again=again_rule, source=source)


def find_run(runs: Path, plan: Plan, identity: ManifestObject, tell: Callable[[str], None]) -> Run:
    """Return the run to do.

    A sealed one where nothing is left to do, or only to carry it to its object store.
    """
    _, late = latest(runs, plan.hash)
    if late is not None and left_behind(late.path):
        tell(f"run {late.id} is sealed here; it is carried over to the object store")
        carry_home(late.path)
        if "fresh_of" not in identity and _same(late, identity):
            return late
    done = None if "fresh_of" in identity else _finished(runs, plan, identity)
    if done is not None:
        tidy(done)  # it may have been killed just behind the seal
        log.say(
            f"run {done.id} of this plan is finished, nothing is asked; --fresh asks all of it"
            " anew, --again what could not be used"
        )
        return done
    return _open(plan.hash, identity, plan.name, runs)


def repeated_run(runs: Path, plan: Plan, again: str, *, fresh: bool) -> tuple[Again, Run | None]:
    """Return what is asked once more, and the sealed run whose replies they are.

    None where the last run is not sealed.

    Raises
    ------
    InputError
        When nothing was run yet, or a model or judge is not of this plan.
    """
    again_rule = read_again(again)
    if fresh:
        raise UsageError(
            "--again asks for some replies once more, --fresh for all: give one of them"
        )
    _, last = latest(runs, plan.hash)
    if last is None:
        raise InputError(f"--again {again}: this plan was not run yet; run it first")
    names = {*plan.models, *plan.judges, plan.substitute}
    if again_rule.model and again_rule.model not in names:
        raise InputError(
            f"--again {again}: '{again_rule.model}' is no model or judge of this plan; expected"
            " one of " + ", ".join(sorted(names - {""}))
        )
    if not last.sealed:
        origin = last.manifest.again_of
        goes_on = origin is not None and origin.of == str(again_rule)
        return again_rule, open_run(runs / origin.run) if origin and goes_on else None
    return again_rule, last


def again_of(source: Run, again: Again) -> dict[str, str]:
    """Return how a run names the one whose replies are asked once more."""
    return {"run": source.id, "root": source.seal.root, "of": str(again)}


def _finished(runs: Path, plan: Plan, identity: ManifestObject) -> Run | None:
    """Return the last sealed run of the same identity.

    None where a later one waits to be finished, or where something failed.
    """
    for run in reversed(runs_of_plan(runs, plan.hash)):
        if "fresh_of" in run.manifest_document or not _same(run, identity):
            continue
        return run if run.sealed and not _has_failures(run) else None
    return None


def _has_failures(run: Run) -> bool:
    """Return whether trials or verdicts of a sealed run failed, so that asking again may bring
    them.
    """
    return any(row.outcomes["failed"] or row.judge_failures for row in run.statistics.rows(OVERALL))


def _open(plan_hash: str, identity: ManifestObject, title: str, runs: Path) -> Run:
    """Return the unfinished run of the same identity, or a new one.

    Fresh runs resume fresh ones only.
    """
    counter, last = latest(runs, plan_hash)
    if last is not None and last.sealed:
        tidy(last)
    for run in reversed(runs_of_plan(runs, plan_hash)):
        alike = all((name in run.manifest_document) == (name in identity) for name in _ASIDE)
        if not run.sealed and alike and _same(run, identity):
            return run
    name = f"{plan_hash}-{counter + 1}"
    packaged = any(m["path"].startswith("embedded:") for m in identity["models"].values())
    around = surroundings(packaged=packaged)
    manifest: ManifestObject = {**identity, "name": title, "created_at": now(), **around}
    return create_run(runs, name, manifest)


_ASIDE = ("fresh_of", "again_of")  # of runs that resume only runs of their kind


def _same(run: Run, identity: ManifestObject) -> bool:
    """Return whether a run was begun with this identity.

    Graders and revisions stand in the methodology, too.
    """
    return all(
        canonical(run.manifest_document.get(name)) == canonical(value)
        for name, value in identity.items()
        if name not in ("rubrics", "judge_prompts", "revisions")
    )
