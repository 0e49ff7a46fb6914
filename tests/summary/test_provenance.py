"""Tools minus solo of each kind, on scores of both modes given by hand."""

import json

import pytest
from tests import makers

from medassay.bank.run_items import RunItems
from medassay.core.records.manifest import Manifest, RunModel, RunPlan
from medassay.kinds.choice.tasks import CLOSED
from medassay.summary.leaderboard import leaderboard_document
from medassay.summary.scores import RunScores

MANIFEST = Manifest(
    run="r-1",
    task="closed",
    plan=RunPlan(seed=1, n_resamples=200, rank_rule="leader", separation="both"),
    banks=[],
    domains={"law": "law-2026.1"},
    models={"m": RunModel(id="m", provider="import")},
    template="none",
    methodology="x",
)


def test_tools_minus_solo_is_paired_and_of_each_kind(tmp_path):
    items = makers.many_items(40)
    for n, item in enumerate(items):
        item["kind"] = "synthetic" if n % 2 else "public"
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    table = RunScores(RunItems(tmp_path, MANIFEST.domains), MANIFEST, CLOSED.scale)
    for n, item in enumerate(items):
        # Tools help with every fourth public item and with no synthetic one.
        scores = {"solo": float(n % 8 != 0), "tools": 1.0 if n % 2 == 0 else float(n % 8 != 0)}
        for mode, score in scores.items():
            table.add_trial(makers.trial(mode=mode, item=item["id"]), score)
    found = leaderboard_document(table, MANIFEST, CLOSED)["by_kind"]["tools_minus_solo"]
    by = {(row["domain"], row["kind"]): row for row in found}
    assert by["law", "public"]["diff"] == pytest.approx(5 / 20)
    assert 0 < by["law", "public"]["lo"] <= 0.25 <= by["law", "public"]["hi"]
    assert (by["law", "synthetic"]["diff"], by["law", "synthetic"]["n"]) == (0, 20)
    assert by["overall", "public"]["diff"] == by["law", "public"]["diff"]


def test_one_cluster_has_no_interval_and_few_are_never_told_different(tmp_path):
    for n, cluster in ((1, None), (6, "one"), (6, None)):
        folder = tmp_path / f"{n}{cluster}"
        folder.mkdir()
        items = [i | ({"cluster": cluster} if cluster else {}) for i in makers.many_items(n)]
        (folder / "items.jsonl").write_text("".join(json.dumps(i) + "\n" for i in items))
        table = RunScores(RunItems(folder, MANIFEST.domains), MANIFEST, CLOSED.scale)
        for item in items:
            for mode, score in (("solo", 0.0), ("tools", 1.0)):
                table.add_trial(makers.trial(mode=mode, item=item["id"]), score)
        [row, _] = leaderboard_document(table, MANIFEST, CLOSED)["tools_minus_solo"]
        assert (row["diff"], row["different"]) == (1.0, False)
        assert (row["lo"] is None) == (n == 1 or cluster is not None)
