"""The loop in which each task asks, one unit after the other."""

import asyncio

from medassay.runner.concurrency import ask_in_turn, each


def test_nothing_is_begun_after_a_stop():
    begun = []

    async def do(unit):
        begun.append(unit)

    asyncio.run(ask_in_turn(each(range(9)), do, stopped=lambda: len(begun) == 2))
    assert begun == [0, 1]


def test_nothing_is_begun_while_others_may_have_taken_over():
    begun, doubts = [], [True, True, False]

    async def do(unit):
        assert not doubts or doubts[0] is False
        begun.append(unit)

    def in_doubt():
        return doubts.pop(0) if doubts else False

    asyncio.run(ask_in_turn(each([7]), do, stopped=lambda: False, in_doubt=in_doubt))
    assert (begun, doubts) == ([7], [])


def test_several_tasks_share_their_units():
    begun, units = [], iter(range(5))

    async def do(unit):
        begun.append(unit)
        await asyncio.sleep(0)

    async def ask():
        tasks = (ask_in_turn(each(units), do, stopped=lambda: False) for _ in range(3))
        await asyncio.gather(*tasks)

    asyncio.run(ask())
    assert sorted(begun) == list(range(5))
