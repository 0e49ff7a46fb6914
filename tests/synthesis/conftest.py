"""Runs that several files of tests look for flawed items in."""

import json

import pytest
from tests import makers
from tests.synthesis.flawed_runs import CORRECTION, MODELS, items, unchanged

from medassay import pipeline


@pytest.fixture
def runs(tmp_path):
    """Run six models on the bank; every reply of A to q0 is wrong by its key."""
    makers.write_bank(tmp_path / "bank", items(), name="salt", domains=("medicine",))
    reviewer = {
        **makers.fake("checker"),
        "family": "other",
        "script": {
            "replies": {"q0-quiz": json.dumps(CORRECTION), "q1-quiz": json.dumps(unchanged(1))}
        },
    }
    same = {**makers.fake("author"), "family": "author"}
    makers.write_models(tmp_path, *MODELS, reviewer, same)
    names = [one["id"] for one in MODELS]
    return [pipeline.run(makers.write_plan(tmp_path, models=names), secrets={})]
