"""What a coordinator and a worker say to each other, once a beat: orders one way, a report the
other.
"""

from array import array
from collections import Counter
from collections.abc import Mapping

import msgspec

from medassay.core.amount import Amount
from medassay.runner.ask import Tally
from medassay.runner.breaker import RecentEnds
from medassay.runner.gate import EndpointStats, Share
from medassay.storage.journal import RecordPlaces


class Shard(msgspec.Struct, frozen=True):
    """Some units of one model, leased to one worker; `number` is never given twice in a pass."""

    number: int
    model: str
    units: "array[int]"


class WorkMessage(msgspec.Struct, frozen=True):
    """What a worker shall do until the next beat.

    `cap` is what it may book in all since it began, None where nothing is bounded; `spent` says
    that no more will come. `shares` are its parts of what endpoints bear, by endpoint; `given_up`
    are models that are asked no more, with the reason; `lost` are all workers that were given up:
    what was said to them is learnt before their work is taken over.
    """

    shards: tuple[Shard, ...] = ()
    stop: bool = False
    cap: Amount | None = None
    spent: bool = False
    shares: Mapping[str, Share] = msgspec.field(default_factory=dict)
    given_up: Mapping[str, str] = msgspec.field(default_factory=dict)
    lost: tuple[str, ...] = ()


class WorkReport(msgspec.Struct, frozen=True):
    """What a worker did since the last beat.

    `noted` are the records that are safe where the run is kept; `finished` the shards of which
    every unit was done or failed; `waiting` the units of each model that are not begun; `busy` the
    units under way. `booked` is counted from its beginning, `under_way` are the bookings that are
    not settled yet, `need` is a call that waits for more. `rows` say of each model how its requests
    ended. `cpu` are its seconds of processor time, from its beginning.
    """

    noted: tuple[RecordPlaces, ...]
    advanced: Counter[tuple[str, str, str]]  # model or judge, domain, outcome
    finished: tuple[int, ...]
    waiting: Mapping[str, int]
    busy: int
    tally: Tally
    booked: Amount
    under_way: int
    need: Amount | None
    endpoints: Mapping[str, EndpointStats]
    rows: Mapping[str, RecentEnds]
    cpu: float
    broken: Exception | None = None
