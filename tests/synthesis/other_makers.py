"""Workshops that make items from exams, topics and translations."""

import json

from tests import makers

from medassay.synthesis.synthesize import synthesize


def models(folder, writer, reviewer):
    """Write a writer and a reviewer of two families, whose replies are found by what they are
    asked.
    """
    makers.write_models(
        folder,
        {**makers.fake("writer"), "family": "one", "script": {"replies": writer}},
        {**makers.fake("reviewer"), "family": "two", "script": {"replies": reviewer}},
    )


def make(folder, text):
    (folder / "plan.toml").write_text(text)
    return synthesize(folder / "plan.toml", folder / "shop", secrets={}, workspace=folder)


def draft(n, **more):
    made = {
        "question": (
            f"A man of {60 + n} with heart failure takes five drugs. Which one is stopped first,"
            " and why?"
        ),
        "answer": f"The drug number {n}",
        "facts": [f"Drug {n} harms the kidney."],
        "sources": ["A guideline, 2024"],
    }
    return json.dumps({**made, **more})


ACCEPT = json.dumps({"verdict": "accept", "issues": []})


PROPOSALS = """name = "mandate"
generator = "writer"
licence = "private"
may_leave = false
[proposals]
reviewer = "reviewer"
domain = "cardiology"
topics = ["first", "second", "third", "fourth"]
"""


def names(folder):
    from medassay.core.canonical import sha256_hex

    return [sha256_hex(topic.encode())[:8] for topic in ("first", "second", "third", "fourth")]
