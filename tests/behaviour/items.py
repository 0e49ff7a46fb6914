"""Items that the corpora ask about, rules of graders, and ways in which replies get damaged."""

import random
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.records.manifest import JudgingRules, RunBank
from medassay.core.records.verdict import Grader
from medassay.judging.graders.graph.graph import find
from medassay.kinds.catalog import GRADERS
from tests import makers

GOLDEN = Path(__file__).parents[1] / "golden"
CHOICE = {
    "id": "c1",
    "options": ["Aspirin", "Ibuprofen", "Paracetamol", "Metformin"],
    "expected": "B",
}
NUMBER = {"id": "n1", "range": {"lo": 1, "hi": 2000}}
GERMAN = {**NUMBER, "id": "n2", "locale": "de"}
PATTERN = {**NUMBER, "id": "n3", "extract": r"(?i)dose:?\s*([-\d.,]+)"}
TEXT = {"id": "t1", "reference": "Aspirin is given at once. The dose is 300 mg."}
RECORD = makers.record_items(1)[0]
DIAGNOSES = {"id": "d1", "diagnoses": ["Myasthenia gravis", "MG"], "severity": "severe"}
CRITERIA = {
    "id": "k1",
    "criteria": [
        {"id": "c1", "text": "Names aspirin", "points": 5},
        {"id": "c2", "text": "Names the dose", "points": 3},
        {"id": "c3", "text": "Advises to wait", "points": -4},
    ],
}
PATH = {
    "id": "p1",
    "facts": [{"id": "f1", "text": "Give aspirin 300 mg."}],
    "reference": "Give aspirin 300 mg.",
    "path": "chest pain -> ST elevation -> aspirin",
}
GRAPHS = {"graphs": [msgspec.to_builtins(find("medical_extraction_quality", Path()).remembered())]}
RULES: dict[str, dict[str, Any]] = {
    name: {"ddx": {"rules": {}, "synonyms": {"Myasthenia gravis": ["MG"]}, "files": []}}
    for name in ("ddx", "ddx_names")
}
RULES["graph"] = GRAPHS


def grader_of(name: str, rules: dict[str, Any]) -> Grader:
    """Return a grader by its rules as the corpora hold them: those of its bank among those of the
    plan, and of evaluation steps the texts alone.
    """
    steps = {"steps": {"with_path": True, "texts": rules["steps"]}} if "steps" in rules else {}
    bank = {"name": "b", "version": "b", "content_sha256": "", **rules}
    return GRADERS[name](
        msgspec.convert(bank, RunBank), msgspec.convert({**rules, **steps}, JudgingRules)
    )


DAMAGES = [
    "{}",
    "{}",
    "{}",
    "Sure!\n```json\n{}\n```",
    '<think>{{"facts": []}}</think>{}',
    "{}{}",
    "no idea",
    "",
    "<think>{}",
]


def damaged(reply: str, drawn: random.Random) -> str:
    """Return a judge's reply as judges send it: fenced, thought over, cut, with other words in
    it.
    """
    kind = drawn.randrange(len(DAMAGES) + 5)
    if kind < len(DAMAGES):
        return DAMAGES[kind].replace("{}", reply).replace("{{", "{").replace("}}", "}")
    if kind == len(DAMAGES):
        return reply[: len(reply) * 2 // 3]
    if kind == len(DAMAGES) + 1:
        return reply.replace('"', "'")
    if kind == len(DAMAGES) + 2:
        return reply.replace("entail", drawn.choice(["contradict", "ENTAIL", "maybe"]))
    if kind == len(DAMAGES) + 3:
        return reply.replace("true", "false").replace("moderate", "rare")
    return reply.replace("f1", "f9").replace(
        "[]", '[{"claim": "x", "kind": "other", "quote": "aspirin", "why": "y"}]'
    )
