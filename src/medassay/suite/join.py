"""Two suites as one: of the same benchmarks and other models, of other benchmarks, or both."""

import shutil
from pathlib import Path

from medassay.core.canonical import short_hash
from medassay.errors import InputError
from medassay.runner.merge import join_runs
from medassay.storage.run import Run, open_run
from medassay.suite.banks import SuiteBank
from medassay.suite.run import FOLDER, RECORD, BenchmarkPart, SuiteRun, open_suite, write_record


def join_suites(suites: list[SuiteRun], workspace: Path) -> SuiteRun:
    """Write the suite that holds the rows of several, into a workspace, and return it.

    Runs of one benchmark join as publications of them would: banks and methodology must be equal.
    Others are copied.

    Raises
    ------
    InputError
        When runs of one benchmark do not join, saying why, or the joined suite is there.
    """
    names = "+".join(dict.fromkeys(suite.folder.name.rpartition("-")[0] for suite in suites))
    made_of = short_hash(
        sorted(run for suite in suites for part in suite.parts for run in part.runs.values())
    )
    folder = workspace / FOLDER / f"{names[:60]}-{made_of}"
    if (folder / RECORD).exists():
        return open_suite(folder)
    (workspace / "runs").mkdir(parents=True, exist_ok=True)
    parts: dict[str, BenchmarkPart] = {}
    for name in dict.fromkeys(part.benchmark for suite in suites for part in suite.parts):
        having = [(s, p) for s in suites for p in s.parts if p.benchmark == name]
        first = having[0][1]
        runs: dict[str, str] = {}
        for kind in dict.fromkeys(kind for _, part in having for kind in part.runs):
            members = [suite.run(part.runs[kind]) for suite, part in having if kind in part.runs]
            try:
                runs[kind] = _joined(members, workspace / "runs").id
            except InputError as error:
                raise InputError(f"benchmark '{name}' ({kind}): {error}") from None
        absent = {kind: why for kind, why in first.absent.items() if kind not in runs}
        parts[name] = BenchmarkPart(
            benchmark=name,
            runs=runs,
            absent=absent,
            instead_of=first.instead_of,
            why=first.why,
            bank=next((part.bank for _, part in having if part.bank), SuiteBank()),
        )
    write_record(
        folder,
        parts.values(),
        suite=list(dict.fromkeys(name for suite in suites for name in suite.record["suite"])),
        plan=_plan_of(suites),
        joined=[suite.folder.name for suite in suites],
    )
    return open_suite(folder)


def _plan_of(suites: list[SuiteRun]) -> dict[str, object]:
    """Return the plan of the first suite with the models and own benchmarks of all."""
    plans = [suite.record["plan"] for suite in suites]
    tables = {entry["name"]: entry for plan in plans for entry in plan.get("benchmark", [])}
    models = list(dict.fromkeys(name for plan in plans for name in plan["models"]))
    return {**plans[0], "models": models, **({"benchmark": [*tables.values()]} if tables else {})}


def _joined(members: list[Run], runs: Path) -> Run:
    """Return the run that holds the rows of some, in the folder of runs."""
    different = list({run.id: run for run in members}.values())
    if len(different) > 1:
        return join_runs(different, runs)
    [run] = different
    place = runs / run.id
    if not place.exists():
        # Whole or not at all: half a run would be taken for one by the next command.
        draft = runs / f".{run.id}.part"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(run.path, draft)
        draft.rename(place)
    return open_run(place)
