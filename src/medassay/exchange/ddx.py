"""Ranked diagnoses of others → a sealed run: labels as given, or raw replies whose names are
compared.

What the files look like is said in `exchange.ddx_lists`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.canonical import content_hash, sha256_hex, short_hash
from medassay.core.files import write_lines
from medassay.core.records.diagnosis import EXACT, Diagnosis, Golden, golden_sentence
from medassay.core.records.item import Item
from medassay.core.records.manifest import judged_banks
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import DdxRules
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Diagnoses
from medassay.core.records.trial import TRIAL_KEY, Trial
from medassay.core.records.verdict import Case, Grader, Verdict
from medassay.errors import InputError
from medassay.exchange.ddx_lists import ListedCase, Lists, list_files, read_lists
from medassay.exchange.imported import (
    ImportSource,
    file_digest,
    import_manifest,
    imported_answer,
    imported_trial,
    imported_verdict,
    new_run,
    write_trials,
)
from medassay.judging.assignment import RULE, JudgeAssignment
from medassay.judging.queue import Answers
from medassay.kinds.diagnoses.names import NameMatcher
from medassay.kinds.diagnoses.parser import read_list
from medassay.kinds.diagnoses.scorer import DiagnosesBody
from medassay.kinds.diagnoses.tasks import DDX, DDX_NAMES, remembered_rules
from medassay.kinds.graders import graders_of
from medassay.runner.finish import finish
from medassay.runner.manifest import assignment_entry, raised_entry
from medassay.runner.revisions import revision_ids, revisions
from medassay.runner.write import write_judged_scores, write_scores
from medassay.storage.run import Run, create_run

_DISAGREEMENTS = 200  # that a run remembers
GIVEN = ModelSpec(id="given", provider="import", family="unknown")


class AgainstRanks(msgspec.Struct):
    """Cases of a model by how the ranks found by names compare with those that came with it."""

    same: int
    names_lower: int  # found further down, or not at all
    names_higher: int


class AgainstLabels(msgspec.Struct):
    """Labels by whether names compared by rule, or a judge's Exact Synonym, find the diagnosis."""

    both: int
    names_only: int
    judge_only: int
    neither: int


class DdxSource(msgspec.Struct):
    """What the source of an imported run says of names; its other fields are of every import."""

    golden: Golden
    cases_with_several_diagnoses: int
    cases_without_golden_diagnosis: int
    names_against_ranks: dict[str, AgainstRanks] = {}
    names_against_labels: AgainstLabels | None = None


def import_ddx(
    path: Path,
    *,
    rules: DdxRules | None = None,
    golden: Golden = "one",
    runs: Path | None = None,
    to: Path | None = None,
) -> Run:
    """Return the sealed run made from ranked diagnoses; no model is asked.

    Parameters
    ----------
    path : a table of labels, a file of raw replies, or a folder of these files
    rules : how lists are scored and cases aggregated; `names` are read from where one stands
    golden : of several names that a case of raw replies has, the first is the golden diagnosis
        ("one"), or any of them ("any")
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming file, row, column and what was expected; nothing is left half-written.
    """
    rules = rules or DdxRules()
    if (problem := rules.problem()) is not None:
        raise InputError(problem)
    if rules.severity_map != "published":
        raise InputError("severity_map: the labels of these files are those of 'published'")
    files = list_files(path)
    digest = sha256_hex("".join(map(file_digest, files)).encode())
    lists = read_lists(files, golden)
    limits = "Imported lists: how they were asked for is known to the files' maker."
    source = ImportSource(
        file=path,
        digest=digest if len(files) > 1 else file_digest(files[0]),
        task=(DDX if lists.labelled else DDX_NAMES).name,
        limits=f"{limits} {golden_sentence(golden, lists.several)}".strip(),
    )
    return new_run(
        [source.digest, rules.to_dict(), *([golden] if golden != "one" else [])],
        lambda folder, name: _fill(folder, name, source, lists, rules, golden),
        runs=runs,
        to=to,
    )


def names_against_labels(
    lists: Iterable[ListedCase],
    golden: Mapping[tuple[str, str], Sequence[str]],
    matching: NameMatcher,
) -> dict[str, Any]:
    """Return how far names compared by rule agree with the Exact Synonym of a judge.

    Returns
    -------
    dict
        both, names_only, judge_only, neither (counts of labels), and the disagreements, at most
        200.
    """
    counts: Counter[str] = Counter()
    differing: list[dict[str, Any]] = []
    for listed in lists:
        for label in listed.labels:
            if label.relation is None:
                continue
            names = golden[listed.domain, listed.item]
            rule, exact = matching.rule(label.name, names), label.relation == EXACT
            kind = ("both" if exact else "names_only") if rule else ""
            kind = kind or ("judge_only" if exact else "neither")
            counts[kind] += 1
            if kind in ("names_only", "judge_only") and len(differing) < _DISAGREEMENTS:
                differing.append(
                    {
                        "item": listed.item,
                        "model": listed.model,
                        "rank": label.rank,
                        "golden": names[0],
                        "name": label.name,
                        "judge": label.relation,
                        "rule": rule,
                    }
                )
    shown = {name: counts[name] for name in ("both", "names_only", "judge_only", "neither")}
    return {**shown, "disagreements": differing}


def names_against_ranks(
    lists: Iterable[ListedCase],
    golden: Mapping[tuple[str, str], Sequence[str]],
    matching: NameMatcher,
) -> dict[str, dict[str, int]]:
    """Return, for each model with ranks given by somebody, how the ranks found by names compare.

    Returns
    -------
    dict
        model → same, names_lower (found further down, or not at all), names_higher (counts of
        cases).
    """
    counts_by_rank: dict[str, Counter[str]] = {}
    for listed_case in lists:
        if listed_case.seen_at is None or listed_case.failed:
            continue
        listed = read_list(listed_case.text)[0] or []
        names = golden[listed_case.domain, listed_case.item]
        hits = [
            rank
            for entry in listed
            if (rank := entry["rank"]) is not None and matching.rule(entry["name"], names)
        ]
        hit, position = min(hits, default=99), listed_case.seen_at or 99
        same = min(hit, 6) == min(position, 6)
        kind = "same" if same else "names_lower" if hit > position else "names_higher"
        counts_by_rank.setdefault(listed_case.model, Counter())[kind] += 1
    return {
        model: {name: counts[name] for name in ("same", "names_lower", "names_higher")}
        for model, counts in sorted(counts_by_rank.items())
    }


def _fill(
    folder: Path, name: str, source: ImportSource, lists: Lists, rules: DdxRules, which: Golden
) -> None:
    golden = [item["diagnoses"][0] for item in lists.items.values()]
    remembered = remembered_rules(rules, golden, Path.cwd())
    more: dict[str, Any] = {
        "cases_without_golden_diagnosis": lists.dropped,
        "golden": which,
        "cases_with_several_diagnoses": lists.several,
    }
    task = DDX if lists.labelled else DDX_NAMES
    names = {key: item["diagnoses"] for key, item in lists.items.items()}
    matching = NameMatcher(remembered["synonyms"])
    if lists.labelled:
        more["names_against_labels"] = names_against_labels(lists.lists, names, matching)
    elif against := names_against_ranks(lists.lists, names, matching):
        more["names_against_ranks"] = against
    models = sorted({listed_case.model for listed_case in lists.lists})
    manifest = import_manifest(
        source,
        domains=sorted({domain for domain, _ in lists.items}),
        models=models,
        settings=sorted({listed_case.setting for listed_case in lists.lists}),
        n_items=len(lists.items),
        content=content_hash(lists.items.values()),
        **more,
    )
    graders = graders_of(task, judged_banks({**manifest, "ddx": remembered}))
    spec = GIVEN if lists.labelled else RULE
    assignment = JudgeAssignment(
        graders=graders,
        seats=dict.fromkeys(models, (spec,)),
        seed=0,
        rules={"ddx": remembered},
    )
    ids = revision_ids(revisions(task, graders.values()))
    later = raised_entry(ids).values()
    manifest["methodology"] = short_hash([manifest["methodology"], remembered, *later])
    manifest["revisions"] = ids
    run = create_run(
        folder.parent, folder.name, {**manifest, **assignment_entry(assignment), "run": name}
    )
    write_lines(run.path / "items.jsonl", (item for _, item in sorted(lists.items.items())))
    run_items = RunItems(run.path, run.manifest.domains)
    ordered = sorted(lists.lists, key=_order)
    write_trials(
        run.path, (_trial(case, run_items.get(case.domain, case.item)) for case in ordered)
    )
    write_scores(run, task, run_items)
    answers = Answers(run, run_items, task)
    _write_verdicts(answers, lists, graders)
    write_judged_scores(run, answers, graders, 1)
    finish(run, task, run_items, [])


def _write_verdicts(answers: Answers, lists: Lists, graders: Mapping[str, Grader]) -> None:
    """Write the labels of the file as verdicts; without labels, those of names by rule."""
    labels = {_order(listed_case): listed_case.labels for listed_case in lists.lists}

    def verdict_on(trial: Trial) -> dict[str, Any]:
        grader = graders[trial.domain]
        if not lists.labelled:
            return _by_rule(trial, answers.case(trial)[0], grader)
        item = answers.items.get(trial.domain, trial.item)
        place = (trial.domain, trial.model, trial.setting, trial.item)
        return _imported_verdict(trial, item, grader, labels[place])

    verdicts = map(verdict_on, map(answers.trial, answers.open))
    write_lines(answers.run.path / "verdicts.jsonl", verdicts)


def _order(listed: ListedCase) -> tuple[str, str, str, str]:
    return (listed.domain, listed.model, listed.setting, listed.item)


def _trial(listed: ListedCase, item: Item) -> dict[str, Any]:
    place = (listed.domain, listed.model, listed.setting, "solo", listed.item, 0)
    if listed.failed:
        text = listed.text.strip()
        reason = f"the file says {text}" if text else "the file holds no reply"
        key = dict(zip(TRIAL_KEY, place, strict=True))
        return {"schema_version": 1, **key, "outcome": "failed", "value": None, "reason": reason}
    answer = imported_answer(item, listed.text, "diagnoses")
    return imported_trial(place, listed.text, answer.outcome, answer.value, answer.reason)


def _imported_verdict(
    trial: Trial, item: Item, grader: Grader, labels: Sequence[Diagnosis]
) -> dict[str, Any]:
    target = item.target_as(Diagnoses)
    body = DiagnosesBody(
        golden=target.golden,
        golden_severity=target.severity,
        golden_severity_by="bank" if target.severity else "",
        diagnoses=[_sourceless(label) for label in labels],
        severities_read=any(label.severity for label in labels) or not labels,
        strange_ids=0,
    )
    relations_known = any(label.relation for label in labels) or not labels
    verdict = Verdict(
        valid=relations_known, reason="" if relations_known else "no relation given", body=body
    )
    return imported_verdict(trial.place, GIVEN.id, item, grader, verdict, given=True)


def _sourceless(label: Diagnosis) -> Diagnosis:
    """Return a diagnosis without a source for labels that it has not."""
    return replace(
        label,
        relation_by=label.relation_by if label.relation else "",
        severity_by=label.severity_by if label.severity else "",
    )


def _by_rule(trial: Trial, case: Case, grader: Grader) -> dict[str, Any]:
    step = grader.step([case], [])
    if isinstance(step, Prompt):
        raise TypeError("a rule asks nobody")
    record = imported_verdict(trial.place, RULE.id, case.item, grader, step[0])
    return record | {"prompt_sha256": [], "responses": [], "replies": []}
