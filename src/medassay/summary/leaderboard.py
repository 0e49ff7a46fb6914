"""Scores → leaderboard: the matrices of a run, and every ranking over them as one document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.core.protocols import JudgingSummary, RowAddition, Summary
from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.answer import OUTCOMES
from medassay.core.records.judging_columns import JUDGING_COLUMNS, JUDGING_FLAGS, JudgingFlags
from medassay.core.records.leaderboard import unread_share
from medassay.core.records.manifest import Manifest
from medassay.core.records.statistics import FURTHER, OVERALL
from medassay.core.records.statistics_object import (
    DifferenceObject,
    EstimateObject,
    FieldObject,
    HarmObject,
    StatisticsObject,
)
from medassay.core.records.task import GENERATION_SUFFIX, Task
from medassay.core.records.trial import RowKey
from medassay.errors import StatisticError
from medassay.statistic.draws import seed_of
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO, Field, Standing, field_of
from medassay.statistic.ranking.pool import Stratum
from medassay.statistic.ranking.shared import Bools
from medassay.summary.harm import harm_document
from medassay.summary.pairs import relations_of
from medassay.summary.provenance import ProvenanceBreakdown, options_of
from medassay.summary.scores import CountedTrials, RunScores
from medassay.summary.tool_effect import tools_minus_solo

UNPARSED_MARK = 0.02  # above this share the accuracy carries a mark


def unranked_rows(
    manifest: Manifest,
    rows: Iterable[RowKey],
    scores: RunScores | None = None,
    *,
    mode: str | None = None,
    domains: Sequence[str] | None = None,
) -> dict[RowKey, str]:
    """Return the rows that never rank, with the reason: also one whose model had more chances than
    the others, or whose replies were cut.

    Parameters
    ----------
    mode, domains : where it is counted how many replies were cut; all without them
    """
    # Runs before this was counted do not say it.
    most = 1.0 if manifest.max_cut_off is None else manifest.max_cut_off
    reasons: dict[RowKey, str] = {}
    demonstration = manifest.plan.demonstration  # of scripted models, which says so on every page
    scripted = any(judge.provider == "fake" for judge in manifest.judges) and not demonstration
    for model, setting in rows:
        provider = manifest.provider_of(model)
        if scripted and provider != "baseline":
            reasons[model, setting] = "fake"
        elif provider == "baseline" or (provider == "fake" and not demonstration):
            reasons[model, setting] = provider
        elif setting.startswith("topline"):
            reasons[model, setting] = "topline"
        elif setting.endswith(GENERATION_SUFFIX):
            reasons[model, setting] = "generated"
        elif scores is not None and (model, setting) in scores.outcomes.unequal:
            reasons[model, setting] = "asked_again"
        elif scores is not None and most < scores.outcomes.cut_off_share(
            (model, setting),
            scores.domains if domains is None else domains,
            scores.modes if mode is None else (mode,),
        ):
            reasons[model, setting] = "cut_off"
    return reasons


def leaderboard_document(
    scores: RunScores,
    manifest: Manifest,
    task: Task,
    judgements: JudgingSummary | None = None,
    summaries: Sequence[Summary] = (),
) -> StatisticsObject:
    """Return every ranking of a run: `statistics.json`, of which the report is a part.

    Keys: `domains` (name or "overall" → rows of all modes), `fields` (mode → name → what holds
    between the rows: common items, pairs, oracle), and where there are public and synthetic items
    `by_kind`.
    """
    if not scores.modes:
        raise StatisticError("the run has no trials: no data is not a score of zero")
    domains: dict[str, list[_Row]] = {}
    fields: dict[str, dict[str, FieldObject]] = {}
    over_all: dict[str, dict[RowKey, Bools]] = {}
    for mode in sorted(scores.modes):
        rows = scores.rows(mode)
        groups = {name: [name] for name in scores.domains}
        names = [OVERALL, *groups] if len(groups) > 1 else list(groups)
        for name in names:
            members = groups.get(name, scores.domains)
            ranking, relations = _ranking(scores, manifest, task, mode, rows, name, members)
            if name == names[0]:  # over all domains
                over_all[mode] = {row.key: row.standing.used for row in ranking}
            if judgements is not None:
                seed = seed_of(manifest.methodology, manifest.seed_label, name, mode)
                _add_judging(ranking, judgements, members, mode, seed, manifest)
                relations |= {"panel": judgements.panel(members, mode, seed)}
            for summary in summaries:
                for row in ranking:
                    row.add(summary.row(members, row.key, mode, row.standing.used))
            domains.setdefault(name, []).extend(ranking)
            fields.setdefault(mode, {})[name] = relations
        if len(groups) == 1:  # one domain: it is the whole
            only = names[0]
            domains.setdefault(OVERALL, []).extend(domains[only][-len(rows) :])
            fields[mode][OVERALL] = fields[mode][only]
    plan = manifest.plan
    lowest, highest = task.scale.ends
    differences = list(_both_modes(scores, manifest, task))
    document: StatisticsObject = {
        **_by_provenance(scores, manifest, task),
        **({"tools_minus_solo": differences} if differences else {}),
        "schema_version": 1,
        "run": manifest.run,
        "metric": task.metric,
        "scale": {"lo": lowest, "hi": highest, "better": task.scale.better},
        "rank_rule": plan.rank_rule,
        "separation": plan.separation,
        "n_resamples": plan.n_resamples,
        "level": 0.95,
        "domains": {name: [row.to_dict() for row in rows] for name, rows in domains.items()},
        "fields": fields,
    }
    of_summaries = {summary.key: summary.document(over_all) for summary in summaries}
    return cast(StatisticsObject, {**document, **of_summaries})


def _by_provenance(scores: RunScores, manifest: Manifest, task: Task) -> StatisticsObject:
    """Return the key `by_kind`: every row on public and on synthetic items; nothing where a run has
    items of one alone.
    """
    provenance = ProvenanceBreakdown(scores, manifest, task)
    if not provenance.both:
        return {}
    keys = sorted({key for mode in scores.modes for key in scores.rows(mode)})
    groups = {OVERALL: scores.domains, **{name: [name] for name in scores.domains}}
    return {"by_kind": provenance.document(groups, unranked_rows(manifest, keys, scores))}


class _Row(msgspec.Struct):
    """A row of a ranking while its columns are collected."""

    standing: Standing
    columns: dict[str, Any]
    flags: list[str]

    @property
    def key(self) -> RowKey:
        return self.standing.row

    def add(self, addition: RowAddition) -> None:
        self.columns |= addition.columns
        self.flags += addition.flags

    def to_dict(self) -> dict[str, Any]:
        return {**self.columns, "flags": self.flags}


def _ranking(
    scores: RunScores,
    manifest: Manifest,
    task: Task,
    mode: str,
    rows: list[RowKey],
    name: str,
    members: list[str],
) -> tuple[list[_Row], FieldObject]:
    versions = manifest.domains
    field = field_of(
        rows,
        _strata(scores, manifest, members, mode, rows),
        options_of(manifest, task, mode),
        unranked=unranked_rows(manifest, rows, scores, mode=mode, domains=members),
        all_pairs=len(members) == len(versions) or len(rows) <= ALL_PAIRS_UP_TO,
    )
    counts = {s.row: scores.outcomes.of(members, s.row, (mode,)) for s in field.standings}
    ranges = manifest.plan.rank_rule == SIMULTANEOUS
    ranking = [
        _row(
            s,
            counts[s.row],
            field,
            _harm(scores, s.row, members, mode, task),
            mode,
            task,
            manifest=manifest,
        )
        for s in sorted(field.standings, key=lambda s: _place(s, task, ranges=ranges))
    ]
    unread = {key: unread_share(counted.outcomes) for key, counted in counts.items()}
    return ranking, relations_of(field, unread, task)


def _strata(
    scores: RunScores,
    manifest: Manifest,
    members: list[str],
    mode: str,
    rows: list[RowKey],
) -> list[Stratum]:
    versions, run = manifest.domains, manifest.seed_label
    return [
        Stratum(
            name=domain,
            scores=scores.of(domain, mode, rows),
            clusters=scores.clusters[domain],
            seed=seed_of(versions[domain], run, domain, mode),
            lowest=scores.lowest.get(domain),
        )
        for domain in members
    ]


def _both_modes(scores: RunScores, manifest: Manifest, task: Task) -> Iterator[DifferenceObject]:
    """Yield tools minus solo of every row asked both ways, over all domains and in each."""
    options = options_of(manifest, task, "solo")
    for name, members in ((OVERALL, scores.domains), *((d, [d]) for d in scores.domains)):
        strata = partial(_strata, scores, manifest, members)
        for (model, setting), difference in tools_minus_solo(strata, scores, options):
            yield {
                "domain": name,
                "model": model,
                "setting": setting,
                "metric": task.metric,
                "scale": task.scale.ends,
                **difference,
            }


def _place(
    standing: Standing, task: Task, *, ranges: bool
) -> tuple[bool, int, int, float, str, str]:
    """Return what rows are sorted by: rank, of ranges their last one too, then score and id."""
    score = 0.0 if standing.estimate is None else standing.estimate.value
    sign = -1.0 if task.scale.better == "high" else 1.0
    rank = standing.rank
    last = rank.hi or 0 if ranges else 0
    return (rank.rank is None, rank.rank or 0, last, sign * score, *standing.row)


def _harm(scores: RunScores, row: RowKey, members: list[str], mode: str, task: Task) -> HarmObject:
    return harm_document(
        *scores.harm.of(members, row, mode),
        np.concatenate([scores.of(domain, mode, [row])[0] for domain in members]),
        np.concatenate([scores.clusters[domain] for domain in members]),
        task.scale,
    )


def _row(
    standing: Standing,
    counted: CountedTrials,
    field: Field,
    harm: HarmObject,
    mode: str,
    task: Task,
    *,
    manifest: Manifest,
) -> _Row:
    model, setting = standing.row
    counts_cuts = manifest.max_cut_off is not None  # runs before it do not say it
    demonstration = manifest.plan.demonstration
    estimate, rank = standing.estimate, standing.rank
    unparsed = counted.share(counted.outcomes["unparsed"])
    marks = {
        f"not_ranked:{rank.reason}": rank.reason,
        "not_common": field.not_common,
        "leader_changes_with_nulls": field.leader_changes_with_nulls,
        "unparsed": unparsed > UNPARSED_MARK,
        "cut_off": counts_cuts and counted.cut_off,
        "failed": counted.outcomes["failed"],
        "asked_again": counted.again,
        "scripted": rank.reason == "fake" or (demonstration and rank.reason != "baseline"),
    }
    flags = [*(estimate.flags if estimate else ()), *standing.marks]
    flags += [mark for mark, holds in marks.items() if holds]
    plain: EstimateObject = estimate.to_dict() if estimate else {}
    ranges = field.simultaneous_ranges.get(standing.row)
    of_rule: dict[str, Any] = {"simultaneous": None if ranges is None else list(ranges)}
    if field.ranges:
        of_rule = {"interval": plain.get("interval")}
    micro = standing.micro
    columns = {
        "model": model,
        "setting": setting,
        "mode": mode,
        "metric": task.metric,
        "scale": task.scale.ends,
        **{name: plain.get(name) for name in ("score", "lo", "hi", "second")},
        "n": plain.get("n", standing.n_own),
        "n_clusters": plain.get("n_clusters"),
        "n_common": field.n_common,
        "coverage": standing.coverage,
        **{name: plain.get(name) for name in ("worst", "best")},
        "micro": None if micro is None else {"score": micro.value, "lo": micro.lo, "hi": micro.hi},
        **{"rank": rank.rank, "rank_lo": rank.lo, "rank_hi": rank.hi, "group": rank.group},
        **of_rule,
        "unparsed_rate": unparsed,
        "ambiguous_rate": counted.share(counted.ambiguous),
        "unread_rate": unread_share(counted.outcomes),
        "outcomes": {name: counted.outcomes[name] for name in OUTCOMES},
        "harm": harm,
        **({"cut_off": counted.cut_off} if counts_cuts else {}),
        **({"asked_again": counted.again} if counted.again else {}),
    }
    return _Row(standing, columns, flags)


def _add_judging(
    ranking: list[_Row],
    judgements: JudgingSummary,
    members: list[str],
    mode: str,
    seed: int,
    manifest: Manifest,
) -> None:
    """Add to every row how its answers were judged.

    Rows without judged answers stay as they are.
    """
    families = {judge.id: (judge.family or "").casefold() for judge in manifest.judges}
    for row in ranking:
        model, setting = row.key
        columns = judgements.columns(members, model, setting, mode, seed)
        if columns is None:
            continue
        if (estimate := row.standing.estimate) is not None:
            columns = replace(columns, score_worst=estimate.worst, score_best=estimate.best)
        seats = (manifest.bench or {}).get(model, [])
        family = manifest.family_of(model)
        flags = JudgingFlags(
            degraded=columns.judge_failures > 0,
            low_agreement=columns.agreement_low,
            unweighted=columns.unweighted_scores > 0,
            judge_of_same_vendor=family != "unknown"
            and any(families[name] == family for name in seats),
        )
        row.add(RowAddition(columns=columns.to_dict(), flags=flags.names()))


def without_judging(document: StatisticsObject) -> StatisticsObject:
    """Return a leaderboard document without what verdicts alone tell."""
    further: list[StatisticsObject] = [
        {**part, "fields": _without_panels(part["fields"])} for part in document.get(FURTHER, [])
    ]
    rows = {
        domain: [
            {k: v for k, v in row.items() if k not in JUDGING_COLUMNS}
            | {"flags": [f for f in row["flags"] if f not in JUDGING_FLAGS]}
            for row in rows_of_domain
        ]
        for domain, rows_of_domain in document["domains"].items()
    }
    return {
        **document,
        "domains": rows,
        "fields": _without_panels(document["fields"]),
        **({FURTHER: further} if further else {}),
    }


def _without_panels(
    fields: Mapping[str, Mapping[str, FieldObject]],
) -> dict[str, dict[str, FieldObject]]:
    """Return what holds between rows, by mode and ranking, without what the panels agree on."""
    return {
        mode: {
            name: cast(FieldObject, {k: v for k, v in field.items() if k != "panel"})
            for name, field in fields_of_mode.items()
        }
        for mode, fields_of_mode in fields.items()
    }
