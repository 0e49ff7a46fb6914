"""Open questions with criteria and points."""

from medassay.kinds.criteria.grader import CriteriaGrader
from medassay.kinds.criteria.tasks import RUBRIC
from medassay.kinds.kind import Kind

CRITERIA = Kind(
    tasks=(RUBRIC,),
    forms=("rubric",),
    own_task="rubric",
    graders={"criteria": lambda bank, rules: CriteriaGrader()},
)
