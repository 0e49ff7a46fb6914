"""Structured health records from clinical reports: likeness to a reference, and medication beside
it.

A report without a reference record can be asked too: its replies are read, and no score is known.

Source: specification of health-record extraction.
"""

from medassay.core.records.task import Task

RECORD = Task(
    name="record",
    metric="json_similarity",
    split="test",
    template="health_record",
    reply_tokens=2048,
    readers={"record": ("record", "record"), "report": ("record", "unreferenced")},
)
# Any whole reply is judged, also one without JSON: the graph itself says what a damaged form is
# worth.
RECORD_GRAPH = Task(
    name="record_graph",
    metric="graph_score",
    split="test",
    template="health_record",
    reply_tokens=2048,
    readers={"record": ("record_text", None)},
    graders={"record": "graph"},
    n_judges=1,
    graphs=("medical_extraction_quality", "record_correctness"),
)
