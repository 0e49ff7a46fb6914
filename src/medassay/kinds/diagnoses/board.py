"""Ranked diagnoses made ready for pages: every list with its labels and the calculation of its
scores.
"""

from typing import Any

from medassay.core.json import record_as
from medassay.core.records.diagnosis import FARTHEST
from medassay.core.records.plan import DdxRules
from medassay.core.records.target import Diagnoses
from medassay.kinds.diagnoses.scorer import BEST, DiagnosesBody, score_labels
from medassay.kinds.diagnoses.summary import quadrant
from medassay.report.board import ShownAnswer, ShownAnswers, ShownCase
from medassay.statistic.metric.reliability import rescale, score_maximum
from medassay.storage.run import Run


def case_views(run: Run, answers: ShownAnswers) -> list[ShownCase]:
    """Return every list of a run as its pages show it."""
    rules = run.manifest.ddx_rules
    highest = score_maximum(rules.semantic_max)
    cases = []
    for key, group in answers:
        for answer in group:
            if run.manifest.tasks and not _is_case(answer):
                continue
            body = _body(answer)
            semantic, severity = _scores(run, answer)
            across = None if severity is None else float(rescale(severity, BEST))
            up = None if semantic is None else float(rescale(semantic, highest))
            item = answer.item
            cases.append(
                ShownCase(
                    key=key,
                    item=item,
                    golden=(item.get("diagnoses") or ["withheld"])[0],
                    golden_severity=(body and body.golden_severity) or item.get("severity"),
                    answer=answer,
                    semantic=semantic,
                    severity=severity,
                    x=across,
                    y=up,
                    quadrant=quadrant(across, up),
                    rows=_rows(body, rules) if body else (),
                )
            )
    return cases


def _is_case(answer: ShownAnswer) -> bool:
    """Return whether an answer is to a case, in a run over items of several kinds."""
    return "diagnoses" in answer.item or answer.item.get("form") == Diagnoses.form


def _body(answer: ShownAnswer) -> DiagnosesBody | None:
    """Return the labels of the verdict on an answer; None where there is none."""
    valid = [v for v in answer.verdicts if v["outcome"] == "valid"]
    return record_as(valid[0]["body"], DiagnosesBody, "verdicts.jsonl: body") if valid else None


def _scores(run: Run, answer: ShownAnswer) -> tuple[float | None, float | None]:
    """Return both scores of a list; what is no list has the worst of what was judged."""
    if answer.score is None or answer.parts:
        return answer.score, answer.parts.get("severity")
    return answer.score, 0.0 if "ddx" in run.manifest.task_names else None


def _rows(body: DiagnosesBody, rules: DdxRules) -> list[dict[str, Any]]:
    """Return each rank with weights, distances and what it adds to the scores."""
    listed = sorted(body.diagnoses, key=lambda diagnosis: diagnosis.rank)
    case = score_labels(body, rules)
    totals = {
        name: sum(s.weight for s in case.steps if getattr(s, f"{name}_distance") is not None)
        for name in ("semantic", "severity")
    }
    rows = []
    for diagnosis, step in zip(listed, case.steps, strict=False):
        row = {**diagnosis.to_dict(), "weight": step.weight}
        for name, total in totals.items():
            distance = getattr(step, f"{name}_distance")
            is_known = distance is not None and (name == "semantic" or case.severity is not None)
            row[f"{name}_distance"] = distance if is_known else None
            row[f"{name}_adds"] = (
                step.weight * (FARTHEST - distance) ** 2 / total if is_known else None
            )
        rows.append(row)
    ignored = ({**d.to_dict(), "weight": None} for d in listed[len(case.steps) :])
    return [*rows, *ignored]
