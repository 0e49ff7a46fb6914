"""A run opened for writing: locked, its lease held, replies and budget at hand."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from medassay.core.again import Again
from medassay.model.chats import all_named_secrets, knows_majority, make_chats
from medassay.runner.answer_stage import AnswerStageSpec
from medassay.runner.ask import Asker, AskSettings
from medassay.runner.engine.catalog import engine_of
from medassay.runner.engine.lease import await_dead, held
from medassay.runner.prepare import PreparedRun
from medassay.runner.progress import ProgressFactory
from medassay.runner.spending import spending
from medassay.runner.stages import RunContext
from medassay.storage.object_store import carry_home, fetch_runs
from medassay.storage.response import ResponseStore
from medassay.storage.run import Run, lock_run, tidy


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller of a run decides besides the plan.

    Parameters
    ----------
    again : what is asked once more of the last run of the plan; None for nothing
    source : the sealed run whose replies are asked once more
    tell : called with each line that a user must know
    """

    workspace: Path
    secrets: Mapping[str, str]
    watch: ProgressFactory | None = None
    fresh: bool = False
    accept_failures: bool = False
    again: Again | None = None
    source: Run | None = None
    engine: str = "local"
    tell: Callable[[str], None] = lambda line: None


@contextmanager
def recording(
    run: Run, prepared: PreparedRun, options: RunOptions
) -> Iterator[tuple[AnswerStageSpec, RunContext] | None]:
    """Yield the stage that answers and what stages are done with; None where the run is sealed.

    Another process may have sealed it between finding the run and locking it. In an object store
    the run is carried there in the end.
    """
    plan, workspace = prepared.schedule.plan, options.workspace
    await_dead(run.path, options.tell)
    fetch_runs(workspace, plan.hash)  # what others did until they ended
    with (
        lock_run(run),
        held(run.path) as in_doubt,
        ResponseStore(workspace / "responses") as store,
        spending(
            workspace,
            run.id,
            prepared.specs | dict(prepared.embedder),
            store,
            plan.budget,
            fresh=options.fresh,
        ) as budget,
    ):
        if run.sealed:
            tidy(run)
            yield None
            return
        specs = prepared.specs
        majority = prepared.schedule.majority() if knows_majority(specs) else {}
        stage = AnswerStageSpec(prepared.schedule, prepared.models_file, majority)
        secrets = all_named_secrets(specs.values(), options.secrets, stage.secret_names)
        chats = make_chats(specs, options.secrets, majority)
        settings = AskSettings(seed=plan.seed, rules=plan.engine, fresh=options.fresh)
        asker = Asker(specs, chats, store, budget, settings)
        yield (
            stage,
            RunContext(
                asker=asker,
                engine=engine_of(options.engine, plan.engine, workspace / "responses", secrets),
                watch=options.watch,
                accept_failures=options.accept_failures,
                in_doubt=in_doubt,
                again=options.again,
                source=options.source,
            ),
        )
    carry_home(run.path)
