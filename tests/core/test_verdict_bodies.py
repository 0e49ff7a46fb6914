"""Bodies of verdicts: each of its own grader, from a file too."""

import pytest

from medassay.core.records.verdict import Verdict, VerdictBody, verdict_of_body
from medassay.errors import IntegrityError
from medassay.judging.graders.prometheus import GradeBody, Prometheus
from medassay.kinds.criteria.grader import CriteriaBody


def test_a_stored_body_is_that_of_its_grader():
    verdict = verdict_of_body(Prometheus(), {"grade": 4, "later": "kept by newer code"})
    assert verdict.body_as(GradeBody).grade == 4
    with pytest.raises(TypeError, match="GradeBody, not CriteriaBody"):
        verdict.body_as(CriteriaBody)


@pytest.mark.parametrize("body", [{}, {"grade": "good"}, {"criteria": []}])
def test_a_valid_verdict_with_another_body_is_named(body):
    with pytest.raises(IntegrityError, match=r"verdicts\.jsonl: body of a verdict by prometheus"):
        verdict_of_body(Prometheus(), body)


def test_a_verdict_that_is_not_valid_may_have_no_body():
    assert verdict_of_body(Prometheus(), {}, valid=False, reason="no grade") == Verdict(
        valid=False, reason="no grade", body=VerdictBody()
    )
