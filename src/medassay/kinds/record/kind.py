"""Structured health records from clinical reports."""

from medassay.core.parser import Parser
from medassay.kinds.kind import Kind, Presentation
from medassay.kinds.record import scorer
from medassay.kinds.record.parser import read_record, read_record_text
from medassay.kinds.record.summary import RecordScores
from medassay.kinds.record.tasks import RECORD, RECORD_GRAPH
from medassay.score.measure import Measure
from medassay.score.scorer import Scorer, per_item


def _presentation() -> Presentation:
    from medassay.kinds.record.page import PRESENTATION

    return PRESENTATION


HEALTH_RECORD = Kind(
    tasks=(RECORD, RECORD_GRAPH),
    forms=("record", "report"),
    own_task="record",
    parsers=(
        Parser("record", read_record, revision=1),
        Parser("record_text", read_record_text, revision=1),
    ),
    scorers=(
        per_item("record", scorer.record_similarity, revision=1),
        Scorer("unreferenced", scorer.unreferenced, revision=1, missing_is_worst=False),
    ),
    measures=(
        Measure(
            name="record",
            parts=scorer.record_parts,
            revision=scorer.REVISION,
            forms=("record", "report"),
        ),
    ),
    key="records",
    summary=lambda items, manifest, task: RecordScores(items, manifest),
    public_parts=(
        *("reference", "read", "characters", "as_published", "similarity", "sections", "fields"),
        *("leaves", "missing", "extra", "graphs", "drugs"),
        *("correct", "total", "stopped_as_current", "lost", "invented"),
    ),
    presentation=_presentation,
)
