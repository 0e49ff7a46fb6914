"""Closed questions with options."""

from medassay.core.parser import Parser, whichever_end
from medassay.kinds.choice.parser import read_choice
from medassay.kinds.choice.scorer import choice
from medassay.kinds.choice.tasks import CLOSED
from medassay.kinds.kind import Kind
from medassay.score.scorer import per_item

CHOICE = Kind(
    tasks=(CLOSED,),
    forms=("choice",),
    own_task="closed",
    parsers=(Parser("choice", whichever_end(read_choice), revision=1),),
    scorers=(per_item("choice", choice, revision=1),),
)
