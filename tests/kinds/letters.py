"""Letters with records by a schema of their own, and workspaces that ask for them."""

import json

from tests import makers

from medassay.core.records.document_schema import read_schema

DRUG = {
    "name": {"type": "string"},
    "dose": {"type": ["string", "null"], "x-medassay": {"compare": "number", "tolerance": "5%"}},
    "icd": {"type": "string", "x-medassay": {"compare": "code", "weight": 3}},
}


LETTER = {
    "type": "object",
    "required": ["age", "visit", "drugs"],
    "properties": {
        "age": {"type": "integer", "x-medassay": {"compare": "number", "tolerance": 1}},
        "visit": {
            "type": "string",
            "description": "day of the visit",
            "x-medassay": {"compare": "date"},
        },
        "ward": {"enum": ["A", "B"], "x-medassay": {"compare": "exact", "weight": 0}},
        "summary": {"type": "string"},
        "drugs": {
            "type": "array",
            "x-medassay": {"key": "name"},
            "items": {"type": "object", "required": ["name"], "properties": DRUG},
        },
    },
}


GOLD = {
    "age": 61,
    "visit": "2026-01-05",
    "ward": "A",
    "summary": "seen",
    "drugs": [
        {"name": "Aspirin", "dose": "100 mg", "icd": "I25.1"},
        {"name": "Metformin", "dose": "1000 mg", "icd": "E11"},
    ],
}


def schema(document=LETTER):
    return read_schema(json.dumps(document).encode(), "test")


def letters(n=4):
    return [
        {
            "id": f"l{i}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Letter {i}: seen 5.1.2026, takes aspirin.",
            "document": {**GOLD, "age": 60 + i},
            "source": "written for a test",
        }
        for i in range(n)
    ]


def workspace(folder, *models, document=LETTER, **plan):
    path = makers.workspace(folder, letters(), *models, **{"schema": "letter.schema.json", **plan})
    (folder / "letter.schema.json").write_text(json.dumps(document))
    return path
