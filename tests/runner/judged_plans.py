"""Plans whose answers are judged by scripted judges."""

import json

from tests import makers


def workspace(folder, items, tested, judges, **plan):
    makers.write_bank(folder / "bank", items)
    makers.write_models(folder, *tested, *judges)
    return makers.write_plan(
        folder,
        models=[m["id"] for m in tested],
        judges=[j["id"] for j in judges],
        **{"task": "open", **plan},
    )


def lines(run, name):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


def rubric_items(n):
    return [
        {
            "id": f"r{i}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Advise client {i}.",
            "criteria": [
                {"text": "Names the deadline.", "points": 6, "tags": ["axis:a"]},
                {"text": "Names the court.", "points": 4, "tags": ["axis:a", "axis:b"]},
                {"text": "Promises success.", "points": -5, "tags": ["axis:b"]},
                {"text": "Shouts.", "points": -1},
            ],
            "source": "written for a test",
        }
        for i in range(n)
    ]
