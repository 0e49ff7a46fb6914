"""Steps to be put into their order."""

from medassay.kinds.ordering.parser import read_order
from medassay.kinds.ordering.scorer import exact_order, order_parts
from medassay.kinds.ordering.target import Ordering
from medassay.kinds.ordering.tasks import ORDERING, ORDERING_GRADED

from medassay.core.parser import Parser, whichever_end
from medassay.core.scale import Scale
from medassay.kinds.kind import Kind
from medassay.score.measure import Measure
from medassay.score.scorer import per_item

KIND = Kind(
    tasks=(ORDERING, ORDERING_GRADED),
    targets=(Ordering,),
    parsers=(Parser("ordering", whichever_end(read_order), revision=1),),
    scorers=(per_item("ordering", exact_order, revision=1),),
    measures=(
        Measure(
            name="ordering",
            parts=order_parts,
            revision=1,
            columns={"pairs_in_order": Scale(), "steps_named": Scale()},
            forms=("ordering",),
        ),
    ),
)
