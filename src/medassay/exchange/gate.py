"""Gates of a release: rules that a new model must pass beside the old one, each with its numbers.

A rule that cannot be told does not pass: no proof is no permission.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from medassay.core.records.statistics import OVERALL, LeaderboardRow, Statistics
from medassay.core.scale import units
from medassay.errors import InputError, UsageError
from medassay.exchange.compare import Comparison
from medassay.exchange.compared_pairs import ComparedPair
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.storage.run import Run

RuleKind = Literal["noninferior", "equivalent", "minimum", "harm", "cutoff", "coverage"]
KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
HELD_TO_A_MARGIN = ("noninferior", "equivalent")
_BY_DOMAIN = ("noninferior", "equivalent", "minimum")
_SHARES = ("cutoff", "coverage")
EXAMPLES = "noninferior:0.02, minimum:0.7@cardiology, harm:0, cutoff:0.05, coverage:0.95"


class GateRule(msgspec.Struct, frozen=True):
    """One rule: `kind:limit`, or `kind:limit@domain`."""

    kind: RuleKind
    limit: float
    domain: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.limit:.15g}" + (f"@{self.domain}" if self.domain else "")


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule.

    Attributes
    ----------
    rule : as it was given
    value : of the new model, or the difference, new minus old
    bound : the end of its interval that is held against the limit; of shares the value itself
    limit : what the bound must not pass, of `harm` the old model's bound plus the number allowed
    n : items, marked items, or replies that it rests on
    reason : one sentence, also where it passes
    """

    rule: str
    passed: bool
    value: float | None = None
    bound: float | None = None
    limit: float | None = None
    n: int | None = None
    reason: str


class GateSide(msgspec.Struct, frozen=True, kw_only=True):
    """Which row of which run is held against another."""

    run: str
    model: str
    setting: str
    mode: str


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a gate: passed only where each one is.

    Attributes
    ----------
    reason : which rules did not pass, or that all did
    notes : what a reader must know of the runs
    """

    schema_version: int = 1
    passed: bool
    reason: str
    new: GateSide
    old: GateSide
    rules: list[GateCheck]
    pairs: list[ComparedPair]
    notes: list[str]


def read_rule(text: str) -> GateRule:
    """Return a rule.

    Raises
    ------
    UsageError
        Saying what is expected.

    Examples
    --------
    >>> read_rule("minimum:0.7@cardiology")
    GateRule(kind='minimum', limit=0.7, domain='cardiology')
    """
    head, _, domain = text.partition("@")
    name, _, limit = head.partition(":")
    kind = next((kind for kind in KINDS if kind == name), None)
    try:
        value = float(limit)
    except ValueError:
        value = math.nan
    if kind is None or not math.isfinite(value):
        raise UsageError(
            f"--gate '{text}': expected {', '.join(KINDS)} with a number, e.g. {EXAMPLES}"
        )
    if kind in HELD_TO_A_MARGIN and not value > 0:
        raise UsageError(f"--gate '{text}': expected a margin above 0, e.g. {kind}:0.02")
    if kind in _SHARES and not 0 <= value <= 1:
        raise UsageError(f"--gate '{text}': expected a share from 0 to 1, e.g. {kind}:0.05")
    if kind == "harm" and not (value >= 0 and value.is_integer()):
        raise UsageError(f"--gate '{text}': expected a whole number of answers from 0, e.g. harm:0")
    if domain and kind not in _BY_DOMAIN:
        raise UsageError(f"--gate '{text}': {kind} is of all domains; leave @{domain} out")
    if "@" in text and not domain:
        raise UsageError(f"--gate '{text}': expected a domain behind @")
    return GateRule(kind, value, domain)


def hold(comparison: Comparison, runs: Sequence[Run], rules: Sequence[GateRule]) -> GateReport:
    """Return whether a new model passes all rules beside an old one.

    Parameters
    ----------
    comparison : of two models, the new one first, by domain where a rule names one
    runs : that were compared

    Raises
    ------
    InputError
        When more than two models are compared, a rule names a domain that is not there, or a limit
        that every model passes, or none.
    """
    overall = comparison.only_pair()
    held = _Held(comparison, runs, overall)
    checks = [held.check(rule) for rule in rules]
    failed = [check.rule for check in checks if not check.passed]
    return GateReport(
        passed=not failed,
        reason=f"not passed: {', '.join(failed)}" if failed else "every rule passed",
        new=held.side(overall.a),
        old=held.side(overall.b),
        rules=checks,
        pairs=comparison.pairs,
        notes=comparison.notes,
    )


class _Held:
    """A new model beside an old one."""

    def __init__(self, comparison: Comparison, runs: Sequence[Run], overall: ComparedPair) -> None:
        self._comparison, self._runs, self._overall = comparison, runs, overall
        self._scale = comparison.scales[overall.metric or ""]

    def side(self, label: str) -> GateSide:
        """Return the row that a label of the comparison stands for."""
        at, model, setting = self._comparison.places[label]
        return GateSide(
            run=self._runs[at].id, model=model, setting=setting, mode=self._overall.mode
        )

    def check(self, rule: GateRule) -> GateCheck:
        """Return what becomes of a rule."""
        if rule.kind in HELD_TO_A_MARGIN:
            return self._margin(rule)
        if rule.kind == "minimum":
            return self._minimum(rule)
        if rule.kind == "harm":
            return self._harm(rule)
        return self._share(rule)

    def _statistics(self, label: str) -> Statistics:
        run = self._runs[self._comparison.places[label][0]]
        metric = self._overall.metric
        return next(
            s for s in run.statistics.by_metric if metric in (None, msgspec.UNSET, s.metric)
        )

    def _is_graded(self, label: str) -> bool:
        manifest = self._runs[self._comparison.places[label][0]].manifest
        return self._statistics(label).is_graded(self._overall.mode, imported=manifest.is_import)

    def _row(self, label: str, domain: str = "") -> LeaderboardRow:
        statistics = self._statistics(label)
        _, model, setting = self._comparison.places[label]
        name = domain or (OVERALL if OVERALL in statistics.domains else statistics.domains[0])
        rows = statistics.rows(name, self._overall.mode) if name in statistics.domains else []
        for row in rows:
            if row.key == (model, setting):
                return row
        domains = ", ".join(d for d in statistics.domains if d != OVERALL)
        raise InputError(f"--gate: no domain '{domain}'; there are {domains}")

    def _units(self, value: float | None) -> str:
        return units(value, self._scale)

    def _margin(self, rule: GateRule) -> GateCheck:
        pair = self._pair(rule.domain)
        better = self._statistics(pair.a).scale.better
        margin = rule.limit
        text = f"{pair.a} against {pair.b}"
        if (why := self._untold(pair, rule)) or pair.bounds_90 is None:
            return GateCheck(
                rule=str(rule),
                passed=False,
                value=pair.diff,
                limit=-margin,
                n=pair.n,
                reason=f"{text}: {why}",
            )
        lo, hi = pair.bounds_90
        worse = lo if better == "high" else -hi
        passed = worse > -margin
        if rule.kind == "equivalent":
            passed = -margin < lo and hi < margin
        return GateCheck(
            rule=str(rule),
            passed=passed,
            value=pair.diff,
            bound=worse,
            limit=-margin,
            n=pair.n,
            reason=f"{text}: difference {self._units(pair.diff)}, 90 % interval"
            f" [{self._units(lo)}, {self._units(hi)}], margin {self._units(margin)}, n={pair.n}",
        )

    def _untold(self, pair: ComparedPair, rule: GateRule) -> str:
        """Return why a difference cannot be held against a margin, "" where it can."""
        if pair.domain == OVERALL:
            # A domain of few items weighs as much as the others, and its spread cannot be told.
            first, second = (self._statistics(label) for label in (pair.a, pair.b))
            for name in first.domains:
                if name == OVERALL or name not in second.domains:
                    continue
                n = min(self._n_scores(pair.a, name), self._n_scores(pair.b, name))
                if n < SMALL_N:
                    return (
                        f"domain '{name}' has {n} of the {SMALL_N} items that each domain of a mean"
                        f" needs; hold the rule in one domain, as {rule}@domain"
                    )
        if pair.bounds_90 is None:
            return (
                "no interval of the difference; fewer than 10 items or clusters, or scores that do"
                " not vary"
            )
        return ""

    def _n_scores(self, label: str, domain: str) -> int:
        """Return how many items of a domain have a score of the row that a label stands for."""
        _, *key = self._comparison.places[label]
        rows = self._statistics(label).rows(domain, self._overall.mode)
        return sum(row.n for row in rows if row.key == tuple(key))

    def _pair(self, domain: str) -> ComparedPair:
        if not domain or domain == self._overall.domain:
            return self._overall
        for pair in self._comparison.pairs:
            if (pair.domain, pair.a, pair.b) == (domain, self._overall.a, self._overall.b):
                return pair
        self._row(self._overall.a, domain)  # says which domains there are
        raise InputError(f"--gate: the two have no item of domain '{domain}' in common")

    def _minimum(self, rule: GateRule) -> GateCheck:
        row = self._row(self._overall.a, rule.domain)
        scale = self._statistics(self._overall.a).scale
        better, bounds = scale.better, scale.bounds
        if bounds is not None and not bounds[0] <= rule.limit <= bounds[1]:
            raise InputError(
                f"--gate '{rule}': the score goes from {bounds[0]:g} to {bounds[1]:g}; expected a"
                " number in between"
            )
        bound = row.lo if better == "high" else row.hi
        is_met = bound is not None and (
            bound >= rule.limit if better == "high" else bound <= rule.limit
        )
        is_met = is_met and row.n >= SMALL_N
        end = "lower" if better == "high" else "upper"
        reason = f"{row.name}: {row.score_text}, {end} end held against {self._units(rule.limit)}"
        if bound is None:
            reason = f"{row.name}: no interval of the score"
        elif row.n < SMALL_N:
            reason += f"; fewer than {SMALL_N} items prove nothing"
        return GateCheck(
            rule=str(rule),
            passed=is_met,
            value=row.score,
            bound=bound,
            limit=rule.limit,
            n=row.n,
            reason=reason,
        )

    def _harm(self, rule: GateRule) -> GateCheck:
        new, old = (self._row(label).harm for label in (self._overall.a, self._overall.b))
        marked = (0 if new is None else new.marked, 0 if old is None else old.marked)
        reason = ""
        if not all(marked):
            reason = "no answers to items marked harm"
        elif marked[0] != marked[1]:
            reason = f"{marked[0]} and {marked[1]} marked items were answered; expected the same"
        elif any(map(self._is_graded, (self._overall.a, self._overall.b))):
            reason = "answers can be partly wrong, and no score says from where on one is harmful"
        elif new is None or old is None or new.upper is None or old.upper is None:
            reason = "no bound where items come in clusters"
        else:
            # The bounds are of shares; so many harmful answers of the marked items they stand for.
            bounds = (new.upper * marked[0], old.upper * marked[1])
            return GateCheck(
                rule=str(rule),
                passed=bounds[0] <= bounds[1] + rule.limit + 1e-9,
                value=new.harmful,
                bound=bounds[0],
                limit=bounds[1] + rule.limit,
                n=marked[0],
                reason=f"harmful answers: {new.harmful} (at most {bounds[0]:.1f}) beside"
                f" {old.harmful} (at most {bounds[1]:.1f}) of {marked[0]}, {rule.limit:g} more"
                " allowed",
            )
        return GateCheck(rule=str(rule), passed=False, n=marked[0], reason=reason)

    def _share(self, rule: GateRule) -> GateCheck:
        row = self._row(self._overall.a)
        if rule.kind == "coverage":
            share, n, passed = row.coverage, row.n, row.coverage >= rule.limit
            says = f"{100 * share:.6g} % of the items have a score, {100 * rule.limit:g} % needed"
        else:
            n = row.replies
            share = row.cut_off / n if n else 1.0
            passed = n > 0 and share <= rule.limit
            says = f"{row.cut_off} of {n} replies cut off, at most {100 * rule.limit:g} % allowed"
        return GateCheck(
            rule=str(rule),
            passed=passed,
            value=share,
            bound=share,
            limit=rule.limit,
            n=n,
            reason=f"{row.name}: {says}",
        )
