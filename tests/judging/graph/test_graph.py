import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.errors import InputError
from medassay.judging.graders.graph import load, published
from medassay.judging.graders.graph.fault import faults
from medassay.judging.graders.graph.graph import graph_from

SMALL = {
    "name": "small",
    "version": 1,
    "roots": ["a"],
    "nodes": {
        "a": {"type": "binary", "criteria": "c", "true": "good", "false": "bad"},
        "good": {"type": "verdict", "score": 1.0},
        "bad": {"type": "verdict", "score": 0.0},
    },
}


def with_nodes(**nodes):
    return {**SMALL, "nodes": {**SMALL["nodes"], **nodes}}


def test_golden_graphs_are_valid_or_refused_with_their_code(golden):
    graphs = golden("dag_graphs")
    assert faults(graphs["valid"]) == []
    for case in graphs["invalid"]:
        codes = {fault.code for fault in faults(case["graph"])}
        assert codes == {case["error"]}, case["name"]


def test_a_cycle_is_told_with_its_path():
    node = {"type": "binary", "criteria": "c", "true": "a", "false": "good"}
    [fault] = faults(
        {
            **with_nodes(b=node),
            "nodes": (
                with_nodes(b=node)["nodes"]
                | {"a": {"type": "binary", "criteria": "c", "true": "b", "false": "bad"}}
            ),
        }
    )
    assert str(fault) == "node 'a': a → b → a (cycle)"
    graph = with_nodes(c={"type": "binary", "criteria": "c", "true": "a", "false": "good"}, b=node)
    graph["nodes"]["a"] = {**node, "true": "b"}
    assert "node 'a': a → b → a (cycle)" in map(str, faults({**graph, "roots": ["c"]}))
    alone = {"type": "task", "instructions": "i", "output_label": "l", "children": ["a"]}
    assert "a → a" in str(faults(with_nodes(a=alone))[0])


def test_all_faults_are_told_at_once(tmp_path):
    bad = with_nodes(a={"type": "binary", "criteria": " ", "true": "x", "false": "bad"})
    bad["nodes"]["bad"] = {"type": "verdict", "score": 2}
    (tmp_path / "g.json").write_text(json.dumps({**bad, "colour": "red", "on_error": "hope"}))
    with pytest.raises(InputError, match="5 faults") as told:
        load(tmp_path / "g.json")
    for part in ("'colour'", "'on_error' must be fail or zero", "'criteria'", "'x'", "score 2"):
        assert part in str(told.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": ""}, "'name'"),
        ({"version": "1"}, "'version'"),
        ({"version": True}, "'version'"),
        ({"roots": ["a", "a"]}, "a root stands twice"),
        ({"roots": ["a", 5]}, "'roots' must be names"),
        ({"deterministic_format": 1}, "'deterministic_format' must be true or false"),
        ({"nodes": {}}, "at least one node"),
        ({"parameters": {"x": 1}}, "'parameters'"),
        ({"deterministic_format": "yes"}, "'deterministic_format' must be true or false"),
    ],
)
def test_what_a_graph_must_have(change, told):
    assert told in str(faults({**SMALL, **change})[0])


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"type": "verdict", "score": True}, "score True"),
        ({"type": "verdict", "score": float("nan")}, "score nan"),
        ({"type": "verdict", "score": 10**400}, "no number from 0 to 1"),
        ({"type": "choice", "criteria": "c", "options": {"x": "good", "y": 1}}, "each option"),
        ({"type": "choice", "criteria": "c", "options": {"x": "good", " ": "bad"}}, "empty"),
        (
            {
                "type": "binary",
                "criteria": "c",
                "true": "good",
                "false": "bad",
                "inputs": "input",
            },
            "list",
        ),
        (
            {"type": "binary", "criteria": "c", "true": "good", "false": "bad", "parser": 1},
            "'parser'",
        ),
        (
            {
                "type": "task",
                "instructions": "i",
                "output_label": "l",
                "children": ["good", "good"],
            },
            "twice",
        ),
        (["a"], "type must be"),
    ],
)
def test_what_a_node_must_have(node, told):
    assert told in str(faults(with_nodes(a=node))[0])


def test_graphs_that_would_ask_too_much_are_refused():
    chain = {
        f"n{i}": {"type": "binary", "criteria": "c", "true": f"n{i + 1}", "false": "bad"}
        for i in range(60)
    }
    nodes = {**chain, "n60": SMALL["nodes"]["good"], "bad": SMALL["nodes"]["bad"]}
    assert "one after the other" in str(faults({**SMALL, "roots": ["n0"], "nodes": nodes})[0])
    # Ten diamonds after one another: 2 ** 10 branches from thirty nodes.
    diamonds = {"end": SMALL["nodes"]["good"]}
    for i in range(10):
        after = f"d{i + 1}" if i < 9 else "end"
        task = {"type": "task", "instructions": "i", "output_label": "l"}
        diamonds[f"d{i}"] = {**task, "children": [f"l{i}", f"r{i}"]}
        diamonds[f"l{i}"] = diamonds[f"r{i}"] = {**task, "children": [after]}
    assert "may ask 3,069 questions" in str(
        faults({**SMALL, "roots": ["d0"], "nodes": diamonds})[0]
    )
    many = {f"v{i}": {"type": "verdict", "score": 1} for i in range(501)}
    assert "more than 500 nodes" in str(faults({**SMALL, "nodes": many, "roots": list(many)})[0])


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.sampled_from(["a", "b", "task", "binary", "verdict", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "version",
                    "roots",
                    "nodes",
                    "type",
                    "true",
                    "false",
                    "children",
                    "options",
                    "score",
                    "inputs",
                    "criteria",
                    "a",
                    "b",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(anything, anything)
@settings(max_examples=300, deadline=None)
def test_any_document_is_a_graph_or_refused(document, nodes):
    for candidate in (document, {**SMALL, "nodes": nodes}, with_nodes(a=nodes)):
        try:
            graph_from(candidate, "here")
        except InputError as error:
            assert str(error).startswith("here: ")


YAML = """
name: small
version: 1
roots: [a]
nodes:
  a: {type: binary, criteria: c, true: good, false: bad}
  good: {type: verdict, score: 1.0}
  bad: {type: verdict, score: 0.0}
"""


@pytest.mark.parametrize(
    "quoted", [YAML, YAML.replace("true:", '"true":').replace("false:", "'false':")]
)
def test_yaml_and_json_say_the_same(tmp_path, quoted):
    (tmp_path / "g.yaml").write_text(quoted)
    (tmp_path / "g.json").write_text(json.dumps(SMALL))
    assert load(tmp_path / "g.yaml") == load(tmp_path / "g.json")
    assert load(tmp_path / "g.yaml").id == load(tmp_path / "g.json").id


def test_options_may_be_called_yes_and_no(tmp_path):
    text = YAML.replace(
        "binary, criteria: c, true: good, false: bad",
        "choice, criteria: c, options: {yes: good, no: bad}",
    )
    (tmp_path / "g.yml").write_text(text)
    assert list(load(tmp_path / "g.yml").nodes["a"].branches) == ["yes", "no"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (YAML + "  bad: {type: verdict, score: 0.5}\n", "the key 'bad' stands twice"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("a: !!python/object:os.system {}\n", "not valid YAML"),
        ("a: [", "not valid YAML"),
        ("[" * 5000, "not valid YAML"),
        ("? [a]\n: b\n", "a key is no text"),
        ('a: !!int "+"\n', "not valid YAML"),
        ('a: !!float ""\n', "not valid YAML"),
        ("a: !!timestamp x\n", "not valid YAML"),
        ("a: !!bool maybe\n", "not valid YAML"),
        (YAML.replace("1.0", "0x" + "F" * 5000), "digits"),
        ("", "a graph is an object"),
        ("x" * 1_000_001, "longer than"),
    ],
)
def test_hostile_yaml_is_refused_in_one_line(tmp_path, text, told):
    (tmp_path / "g.yaml").write_text(text)
    with pytest.raises(InputError, match=told) as error:
        load(tmp_path / "g.yaml")
    assert "\n" not in str(error.value)


def test_files_that_are_no_graph(tmp_path):
    (tmp_path / "twice.json").write_text('{"name": "a", "name": "b"}')
    with pytest.raises(InputError, match="'name' stands twice"):
        load(tmp_path / "twice.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not valid JSON"):
        load(tmp_path / "deep.json")
    with pytest.raises(InputError, match=r"is a \.json, \.yaml or \.yml file"):
        load(tmp_path / "g.txt")
    for name in ("absent.yaml", "nul\0.yaml"):
        with pytest.raises(InputError, match="cannot be read"):
            load(tmp_path / name)
    nodes = {f"n{i}": {"type": "foo"} for i in range(400)}
    (tmp_path / "many.json").write_text(json.dumps({**SMALL, "nodes": nodes}))
    with pytest.raises(InputError, match="and 351 more") as told:
        load(tmp_path / "many.json")
    assert len(str(told.value)) < 10_000


@pytest.mark.parametrize("name", ["medical_extraction_quality", "open_answer_safety"])
def test_published_graphs_hold(name):
    assert published(name).name == name


def test_the_published_graph_has_the_shape_of_the_golden_one(golden):
    ours, theirs = (
        published("medical_extraction_quality"),
        graph_from(golden("dag_graphs")["valid"], "g"),
    )
    for name, node in theirs.nodes.items():
        if node.type != "verdict":
            mine = ours.nodes[name]
            assert (mine.type, list(mine.branches)) == (node.type, list(node.branches))
            for option in node.branches if node.type == "choice" else ():
                score = theirs.nodes[node.branches[option]].score
                assert ours.nodes[mine.branches[option]].score == score, option


def test_unknown_graphs_and_parameters_are_named():
    with pytest.raises(
        InputError, match="known are medical_extraction_quality, open_answer_safety"
    ):
        published("other")
    graph = published("medical_extraction_quality")
    with pytest.raises(InputError, match="no parameter 'keys'; it has required_keys"):
        graph.with_parameters(keys="x")
    other = graph.with_parameters(required_keys="structured_health_record")
    assert other.id != graph.id
    assert "(structured_health_record)" in other.text(other.nodes["format_task"])


def test_the_id_follows_what_decides_a_result():
    base = graph_from(SMALL, "g")
    turned = dict(reversed(SMALL["nodes"].items()))
    assert graph_from({**SMALL, "nodes": turned}, "g").id == base.id
    other = with_nodes(good={"type": "verdict", "score": 0.9})
    assert graph_from(other, "g").id != base.id
    assert graph_from({**SMALL, "on_error": "zero"}, "g").id != base.id


def test_a_text_that_is_no_unicode_is_refused(tmp_path):
    (tmp_path / "g.json").write_text(json.dumps({**SMALL, "name": "half \ud800"}))
    with pytest.raises(InputError, match=r"g\.json: "):
        load(tmp_path / "g.json")
