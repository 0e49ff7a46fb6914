"""The engine of one process."""

import asyncio
from types import SimpleNamespace

import pytest

from medassay.runner.engine.local import _work
from medassay.runner.progress import Stop


class Nothing:
    """A journal in which nothing is done yet."""

    def is_done(self, number):
        return False

    def sync(self):
        pass


class Stage:
    """256 units of a model that 256 tasks ask; to connect takes a turn of the loop."""

    def __init__(self):
        self.specs = {"m": SimpleNamespace(id="m", concurrency=256)}
        self.begun = 0
        self.begun_when_sent = []

    def units(self, model):
        return iter(range(256))

    def records(self, unit):
        return (unit,)

    async def do(self, spec, unit):
        self.begun += 1
        await asyncio.sleep(0)
        self.begun_when_sent.append(self.begun)

    async def close(self):
        pass


def work(stage):
    tally = SimpleNamespace(models_over_budget=())
    asker = SimpleNamespace(tally=tally, stopping=lambda: False)
    job = SimpleNamespace(
        stage=stage, journal=Nothing(), asker=asker, stop=Stop(), in_doubt=lambda: False
    )
    asyncio.run(_work(job))


def test_the_first_request_does_not_wait_until_the_last_is_made():
    stage = Stage()
    work(stage)
    assert stage.begun == len(stage.begun_when_sent) == 256
    assert stage.begun_when_sent[0] <= 16


def test_a_task_that_fails_while_others_are_begun_ends_all_with_its_own_error():
    class Full(Stage):
        async def do(self, spec, unit):
            await super().do(spec, unit)
            raise OSError("the disk is full")

    stage = Full()
    with pytest.raises(OSError, match="the disk is full"):
        work(stage)
    assert stage.begun < 64
