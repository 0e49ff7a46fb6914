"""Decision graphs in files: JSON, edges, GraphML, Mermaid.

What is broken is refused with the place; the picture.
"""

import json
from xml.etree import ElementTree

import pytest
from tests.synthesis.shops import TREES

from medassay.core.records.decision_graph import read_decision_graph
from medassay.errors import InputError
from medassay.report.decision_graph import draw_decision_graph
from medassay.synthesis import paths
from medassay.synthesis.graph_file import READERS, load_graph

WAYS = [
    "Chest pain -> ST elevation? -> yes -> Catheter laboratory",
    "Chest pain -> ST elevation? -> no -> Troponin -> Discharge with follow-up",
    "Chest pain -> ST elevation? -> no -> Troponin -> raised -> Admission",
]
MERMAID = """---
title: pain
---
%% a comment
flowchart LR
    A([Chest pain]) --> B{"ST elevation?"}
    B -- yes --> C[Catheter laboratory]
    B -->|no| D{{Troponin}};
    D ==> E["Discharge<br/>with follow-up"]:::fine
    D -. raised .-> F[/Admission/]
    classDef fine fill:#fff
    class E fine
"""
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label" attr.type="string"/><key id="d" for="node" attr.name="description" attr.type="string"/>
<key id="e" for="edge" attr.name="label" attr.type="string"/>
<graph edgedefault="directed"><node id="n0"><data key="l">Chest pain</data></node>
<node id="n1"><data key="l">ST elevation?</data><data key="d">two leads</data></node><node id="n2"><data key="l">Catheter laboratory</data></node>
<node id="n3"><data key="l">Troponin</data></node><node id="n4"><data key="l">Discharge with follow-up</data></node>
<node id="n5"><data key="l">Admission</data></node>
<edge source="n0" target="n1"/><edge source="n1" target="n2"><data key="e">yes</data></edge><edge source="n1" target="n3"><data key="e">no</data></edge>
<edge source="n3" target="n4"/><edge source="n3" target="n5"><data key="e">raised</data></edge></graph></graphml>"""
CSV = """source,target,label
Chest pain,ST elevation?,
ST elevation?,Catheter laboratory,yes
ST elevation?,Troponin,no
Troponin,Discharge with follow-up,
Troponin,Admission,raised
"""
ARROWS = "\n".join(way.replace("->", "→") if at else way for at, way in enumerate(WAYS))


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("mmd", MERMAID),
        ("graphml", GRAPHML),
        ("csv", CSV),
        ("tsv", CSV.replace(",", "\t")),
        ("txt", ARROWS),
    ],
)
def test_every_form_gives_the_same_ways(ending, text, tmp_path):
    path = tmp_path / f"pain.{ending}"
    path.write_text(text, encoding="utf-8")
    assert [way.text for way in paths(load_graph(path))] == WAYS


def test_a_tree_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "fever.json"
    path.write_text(json.dumps(TREES["fever"]))
    assert load_graph(path).to_tree() == TREES["fever"]


def test_labels_of_arrows_stay_apart_though_they_are_called_alike(tmp_path):
    path = tmp_path / "x.mmd"
    path.write_text(
        "graph TD\nA -->|yes| B\nB -->|yes| C\nA -->|no| D\nB -->|no| E\nA --> F & G --> H"
    )
    assert [way.text for way in paths(load_graph(path))] == [
        "A -> yes -> B -> yes -> C",
        "A -> yes -> B -> no -> E",
        "A -> no -> D",
        "A -> F -> H",
        "A -> G -> H",
    ]


@pytest.mark.parametrize(
    ("ending", "text", "says"),
    [
        ("mmd", "A --> B", "no line 'flowchart'"),
        ("mmd", "flowchart TD\nA --> ", "line 2: at ''; expected a box"),
        ("mmd", "flowchart TD\nA[open --> B", "ends in ']'"),
        ("mmd", "flowchart TD\nA ~> B", "expected an arrow"),
        ("mmd", "flowchart TD\nA", "no arrows"),
        ("mmd", "flowchart TD\nA --> B --> A", "cycle"),
        ("graphml", "<graphml>", "not readable as GraphML"),
        ("graphml", '<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "DOCTYPE or entities"),
        ("graphml", GRAPHML.replace("directed", "undirected"), "undirected"),
        ("csv", "source,target\nA\n", "row 2"),
        ("txt", "A -> \n", "an arrow without a name"),
        ("json", "{", "not valid JSON"),
        ("json", "[" * 5000, "not valid JSON"),
        ("dot", "digraph {}", "unknown ending"),
    ],
)
def test_what_is_broken_is_refused_with_the_place(ending, text, says, tmp_path):
    path = tmp_path / f"graph.{ending}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_graph(path)
    assert says in str(caught.value)
    assert path.name in str(caught.value)


@pytest.mark.parametrize("ending", READERS)
def test_noise_is_no_graph_in_any_form(ending, tmp_path):
    path = tmp_path / f"noise{ending}"
    path.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(InputError):
        load_graph(path)


def test_the_picture_shows_every_box_and_hostile_names_harmlessly():
    tree = {
        "node": "<script>\u202eF",
        "content": "a & b",
        "children": [{"node": "long " * 60, "content": ""}],
    }
    drawn = draw_decision_graph(read_decision_graph(tree))
    root = ElementTree.fromstring(drawn)
    boxes = [
        e for e in root.iter("{http://www.w3.org/2000/svg}rect") if "box" in e.get("class", "")
    ]
    assert len(boxes) == 2
    assert "<script>" not in drawn
    assert "\u202e" not in drawn
    for name in TREES:
        drawn = draw_decision_graph(read_decision_graph(TREES[name]))
        rects = [
            tuple(int(e.get(k)) for k in ("x", "y", "width", "height"))
            for e in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect")
            if "box" in e.get("class", "")
        ]
        for at, (x, y, w, h) in enumerate(rects):  # no two boxes lie over each other
            for ox, oy, ow, oh in rects[at + 1 :]:
                assert x + w <= ox or ox + ow <= x or y + h <= oy or oy + oh <= y
