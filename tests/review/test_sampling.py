from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import InputError, StatisticError
from medassay.review.sampling import assign, draw_key, sample_size, stratified_sample
from medassay.statistic.agreement.votes import margin_of_error

CATEGORIES = st.dictionaries(
    st.text(min_size=1, max_size=4), st.sampled_from(["a", "b", "c"]), min_size=3, max_size=40
)


@given(CATEGORIES, st.data())
def test_every_category_is_in_a_sample_of_the_wished_size(categories, data):
    least = len(set(categories.values()))
    n = data.draw(st.integers(least, len(categories)))
    found = stratified_sample(categories, n, "7")
    assert len(found) == len(set(found)) == n
    assert {categories[one] for one in found} == set(categories.values())
    assert found == stratified_sample(dict(reversed(categories.items())), n, "7")
    sizes = Counter(categories.values())
    for key, got in Counter(categories[one] for one in found).items():
        assert got <= sizes[key]
        # No stratum is further from its share than the smallest ones' right to be present asks for.
        assert got <= n * sizes[key] / len(categories) + 1


def test_samples_too_small_or_too_large_are_refused():
    with pytest.raises(InputError, match="at least 2"):
        stratified_sample({"x": "a", "y": "b"}, 1, "0")
    with pytest.raises(InputError, match="at most 2"):
        stratified_sample({"x": "a", "y": "b"}, 3, "0")


def test_a_sample_is_uniform_within_its_category():
    names = {f"i{at}": "a" for at in range(20)}
    counts = Counter(one for seed in range(600) for one in stratified_sample(names, 5, str(seed)))
    assert set(counts) == set(names)
    # 600 × 5 / 20 = 150 each; standard deviation √(600 × 0.25 × 0.75) = 10.6.
    assert all(abs(count - 150) < 5 * 10.6 for count in counts.values())


@given(st.integers(1, 30), st.integers(1, 8), st.integers(1, 4))
def test_every_entry_gets_its_reviewers_and_nobody_much_more_than_others(n, people, overlap):
    reviewers = list(range(100, 100 + people))
    made = assign(range(n), reviewers, overlap, "7")
    assert len(made) == len(set(made))
    of_entry = Counter(entry for entry, _ in made)
    assert all(of_entry[entry] == min(overlap, people) for entry in range(n))
    load = Counter(reviewer for _, reviewer in made)
    assert max(load[one] for one in reviewers) - min(load[one] for one in reviewers) <= 1


@given(st.integers(1, 20), st.integers(2, 6))
def test_what_was_given_stays_and_only_what_lacks_is_added(n, people):
    first = assign(range(n), range(people), 1, "7")
    more = assign(range(n), range(people), 2, "7", assigned=first)
    assert not set(first) & set(more)
    assert Counter(entry for entry, _ in [*first, *more]) == dict.fromkeys(range(n), 2)


def test_orders_differ_by_reviewer_and_repeat_by_seed():
    orders = [sorted(range(20), key=lambda e, r=r: draw_key("7", "order", r, e)) for r in range(5)]
    assert len({tuple(order) for order in orders}) == 5
    assert orders[0] == sorted(range(20), key=lambda e: draw_key("7", "order", 0, e))
    assert orders[0] != sorted(range(20), key=lambda e: draw_key("8", "order", 0, e))


@given(st.floats(0.005, 0.4), st.integers(2, 20_000))
def test_the_sample_size_is_the_smallest_with_the_margin(margin, population):
    n = sample_size(margin, population)
    assert 1 <= n <= population
    assert margin_of_error(n, population) <= margin + 1e-9
    if n > 1:
        assert margin_of_error(n - 1, population) > margin - 1e-9


def test_the_published_sample_size():
    assert sample_size(0.05, 5621) == 360
    with pytest.raises(StatisticError):
        sample_size(0, 10)
