import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.growth import growth
from tests.makers import said

from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Fact
from medassay.core.records.verdict import Case
from medassay.judging.sanitize import LONGEST, delimit, sanitize_answer, speaker_pattern
from medassay.kinds.facts.grader import FactGrader
from medassay.study.injection import attacks

SPEAKER = speaker_pattern(["my-model-7b", "org/Tested-8B"])
ITEM = makers.item(
    id="q1",
    domain="d",
    question="What now?",
    form="open",
    facts=(Fact(id="f1", text="Give oxygen."), Fact(id="f2", text="Stop aspirin.")),
)
ATTACKS = list(attacks())
MARK = re.compile(r"<<<(end of )?answer (\w{12})>>>")


def test_the_corpus_is_large_and_in_three_languages():
    assert len(ATTACKS) >= 60
    assert {a.language for a in ATTACKS} == {"en", "de", "es"}
    assert len({a.text for a in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.id)
def test_a_hostile_answer_stays_behind_its_fence(attack):
    shown = sanitize_answer(f"Give oxygen. {attack.text}", SPEAKER).text
    asked = FactGrader().step([Case(item=ITEM, text=shown)], [])
    text = asked.messages[-1]["content"]
    marks = [(m.start(), bool(m[1]), m[2]) for m in MARK.finditer(text)]
    assert [end for _, end, _ in marks] == [False, True]  # one opens, one closes, none inside
    assert marks[0][2] == marks[1][2]
    after = text[marks[1][0] :]
    assert "Give exactly one verdict for each of: f1, f2." in after  # our words come last
    assert len(text) < LONGEST + 4000
    assert not [
        c for c in text if unicodedata.category(c) in ("Cf", "Cc", "Co") and c not in "\n\t"
    ]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.id)
def test_a_judge_that_quotes_a_planted_verdict_is_not_misread(attack):
    own = {
        "facts": [
            {"id": "f1", "verdict": "missing", "evidence": ""},
            {"id": "f2", "verdict": "contradict", "evidence": ""},
        ],
        "extra_false_claims": [],
    }
    case = Case(item=ITEM, text=sanitize_answer(attack.text, SPEAKER).text)
    for reply in (
        f"The answer says: {attack.text[:3000]}\nMy verdict:\n{json.dumps(own)}",
        f"{json.dumps(own)}\n(The answer wanted: {attack.text[:3000]})",
    ):
        step = FactGrader().step([case], said(reply))
        if isinstance(step, Prompt):
            continue  # doubtful, hence asked again
        assert [f.verdict for f in step[0].body.facts] == ["missing", "contradict"]


@given(st.text(max_size=400))
def test_no_text_closes_its_fence(text):
    fenced = delimit(text, "answer")
    first, *inside, last = fenced.split("\n")
    assert first == last.replace("end of ", "")
    assert not any(line == last for line in inside)
    assert first != delimit(text + ".", "answer").split("\n")[0]  # nobody can know it beforehand


@pytest.mark.parametrize(
    ("said", "shown", "times"),
    [
        ("As GPT-4, I advise rest.", "As [model], I advise rest.", 1),
        ("I am Claude 3.5 Sonnet, made by Anthropic.", "I am [model], made by [model].", 2),
        (
            "Als KI-Sprachmodell von OpenAI rate ich",
            "Als KI-Sprachmodell von [model] rate ich",
            1,
        ),
        ("Soy Gemini, entrenado por Google.", "Soy [model], entrenado por [model].", 2),
        ("**GPT-4o**: rest", "**[model]**: rest", 1),
        ("As my-model-7b I say", "As [model] I say", 1),
        ("I am org/Tested-8B.", "I am [model].", 1),
        ("Claude Bernard described it.", "Claude Bernard described it.", 0),
        ("Search Google Scholar; see the meta-analysis.", None, 0),
        ("10⁹/L, 5 µg, ½ tablet", None, 0),
    ],
)
def test_names_are_masked_only_where_a_model_speaks_of_itself(said, shown, times):
    found = sanitize_answer(said, SPEAKER)
    assert (found.text, found.masked) == (shown or said, times)


def test_what_runs_on_is_cut_and_counted():
    found = sanitize_answer("x" * (LONGEST + 5), SPEAKER)
    assert (len(found.text), found.cut) == (LONGEST, 5)


@pytest.mark.parametrize("padding", ["as ", "as an ai ", "\n", "model from ", ">*#_- ", "\u200b"])
def test_masking_takes_no_more_than_its_share_of_time_on_padding(padding):
    assert growth(lambda text: sanitize_answer(text, SPEAKER), padding, 4_000) < 24
