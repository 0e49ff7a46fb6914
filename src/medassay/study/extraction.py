"""The extraction study: what health records are worth by every metric at once, and what the metrics
say of each other.

Families of metrics: structure (JSON similarity, medication state), words (BLEU, ROUGE, Levenshtein,
token F1 over the record as plain text), meaning (embeddings, section by section), judges (graphs,
where the run has some). The composite is the mean of the families, each the mean of its metrics
(unsmoothed BLEU enters none; of a report without drugs, structure is likeness alone); a high
composite hides what a family alone would show, so families stand beside it, and so does every
stopped drug that is listed as current. Rows are compared on the reports that they have in common.

Source: specification of health-record extraction; text metrics; statistics 7.3 and 7.7.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.health_record import DRUG_DETAILS, GOING_ON, LEAVES, SECTIONS
from medassay.core.records.item import Item
from medassay.core.records.statistics import OVERALL
from medassay.core.records.target import Record
from medassay.core.records.trial import Trial
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.kinds.record.medication import medication_state, stopped_names
from medassay.kinds.record.parts import GraphScore, RecordParts, parts_of
from medassay.kinds.record.reply import record_value
from medassay.kinds.record.row import RecordColumns, RecordRow
from medassay.kinds.record.scorer import details_of, section_of, section_text
from medassay.kinds.record.summary import (
    TASKS,
    graph_number,
    graphs_of,
    paired_differences,
    thinking_pairs,
)
from medassay.model.embedder import Embedder
from medassay.score.text import text_likeness
from medassay.statistic.draws import count_clusters
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.statistic.metric.correlation import pearson, tree
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO, MIN_COVERAGE
from medassay.statistic.ranking.pairs import RankedRows, board_of
from medassay.statistic.ranking.pool import Options, Stratum
from medassay.statistic.ranking.shared import Bools
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run
from medassay.study.extraction_tables import (
    CompositeOrder,
    CompositeRank,
    ExtractionRow,
    ExtractionStudy,
    Metric,
    MetricCorrelation,
    ReferenceCounts,
    ReportCounts,
    StoppedDrug,
    ThinkingPair,
)
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

COMPOSITE = "composite"
ALONE = ("bleu",)  # told, and in no family: it gives nothing to a short text that is right
EMBEDDING = "embedding"
# Records are German as often as English: only metrics that know letters beyond a–z.
_WORDS = (
    *("bleu", "bleu_smoothed", "levenshtein", "rouge1_unicode", "rouge2_unicode"),
    *("rougeL_unicode", "token_f1"),
)
# From which value on a reply passes by a metric; declared here, and to be declared anew by --pass.
THRESHOLDS: Mapping[str, float] = {
    "json_similarity": 0.8,
    "medication": 1.0,
    "bleu": 0.5,
    "bleu_smoothed": 0.5,
    "levenshtein": 0.8,
    "rouge1_unicode": 0.8,
    "rouge2_unicode": 0.7,
    "rougeL_unicode": 0.8,
    "token_f1": 0.8,
    EMBEDDING: 0.9,
    COMPOSITE: 0.8,
}
_OF_GRAPHS = 0.7  # threshold of a graph's score
ModeRow = tuple[str, str, str]
ROW_KEYS = ("model", "setting", "mode")  # of a ModeRow


class ExtractionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer as numbers, and its sections beside the reference's.

    `values` in the order of the metrics.
    """

    row: ModeRow
    domain: str
    item: str
    values: dict[str, float]
    sections: Sequence[tuple[str, str]]
    stopped: Sequence[str]
    synthetic: bool


def extraction_study(
    run: Run, *, embeddings: str = "", thresholds: Mapping[str, float] | None = None
) -> ExtractionStudy:
    """Return the tables of the study for one sealed run of health records.

    Parameters
    ----------
    embeddings : folder of a sentence-transformers model, or `embedded:minilm`; empty leaves that
        family out
    thresholds : metric → value from which on a reply passes, in place of `THRESHOLDS`

    Raises
    ------
    InputError
        When the run holds no health records, a threshold names no metric, or the embedding model is
        not there.
    """
    run.refuse_unfinished()
    run.manifest.refuse_several("this study")
    if run.manifest.task not in TASKS:
        raise InputError(
            f"run {run.id}: task '{run.manifest.task}' holds no health records; the study needs "
            f"one of {', '.join(TASKS)}"
        )
    embedder = Embedder(embeddings) if embeddings else None
    metrics = _metrics(run, embedder, thresholds or {})
    answers = list(_answers(run))
    if not answers:
        raise InputError(
            f"run {run.id}: no answer to a report with a reference record: every call failed, or"
            " the reports have no references yet (`medassay bank silver`)"
        )
    if embedder is not None:
        answers = _embedded(answers, embedder)
    return _StudyTables(run, metrics, answers).study()


def _metrics(run: Run, embedder: Embedder | None, thresholds: Mapping[str, float]) -> list[Metric]:
    families = {"json_similarity": "structure", "medication": "structure"}
    families |= dict.fromkeys(_WORDS, "words")
    ids: dict[str, str] = {}
    if embedder is not None:
        families[EMBEDDING] = "meaning"
        ids[EMBEDDING] = f"{EMBEDDING}, mean of sections, {embedder.id}"
    graphs = {graph_number(graph.name): graph.id for graph in run.manifest.graphs}
    families |= dict.fromkeys(graphs, "judges")
    metrics_known = {**THRESHOLDS, **dict.fromkeys(graphs, _OF_GRAPHS)}
    for name, value in thresholds.items():
        if name not in {*families, COMPOSITE}:
            raise InputError(
                f"--pass: '{name}' is no metric here; known are {', '.join([*families, COMPOSITE])}"
            )
        if not 0 <= value <= 1:
            raise InputError(f"--pass: {name}={value:g}; a value from 0 to 1 is needed")
    return [
        Metric(
            name=name,
            family=family,
            threshold=thresholds.get(name, metrics_known[name]),
            id=ids.get(name) or graphs.get(name, name),
        )
        for name, family in {**families, COMPOSITE: ""}.items()
    ]


def _answers(run: Run) -> Iterator[ExtractionAnswer]:
    """Yield every answer to a report with a reference; a failed call tells nothing of the model."""
    items = RunItems(run.path, run.manifest.domains)
    graphs = {graph.name: graph.roots for graph in run.manifest.graphs}
    for trial, score in read_scored_trials(run.path):
        item = items.get(trial.domain, trial.item)
        parts = parts_of(score.parts)
        if isinstance(item.target, Record) and parts and parts.similarity is not None:
            yield _answered(trial, parts, graphs_of(trial, parts, graphs), item)


def _answered(
    trial: Trial,
    parts: RecordParts,
    judged: Mapping[str, GraphScore],
    item: Item,
) -> ExtractionAnswer:
    reply = record_value(trial.value, trial.outcome)
    reference_record = item.target_as(Record).record
    sections = [
        (section_text(section_of(reply, name)), section_text(reference_record[name]))
        for name in SECTIONS
    ]
    reply_text, reference = ("\n".join(filter(None, side)) for side in zip(*sections, strict=True))
    values = {"json_similarity": parts.similarity or 0.0}
    if parts.medication is not None:
        values["medication"] = parts.medication
    likeness = text_likeness(reply_text, reference)
    values |= {name: likeness[name] for name in _WORDS}
    values |= {
        graph_number(name): graph.score for name, graph in judged.items() if graph.score is not None
    }
    said_drugs = section_of(reply, "medications")
    state = medication_state(reference_record["medications"], said_drugs)
    details = details_of(item, said_drugs)
    return ExtractionAnswer(
        row=(trial.model, trial.setting, trial.mode),
        domain=trial.domain,
        item=trial.item,
        values=values,
        sections=sections,
        stopped=stopped_names(state, details),
        synthetic=item.kind == "synthetic",
    )


def _going_on(record: RecordColumns) -> int:
    """Return how many stopped drugs and doses are listed as current.

    Runs of earlier versions know names as written alone.
    """
    if record.drugs is None:
        return record.counted.stopped_as_current
    counted = record.drugs.counted
    return counted.as_current + counted.old_dose


def _embedded(answers: Sequence[ExtractionAnswer], embedder: Embedder) -> list[ExtractionAnswer]:
    """Return the answers with the mean cosine over the sections that reply or reference fill."""
    filled = [[pair for pair in answer.sections if any(pair)] for answer in answers]
    values = iter(embedder.similarities([pair for pairs in filled for pair in pairs]))
    answers_made = []
    for answer, pairs in zip(answers, filled, strict=True):
        cosines = [next(values) for _ in pairs]
        mean = sum(cosines) / len(cosines) if cosines else 1.0
        answers_made.append(replace(answer, values={**answer.values, EMBEDDING: mean}))
    return answers_made


class _StudyTables:
    """The answers of a run as a table of numbers, and everything that is said of it."""

    def __init__(
        self, run: Run, metrics: Sequence[Metric], answers: Sequence[ExtractionAnswer]
    ) -> None:
        self._run = run
        self._metrics = {metric.name: metric for metric in metrics}
        self._families: dict[str, list[str]] = {}
        for metric in metrics:
            if metric.family and metric.name not in ALONE:
                self._families.setdefault(metric.family, []).append(metric.name)
        self._answers = answers
        self._numbers = (
            *self._metrics,
            *(f"family {family}" for family in self._families),
            *(f"pass {name}" for name in self._metrics),
        )

    def study(self) -> ExtractionStudy:
        rows = sorted({answer.row for answer in self._answers})
        origins = [row.record.references for row in self._overall]
        return ExtractionStudy(
            run=self._run.id,
            seal=self._run.seal.hash,
            code=self._run.manifest_document["code"],
            scripted=any("scripted" in row.flags for row in self._overall),
            references=ReferenceCounts(
                gold=max(origin.gold for origin in origins),
                silver=max(origin.silver for origin in origins),
                converted=max(origin.converted for origin in origins),
            ),
            reports=ReportCounts(common=int(self._common.sum()), all=self._n_reports),
            metrics=list(self._metrics.values()),
            families=self._families,
            rows=[self._row(row) for row in rows],
            composite=self._order_of_composites(rows),
            correlation=self._correlation(),
            thinking=[pair for mode in sorted({r[2] for r in rows}) for pair in self._pairs(mode)],
            stopped=[
                StoppedDrug(
                    **dict(zip(ROW_KEYS, answer.row, strict=True)),
                    domain=answer.domain,
                    item=answer.item,
                    drug=None if answer.synthetic else drug,
                )
                for answer in self._answers
                for drug in answer.stopped
            ],
        )

    def _order_of_composites(self, rows: Sequence[ModeRow]) -> CompositeOrder | None:
        """Return the rank ranges of the rows by their composites, all pairs tested at once on the
        reports that all have.

        None where reports are too few to order anything.
        """
        pools = [self._pools[row] for row in rows]
        n_common = int(self._common.sum())
        among = [
            k
            for k, pool in enumerate(pools)
            if len(pool.values) == n_common and pool.known(COMPOSITE).mean() >= MIN_COVERAGE
        ]
        if not among:
            return None
        at = self._numbers.index(COMPOSITE)
        strata = [
            Stratum(
                name=str(number),
                scores=np.array([answer.values[:, at] for answer in parts]),
                clusters=parts[0].clusters,
                seed=parts[0].seed,
            )
            for number, parts in enumerate(zip(*(pools[k].domains for k in among), strict=True))
        ]
        present = [~np.isnan(stratum.scores) for stratum in strata]
        common = [np.asarray(part.all(axis=0)) for part in present]
        labels = [stratum.clusters[mask] for stratum, mask in zip(strata, common, strict=True)]
        if count_clusters(np.concatenate(labels)) < SMALL_N:
            return None
        ranked_pairs = board_of(
            RankedRows(
                rows=[(str(k), "") for k in among],
                strata=strata,
                ranked=[*range(len(among))],
                present=present,
                common=common,
                options=Options(pool_seed=strata[0].seed, rule=SIMULTANEOUS),
            ),
            step_down=len(among) <= ALL_PAIRS_UP_TO,
        )
        return CompositeOrder(
            n=ranked_pairs.n,
            rows=[
                CompositeRank(
                    **dict(zip(ROW_KEYS, rows[k], strict=True)),
                    rank_lo=ranked_pairs.ranks[place].lo,
                    rank_hi=ranked_pairs.ranks[place].hi,
                )
                for place, k in enumerate(among)
            ],
        )

    @cached_property
    def _overall(self) -> list[RecordRow]:
        return self._run.statistics.rows_as(RecordRow, OVERALL)

    @property
    def _n_reports(self) -> int:
        return len({(answer.domain, answer.item) for answer in self._answers})

    @cached_property
    def _common(self) -> Bools:
        """Return the reports that all rows have.

        A row that lacks more than a tenth of them decides nothing.
        """
        known_masks = [pool.known("json_similarity") for pool in self._whole.values()]
        most = [
            mask for mask in known_masks if mask.sum() >= MIN_COVERAGE * self._n_reports
        ] or known_masks
        return np.asarray(np.logical_and.reduce(most))

    @cached_property
    def _pools(self) -> dict[ModeRow, CasePool]:
        """Return the numbers of each row on the common reports.

        On its own where it lacks some of them.
        """
        pools = {}
        for row, pool in self._whole.items():
            has_all = bool((pool.known("json_similarity") | ~self._common).all())
            pools[row] = pool.only(self._common) if has_all else pool
        return pools

    def _value(self, answer: ExtractionAnswer) -> list[float | None]:
        """Return every number of one answer in the order of `_numbers`, None where unknown."""
        values = dict(answer.values)
        families = {
            family: float(np.mean([values[n] for n in names]))
            for family, names in self._families.items()
            if all(name in values for name in names)
        }
        # Without drugs in the report there is no medication to be right about: structure is
        # likeness alone.
        if "structure" not in families and "json_similarity" in values:
            families["structure"] = values["json_similarity"]
        if families.keys() == self._families.keys():
            values[COMPOSITE] = float(np.mean(list(families.values())))
        passed = {
            name: float(values[name] >= metric.threshold)
            for name, metric in self._metrics.items()
            if name in values
        }
        return [
            *(values.get(name) for name in self._metrics),
            *(families.get(family) for family in self._families),
            *(passed.get(name) for name in self._metrics),
        ]

    @cached_property
    def _whole(self) -> dict[ModeRow, CasePool]:
        """Return the numbers of each row, item by item, repeats averaged."""
        items = RunItems(self._run.path, self._run.manifest.domains)
        table = ItemMatrix(items, self._run.manifest, dict.fromkeys(self._numbers, Scale()))
        for answer in self._answers:
            model, setting, mode = answer.row
            numbers = dict(zip(self._numbers, self._value(answer), strict=True))
            table.add((answer.domain, model, setting, mode), answer.item, numbers)
        return {
            (model, setting, mode): table.pool(table.domains, (model, setting), mode)
            for model, setting, mode in {answer.row for answer in self._answers}
        }

    def _row(self, row: ModeRow) -> ExtractionRow:
        estimates = pooled_means(self._pools[row])
        own_row = next(r for r in self._overall if (*r.key, r.mode) == row)
        record = own_row.record
        drugs = record.drugs  # runs of earlier versions have none
        beside = {name: record.estimate(name) for name in LEAVES}
        for name in (*DRUG_DETAILS, GOING_ON):
            beside[f"{name} of drugs"] = None if drugs is None else drugs.estimate(name)
        return ExtractionRow(
            **dict(zip(ROW_KEYS, row, strict=True)),
            metrics={name: estimates.get(name) for name in self._metrics},
            families={family: estimates.get(f"family {family}") for family in self._families},
            passed={name: estimates.get(f"pass {name}") for name in self._metrics},
            beside=beside,
            stopped_as_current=_going_on(record),
            n=int(self._pools[row].known("json_similarity").sum()),
            flags=own_row.flags,
        )

    def _correlation(self) -> MetricCorrelation:
        """Return Pearson's r between metrics over all answers, whichever model gave them."""
        names = [name for name in self._metrics if name != COMPOSITE]
        table = np.array([[a.values.get(n, np.nan) for n in names] for a in self._answers])
        matrix = pearson(table)
        joined = tree(matrix.values)
        return MetricCorrelation(
            metrics=names,
            pearson=[list(line) for line in matrix.values],
            n=[list(line) for line in matrix.n],
            order=list(joined.order),
            merges=[list(merge) for merge in joined.merges],
            clusters=[[names[at] for at in cluster] for cluster in joined.clusters],
        )

    def _pairs(self, mode: str) -> Iterator[ThinkingPair]:
        rows = {(model, setting) for model, setting, pool_mode in self._pools if pool_mode == mode}
        numbers = [n for n in self._numbers if not n.startswith("pass ")]
        for model, thinking, direct in thinking_pairs(rows):
            pools = [self._pools[model, setting, mode] for setting in (thinking, direct)]
            yield ThinkingPair(
                model=model,
                mode=mode,
                thinking=thinking,
                direct=direct,
                differences=dict(paired_differences(pools[0], pools[1], numbers)),
            )
