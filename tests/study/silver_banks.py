"""Banks of reports whose records a model writes."""

import json

from tests import makers

from medassay.bank.folder import load_bank
from medassay.core.records.health_record import RECORD

RECORD_OF = {
    "categories": ["Kardiologie"],
    "date_and_source": {"date": None, "source": None},
    "diagnosis": ["Hypertonie"],
    "relevant_metrics": [],
    "medications": {"current": [], "advised": [], "discontinued": []},
    "follow_up": [],
}


GOOD = json.dumps({"internal_monologue": {}, RECORD: RECORD_OF})


def letters(folder, n=4, **card):
    items = [
        {
            "id": f"l-{i}",
            "domain": "letters",
            "answer_type": "open",
            "question": f"Brief {i}",
            "record": None,
            "source": "test",
        }
        for i in range(n)
    ]
    items[0] |= {"record": RECORD_OF, "origin": {"standing": "gold", "maker": "us"}}
    return load_bank(
        makers.write_bank(folder / "bank", items, name="letters", domains=["letters"], **card),
        lock=None,
    )
