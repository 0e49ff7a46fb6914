"""Texts to records by a schema: likeness to the reference record, field by field."""

from medassay.core.records.task import Task

DOCUMENT = Task(
    name="document",
    metric="json_similarity",
    split="test",
    template="document",
    reply_tokens=2048,
    readers={"document": ("document", "document"), "record": ("document", "document")},
)
