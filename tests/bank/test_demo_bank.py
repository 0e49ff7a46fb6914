from collections import Counter

from medassay.bank.catalog import BANKS
from medassay.bank.loaders.demo import FOLDER
from medassay.bank.stats import bank_stats, most_by_leaves
from medassay.statistic.interval.wilson import wilson_interval

BANK = BANKS["demo"].load(FOLDER)
CHOICES = [i for i in BANK.items if i.form == "choice" and i.split == "test"]


def test_it_holds_what_the_issue_asks_for():
    closed = [i for i in BANK.items if i.answer_type == "closed" and i.split == "test"]
    assert len(closed) >= 120
    assert len(BANK.domains) == 6
    languages = Counter(i.language for i in closed)
    assert languages["de"] == languages["es"] == 20
    assert {len(i.options) for i in CHOICES} == {4, 5}
    assert {i.form for i in closed} == {"choice", "regex", "range"}
    assert sum(1 for i in BANK.items if i.cluster) >= 12
    opened = [i for i in BANK.items if i.answer_type == "open"]
    assert len(opened) == 24
    assert all(3 <= len(i.target.facts) <= 6 for i in opened)
    assert all(i.source and i.rationale and "\n" not in i.rationale for i in BANK.items)
    assert "Not clinically validated" in BANK.limits


def within_chance(right):
    """Whether a count of right choices lies in Wilson's interval about chance."""
    chance = sum(1 / len(i.options) for i in CHOICES)
    lo, hi = wilson_interval(chance, len(CHOICES))
    return lo <= right / len(CHOICES) <= hi


def test_the_longest_option_is_right_no_more_often_than_chance():
    def longest(item):
        return max(range(len(item.options)), key=lambda i: len(item.options[i]))

    assert within_chance(sum(i.letters[longest(i)] == i.target.expected for i in CHOICES))


def test_the_most_common_key_is_right_no_more_often_than_chance():
    right = 0
    for letters in {i.letters for i in CHOICES}:
        keys = Counter(i.target.expected for i in CHOICES if i.letters == letters)
        right += max(keys.values())
        assert max(keys.values()) - min(keys.values()) <= 2
    assert within_chance(right)


def test_its_statistics_name_the_tokenizer():
    stats = bank_stats(BANK)
    assert stats["items"] == 156
    assert stats["tokens"]["tokenizer"].startswith("words and marks")
    assert stats["by"]["answer_type"] == {"closed": 132, "open": 24}
    assert stats["tokens"]["question"]["longest"] >= stats["tokens"]["question"]["mean"] > 0


def test_categories_count_questions_conditions_leaves_and_paths(golden):
    found = bank_stats(BANKS["demo_paths"].load(FOLDER.parent / "demo_paths"))["categories"]
    assert {name: row["questions"] for name, row in found.items()} == dict.fromkeys(found, 4)
    assert sum(row["conditions"] for row in found.values()) == 5
    assert all(
        row["leaves"] == row["paths"] == 4 and not row["exceeds_bound"] for row in found.values()
    )
    known = golden("bank_synthesis")
    rows = known["categories"]
    for row in rows:
        bound = most_by_leaves(row["leaves"])
        assert bound == row["upper_bound_2_per_leaf"]
        assert (row["questions"] > bound) == row["exceeds_bound"]
    assert sum(row["exceeds_bound"] for row in rows) == 6
    totals = {name: sum(row[name] for row in rows) for name in known["category_totals"]}
    assert totals == known["category_totals"]
    assert sum(known["careqa"]["closed_by_category"].values()) == known["careqa"]["closed_total"]
    assert (
        known["careqa"]["open_after_first_rephrasing"] - known["careqa"]["removed_second_iteration"]
        == known["careqa"]["open_total"]
    )
