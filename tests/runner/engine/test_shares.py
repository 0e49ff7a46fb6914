import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.core.amount import Amount
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import BudgetRules
from medassay.runner.budget import is_within
from medassay.runner.engine.shares import BudgetShare, EndpointLimits
from medassay.runner.gate import EndpointStats

steps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 400), st.booleans(), st.booleans()),
    max_size=120,
)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 40), steps)
def test_workers_together_never_pass_a_budget_whatever_they_ask_and_who_dies(tokens, calls, steps):
    budget_shares = BudgetShare(BudgetRules(calls=calls, tokens=tokens, money=tokens / 1e6))
    booked = {}
    dead = set()
    for number, size, settles, dies in steps:
        worker = f"w{number}"
        if worker in dead:
            continue
        have = booked.get(worker, Amount())
        need = Amount(1, size, size / 1e6)
        cap = budget_shares.cap(worker, need, 4)
        if is_within(have + need, BudgetRules(calls=cap.calls, tokens=cap.tokens, money=cap.money)):
            have += need
            if settles:  # the call used less than was booked
                have = Amount(have.calls, have.tokens - size // 2, have.money - size / 2e6)
        booked[worker] = have
        if dies:
            budget_shares.write_off(worker)
            dead.add(worker)
        else:
            budget_shares.note_cap(worker, cap, have)
        whole = sum(booked.values(), Amount())
        assert is_within(whole, BudgetRules(calls=calls, tokens=tokens, money=tokens / 1e6))


@pytest.mark.slow
@given(st.integers(1, 50), st.integers(1, 6))
def test_a_budget_is_spent_to_the_last_call(calls, workers):
    budget_shares = BudgetShare(BudgetRules(calls=calls))
    booked = dict.fromkeys((f"w{n}" for n in range(workers)), Amount())
    need = Amount(1, 10, 0.0)
    for _ in range(200 * workers):
        for worker in booked:
            cap = budget_shares.cap(worker, need, workers)
            if booked[worker].calls < cap.calls:
                booked[worker] += need
            budget_shares.note_cap(worker, cap, booked[worker])
    assert sum(one.calls for one in booked.values()) == calls
    assert budget_shares.is_spent(need)


def test_nothing_is_parted_where_nothing_is_bounded():
    budget_shares = BudgetShare(BudgetRules())
    assert budget_shares.cap("w", Amount(1, 1, 1.0), 3) is None
    assert not budget_shares.is_spent(Amount(1, 1, 1.0))


def spec(name, **values):
    return ModelSpec(id=name, provider="openai_compatible", url="http://x", **values)


@given(st.integers(1, 64), st.integers(1, 9), st.lists(st.integers(0, 3), max_size=12))
def test_shares_of_an_endpoint_add_up_to_its_limit_and_follow_overloads(most, workers, overloads):
    now = [0.0]
    limits = EndpointLimits({"m": spec("m", concurrency=most)}, clock=lambda: now[0])
    working = {f"w{n}": {"m"} for n in range(workers)}
    alone = float(most)
    for times in overloads:
        now[0] += 2.0
        limits.hear({"http://x": EndpointStats(5, times, 0.0)})
        alone = max(1.0, alone / 2) if times else min(most, alone + 5 / alone)
        shares = [limits.shares(w, working)["http://x"] for w in working]
        assert sum(share.most for share in shares) == int(alone)
        # Whoever may ask at all has an equal part of the rates; together they are one.
        asking = [share for share in shares if share.most]
        assert abs(sum(share.rate for share in asking) - 1) < 1e-9


def test_a_pause_that_one_worker_heard_of_holds_back_all():
    now = [0.0]
    limits = EndpointLimits({"m": spec("m"), "n": spec("n")}, clock=lambda: now[0])
    limits.hear({"http://x": EndpointStats(0, 1, 7.0)})
    now[0] = 2.0
    shares = limits.shares("other", {"one": {"m"}, "other": {"n"}})
    assert shares["http://x"].pause == 5.0


def test_whoever_has_no_units_of_an_endpoint_takes_no_share_of_it():
    limits = EndpointLimits({"m": spec("m", concurrency=8)})
    assert limits.shares("idle", {"one": {"m"}, "idle": set()}) == {}
    assert limits.shares("one", {"one": {"m"}, "idle": set()})["http://x"].most == 8
