"""Open answers graded whole by one judge: G-Eval in its variants, Prometheus.

Each variant is a metric of its own: their numbers are not comparable.
"""

from medassay.core.trial import Scale
from medassay.task.task import Task


def _graded(name: str, scale: Scale) -> Task:
    return Task(
        name=name,
        metric=name,
        split="test",
        template="open",
        readers={form: ("text", None) for form in ("open", "text")},
        judges={form: name for form in ("open", "text")},
        n_judges=1,
        scale=scale,
    )


G_EVAL = _graded("g_eval", Scale(hi=10.0))
G_EVAL_NO_PATH = _graded("g_eval_no_path", Scale(hi=10.0))
G_EVAL_SINGLE = _graded("g_eval_single", Scale(hi=10.0))
G_EVAL_WEIGHTED = _graded("g_eval_weighted", Scale(hi=10.0))
PROMETHEUS = _graded("prometheus", Scale())
