"""Open questions with criteria of positive and negative points, judged one by one.

Source: specification of rubric judging; Arora et al. (2025), HealthBench, arXiv:2505.08775. A score
may fall below 0 where harm outweighs; the mean is clipped to 0..1.
"""

import sys

from medassay.core.records.task import Task
from medassay.core.scale import Scale

RUBRIC = Task(
    name="rubric",
    metric="rubric_points",
    split="test",
    template="open",
    readers={"rubric": ("text", None)},
    graders={"rubric": "criteria"},
    n_judges=1,
    scale=Scale(floor=-sys.float_info.max),
)
