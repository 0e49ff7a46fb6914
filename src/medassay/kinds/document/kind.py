"""Records by a schema of the user's."""

from functools import lru_cache

from medassay.core.parser import Parser
from medassay.core.records.document_schema import DocumentSchema
from medassay.core.scale import Scale
from medassay.kinds.document.parser import read_document
from medassay.kinds.document.scorer import DocumentScorer, likeness
from medassay.kinds.document.target import DocumentTarget
from medassay.kinds.document.tasks import DOCUMENT
from medassay.kinds.kind import Kind
from medassay.score.measure import Measure
from medassay.score.scorer import Scorer, per_item


@lru_cache(maxsize=8)
def _by_schema(schema: DocumentSchema) -> Kind:
    """Return the kind for one schema: its scorer, and the columns of its fields."""
    scorer = DocumentScorer(schema)
    return Kind(
        tasks=(),
        parsers=(PARSER,),
        scorers=(Scorer("document", scorer.score, revision=1),),
        measures=(
            Measure(
                name="document",
                parts=scorer.parts,
                revision=1,
                columns=dict.fromkeys(scorer.columns, Scale()),
                forms=("document", "record"),
            ),
        ),
        misfit=scorer.misfit,
    )


PARSER = Parser("document", read_document, revision=1)
DOCUMENTS = Kind(
    tasks=(DOCUMENT,),
    forms=("document",),
    own_task="document",
    targets=(DocumentTarget,),
    parsers=(PARSER,),
    scorers=(per_item("document", likeness, revision=1),),
    by_schema=_by_schema,
)
