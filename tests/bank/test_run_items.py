"""Items of a run in memory: read once where they fit, and never more of them than may be."""

from collections import Counter

import pytest
from tests import makers

import medassay
from medassay.bank import run_items
from medassay.bank.folder import StoredItems
from medassay.bank.run_items import RunItems

N = 30


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("w")
    items = [*makers.many_items(N), *makers.many_items(N, "tax")]
    for item in items:
        item["id"] = f"{item['domain']}-{item['id']}"
    makers.write_bank(folder / "bank", items, domains=("law", "tax"))
    makers.write_models(folder, makers.fake(letters="hash"))
    plan = makers.write_plan(folder, models=["m"])
    return medassay.run(plan, secrets={})


@pytest.fixture
def reads(monkeypatch):
    """Count how often each item of a file is read."""
    counts = Counter()
    read = StoredItems.record

    def counting(self, position):
        counts[position] += 1
        return read(self, position)

    monkeypatch.setattr(StoredItems, "record", counting)
    return counts


def looked_up(run, *domains):
    """Look up each item three times, domain by domain; return how many were in memory at most."""
    items = RunItems(run.path, run.manifest.domains)
    in_memory = 0
    for domain in domains:
        for _ in range(3):
            for name in items.names(domain):
                assert items.get(domain, name).id == name
                assert items.record(domain, name)["id"] == name
                in_memory = max(in_memory, len(items._read), len(items._records))
    return in_memory


@pytest.mark.parametrize(("n_items", "n_bytes"), [(N, 0), (0, 2**20)])
def test_items_that_fit_by_number_or_by_size_are_read_once(
    run, reads, monkeypatch, n_items, n_bytes
):
    monkeypatch.setattr(run_items, "_REMEMBERED_ITEMS", n_items)
    monkeypatch.setattr(run_items, "_REMEMBERED_BYTES", n_bytes)
    assert looked_up(run, "law") == N
    assert set(reads.values()) == {2}  # as an item, and as its object


def test_of_items_that_fit_neither_way_the_first_stay_in_memory(run, reads, monkeypatch):
    monkeypatch.setattr(run_items, "_REMEMBERED_ITEMS", 4)
    monkeypatch.setattr(run_items, "_REMEMBERED_BYTES", 0)
    assert looked_up(run, "law") == 4
    assert Counter(reads.values()) == {2: 4, 6: N - 4}


def test_items_of_the_next_domain_take_the_place_of_those_before(run, reads, monkeypatch):
    monkeypatch.setattr(run_items, "_REMEMBERED_ITEMS", 4)
    monkeypatch.setattr(run_items, "_REMEMBERED_BYTES", 0)
    assert looked_up(run, "law", "tax") == 4
    assert Counter(reads.values()) == {2: 8, 6: 2 * N - 8}
