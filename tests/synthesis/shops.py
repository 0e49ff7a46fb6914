"""A small workshop with a scripted author: two conditions, four pathways."""

import json

from tests import makers

from medassay.synthesis import paths
from medassay.synthesis.pathway import subject_of
from medassay.synthesis.plan import load_synthesis_plan

TREES = {
    "fever": {
        "node": "Fever",
        "content": "38 degrees or more",
        "children": [
            {
                "node": "Stiff neck",
                "content": "",
                "children": [{"node": "Antibiotics at once", "content": ""}],
            },
            {
                "node": "Cough",
                "content": "",
                "children": [{"node": "Chest radiograph", "content": ""}],
            },
        ],
    },
    "low-salt": {
        "node": "Low salt",
        "content": "sodium below 135",
        "children": [
            {
                "node": "Seizure",
                "content": "",
                "children": [{"node": "Hypertonic saline", "content": "150 ml"}],
            },
            {
                "node": "Thiazide",
                "content": "",
                "children": [{"node": "Stop the drug", "content": ""}],
            },
        ],
    },
}
PLAN = """name = "shop"
generator = "writer"
licence = "CC0-1.0"
seed = 3
{more}
[pathways]
sources = "texts"
graphs = "graphs"
{table}
"""


def question(number, *, letter="B"):
    options = [f"wrong {number} {n}" for n in range(4)]
    options.insert("ABCDE".index(letter), f"right {number}")
    return [f"A patient of {20 + number} years, what now?", f"right {number}", options, letter]


def ways():
    """Return subject → path of all pathways."""
    return {subject_of(name, path): path for name, tree in TREES.items() for path in paths(tree)}


def replies():
    made = {}
    for number, (subject, path) in enumerate(ways().items()):
        made[f"make_path/{subject}"] = path.full_text
        made[f"make_question/{subject}"] = json.dumps(question(number))
    return made


def write_shop(folder, given=None, *, table="", more="", **model):
    """Write plan, texts, graphs and models; `given` are the replies of the writer."""
    for name, tree in TREES.items():
        for kind, end, text in (
            ("graphs", "json", json.dumps(tree)),
            ("texts", "txt", f"About {name}."),
        ):
            (folder / kind).mkdir(exist_ok=True)
            (folder / kind / f"{name}.{end}").write_text(text)
    script = {"replies": replies() if given is None else given}
    writer = {**makers.fake("writer"), "family": "one", "script": script, **model}
    other = {**makers.fake("reviewer"), "family": "two"}
    makers.write_models(folder, writer, other)
    (folder / "plan.toml").write_text(PLAN.format(table=table, more=more))
    load_synthesis_plan(folder / "plan.toml")
    return folder / "plan.toml"
