"""Ranked lists of diagnoses."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from medassay.core.parser import Extraction, Parser, Reading
from medassay.core.records.diagnosis import plain_name
from medassay.core.records.item import Item
from medassay.core.records.manifest import DiagnosisEntry, JudgingRules
from medassay.core.records.manifest_object import DiagnosisRules
from medassay.core.records.plan import Plan
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Diagnoses
from medassay.core.records.verdict import Grader
from medassay.kinds.diagnoses.grader import DiagnosesGrader
from medassay.kinds.diagnoses.summary import DdxCases
from medassay.kinds.diagnoses.tasks import DDX, DDX_NAMES, remembered_rules
from medassay.kinds.kind import Kind, KindRules, Presentation


def _read(item: Item, prompt: Prompt, text: str, mode: Extraction, *, cut: bool = False) -> Reading:
    from medassay.kinds.diagnoses.parser import read_diagnoses  # compiles a hundred patterns

    return read_diagnoses(item, prompt, text, mode, cut=cut)


def _longest(rules: JudgingRules) -> str:
    from medassay.kinds.diagnoses.parser import longest_list

    return longest_list(rules)


def _grader(rules: JudgingRules, *, asks: bool) -> Grader:
    entry = rules.ddx or DiagnosisEntry()
    return DiagnosesGrader(
        rules=rules.ddx_rules,
        synonyms=entry.synonyms,
        files=tuple(file.sha256 for file in entry.files),
        asks=asks,
    )


def _remember(plan: Plan, items: Iterator[Item], base: Path) -> DiagnosisRules:
    golden = (item.target_as(Diagnoses).golden for item in items)
    return remembered_rules(plan.ddx, golden, base)


def _publish(rules: DiagnosisRules, items: Iterable[Item]) -> DiagnosisRules:
    """Return rules with the synonyms of the golden diagnoses of some items alone."""
    targets = (item.target for item in items)
    names = {plain_name(target.golden) for target in targets if isinstance(target, Diagnoses)}
    return {**rules, "synonyms": {k: v for k, v in rules["synonyms"].items() if k in names}}


def _forget(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary without the groups by category and diagnosis, all of them: one that shrinks
    tells who has left it.
    """
    errors = [error for error in summary["errors"] if error["by"] == "golden_severity"]
    return {**summary, "errors": errors}


def _presentation() -> Presentation:
    from medassay.kinds.diagnoses.page import PRESENTATION

    return PRESENTATION


DIAGNOSES = Kind(
    tasks=(DDX, DDX_NAMES),
    forms=("diagnoses",),
    own_task="ddx",
    parsers=(Parser("diagnoses", _read, revision=1, longest=_longest),),
    graders={
        "ddx": lambda bank, rules: _grader(rules, asks=True),
        "ddx_names": lambda bank, rules: _grader(rules, asks=False),
    },
    key="ddx",
    summary=lambda items, manifest, task: DdxCases(items, manifest),
    rules=KindRules(remember=_remember, publish=_publish, forget=_forget),
    public_parts=(
        *("severity", "severity_shift", "golden_severity", "all_places", "hit"),
        *("n", "n_considered", "unjudged"),
    ),
    presentation=_presentation,
)
