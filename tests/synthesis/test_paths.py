"""Pathways: the golden vectors, brute force on random graphs, size, and the published paths of
HealthBranches.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.records.decision_graph import contract_problem, read_decision_graph
from medassay.errors import InputError
from medassay.synthesis import paths
from medassay.synthesis.pathway import count_paths, same_leaf


def steps(graph, most=2):
    return [list(path.steps) for path in paths(graph, most)]


def test_golden_graphs_give_the_golden_paths(golden):
    tree, known = (golden("bank_synthesis")[name] for name in ("path_tree", "path_graph"))
    assert steps(known) == known["kept"]
    assert steps(known, 99) == known["all_paths"]
    pairs = [[name, end] for name, ends in known["edges"].items() for end in ends]
    assert steps(pairs) == known["kept"]
    assert steps(tree["tree"]) == tree["paths"]


def test_paths_are_at_hand_from_the_package_itself():
    code = "import medassay; print(medassay.synthesis.paths([['A', 'B']])[0].text)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "A -> B\n"


@st.composite
def graphs(draw):
    """Draw a graph of at most 14 nodes, all reached from the first.

    Some leaves share a name but for case.
    """
    size = draw(st.integers(2, 14))
    edges: dict[str, list[str]] = {f"n{at}": [] for at in range(size)}
    for at in range(1, size):
        befores = draw(st.sets(st.integers(0, at - 1), min_size=1))
        for before in befores:
            edges[f"n{before}"].append(f"n{at}")
    for ends in edges.values():
        ends[:] = draw(st.permutations(ends))
    return edges


def brute_force(edges, most):
    every, kept, seen = [], [], {}

    def walk(way):
        if not edges[way[-1]]:
            every.append(way)
        for end in edges[way[-1]]:
            walk([*way, end])

    walk(["n0"])
    for way in every:
        leaf = way[-1].casefold()
        seen[leaf] = seen.get(leaf, 0) + 1
        if seen[leaf] <= most:
            kept.append(way)
    return every, kept


@given(graphs(), st.integers(1, 4))
def test_paths_are_those_of_brute_force(edges, most):
    every, kept = brute_force(edges, most)
    graph = read_decision_graph({"edges": edges, "root": "n0"})
    assert steps(graph, most) == kept
    counted = count_paths(graph, most)
    assert (counted.ways, counted.kept, counted.nodes) == (len(every), len(kept), len(edges))


@given(graphs())
def test_a_graph_and_its_tree_have_the_same_paths(edges):
    graph = read_decision_graph({"edges": edges, "root": "n0"})
    if count_paths(graph).ways < 200:
        assert steps(graph.to_tree(), 999) == steps(graph, 999)


def test_leaves_of_one_name_are_one_leaf_but_for_case_and_blanks():
    tree = {"node": "r", "content": "", "children": []}
    for at, leaf in enumerate(("Iron", " iron ", "IRON", "Ire\u0301e", "Ir\u00e9e", "B12")):
        tree["children"].append(
            {"node": f"c{at}", "content": "", "children": [{"node": leaf, "content": ""}]}
        )
    assert [path.steps[1] for path in paths(tree)] == ["c0", "c1", "c3", "c4", "c5"]


def test_ways_that_differ_in_their_contents_only_are_two():
    low = {"node": "B", "content": "below 90", "children": [{"node": "Treat", "content": ""}]}
    tree = {
        "node": "r",
        "content": "",
        "children": [low, {**low, "content": "above 180"}, dict(low)],
    }
    assert [path.contents[1] for path in paths(tree)] == ["below 90", "above 180"]


def test_a_graph_with_more_ways_than_atoms_is_walked_at_once():
    edges = {
        f"{level}-{at}": [f"{level + 1}-{to}" for to in range(8)]
        for level in range(250)
        for at in range(8)
    }
    graph = read_decision_graph(
        {"edges": {"root": [f"0-{at}" for at in range(8)], **edges}, "root": "root"}
    )
    counted = count_paths(graph)
    assert counted.ways == 8**251
    assert counted.kept == 16


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ({"edges": {"A": ["B"], "B": ["C"], "C": ["B"]}, "root": "A"}, "cycle B -> C -> B"),
        ({"edges": {"A": ["A"]}}, "a cycle"),
        ({"edges": {"A": ["B"], "C": ["D"]}}, "2 nodes follow none"),
        ({"edges": {"A": ["B"], "C": ["D"]}, "root": "A"}, "'C' is not reached"),
        ({"edges": {"A": "B"}}, "expected a list of names"),
        ({"edges": {}}, "no edges"),
        ([["A"]], "expected two names"),
        ([["A", 3]], "expected a name"),
        ({"node": "", "content": " "}, "has no name"),
        ({"node": "a", "content": "", "kids": []}, "has the key 'kids'"),
        ({"node": "a", "content": "", "children": {}}, "expected a list"),
        ({"node": "a", "content": "", "children": ["b"]}, "expected an object"),
        ("A -> B", "expected an object"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_place(graph, says):
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        paths(graph)


def leaf(name="b", **more):
    return {"node": name, "content": "", **more}


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ([], "expected one JSON object"),
        (leaf(), "the root has no child"),
        (leaf(children=[leaf(" ")]), "blank"),
        (leaf(children=[leaf("c\u0007")]), "control character"),
        (leaf(children=[leaf("c\u202e")]), "control character"),
        (leaf(children=[leaf("c", children=[leaf("B ")])]), "repeated on its own path"),
        (leaf(children=[{"node": "c"}]), "expected node, content, children"),
        (leaf(children=[leaf("c", note="x")]), "expected node, content, children"),
        (leaf(children=[{"node": "c", "content": None}]), "content is None"),
        (leaf(children=[leaf(str(at)) for at in range(2000)]), "more than 2,000 nodes"),
    ],
)
def test_a_models_tree_must_keep_the_contract(tree, says):
    assert says in (contract_problem(tree) or "")


def test_a_models_tree_ends_at_forty_levels():
    def chain(levels):
        tree = leaf("n0")
        for at in range(1, levels):
            tree = leaf(f"n{at}", children=[tree])
        return tree

    assert contract_problem(chain(40)) is None
    assert "deeper than 40" in (contract_problem(chain(41)) or "")


# The authors joined boxes that bear one name, the last content winning, and walked that graph. So
# in three conditions some published ways run from the beginning of one branch to the end of another
# (docs/decisions/0015).
PUBLISHED = {  # condition: (published ways, those that the tree itself has)
    "DYSPNEA": (21, 21),
    "FATIGUE": (23, 13),
    "HYPERTENSION": (11, 1),
    "OBESITY": (6, 6),
    "PLEURAL EFFUSION": (18, 18),
}


def ways_joined_by_name(tree):
    """Return the ways that the authors read: of the graph with one box a name, no box twice on a
    way.
    """
    edges: dict[str, dict[str, None]] = {}
    said: dict[str, str] = {}
    unnamed = 0

    def read(given):
        nonlocal unnamed
        name = given["node"]
        if name is None:
            unnamed += 1
            name = f"\x1f{unnamed}"
        said[name] = given["content"] or given["node"]
        below = edges.setdefault(name, {})
        for child in given.get("children") or ():
            below[read(child)] = None
        return name

    def walk(way):
        if not edges[way[-1]]:
            yield alike(said[name] for name in way)
        for end in edges[way[-1]]:
            if end not in way:  # joining made a cycle of FATIGUE
                yield from walk([*way, end])

    return set(walk([read(tree)]))


def alike(texts):
    return tuple(same_leaf(text) for text in texts)


@pytest.mark.real_data
@pytest.mark.parametrize("condition", PUBLISHED)
def test_every_published_path_of_healthbranches_is_there_or_explained(condition, data):
    folder = data / "healthbranches"
    tree = json.loads((folder / "trees" / f"{condition}.json").read_text(encoding="utf-8"))
    with (folder / "paths" / f"{condition}.csv").open(encoding="utf-8", newline="") as file:
        published = {
            alike(path.split("->"))
            for row in csv.DictReader(file)
            for path in row["paths"].split("||")
        }
    ours = {
        alike(more or name for name, more in zip(p.steps, p.contents, strict=True))
        for p in paths(tree)
    }
    assert (len(published), len(published & ours)) == PUBLISHED[condition]
    assert published == ways_joined_by_name(tree)


def test_shipped_graphs_keep_the_contract_and_hold_the_two_per_leaf_rule():
    folder = File(__file__).parents[2] / "src/medassay/bank/shipped/demo_paths/graphs"
    found = sorted(folder.glob("*.json"))
    assert [path.stem for path in found] == [
        "anaemia",
        "chest-pain",
        "dyspnoea",
        "headache",
        "hyponatraemia",
    ]
    for path in found:
        tree = json.loads(path.read_text(encoding="utf-8"))
        assert contract_problem(tree) is None
        assert (folder.parent / "texts" / f"{path.stem}.txt").is_file()
    dropped = count_paths(read_decision_graph(tree))
    assert (dropped.ways, dropped.kept) == (8, 7)  # the third way to restriction of fluid
