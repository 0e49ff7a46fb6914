"""Runs that hold private items."""

from tests import makers

import medassay

WORDS = [
    "amber",
    "bronze",
    "cobalt",
    "dune",
    "ember",
    "fjord",
    "garnet",
    "harbour",
    "indigo",
    "juniper",
    "kelp",
    "lantern",
    "meadow",
    "nectar",
    "opal",
    "pewter",
    "quartz",
    "russet",
    "saffron",
    "tundra",
    "umber",
    "velvet",
    "willow",
    "xenon",
    "yarrow",
    "zephyr",
]


QUESTION = "A patient drinks " + " ".join(WORDS[:12]) + "; which law applies?"


def private_item(name="law-s1", question=QUESTION, **more):
    return {
        "id": name,
        "domain": "law",
        "kind": "synthetic",
        "question": question,
        "options": ["First answer of it", "Second one", "Third"],
        "expected": "B",
        "category": " ".join(WORDS[12:16]),
        "cluster": "secret " + " ".join(WORDS[16:22]),
        **more,
    }


def make_run(folder, *synthetic, replies=None, letters="hash", **plan):
    made = [*makers.law_items(), *makers.many_items(12), *synthetic]
    makers.write_bank(folder / "bank", made)
    script = {"letters": letters} if replies is None else {"replies": replies}
    makers.write_models(folder, makers.fake("one", **script), makers.fake("two", letters="hash"))
    wanted = {"models": ["one", "two"], **plan}
    return medassay.run(makers.write_plan(folder, **wanted), secrets={})
