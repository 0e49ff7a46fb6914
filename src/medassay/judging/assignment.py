"""The assignment of judges: who judges what, and who must not judge whom."""

from collections.abc import Mapping

import msgspec

from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import REPLY_TOKENS, ModelSpec
from medassay.core.records.plan import Plan
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.errors import InputError
from medassay.judging.panel import (
    PANEL_SIZE,
    check_panel,
    check_seats,
    check_substitute,
    seated,
)
from medassay.model.spec import named

RULE = ModelSpec(id="rule", provider="rule", family="none", location="local", concurrency=1)


class JudgeAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges: a grader for each domain, and judges (seats) for each tested model.

    `rules` are those of the plan that the graders were made with, as a run remembers them: `steps`
    of evaluation, `ddx`.
    """

    graders: Mapping[str, Grader]
    seats: Mapping[str, tuple[ModelSpec, ...]]
    seed: int
    rules: ManifestObject = msgspec.field(default_factory=ManifestObject)

    @property
    def n_seats(self) -> int:
        """Return the number of judges of one answer."""
        return max(len(panel) for panel in self.seats.values())

    @property
    def models(self) -> dict[str, ModelSpec]:
        """Return all judging models by id."""
        return {spec.id: spec for panel in self.seats.values() for spec in panel}


def assign_judges(
    plan: Plan,
    task: Task,
    tested: Mapping[str, ModelSpec],
    specs: Mapping[str, ModelSpec],
    graders: Mapping[str, Grader],
    rules: ManifestObject | None = None,
) -> JudgeAssignment | None:
    """Return the assignment of judges of a plan, None for a task that needs no judge.

    `rules` are those that `graders` were made with.

    Raises
    ------
    InputError
        When judges are named where none sit, are missing, unknown, of one family, or would grade
        themselves.
    """
    if not task.graders:
        if plan.judges:
            raise InputError(f"plan: task '{task.name}' has no judges; leave 'judges' out")
        return None
    if not task.n_judges:
        if plan.judges or plan.substitute:
            raise InputError(
                f"plan: task '{task.name}' compares names by rule and asks nobody; leave"
                " 'judges' out"
            )
        by_rule = dict.fromkeys(tested, (RULE,))  # one seat, and no model to ask
        return JudgeAssignment(graders=graders, seats=by_rule, seed=plan.seed, rules=rules or {})
    judges = [
        named(specs, name, "plan: judge", plan.models_file).with_room(REPLY_TOKENS)
        for name in plan.judges
    ]
    if not judges:
        raise InputError(
            f"plan: task '{task.name}' is scored by judges, and none are named: there is no silent "
            f"default; name {task.n_judges} entries of {plan.models_file} in 'judges'"
        )
    substitute = (
        named(specs, plan.substitute, "plan: judge", plan.models_file).with_room(REPLY_TOKENS)
        if plan.substitute
        else None
    )
    if task.n_judges == PANEL_SIZE:
        check_panel(judges)
        if substitute is not None:
            check_substitute(judges, substitute)
    elif len(judges) != task.n_judges:
        raise InputError(
            f"plan: task '{task.name}' has {task.n_judges} judge(s); {len(judges)} are named"
        )
    seats = {name: seated(judges, substitute, spec) for name, spec in tested.items()}
    check_seats(seats, tested, allow_own=plan.allow_own)
    if any(grader.alternatives for grader in graders.values()):
        _check_logprobs(task, seats)
    return JudgeAssignment(graders=graders, seats=seats, seed=plan.seed, rules=rules or {})


def _check_logprobs(task: Task, seats: Mapping[str, tuple[ModelSpec, ...]]) -> None:
    for spec in {spec.id: spec for panel in seats.values() for spec in panel}.values():
        if not spec.logprobs:
            raise InputError(
                f"plan: task '{task.name}' weighs scores by probability, and judge '{spec.id}'"
                ' gives none; set "logprobs": true in its entry if its endpoint has them, or'
                " take a task without weights"
            )
