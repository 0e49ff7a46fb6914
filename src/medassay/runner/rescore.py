"""A sealed run scored again by the scorers of today: a new run with its answers and verdicts."""

from pathlib import Path
from typing import cast

from medassay.bank.run_items import RunItems
from medassay.core.records.manifest import judged_banks
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.plan import EngineRules
from medassay.errors import InputError
from medassay.kinds.catalog import task_of_run
from medassay.kinds.graders import graders_of
from medassay.own_code.kept import keep, trusted
from medassay.runner.derived import (
    deleted_items,
    derived_run,
    forms_held,
    refuse_unscorable,
    sealed_source,
)
from medassay.runner.engine.catalog import engine_of, refuse_unknown
from medassay.runner.engine.lease import await_dead, held
from medassay.runner.finish import finish
from medassay.runner.manifest import grader_entry, rescored_methodology
from medassay.runner.measure import measure, text_measures_of
from medassay.runner.revisions import derived_revisions, revisions
from medassay.runner.write import copy_answers, rescore_verdicts, write_scores
from medassay.storage.object_store import carry_home, fetch_stores
from medassay.storage.run import Run, lock_run, open_run

_SCORED_ANEW = frozenset(
    ["schema_version", "run", "created_at", "code", "scorers", "packages", "machine"]
)


def rescore(
    run: Run | str | Path,
    *,
    contradiction_penalty: float | None = None,
    workspace: Path | None = None,
    engine: str = "local",
    trust_code: bool = False,
) -> Run:
    """Score the stored answers and verdicts of a sealed run anew, and return a new sealed run.

    Nothing is asked; the code's scorers of today apply.

    Parameters
    ----------
    contradiction_penalty : λ of target facts, in [0, 1]; None keeps that of each bank
    workspace : folder of runs/; default: that of the run
    engine : "local", or "ray" for several processes or machines
    trust_code : whether own code beside the run may be executed
    """
    refuse_unknown(engine)
    source = sealed_source(run, "scored")
    if contradiction_penalty is not None and not 0 <= contradiction_penalty <= 1:
        raise InputError(f"contradiction penalty {contradiction_penalty:g}; expected 0 to 1")
    workspace = workspace or source.path.resolve().parents[1]
    fetch_stores(workspace)
    document = source.manifest_document
    identity = cast(ManifestObject, {k: v for k, v in document.items() if k not in _SCORED_ANEW})
    if contradiction_penalty is not None:
        identity["banks"] = [
            {**bank, "contradiction_penalty": contradiction_penalty} for bank in document["banks"]
        ]
    task = trusted(task_of_run(source.manifest), source.path, trust_code=trust_code)
    forms = forms_held(source)
    refuse_unscorable(source, task, forms)
    graders = graders_of(task, judged_banks(identity)) if "bench" in identity else {}
    if graders:
        identity |= grader_entry(graders)
    parts = revisions(task, graders.values(), forms=forms)
    identity |= {
        "revisions": derived_revisions(parts, source.manifest),
        "methodology": rescored_methodology(source.manifest, parts, graders, contradiction_penalty),
        "rescored_from": {"run": source.id, "root": source.seal.root},
    }
    measures = text_measures_of(source.manifest.plan.metrics if task.metrics else (), task)
    if measures.to_dict():
        identity |= {"metrics": measures.to_dict()}
    if "audited" in identity and deleted_items(source):
        # Second verdicts are a sample of all answers, which those that are left are no more.
        identity |= {"audited": False}
    derived = derived_run(source, identity, workspace / "runs", graders)
    spread = engine_of(engine, EngineRules(), workspace / "responses", {})
    await_dead(derived.path, lambda line: None)
    with lock_run(derived), held(derived.path):
        copy_answers(source, derived)
        keep(derived.path, task.own)
        items = RunItems(derived.path, derived.manifest.domains)
        write_scores(derived, task, items, spread)
        if graders:
            rescore_verdicts(source, derived, items, graders)
        measure(derived, task, items, measures, workspace, None, spread)
        finish(derived, task, items, [])
        carry_home(derived.path)
    return open_run(derived.path)
