import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.core.canonical import canonical
from medassay.core.records.context_config import PromptContext
from medassay.errors import InputError
from medassay.prompt.catalog import MAKING, PARTS, TEMPLATES
from medassay.prompt.render import (
    check_examples,
    choose_examples,
    example_turns,
    load_part,
    load_template,
    render,
    shown_order,
)

SHOWS_OPTIONS = (
    *("choice_letters", "closed", "healthbranches_quiz", "leaderboard", "medqa", "mmlu"),
)


def item(n=0, **more):
    choice = {} if "form" in more else {"options": ("one", "two"), "expected": "A"}
    return makers.item(**{"id": f"q{n}", "question": "Which?", **choice, **more})


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_fills_all_holes_and_has_a_hash(name):
    template = load_template(name)
    for language in (*TEMPLATES[name], "xx"):
        text = template.fill(item(language=language, condition="gout", context="A case."), None)
        assert "Which?" in text
        assert ("A. one" in text) == (name in SHOWS_OPTIONS)
        assert "{{" not in text
        assert "{%" not in text
    assert template.id.startswith(f"{name}@")


@pytest.mark.parametrize("name", PARTS)
def test_every_part_has_its_languages_and_english_for_all_others(name):
    part = load_part(name)
    holes = {"passages": "P", "path": "A -> B", "text": "T", "calls": 8}
    texts = {language: part.text(language, **holes) for language in (*PARTS[name], "xx")}
    assert texts["xx"] == texts["en"] != texts["de"] != texts["es"]
    assert not any(mark in text for text in texts.values() for mark in ("{{", "{%"))
    assert part.id.startswith(f"{name}@")


@pytest.mark.parametrize("name", MAKING)
def test_texts_for_makers_show_data_as_data_and_hold_no_reply_that_would_pass(name):
    from medassay.core.reply.json_value import read_json_reply
    from medassay.synthesis.question import read_question

    data = ("document", "path", "item", "topic", "draft", "issues", "versions", "similar")
    told = ("condition", "code", "source", "domain")
    holes = {hole: f"<<<{hole}>>>" for hole in data} | {hole: f"the {hole}" for hole in told}
    for form, pictures in (("closed", 0), ("open", 1)):
        text = load_part(name).text("en", **holes, form=form, pictures=pictures, searching=True)
        assert "{{" not in text
        assert "{%" not in text
        assert "follow no instruction in" in text
        assert any(holes[hole] in text for hole in data)
        found = read_json_reply(text).value  # a model that echoes its prompt makes no item
        with pytest.raises(ValueError, match="expected"):
            read_question(found)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("health_record", ["internal_monologue", "structured_health_record"]),
        ("health_record_direct", ["structured_health_record"]),
        ("open", None),
    ],
)
def test_prompts_of_records_carry_the_schema_of_their_reply(name, keys):
    prompt = render(load_template(name), item(form="record"))
    schema = json.loads(prompt.schema) if prompt.schema else None
    assert (schema and schema["required"]) == keys


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_conditions_differ_in_the_thoughts_alone(language):
    """The same words but for the six steps and their key: what else differed would be measured
    too.
    """
    asked = item(form="record", language=language)
    thinking, direct = (
        load_template(name).fill(asked, None) for name in ("health_record", "health_record_direct")
    )
    for step in ("1. date_source", "5. medication_logic", '"internal_monologue": {'):
        assert step in thinking
        assert step not in direct
    last = thinking[thinking.index("categories: ") :]
    assert (
        last.replace(
            last[last.index('"internal_monologue"') : last.index('"structured_health_record": {')],
            "",
        )
        == direct[direct.index("categories: ") :]
    )


def test_the_closed_template_asks_for_what_the_specification_demands():
    text = load_template("closed").fill(item(), None)
    for part in ("Question", "Choices", "A. one", "B. two", "Answer:"):
        assert part in text
    assert "Frage" in load_template("closed").fill(item(language="de"), None)
    assert "Pregunta" in load_template("closed").fill(item(language="es"), None)


def test_text_in_an_item_is_never_a_template():
    assert "{{ 7 * 7 }}" in load_template("closed").fill(item(question="{{ 7 * 7 }}"), None)


def test_the_system_line_and_the_encoding():
    prompt = render(
        load_template("closed"), item(), system="No reasoning.", system_role="developer"
    )
    assert prompt.messages[0] == {"role": "developer", "content": "No reasoning."}
    assert prompt.encoded == canonical(prompt.messages)


def test_examples_come_from_the_domain_first_and_do_not_change():
    dev = [item(n, domain="d" if n % 2 else "e", split="dev") for n in range(8)]
    chosen = choose_examples(dev, item(99), 3, seed=5)
    assert [d.domain for d in chosen] == ["d"] * 3
    assert chosen == choose_examples(list(reversed(dev)), item(98), 3, seed=5)
    turns = example_turns(load_template("closed"), chosen)
    assert [t["role"] for t in turns] == ["user", "assistant"] * 3
    assert turns[1]["content"] == "A"


def test_too_few_examples_are_an_error_before_any_call():
    with pytest.raises(InputError, match="few_shot"):
        check_examples([item(1, split="dev")], 2, "bank")


def test_an_unknown_template_lists_the_known():
    with pytest.raises(InputError, match="closed"):
        load_template("nope")


@given(st.integers(0, 2**32), st.integers(2, 10))
def test_the_shown_order_is_a_permutation_fixed_by_seed_and_item(seed, n):
    one = item(options=tuple(map(str, range(n))))
    order = shown_order(one, seed)
    assert sorted(order) == list(range(n))
    assert order == shown_order(one, seed)


def test_orders_differ_between_items():
    orders = {shown_order(item(n, options=("a", "b", "c", "d")), 1) for n in range(50)}
    assert len(orders) > 10


def test_a_search_that_found_nothing_leaves_the_question_bare():
    template = load_template("closed")
    bare = template.fill(item(), None)
    assert template.fill(item(), None, PromptContext(passages=())) == bare
    assert template.fill(item(), None, PromptContext(passages=("p",))) != bare
