"""Prompts in files of one's own: checked before any call, and unable to execute anything."""

import os

import pytest
from tests import makers

import medassay
from medassay.core.records.item import Item
from medassay.errors import InputError
from medassay.judging.grader_text import shipped_grader_texts
from medassay.prompt.catalog import TEMPLATES
from medassay.prompt.own_template import read_template
from medassay.prompt.render import load_template


def with_template(folder, text, *, name="mine.txt", items=None, **task):
    plan = makers.workspace(
        folder,
        items or makers.many_items(2),
        makers.fake(reply="A"),
        task={"template": f"prompts/{name}", **task},
    )
    (folder / "prompts").mkdir(exist_ok=True)
    (folder / "prompts" / name).write_text(text)
    return plan


OPTIONS = "{% for letter, option in options %}{{ letter }}: {{ option }}\n{% endfor %}"


def test_a_prompt_of_ones_own_is_asked_and_its_hash_is_kept(tmp_path):
    plan = with_template(tmp_path, "My way: {{ question }}\n" + OPTIONS)
    run = medassay.run(plan, secrets={})
    assert run.manifest.template.startswith("mine.txt@")
    assert run.manifest.own_code.templates == {
        "mine.txt": {"": "My way: {{ question }}\n" + OPTIONS}
    }
    assert medassay.verify(run.path).ok
    assert medassay.publish(run, tmp_path / "site")


def test_several_prompts_are_rows_beside_each_other(tmp_path):
    plan = makers.workspace(
        tmp_path,
        makers.many_items(2),
        makers.fake(reply="A"),
        templates=["prompts/mine.txt", "closed"],
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/mine.txt").write_text("{{ question }}" + OPTIONS)
    run = medassay.run(plan, secrets={})
    settings = {row.setting for row in run.statistics.rows("overall")}
    assert settings == {"zero_shot:mine.txt", "zero_shot:closed"}


FORBIDDEN = {
    "{{ question.__class__ }}": "'__class__' cannot be read",
    "{{ ''.join(question) }}": "call is more than a template may do",
    "{{ question * 999999999 }}": "mul is more than a template may do",
    "{{ question ~ question }}": "concat is more than a template may do",
    "{% for a in question %}x{% endfor %}": "for goes through one of",
    "{% for a in options %}{% for b in options %}x{% endfor %}{% endfor %}": "not in another for",
    "{% include 'x' %}": "include is more",
    "{% set x = 1 %}{{ question }}": "assign is more",
    "{{ question|pprint }}": "filter 'pprint'",
    "{{ question|replace('a', 'aa') }}": "replace takes two texts",
    "{{ question|join(question) }}": "filter 'join' takes texts in quotes",
    "{{ options|join('" + "x" * 99 + "') }}": "filter 'join' takes texts in quotes",
    "{{ question|join('x')|join('x')|join('x') }}": "join goes through a list",
    "{{ options[question] }}": "brackets take a number",
    "{{ -question }}": "a sign stands before a number alone",
    "{% if question < 3 %}{% endif %}": "a comparison is == or !=",
    "{% for o in options recursive %}{% endfor %}": "for goes through one of",
    "{{ question" + "|trim" * 60 + " }}": "nested too deeply",
    "{% if question %}" * 60 + "{% endif %}" * 60: "nested too deeply",
    "{{ question }}" * 4000: "too large",
    "{{ question": "line 1",
    "{{ qestion }}": "hole 'qestion' is unknown here; known are condition, context",
    "Say something.": "has no hole {{ question }}",
}


@pytest.mark.parametrize("text", FORBIDDEN)
def test_what_a_template_may_not_do_is_refused_before_any_call(tmp_path, text):
    plan = with_template(tmp_path, text)
    with pytest.raises(InputError) as error:
        medassay.run(plan, secrets={})
    assert FORBIDDEN[text] in str(error.value)
    assert not (tmp_path / "runs").exists()


def test_a_choice_whose_options_are_not_shown_is_refused(tmp_path):
    with pytest.raises(InputError, match="shows no options"):
        medassay.run(with_template(tmp_path, "{{ question }}"), secrets={})


def test_a_judges_prompt_must_show_the_answer_and_fill_known_holes(tmp_path):
    for text, why in (
        ("{{ question }}", "has no hole {{ answer }}"),
        ("{{ answer }}{{ x }}", "'x'"),
    ):
        (tmp_path / "judge.txt").write_text(text)
        plan = makers.workspace(
            tmp_path,
            makers.open_items(2),
            makers.fake(reply="A"),
            task={"like": "prometheus", "grader_template": "judge.txt"},
            judges=["judge"],
        )
        makers.write_models(tmp_path, makers.fake(reply="A"), makers.fake("judge", reply="x"))
        with pytest.raises(InputError) as error:
            medassay.run(plan, secrets={})
        assert why in str(error.value)


def test_languages_of_prompt_and_items_are_compared(tmp_path, cli):
    items = [{**item, "language": "fr"} for item in makers.many_items(3)]
    makers.workspace(tmp_path, items, makers.fake(reply="A"))
    out = cli("run", "plan.toml", "--plan")[1]
    assert "template 'closed': 3 items in 'fr' are asked in 'en'; it has texts in de, en, es" in out
    with_template(tmp_path, "{{ question }}" + OPTIONS, items=items)
    out = cli("run", "plan.toml", "--plan")[1]
    assert "template 'mine.txt' does not say its language, and 3 items are in 'fr'" in out
    with_template(tmp_path, "{{ question }}" + OPTIONS, items=items, name="mine.fr.txt")
    assert "template" not in cli("run", "plan.toml", "--plan")[1]


def test_languages_beside_each_other_are_one_template(tmp_path):
    (tmp_path / "mine.en.txt").write_text("English {{ question }}")
    (tmp_path / "mine.de.txt").write_text("Deutsch {{ question }}")
    (tmp_path / "minefield.de.txt").write_text("other")
    texts = read_template(tmp_path / "mine.en.txt")
    assert texts == {"de": "Deutsch {{ question }}", "en": "English {{ question }}"}


@pytest.mark.parametrize("name", sorted({*TEMPLATES, *shipped_grader_texts()}))
def test_every_prompt_of_medassay_can_be_copied_out_and_taken_as_ones_own(tmp_path, cli, name):
    code, out, _ = cli("prompt", "copy", name)
    assert code == 0
    first = next(iter(sorted((tmp_path / "prompts").iterdir())))
    texts = read_template(first)
    if name in TEMPLATES:
        assert sorted(texts) == sorted(TEMPLATES[name])
        assert "template =" in out
    else:
        assert texts == shipped_grader_texts()[name]
    code, _, errors = cli("prompt", "copy", name)
    assert code == 3
    assert "nothing was written" in errors


def test_a_copied_prompt_asks_the_same_words(tmp_path, cli):
    cli("prompt", "copy", "closed")
    from medassay.prompt.render import own_template

    texts = read_template(tmp_path / "prompts/closed.en.txt")
    item = Item(
        id="q",
        domain="d",
        question="Which?",
        language="de",
        target=medassay.Choice(options=("x", "y"), expected="A"),
    )
    shipped = load_template("closed")
    assert own_template("closed.en.txt", texts, shipped).fill(item, None) == shipped.fill(
        item, None
    )


def test_a_template_that_is_no_plain_file_is_not_waited_for(tmp_path):
    plan = with_template(tmp_path, "{{ question }}")
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (tmp_path / "prompts/mine.txt").unlink()
        make(tmp_path / "prompts/mine.txt")
        with pytest.raises(InputError, match="no plain file"):
            medassay.run(plan, secrets={})
