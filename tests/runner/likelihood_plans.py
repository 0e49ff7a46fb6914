"""Plans that ask tiny models for likelihoods."""

import json

from tests import makers

BOTH = ["choice_letters", "choice_texts"]


RELAXED = {"samples": 3, "keep": 2, "stride": 4, "max_tokens": 8}


def tiny(weights, name="tiny", **more):
    return {"id": name, "provider": "transformers", "path": weights, "device": "cpu", **more}


def open_items(n=4):
    items = makers.open_items(n)
    for item in items:
        item["reference"] = f"{item['question']} It binds courts, with exceptions."
        item["nice_to_have"] = ["It was amended.", "Judges like it."]
    return items


def workspace(folder, *models, items=None, **plan):
    makers.write_bank(folder / "bank", items or makers.law_items())
    makers.write_models(folder, *models)
    return makers.write_plan(folder, models=[m["id"] for m in models], **plan)


def lines(run, name):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]
