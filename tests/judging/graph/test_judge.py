"""A graph as the judge of a run: step by step the same as asked directly, and nothing of it
lost.
"""

import json

import msgspec
import pytest
from tests import makers
from tests.growth import growth

from medassay.core.records.completion import Completion
from medassay.core.records.manifest import RunGraph
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Fact
from medassay.core.records.verdict import Case, Verdict
from medassay.judging.graders import graph as dag
from medassay.judging.graders.graph.grader import GraphGrader, context_of
from medassay.judging.graders.graph.graph import graph_from, recalled

QUALITY = dag.published("medical_extraction_quality")
CORRECTNESS = dag.published("record_correctness")
RECORD = {
    "categories": ["Pneumologie"],
    "date_and_source": {"date": None, "source": None},
    "diagnosis": ["COPD"],
    "relevant_metrics": [],
    "medications": {"current": [], "advised": [], "discontinued": []},
    "follow_up": [],
}
ITEM = makers.item(id="r", domain="d", question="Der Bericht.", form="record", record=RECORD)
CASE = Case(item=ITEM, text='{"structured_health_record": {}}', template="health_record@00")
CHOICES = {
    "valid JSON": True,
    "fully_compliant": "minor_issues",
    "highly_accurate": "mostly_accurate",
    "mostly_complete": "complete",
    "excellent": "adequate",
    "partly_correct": "partly_correct",
}


def reply(prompt):
    """Return a scripted reply: a report to a task, else what `CHOICES` says."""
    if not prompt.schema:
        return Completion(text=f"Report on {len(prompt.encoded)} bytes.", seconds=0.5)
    text = prompt.messages[0]["content"]
    enum = json.loads(prompt.schema)["properties"]["verdict"].get("enum", [True])
    chosen = next(v for k, v in CHOICES.items() if k in str(enum) or (v is True and enum == [True]))
    assert chosen is True or chosen in enum, text
    return Completion(text=json.dumps({"reason": "so", "verdict": chosen}), seconds=0.25)


def judged(judge, case, answer=reply):
    replies = []
    step = judge.step([case], [])
    while isinstance(step, Prompt):
        replies.append(answer(step))
        step = judge.step([case], replies)
    [verdict] = step
    return verdict, replies


def test_step_by_step_it_is_the_graph_asked_directly():
    judge = GraphGrader(graphs=(QUALITY, CORRECTNESS))
    verdict, replies = judged(judge, CASE)
    for graph, told in zip((QUALITY, CORRECTNESS), verdict.body.graphs, strict=True):
        direct = dag.run(graph, context_of(CASE), reply)
        assert told.score == direct.score
        assert told.branches == dict(direct.branches)
        assert [s.node for s in told.trace] == [s.node for s in direct.trace]
        for step, same in zip(told.trace, direct.trace, strict=True):
            assert [replies[at].text for at in step.replies][-1:] == [same.reply][
                : len(step.replies)
            ]
            assert step.prompt_hash == same.prompt_hash
    assert judge.score(ITEM, verdict) == pytest.approx((0.7 + 0.75 + 1 + 0.6) / 4)
    parts = judge.parts(ITEM, verdict)["graphs"]
    assert parts["record_correctness"] == {"score": 0.4, "branches": {"correctness": 0.4}}
    used = [at for told in verdict.body.graphs for s in told.trace for at in s.replies]
    assert sorted(used) == list(range(len(replies)))  # every reply belongs to one step


def test_the_first_graph_scores():
    verdict, _ = judged(GraphGrader(graphs=(CORRECTNESS, QUALITY)), CASE)
    assert GraphGrader(graphs=(CORRECTNESS,)).score(ITEM, verdict) == 0.4


def test_the_condition_without_thinking_needs_the_record_alone():
    judge = GraphGrader(graphs=(QUALITY,))
    for template, needed in (
        ("health_record@00", "(internal_monologue and structured_health_record)"),
        ("health_record_direct@00", "(structured_health_record)"),
    ):
        first = judge.step([Case(item=ITEM, text="{}", template=template)], [])
        assert needed in first.messages[0]["content"]


def test_three_unusable_replies_are_no_verdict_and_say_where():
    def babble(prompt):
        return reply(prompt) if not prompt.schema else Completion(text="Hm.")

    judge = GraphGrader(graphs=(QUALITY,))
    verdict, _ = judged(judge, CASE, babble)
    assert not verdict.valid
    assert "node 'is_valid_json'" in verdict.reason
    assert judge.score(ITEM, verdict) is None
    statuses = {s.node: s.status for s in verdict.body.graphs[0].trace}
    assert statuses["is_valid_json"] == "invalid"


def test_a_second_graph_that_fails_leaves_the_score_of_the_first():
    def babble(prompt):
        return Completion(text="Hm.") if b"partly_correct" in prompt.schema else reply(prompt)

    judge = GraphGrader(graphs=(QUALITY, CORRECTNESS))
    verdict, _ = judged(judge, CASE, babble)
    assert verdict.valid
    assert verdict.body.graphs[1].score is None
    assert judge.score(ITEM, verdict) is not None


def test_open_answers_are_shown_with_their_facts():
    item = makers.item(
        id="o",
        domain="d",
        question="Which drug?",
        context="A case.",
        form="open",
        reference="Give A.",
        facts=(Fact(id="f1", text="Give A."), Fact(id="f2", text="Not B.")),
    )
    shown = context_of(Case(item=item, text="A."))
    assert shown["expected_output"] == "Give A.\n\n- Give A.\n- Not B."
    assert shown["input"] == "A case.\n\nWhich drug?"


def test_a_preview_rehearses_every_first_question():
    judge = GraphGrader(graphs=(QUALITY, CORRECTNESS))
    assert len(judge.opening([CASE])) == len(judged(judge, CASE)[1]) == 10


@pytest.mark.parametrize(
    "name", ["medical_extraction_quality", "open_answer_safety", "record_correctness"]
)
def test_a_run_recalls_its_graphs_with_the_order_of_options(name):
    graph = dag.published(name)
    document = msgspec.json.encode(graph.remembered(), order="sorted")
    back = recalled(msgspec.json.decode(document, type=RunGraph))
    assert back.id == graph.id
    assert GraphGrader(graphs=(back,)).id == GraphGrader(graphs=(graph,)).id


def test_an_imported_verdict_must_speak_of_the_same_graphs():
    verdict, _ = judged(GraphGrader(graphs=(QUALITY,)), CASE)
    assert GraphGrader(graphs=(QUALITY,)).fits(CASE, verdict)
    assert not GraphGrader(graphs=(CORRECTNESS,)).fits(CASE, Verdict(valid=True, body=verdict.body))


def wide(n):
    """Return a graph of one task with n questions below it."""
    ask = {"type": "binary", "criteria": "?", "true": "v", "false": "w"}
    nodes = {f"b{i}": ask for i in range(n)}
    task = {
        "type": "task",
        "instructions": "Report.",
        "output_label": "r",
        "children": list(nodes),
    }
    ends = {"v": {"type": "verdict", "score": 1}, "w": {"type": "verdict", "score": 0.5}}
    document = {
        "name": "wide",
        "version": 1,
        "roots": ["t"],
        "nodes": {"t": task, **nodes, **ends},
    }
    return graph_from(document, "wide")


def test_a_large_graph_is_judged_in_time_that_grows_as_its_questions_do():
    """Each reply is a step of its own.

    Quadratic growth gives about 64, a walk anew for each reply 512.
    """
    ask = lambda nodes: judged(GraphGrader(graphs=(wide(len(nodes)),)), CASE)  # noqa: E731 -- a call
    ask([0] * 8)
    assert growth(ask, [0], 16) < 200
