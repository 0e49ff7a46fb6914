"""Answers with their references and what metrics say of them: the data of studies about metrics."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.records.statistics import OVERALL
from medassay.errors import InputError
from medassay.runner.engine.local import LocalEngine
from medassay.runner.engine.stage import Engine
from medassay.runner.measure import NONE, compared
from medassay.score.catalog import TEXT_MEASURES
from medassay.score.measure import Pair, TextMeasure
from medassay.score.text import LEXICAL, text_likeness
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run

MEASURES = "measures"  # folder of a workspace
SIGNED = ("bleurt",)  # can be negative, so their mean says nothing of their size


class StudyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. `values` is what the run already knows of it, `people` what people said of it."""

    item: str
    model: str
    repeat: int
    text: str
    reference: str
    values: Mapping[str, float] = msgspec.field(default_factory=dict)
    people: Mapping[str, float] = msgspec.field(default_factory=dict)

    @property
    def pair(self) -> Pair:
        """Return prediction and reference."""
        return self.text, self.reference


def answers_of(run: Run) -> list[StudyAnswer]:
    """Return the answers of a run that compares texts, with the metrics that it computed.

    Raises
    ------
    InputError
        When the run's answers have no reference texts.
    """
    run.refuse_unfinished()
    items = RunItems(run.path, run.manifest.domains)
    if not items.forms & {"text", "open"}:
        raise InputError(
            f"run {run.id}: its items have no reference texts; the study needs open answers"
        )
    return list(_answers(run, items))


def _answers(run: Run, items: RunItems) -> Iterator[StudyAnswer]:
    several = len(run.statistics.rows(OVERALL)) > len(run.manifest.models)
    for trial, score in read_scored_trials(run.path):
        if trial.outcome != "answered":
            continue
        item = items.get(trial.domain, trial.item)
        values = {**(score.parts or {}).get("text", {}), **score.measured}
        model = f"{trial.model}, {trial.setting}" if several else trial.model
        yield StudyAnswer(
            item=f"{trial.domain}/{trial.item}",
            model=model,
            repeat=trial.repeat,
            text=trial.value or "",
            reference=item.reference_text,
            values={name: value for name, value in values.items() if value is not None},
        )


def sample_answers(answers: Sequence[StudyAnswer], size: int | None) -> list[StudyAnswer]:
    """Return at most so many answers of each model, drawn by a seed, in their order."""
    if size is None:
        return list(answers)
    items = sorted({answer.item for answer in answers})
    sampled = set(random.Random("answers of a study").sample(items, min(size, len(items))))
    return [answer for answer in answers if answer.item in sampled]


def gauges_named(options: Sequence[str]) -> dict[str, TextMeasure]:
    """Return metrics that need a model, by what the command line says of them:
    `bertscore=embedded:minilm`.

    Raises
    ------
    InputError
        When one is unknown.
    UnavailableError
        When its model is not here.
    """
    metrics = {}
    for option in options:
        name, _, place = option.partition("=")
        if name not in TEXT_MEASURES:
            raise InputError(
                f"--metric: '{name}' is unknown; known are {', '.join(sorted(TEXT_MEASURES))}"
            )
        if place != NONE:
            metrics[name] = TEXT_MEASURES[name](place)
    return metrics


def values_of(
    pairs: Sequence[Pair],
    measures: Iterable[TextMeasure],
    workspace: Path,
    engine: Engine | None = None,
) -> list[dict[str, float]]:
    """Return what every metric says of each pair: those of words, and those given."""
    likenesses = [text_likeness(*pair) for pair in pairs]
    for gauge in measures:
        for text_values, values in zip(
            likenesses,
            compared(pairs, gauge, workspace / MEASURES, engine or LocalEngine()),
            strict=True,
        ):
            text_values |= {
                n: v for n, v in zip(gauge.columns, values, strict=True) if v is not None
            }
    return likenesses


def columns_of(values: Iterable[Mapping[str, float]]) -> list[str]:
    """Return the metrics that occur, those of words first."""
    names = dict.fromkeys(name for row in values for name in row)
    return [*(n for n in LEXICAL if n in names), *(n for n in names if n not in LEXICAL)]
