"""What a setting does to a model's score: form of conversation, worked examples, order of options.

All settings are compared on the same items, pair by pair.

Rows of the same model that differ in one setting are compared on the items that both have, within
one run or across runs of the same bank.

Source: specification of statistics, 7.3; tasks and prompts, 14.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.canonical import short_hash
from medassay.core.ranks import NOT_SHOWN, SHOWN
from medassay.core.records.task import CHAT_SUFFIX
from medassay.errors import InputError
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.forest import NamedDifference, forest
from medassay.statistic.draws import number_clusters, seed_of
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import Difference, paired_difference
from medassay.storage.records import item_scores
from medassay.storage.run import Run

FACTORS = ("chat template", "few-shot", "option order", "prompt")
_FEWEST = 2  # items of a difference
_HEADS = (
    "model",
    "task",
    "asked",
    "with − without",
    "difference",
    "p (Holm)",
    "reading",
    "items",
)
_COLUMNS = (
    "model",
    "task",
    "asked",
    "factor",
    "with",
    "without",
    "mean_with",
    "mean_without",
    "difference",
    "lo",
    "hi",
    "p",
    "p_holm",
    "different",
    "n",
)


class SettingRow(msgspec.Struct, frozen=True):
    """One row of a run, as it was asked.

    `factors` may differ between rows of a model, `alike` (bank and entry) must not.
    """

    run: str
    model: str
    task: str
    alike: str
    scale: float
    factors: Mapping[str, str]
    scores: Mapping[tuple[str, str], float]
    clusters: Mapping[tuple[str, str], int]


_LEVEL = 0.05


class SettingEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What one setting does to one model: the difference with minus without, paired by item.

    `asked` is what both rows had in common, `with` and `without` what the factor was; `unit` is 100
    where scores are shares, else 1; `p_holm` is adjusted over all effects of the study.
    """

    model: str
    task: str
    asked: str
    factor: str
    with_: str = msgspec.field(name="with")
    without: str
    unit: float
    mean_with: float
    mean_without: float
    difference: float
    lo: float
    hi: float
    p: float
    different: bool
    n: int
    p_holm: float


class SettingsStudy(msgspec.Struct, frozen=True, kw_only=True):
    """What each setting does to each model."""

    runs: list[str]
    effects: list[SettingEffect]


def settings_study(runs: Sequence[Run]) -> SettingsStudy:
    """Return what each setting does to each model.

    Raises
    ------
    InputError
        When no two rows of a model differ in just one setting.
    """
    rows = [row for run in runs for row in _rows(run)]
    pairs = [pair for pair in _pairs(rows) if len(_shared(*pair[1:])) >= _FEWEST]
    if not pairs:
        raise InputError(
            "settings: no two rows of a model differ in one setting alone; run a plan with settings"
            ' = ["zero_shot", "few_shot"], or two plans that differ in chat_template or'
            " shuffle_options, over the same bank"
        )
    differences = [_difference(*pair) for pair in pairs]
    adjusted = holm([difference.p for difference in differences])
    return SettingsStudy(
        runs=[run.id for run in runs],
        effects=[
            _effect(*pair, difference, float(p_holm))
            for pair, difference, p_holm in zip(pairs, differences, adjusted, strict=True)
        ],
    )


def _rows(run: Run) -> Iterator[SettingRow]:
    run.refuse_unfinished()
    run.manifest.refuse_several("this study")
    plan, task = run.manifest.plan, run.manifest.task
    clusters = RunItems(run.path, run.manifest.domains).cluster_of
    for (model, setting), scores in item_scores(run.path).items():
        kind, _, template = setting.partition(":")
        examples = f"{plan.few_shot_k} examples" if kind == "few_shot" else "none"
        yield SettingRow(
            run=run.id,
            model=model,
            task=task.removesuffix(CHAT_SUFFIX),
            alike=_alike(run, model),
            scale=100.0 if run.statistics.scale.is_share else 1.0,
            factors={
                "chat template": "conversation" if task.endswith(CHAT_SUFFIX) else "plain",
                "few-shot": examples,
                "option order": "shuffled" if plan.shuffle_options else "as in the bank",
                "prompt": template or run.manifest.template,
            },
            scores=scores,
            clusters=clusters,
        )


def _alike(run: Run, model: str) -> str:
    """Return the hash of what must be equal: the banks, and the model's entry less what the form of
    conversation sets.
    """
    entry = run.manifest_document["models"].get(model, {})
    fields_kept = {key: value for key, value in entry.items() if key not in ("protocol", "stop")}
    banks = sorted(bank.content_sha256 for bank in run.manifest.banks)
    return short_hash([banks, fields_kept])


def _pairs(rows: Sequence[SettingRow]) -> Iterator[tuple[str, SettingRow, SettingRow]]:
    """Yield rows of one model and task that differ in one setting: (setting, with, without)."""
    for first, other in combinations(rows, 2):
        if (first.model, first.task, first.alike) != (other.model, other.task, other.alike):
            continue
        apart = [name for name in FACTORS if first.factors[name] != other.factors[name]]
        # Examples and forms of conversation bring prompts of their own.
        apart = [name for name in apart if name != "prompt"] or apart
        if len(apart) == 1:
            plain = first.factors[apart[0]] in ("plain", "none", "as in the bank")
            yield (apart[0], other, first) if plain else (apart[0], first, other)


def _shared(first: SettingRow, other: SettingRow) -> list[tuple[str, str]]:
    """Return the items that both rows have a score of."""
    return sorted(first.scores.keys() & other.scores.keys())


def _difference(factor: str, first: SettingRow, other: SettingRow) -> Difference:
    shared = _shared(first, other)
    a, b = (np.array([row.scores[item] for item in shared]) for row in (first, other))
    groups = number_clusters(np.array([first.clusters[item] for item in shared]))
    seed = seed_of(first.model, first.task, factor)
    return paired_difference(a, b, seed=seed, clusters=groups)


def _effect(
    factor: str, first: SettingRow, other: SettingRow, difference: Difference, p_holm: float
) -> SettingEffect:
    shared = _shared(first, other)
    with_, without = (
        float(np.mean([row.scores[item] for item in shared])) for row in (first, other)
    )
    return SettingEffect(
        model=first.model,
        task=first.task,
        asked=", ".join(
            _setting_words(name, first.factors[name])
            for name in FACTORS
            if name != factor and first.factors[name] == other.factors[name]
        ),
        factor=factor,
        with_=first.factors[factor],
        without=other.factors[factor],
        unit=first.scale,
        mean_with=with_,
        mean_without=without,
        difference=difference.value,
        lo=difference.lo,
        hi=difference.hi,
        p=difference.p,
        different=difference.different and p_holm <= _LEVEL,  # no reading of an interval alone
        n=len(shared),
        p_holm=p_holm,
    )


def _setting_words(factor: str, value: str) -> str:
    """Return a setting as words: "no examples", "options shuffled", the prompt's name."""
    if factor == "few-shot":
        return value.replace("none", "no examples")
    return f"options {value}" if factor == "option order" else value.partition("@")[0]


def settings_sheet(study: SettingsStudy) -> ReportDocument:
    """Return the study as a sheet, a section for each setting."""
    sections = []
    for factor in FACTORS:
        for unit in (100.0, 1.0):
            own_effects = [e for e in study.effects if (e.factor, e.unit) == (factor, unit)]
            if own_effects:
                sections.append(_section(factor, unit, own_effects))
    return ReportDocument(
        name="settings",
        title="What settings do",
        reading=reading(study),
        notes=[
            (
                "Paired over the items that both rows have, in points of 100 for shares; runs:"
                f" {', '.join(study.runs)}."
            ),
            "Each interval is of its difference alone; p is Holm's over all differences here.",
        ],
        sections=sections,
        columns=list(_COLUMNS),
        lines=msgspec.to_builtins(study.effects),
        data=msgspec.to_builtins(study),
    )


def _section(factor: str, unit: float, effects: Sequence[SettingEffect]) -> Section:
    """Return forest and table of one setting's effects; `unit` is 100 for shares, else 1."""
    shares = unit == 100
    points = [
        NamedDifference(
            name=f"{effect.model}: {effect.asked}",
            diff=effect.difference,
            lo=effect.lo,
            hi=effect.hi,
            different=effect.different,
        )
        for effect in effects
    ]
    rows = [
        [
            effect.model,
            effect.task,
            effect.asked,
            f"{effect.with_} − {effect.without}",
            (f"{unit * effect.difference:+.1f} [{unit * effect.lo:+.1f}, {unit * effect.hi:+.1f}]"),
            f"{effect.p_holm:.3f}",
            SHOWN if effect.different else NOT_SHOWN,
            str(effect.n),
        ]
        for effect in effects
    ]
    slug = factor.replace(" ", "-") + ("" if shares else "-score")
    plot = forest(points, unit="points of 100" if shares else "score", factor=unit)
    return Section(
        title=factor.capitalize() + ("" if shares else ", in units of the score"),
        figure=(f"settings-{slug}", plot),
        grids=[Grid(heads=list(_HEADS), rows=rows, names=4)],
    )


def reading(study: SettingsStudy) -> str:
    """Return the study in one paragraph."""
    sentences = []
    for factor in FACTORS:
        own_effects = [effect for effect in study.effects if effect.factor == factor]
        if own_effects:
            sure = [effect for effect in own_effects if effect.different]
            most = max(own_effects, key=lambda effect: abs(effect.difference))
            sentences.append(
                f"{factor.capitalize()}: {len(sure)} of {len(own_effects)} differences are more"
                f" than chance; the largest is {most.unit * most.difference:+.1f}"
                f" ({most.model}, {most.asked})."
            )
    return " ".join(sentences)
