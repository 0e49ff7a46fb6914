"""Ranked lists of diagnoses."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medassay.bank.run_items import RunItems
from medassay.core.parser import Parser
from medassay.core.records.item import Item
from medassay.core.records.manifest import Manifest
from medassay.core.records.plan import Plan, rules_from_dict
from medassay.core.records.target import Diagnoses
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.kinds.diagnoses.grader import DiagnosesGrader
from medassay.kinds.diagnoses.parser import read_diagnoses
from medassay.kinds.diagnoses.summary import DdxCases
from medassay.kinds.diagnoses.tasks import DDX, DDX_NAMES, remembered_rules
from medassay.kinds.kind import Kind, Presentation


def _grader(rules: Mapping[str, Any], *, asks: bool) -> Grader:
    document = rules["ddx"]
    return DiagnosesGrader(
        rules=rules_from_dict(document["rules"]),
        synonyms=document["synonyms"],
        files=tuple(file["sha256"] for file in document["files"]),
        asks=asks,
    )


def _summary(items: RunItems, manifest: Manifest, task: Task) -> DdxCases:
    return DdxCases(items, manifest)


def _rules(plan: Plan, items: Iterator[Item], base: Path) -> dict[str, Any]:
    return {
        "ddx": remembered_rules(
            plan.ddx, (item.target_as(Diagnoses).golden for item in items), base
        )
    }


def _presentation() -> Presentation:
    from medassay.kinds.diagnoses.page import PRESENTATION

    return PRESENTATION


DIAGNOSES = Kind(
    tasks=(DDX, DDX_NAMES),
    parsers=(Parser("diagnoses", read_diagnoses, revision=1),),
    graders={
        "ddx": lambda rules: _grader(rules, asks=True),
        "ddx_names": lambda rules: _grader(rules, asks=False),
    },
    summary=_summary,
    rules=_rules,
    presentation=_presentation,
)
