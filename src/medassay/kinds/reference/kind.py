"""Open answers compared with a reference text."""

from medassay.core.parser import Parser, whichever_end
from medassay.kinds.kind import Kind, Presentation
from medassay.kinds.reference.parser import paragraph, read_text
from medassay.kinds.reference.scorer import likeness_parts, likeness_to_reference
from medassay.kinds.reference.summary import TextScores
from medassay.kinds.reference.tasks import HEALTHBRANCHES_SIMILARITY, PROMETHEUS_TEXT, TEXT_TASKS
from medassay.score import text
from medassay.score.measure import Measure
from medassay.score.scorer import per_item


def _presentation() -> Presentation:
    from medassay.kinds.reference.page import PRESENTATION

    return PRESENTATION


REFERENCE = Kind(
    tasks=(*TEXT_TASKS, HEALTHBRANCHES_SIMILARITY, PROMETHEUS_TEXT),
    forms=("text",),
    own_task="text",
    parsers=(
        Parser("paragraph", whichever_end(paragraph()), revision=1),
        Parser("paragraph_10", whichever_end(paragraph(10)), revision=1),
        Parser("paragraph_5", whichever_end(paragraph(5)), revision=1),
        Parser("text", whichever_end(read_text), revision=1),
    ),
    scorers=(per_item("chrf", likeness_to_reference, revision=1),),
    measures=(
        Measure(
            name="text",
            parts=likeness_parts,
            revision=text.REVISION,
        ),
    ),
    key="text",
    summary=lambda items, manifest, task: (
        TextScores(items, manifest, task) if task.metrics else None
    ),
    public_parts=("text",),
    presentation=_presentation,
)
