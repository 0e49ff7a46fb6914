"""How each part of the method is applied to one line of its corpus: JSON in, JSON out."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import msgspec
import numpy as np

from medassay.bank.check import build_item
from medassay.core.parser import Parser
from medassay.core.records.answer import Answer
from medassay.core.records.completion import Completion
from medassay.core.records.estimate import Estimate
from medassay.core.records.item import Item
from medassay.core.records.likelihood import StoredLikelihood, likelihoods_of
from medassay.core.records.prompt import Prompt
from medassay.core.records.relaxed import StoredCompletions
from medassay.core.records.verdict import Case
from medassay.core.reply import json_objects, json_value, refusal, thoughts
from medassay.core.scale import Scale
from medassay.errors import MedassayError
from medassay.judging import panel, sanitize
from medassay.kinds import catalog
from medassay.kinds.catalog import PARSERS, SCORERS
from medassay.kinds.likelihood import choice_scorer as likeliest
from medassay.kinds.likelihood import perplexity, relaxed_perplexity
from medassay.kinds.read_answer import read_answer
from medassay.kinds.record import reply as record_reply
from medassay.kinds.record import scorer as health_record
from medassay.runner import revisions
from medassay.runner.judge_stage import verdict_fields
from medassay.score import text
from medassay.statistic import draws
from medassay.statistic.agreement import alpha, people, votes
from medassay.statistic.interval import bootstrap, cluster, effective, exact, ratio, wilson
from medassay.statistic.metric import correlation, reliability, spread, weighted
from medassay.statistic.ranking import field, oracle, pool, shared, simultaneous
from medassay.statistic.test import holm, margin, mcnemar, paired
from tests import makers
from tests.behaviour.items import RULES, grader_of

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of the method: its revision here, and what it makes of one input."""

    revision: int
    apply: Callable[[Line], Any]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; numbers that JSON lacks by name."""
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return "" if value is msgspec.UNSET else value


def applied(part: Part, line: Line) -> Any:
    """Return the output of a part, or the refusal by which it answers."""
    try:
        return plain(part.apply(line))
    except (MedassayError, ValueError) as error:
        return {"refused": type(error).__name__}


def item_of(record: Line) -> Item:
    """Return an item; imports have forms that no bank has."""
    if "form" in record:
        return makers.item(**record)
    base = {"source": "written for a test", "domain": "d", "question": "Q?"}
    is_open = {"criteria", "diagnoses", "document", "facts", "record", "reference"} & record.keys()
    return build_item(base | ({"answer_type": "open"} if is_open else {}) | record)


def _parse(line: Line, parser: Parser) -> Any:
    item = item_of(line["item"])
    order = tuple(line["order"]) if "order" in line else None
    prompt = Prompt(
        item_id=item.id,
        messages=(),
        encoded=b"",
        template="",
        letters=item.letters,
        options=item.options if order is None else tuple(item.options[i] for i in order),
        order=order,
    )
    completion = Completion(text=line["text"], finish=line.get("finish", "stop"))
    answer = read_answer(item, prompt, completion, parser, line.get("mode", "standard"))
    return [answer.outcome, answer.value, answer.reason]


def _answer(item: Item, line: Line) -> Answer:
    return Answer(
        item_id=item.id,
        outcome=line.get("outcome", "answered"),
        value=line.get("value"),
        reason="",
        likelihoods=likelihoods_of(
            msgspec.convert(line.get("likelihoods", ()), tuple[StoredLikelihood, ...]), None
        ),
        drawn=msgspec.convert(line.get("drawn"), StoredCompletions | None),
    )


def _score(line: Line, name: str) -> Any:
    item = item_of(line["item"])
    [score] = SCORERS[name].score([item], [_answer(item, line)])
    return [score.value, score.because]


def _measure(line: Line, measure: Callable[[Item, Answer, str], dict[str, Any]]) -> Any:
    item = item_of(line["item"])
    return measure(item, _answer(item, line), line.get("text", ""))


def _grade(line: Line) -> Any:
    judge = grader_of(line["grader"], line["rules"])
    cases = [Case(item=item_of(item), text=answer) for item, answer in line["cases"]]
    replies = [_completion(reply) for reply in line["replies"]]
    verdicts = judge.step(cases, replies)
    if isinstance(verdicts, Prompt):
        return "asks again"
    return [
        verdict_fields(verdict)
        | {"score": judge.score(case.item, verdict)}
        | {"parts": judge.parts(case.item, verdict) if verdict.valid else {}}
        for case, verdict in zip(cases, verdicts, strict=True)
    ]


def _completion(reply: str | Line) -> Completion:
    if isinstance(reply, str):
        return Completion(text=reply)
    pairs = [tuple((t, p) for t, p in top) for top in reply["alternatives"]]
    return Completion(
        text=reply["text"],
        logprobs=tuple((token, p) for token, p in reply["logprobs"]),
        alternatives=tuple(pairs),
    )


def _masked(line: Line) -> Any:
    return sanitize.sanitize_answer(line["text"], sanitize.speaker_pattern(line.get("names", ())))


def _thoughts(line: Line) -> Any:
    return thoughts.strip_thoughts(line["text"])


def _refusal(line: Line) -> Any:
    said = line["text"]
    return [
        refusal.declined_at(said),
        refusal.only_declines(said),
        refusal.turns_to_answer(said),
    ]


def _objects(line: Line) -> Any:
    return json_objects.find_objects(line["text"], *line["keys"])


def _record_reply(line: Line) -> Any:
    return record_reply.read_record_reply(line["text"], cut=line.get("cut", False))


def _scores(line: Line, key: str = "scores") -> Any:
    """Return scores as numbers; null is a missing one."""
    return np.array(line[key], dtype=float)


def _clusters(line: Line) -> Any:
    return np.array(line["clusters"]) if line.get("clusters") is not None else None


def _scale(line: Line) -> Scale:
    return Scale(**line.get("scale", {}))


def _bootstrap(line: Line) -> Any:
    return bootstrap.bootstrap_mean(
        _scores(line),
        seed=line["seed"],
        n_resamples=line.get("n_resamples", 200),
        clusters=_clusters(line),
        scale=_scale(line),
    )


def _cluster(line: Line) -> Any:
    scores, clusters = _scores(line), np.array(line["clusters"])
    return [cluster.linearised_se(scores, clusters), cluster.cluster_t(scores, clusters)]


def _effective(line: Line) -> Any:
    domains = [(np.array(s, dtype=float), np.array(c)) for s, c in line["domains"]]
    return effective.effective_interval(domains, scale=Scale())


def _exact(line: Line) -> Any:
    scores = [1.0] * (line["n"] - line["events"]) + [0.0] * line["events"]
    return [
        exact.clopper_pearson_upper(line["events"], line["n"]),
        exact.worst_five_percent_mean(scores),
    ]


def _ratio(line: Line) -> Any:
    top, bottom = _scores(line, "numerators"), _scores(line, "denominators")
    columns = np.stack([top, bottom], axis=1)
    drawn = ratio.resampled_sums(columns, _clusters(line), 100, line["seed"])
    return [drawn[:3], ratio.linearised(top, bottom)]


def _correlation(line: Line) -> Any:
    columns = np.array(line["columns"], dtype=float)
    return {
        "pearson": correlation.pearson(columns),
        "spearman": correlation.spearman(columns),
        "kendall": correlation.kendall(columns),
        "intervals": correlation.pearson_intervals(columns, seed=line["seed"], n_resamples=100),
    }


def _reliability(line: Line) -> Any:
    scores, rules = _scores(line), {"k": line["k"], "x0": line["x0"]}
    return [
        reliability.reliability_weights(scores, **rules),
        reliability.relative_weights(scores, **rules),
        reliability.reliability_weighted_mean(scores, **rules),
    ]


def _strata(line: Line) -> list[pool.Stratum]:
    return [
        pool.Stratum(
            name=name,
            scores=np.array(scores, dtype=float),
            clusters=np.array(clusters),
            seed=seed,
        )
        for name, scores, clusters, seed in line["strata"]
    ]


def _ranks(line: Line) -> Any:
    options = pool.Options(
        pool_seed=7,
        n_resamples=100,
        rule=line["rule"],
        percentile_only=line.get("percentile_only", False),
        touching=line.get("touching", False),
    )
    strata = _strata(line)
    rows = [(f"m{i}", "zero_shot") for i in range(len(strata[0].scores))]
    made = field.field_of(rows, strata, options)
    standings = [msgspec.structs.replace(s, used=np.flatnonzero(s.used)) for s in made.standings]
    return {"standings": standings, "pairs": made.pairs, "oracle": made.oracle, "c": made.c}


def _pool(line: Line) -> Any:
    scores = [np.array(s, dtype=float) for s, _ in line["domains"]]
    clusters = [np.array(c) for _, c in line["domains"]]
    return [
        pool.stratified_spread(scores, clusters),
        pool.stratified_t(scores, clusters, scale=Scale()),
    ]


def _shared(line: Line) -> Any:
    estimates = {
        name: Estimate(value=v, lo=lo, hi=hi, n=100, n_clusters=100)
        for name, (v, lo, hi) in line["estimates"].items()
    }
    return shared.rank(estimates, line["rule"], line["better"])


def _simultaneous(line: Line) -> Any:
    return simultaneous.simultaneous_order(
        _scores(line, "values"), _scores(line, "draws"), _scores(line, "se")
    )


def _margin(line: Line) -> Any:
    return margin.tango_interval(line["only_a"], line["only_b"], line["n"])


def _paired(line: Line) -> Any:
    return paired.paired_difference(
        _scores(line, "a"),
        _scores(line, "b"),
        seed=line["seed"],
        n_resamples=200,
        clusters=_clusters(line),
    )


def _alpha(line: Line) -> Any:
    ratings, level = np.array(line["ratings"], dtype=float), line["level"]
    items = np.arange(ratings.shape[1]) // 2  # two units an item
    estimate = alpha.alpha_estimate(ratings, items, level=level, seed=3, n_resamples=50)
    return [alpha.krippendorff_alpha(ratings, level), estimate]


def _people(line: Line) -> Any:
    first, second = line["first"], line["second"]
    return [
        people.cohen_kappa(first, second),
        people.prediction_powered_mean(first, second, line["rest"], least=5),
    ]


def _panel(line: Line) -> Any:
    verdicts = line["verdicts"]
    return {
        "score": panel.panel_score(line["scores"], line["seats"]),
        "agreement": panel.agreement(verdicts),
        "above": panel.above_others(
            {str(i): s for i, s in enumerate(line["scores"]) if s is not None}
        ),
        "hallucinated": panel.hallucinated(line["claims"]),
    }


def _draws(line: Line) -> Any:
    seed = draws.seed_of(*line["seed_of"])
    return [str(seed), draws.draw_means(np.atleast_2d(_scores(line)), _clusters(line), 5, seed)]


STATISTICS: dict[str, Callable[[Line], Any]] = {
    "alpha": _alpha,
    "bootstrap": _bootstrap,
    "cluster": _cluster,
    "correlation": _correlation,
    "draws": _draws,
    "effective": _effective,
    "exact": _exact,
    "holm": lambda line: holm.holm(line["p"]),
    "margin": _margin,
    "mcnemar": lambda line: mcnemar.mcnemar(line["only_a"], line["only_b"]),
    "oracle": lambda line: oracle.oracle(
        _scores(line), seed=line["seed"], n_resamples=100, clusters=_clusters(line)
    ),
    "paired": _paired,
    "people": _people,
    "pool": _pool,
    "ranks": _ranks,
    "ratio": _ratio,
    "reliability": _reliability,
    "shared": _shared,
    "simultaneous": _simultaneous,
    "spread": lambda line: [
        spread.resilience(line["values"]),
        spread.variation(line["values"][0]),
    ],
    "votes": lambda line: [
        votes.vote_table(line["votes"]),
        votes.margin_of_error(len(line["votes"]), 10 * len(line["votes"])),
    ],
    "weighted": lambda line: weighted.weighted_accuracy(line["accuracies"], line["items"]),
    "wilson": lambda line: wilson.wilson_interval(line["successes"], line["n"]),
}
MEASURES: dict[str, Callable[[Line], Any]] = {
    "likeliest": lambda line: _measure(line, likeliest.likeliest_parts),
    "perplexity": lambda line: _measure(line, perplexity.perplexity_parts),
    "record": lambda line: _measure(line, health_record.record_parts),
    "relaxed_perplexity": lambda line: _measure(line, relaxed_perplexity.relaxed_parts),
    "text": lambda line: text.text_likeness(line["prediction"], line["reference"]),
}
READERS: dict[str, Callable[[Line], Any]] = {
    "json_reply": lambda line: json_value.read_json_reply(line["text"]),
    "objects": _objects,
    "outcome": lambda line: _parse(line, PARSERS["choice"]),
    "record_reply": _record_reply,
    "refusal": _refusal,
    "thoughts": _thoughts,
}
SANITIZERS: dict[str, Callable[[Line], Any]] = {
    "fence": lambda line: sanitize.delimit(line["text"], line.get("what", "answer")),
    "mask": _masked,
}
_GRADER_NAMES = ("criteria", "ddx", "ddx_names", "facts", "g_eval", "graph", "prometheus")


def _grader_revisions() -> dict[str, int]:
    judges = [grader_of(name, RULES.get(name, {"steps": {}})) for name in _GRADER_NAMES]
    return {judge.name: judge.revision for judge in judges}


def parts() -> dict[str, Part]:
    """Return kind and name → every part of the method."""
    statistics = {
        **revisions.BOARD_STATISTICS,
        **revisions.JUDGED_STATISTICS,
        **revisions.STUDY_STATISTICS,
    }
    tables: dict[str, tuple[Mapping[str, int], Callable[[str], Callable[[Line], Any]]]] = {
        "grader": (_grader_revisions(), lambda name: _grade),
        "measure": (
            {name: m.revision for name, m in catalog.MEASURES.items()},
            MEASURES.__getitem__,
        ),
        "panel": (revisions.PANEL, {"mean": _panel}.__getitem__),
        "parser": (
            {name: parser.revision for name, parser in PARSERS.items()},
            lambda name: lambda line: _parse(line, PARSERS[name]),
        ),
        "reader": (revisions.READERS, READERS.__getitem__),
        "sanitizer": (revisions.SANITIZERS, SANITIZERS.__getitem__),
        "scorer": (
            {name: scorer.revision for name, scorer in SCORERS.items()},
            lambda name: lambda line: _score(line, name),
        ),
        "statistic": (statistics, STATISTICS.__getitem__),
    }
    return {
        f"{kind}_{name}": Part(revision, applied_by(name))
        for kind, (named, applied_by) in tables.items()
        for name, revision in sorted(named.items())
    }


def same(one: Any, other: Any) -> bool:
    """Return whether two outputs are one.

    Numbers may differ in the last digits, by which machines differ.
    """
    if isinstance(one, float | int) and isinstance(other, float | int):
        return type(one) is type(other) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def as_line(line: Line, output: Any) -> str:
    """Return a line of a corpus."""
    return json.dumps({"in": line, "out": output}, ensure_ascii=False, allow_nan=False)
