"""Failures in groups, two rows side by side, and the shapes and differences of texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import InputError
from medassay.viewer.groups import count_failed, failures_by_kind, unread_by_shape, wrong_options
from medassay.viewer.index import RunIndex
from medassay.viewer.shape import shape_of
from medassay.viewer.side_by_side import VERDICTS, RunRow, compare_rows, differences, rows_of
from medassay.viewer.standings import standings
from medassay.viewer.trial import trial_detail

A, B, MIXED = (RunRow(name, "zero_shot", "solo") for name in ("always-a", "always-b", "mixed"))


@pytest.fixture
def index(sealed):
    opened = RunIndex(sealed)
    opened.catch_up()
    yield opened
    opened.close()


def test_failures_are_grouped_by_what_was_said(index):
    [group] = failures_by_kind(index)
    assert (group.n, group.models, group.outcome) == (2, 1, "failed")
    assert count_failed(index) == 2


def test_unread_replies_are_grouped_by_their_shape(index):
    groups = unread_by_shape(index)
    assert (groups[0].shape, groups[0].n, groups[0].models) == ("words , words .", 20, 1)
    assert {group.outcome for group in groups} == {"unparsed", "refused"}


def test_a_wrong_answer_that_models_share_is_named(index, sealed):
    frame = sealed.to_pandas()
    wrong = frame[(frame.score == 0) & frame.value.notna()]
    shared = wrong.groupby(["item", "value"]).model.nunique()
    expected = {(item, value): n for (item, value), n in shared.items() if n > 1}
    assert {(g.item, g.value): g.models for g in wrong_options(index)} == expected
    assert expected


def test_pairs_are_counted_and_shown_as_the_scores_say(index, sealed):
    frame = sealed.to_pandas()
    scores = {
        row.model: frame[frame.model == row.model].set_index(["item", "repeat"]).score
        for row in (A, B, MIXED)
    }
    for first, second in ((A, B), (A, MIXED), (MIXED, B)):
        a, b = scores[first.model], scores[second.model]
        counts = compare_rows(index, first, second, verdict="", domain="", page=1)
        assert counts.n_pairs == 20
        assert counts.counts["only-a"] == ((a == 1) & (b == 0)).sum()
        assert counts.counts["only-b"] == ((a == 0) & (b == 1)).sum()
        assert counts.counts["both-right"] == ((a == 1) & (b == 1)).sum()
        assert counts.counts["both-wrong"] == ((a == 0) & (b == 0)).sum()
        assert counts.counts["no-score"] == (a.isna() | b.isna()).sum()
        for verdict in VERDICTS:
            shown = compare_rows(index, first, second, verdict=verdict, domain="law", page=1)
            assert len(shown.page) == min(10, counts.counts[verdict])
            for number_a, number_b in shown.page:
                left, right = trial_detail(index, number_a), trial_detail(index, number_b)
                assert (left.trial.item, left.trial.repeat) == (
                    right.trial.item,
                    right.trial.repeat,
                )
                assert (left.trial.model, right.trial.model) == (first.model, second.model)
    assert compare_rows(index, A, B, verdict="", domain="none", page=1).n_pairs == 0


def test_a_row_that_is_not_there_is_named(index):
    assert rows_of(index) == sorted([A, B, MIXED, RunRow("mute", "zero_shot", "solo")])
    other = RunRow("other", "zero_shot", "solo")
    with pytest.raises(InputError, match="no answers of 'other · zero_shot · solo'"):
        compare_rows(index, A, other, verdict="", domain="", page=1)


def test_standings_count_what_is_there(index, sealed):
    frame = sealed.to_pandas()
    for row in standings(index):
        own = frame[frame.model == row.model]
        assert row.answered == (own.outcome != "failed").sum()
        assert row.failed == (own.outcome == "failed").sum()
        assert row.unread == own.outcome.isin(["unparsed", "refused", "truncated"]).sum()
        assert row.scored == own.score.notna().sum()
        assert row.mean == pytest.approx(own.score.mean())


@given(st.text(), st.text())
def test_the_pieces_of_two_texts_are_the_texts(first, second):
    a, b = differences(first, second)
    assert "".join(part.text for part in a) == first
    assert "".join(part.text for part in b) == second
    common = ["".join(part.text for part in side if part.common) for side in (a, b)]
    assert common[0] == common[1]


@given(st.text(min_size=1))
def test_a_text_does_not_differ_from_itself(text):
    assert all(part.common for side in differences(text, text) for part in side)


@given(st.text())
def test_every_text_has_a_short_shape_of_one_line(text):
    shape = shape_of(text)
    assert shape
    assert "\n" not in shape
    assert len(shape.split(" ")) <= 25
