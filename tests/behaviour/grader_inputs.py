"""Inputs of graders: cases with whole and damaged replies of judges."""

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import Prompt
from medassay.core.records.verdict import Case
from medassay.model.fake import Fake
from tests import makers
from tests.behaviour.items import (
    CRITERIA,
    DIAGNOSES,
    PATH,
    RECORD,
    RULES,
    damaged,
    grader_of,
)


def _fake(script: dict[str, Any]) -> Fake:
    return Fake(ModelSpec(id="j", provider="fake", script=script), {})


def graders() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield conversations with judges: the scripted judge's replies, most of them damaged."""
    facts = makers.open_items(2)
    answers = [
        "Rule 0 binds courts and has exceptions.",
        "Give aspirin 300 mg.",
        "Rule 0 was never amended.",
        " ",
        "aspirin",
    ]
    ddx_lists = ["Myasthenia gravis", "MG", "Botulism", "Gout", "Lambert-Eaton syndrome"]
    record = makers.record_reply(makers.health_record(0))
    plans: list[tuple[str, str, list[dict[str, Any]], list[str], int]] = [
        ("facts", "facts", facts, answers, 300),
        ("criteria", "criteria", [CRITERIA], answers, 200),
        ("prometheus", "prometheus", [PATH], answers, 150),
        ("g_eval", "g_eval", [PATH], answers, 120),
        ("g_eval", "g_eval_single", [PATH], answers, 80),
        ("g_eval", "g_eval_no_path", [PATH], answers, 40),
        ("ddx", "ddx", [DIAGNOSES], ddx_lists, 200),
        ("ddx_names", "ddx_names", [DIAGNOSES], ddx_lists, 60),
        ("graph", "graph", [RECORD], [record, record[:80], "kein JSON", " "], 80),
    ]
    for corpus, grader, items, texts, n in plans:
        drawn = random.Random(grader)
        rules = RULES.get(grader, {"steps": {}})
        batch = 3 if grader in ("g_eval", "g_eval_no_path") else 1
        for _ in range(n):
            cases = []
            for _ in range(batch):
                text = drawn.choice(texts)
                if corpus.startswith("ddx"):
                    names = drawn.sample(texts, k=drawn.randint(1, 4))
                    text = json.dumps([{"rank": r, "name": n} for r, n in enumerate(names, 1)])
                cases.append((drawn.choice(items), text))
            replies = conversation(grader, rules, cases, drawn)
            yield (
                f"grader_{corpus}",
                {"grader": grader, "rules": rules, "cases": cases, "replies": replies},
            )
    for top in (
        {"8": -0.1, "7": -2.5},
        {"10": -0.2, "1": -1.9},
        {"x": -0.1},
        {"8": -0.7, "9": -0.8, "3": -4.0},
    ):
        reply = {
            "text": f"q1,{next(iter(top))}",
            "logprobs": [("q1,", -0.1), (next(iter(top)), max(top.values()))],
            "alternatives": [[], [list(pair) for pair in top.items()]],
        }
        yield (
            "grader_g_eval",
            {
                "grader": "g_eval_weighted",
                "rules": {"steps": {}},
                "cases": [(PATH, "aspirin")],
                "replies": [reply],
            },
        )


def conversation(
    grader: str,
    rules: dict[str, Any],
    cases: list[tuple[dict[str, Any], str]],
    drawn: random.Random,
) -> list[str]:
    """Return the replies of a scripted judge until it has nothing more to say, or was asked twelve
    times.
    """
    from tests.behaviour.parts import _completion, item_of

    judge = grader_of(grader, rules)
    judged = [Case(item=item_of(item), text=text) for item, text in cases]
    replies: list[str] = []
    clean = drawn.choice([0.0, 0.2, 0.6])  # the share of replies that nothing is wrong with
    useless = (
        drawn.choice(["no idea", "", "<think>never", "{}", "[1]"])
        if drawn.random() < 0.15
        else None
    )
    while len(replies) < 24:
        prompt = judge.step(judged, [_completion(reply) for reply in replies])
        if not isinstance(prompt, Prompt):
            break
        if useless is not None:
            replies.append(useless)
            continue
        reply = scripted(grader, prompt, cases, drawn)
        replies.append(reply if drawn.random() < clean else damaged(reply, drawn))
    return replies


def criteria_reply(item: dict[str, Any], drawn: random.Random) -> str:
    """Return which criteria are met, some by another word than true and false."""
    met = [
        {"id": one["id"], "met": drawn.choice([True, False, "yes"]), "reason": "so"}
        for one in item["criteria"]
        if drawn.random() < 0.9
    ]
    return json.dumps({"criteria": met})


def facts_reply(item: dict[str, Any], drawn: random.Random) -> str:
    """Return a verdict for most facts, with and without evidence, and claims that may be
    supported.
    """
    verdicts = ["entail", "entail", "missing", "contradict", "Entail", "partly"]
    quotes = [
        "",
        "binds courts",
        "Rule 0 binds courts and has exceptions.",
        "never said",
        "aspirin",
    ]
    judged = [
        {"id": fact["id"], "verdict": drawn.choice(verdicts), "evidence": drawn.choice(quotes)}
        for fact in item["facts"]
        if drawn.random() < 0.9
    ]
    claims = [
        {
            "claim": "x",
            "kind": drawn.choice(["other", "wrong_figure", "?"]),
            "quote": drawn.choice(quotes),
            "why": "y",
        }
        for _ in range(drawn.choice([0, 0, 1, 2]))
    ]
    return json.dumps({"facts": judged, "extra_false_claims": claims})


def labelled(at: int, drawn: random.Random) -> dict[str, Any]:
    """Return one label of a judge of diagnoses, known or not."""
    return {
        "id": drawn.choice([at, at, str(at), 99]),
        "severity": drawn.choice(["mild", "Moderate", "severe", "critical", "rare", "bad"]),
        "relation": drawn.choice(
            ["Exact Synonym", "exact group of diseases", "Not Related", "Sibling", "Cause"]
        ),
    }


def scripted(
    grader: str, prompt: Prompt, cases: list[tuple[dict[str, Any], str]], drawn: random.Random
) -> str:
    """Return a reply to a judge's prompt, of the form that is asked for."""
    written = {
        "criteria": criteria_reply,
        "facts": facts_reply,
        "prometheus": lambda item, drawn: (
            f"Feedback: short. [RESULT] {drawn.choice([1, 2, 3, 4, 5, 7, 'x'])}"
        ),
        "g_eval_single": lambda item, drawn: drawn.choice(
            ["7", "Score: 8", "8/10", "11", "seven", "3.5"]
        ),
    }
    if grader in written:
        return written[grader](cases[0][0], drawn)
    if grader.startswith("g_eval"):
        rows = [f"q{n},{drawn.choice([1, 5, 10, 11, 'x'])}" for n in range(1, len(cases) + 1)]
        return "\n".join(["question_id,score", *rows])
    if grader == "ddx" and drawn.random() < 0.5:
        return json.dumps({"items": [labelled(at, drawn) for at in range(1, 6)]})
    scripts = {
        "graph": {"graph": drawn.choice([0.2, 0.6, 0.9])},
        "ddx": {
            "labels": {
                "severity": {"Gout": "mild"},
                "relation": {"Myasthenia gravis": {"Botulism": "Broad Disease Group"}},
            }
        },
    }
    made = _fake(scripts[grader]).complete(prompt, None, repeat=0)  # type: ignore[arg-type]
    return asyncio.run(made).text
