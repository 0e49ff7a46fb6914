"""The path, left to right. Read this first.

    bank → prompt → model → answer → score → statistic → publication

`run` prepares a plan (`runner/prepare.py`: banks, trials numbered, judges), asks, lets judges
judge, measures texts, summarises and seals. Each reply is read, scored and journalled as it comes,
in `runner/answer_stage.py`. Publication lies above, in `publishing`, since it joins finished runs.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from medassay.bank.lock import register
from medassay.core.clock import now
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import PlanSource, opened_plan
from medassay.own_code.kept import keep
from medassay.runner.engine.catalog import refuse_unknown
from medassay.runner.find_run import find_run, origin_of
from medassay.runner.finish import finish
from medassay.runner.measure import measure
from medassay.runner.prepare import load_own_code, prepare
from medassay.runner.progress import ProgressFactory
from medassay.runner.recording import RunOptions, recording
from medassay.runner.replication import findings_of
from medassay.runner.stages import ask, judge
from medassay.runner.write import write_items
from medassay.storage.object_store import open_workspace
from medassay.storage.run import Run, open_run


def run(  # noqa: PLR0913 -- each is an option of the verb
    plan: PlanSource,
    *,
    models: Sequence[ModelSpec] | None = None,
    secrets: Mapping[str, str],
    workspace: Path | str | None = None,
    watch: ProgressFactory | None = None,
    fresh: bool = False,
    accept_failures: bool = False,
    again: str = "",
    engine: str = "local",
    trust_code: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Run:
    """Ask all models of a plan and return the sealed run; the same call resumes an
    interrupted run.

    Parameters
    ----------
    plan : a plan, the path of its TOML file, or what stands in such a file as a mapping
    models : entries in place of those of the plan's models file
    workspace : folder of runs/, responses/ and banks.lock, or an address in an object store, as
        s3://bucket/work
    again : what is asked once more of the last run of this plan: classes of replies that could not
        be used ("empty", "truncated", "refused"; "unusable" for verdicts), comma-separated, and
        ":MODEL" for one model or judge alone; of a sealed run it makes a new one that names the
        first
    engine : "local", or "ray" for several processes or machines; either resumes what the other
        began
    trust_code : whether code of the user that the plan names may be executed
    tell : called, before anything is asked, with each line that a user must know: models asked
        otherwise than the plan says

    Raises
    ------
    InputError
        Before any call, when plan, bank or models file is wrong, or the plan names code of the user
        and `trust_code` is not set.
    IncompleteError
        When trials or verdicts failed or the budget ended: the run stays unsealed and resumes.
    ModelError
        When every model, or every judge, is given up.
    Interrupted
        After Ctrl-C; everything answered is kept.
    """
    plan, base = opened_plan(plan)
    refuse_unknown(engine)
    workspace = open_workspace(workspace or base, plan.hash)
    runs = workspace / "runs"

    prepared = prepare(plan, base, workspace, models=models, trust_code=trust_code)
    for line in prepared.warnings:
        tell(line)
    origin = origin_of(prepared, runs, fresh=fresh, again=again)
    current = find_run(runs, plan, origin.identity, tell)
    if current.sealed:
        return current
    for bank in prepared.banks:
        register(workspace / "banks.lock", bank.version, bank.content_hash)

    options = RunOptions(
        workspace=workspace,
        secrets=secrets,
        watch=watch,
        fresh=fresh,
        accept_failures=accept_failures,
        again=origin.again,
        source=origin.source,
        engine=engine,
        tell=tell,
    )
    load_own_code(prepared)
    with recording(current, prepared, options) as opened:
        if opened is not None:
            stage_spec, context = opened
            task = prepared.schedule.task
            keep(current.path, task.own)
            items = write_items(current, prepared.schedule)
            ask(current, stage_spec, context, secrets)
            if prepared.assignment is not None:
                judge(current, task, prepared.assignment, items, context)
            measure(current, task, items, prepared.measures, workspace, watch, context.engine)
            sealed_at = now()
            findings = findings_of(origin.stored, current, task, items, opened=sealed_at)
            finish(current, task, items, findings, sealed_at=sealed_at)
    return open_run(current.path)
