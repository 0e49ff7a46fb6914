"""Training items: written by us, plausible, not clinically validated, CC0.

Each is answered first and explained then.
"""

import json
from importlib.resources import files

from medassay.review.form import FORMS
from medassay.review.store.studies import NewEntry


def training_entries(form: str) -> list[NewEntry]:
    """Return the training items of a form."""
    file = files("medassay.review.training") / f"{FORMS[form].name}.json"
    return [
        NewEntry(
            item=f"training-{number}",
            content={"language": "en", **document["content"]},
            hidden={
                "training": {"expected": document["expected"], "why": document["why"]},
                **document.get("hidden", {}),
            },
            training=True,
        )
        for number, document in enumerate(json.loads(file.read_text("utf-8")), 1)
    ]
