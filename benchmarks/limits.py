"""Where more workers stop helping: a simulation of one driver that serves them all, from measured
parts.

    python benchmarks/limits.py [--worker-ms 0.3] [--driver-us 6] [--fixed 100]

What a beat costs the driver is measured here, with an actor of Ray; prints Markdown.
"""

import argparse
import heapq
import tempfile
import time
from array import array
from collections import Counter
from pathlib import Path

from medassay.runner.ask import Tally
from medassay.runner.budget import Amount
from medassay.runner.engine.orders import WorkMessage, WorkReport
from medassay.runner.engine.ray import connect
from medassay.storage.journal import Journal, RecordPlaces


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker-ms", type=float, default=0.3, help="CPU of a worker a trial")
    parser.add_argument("--driver-us", type=float, default=6.0, help="CPU of the driver a trial")
    parser.add_argument("--fixed", type=float, default=100.0, help="seal and site, s")
    options = parser.parse_args()
    beat, _ = report_costs(connect())
    each, note = options.worker_ms / 1000, options.driver_us / 1e6
    print(
        f"A worker takes {options.worker_ms:.3f} ms a trial; a beat costs the driver"
        f" {beat * 1000:.2f} ms, a trial {options.driver_us:.1f} µs.\n"
    )
    print("| workers | trials/s | of the ideal | asking 1,000,000, s | the whole of it, s |")
    print("|---|---|---|---|---|")
    for workers in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        rate = simulated(workers, each, beat, note)
        asking = 1e6 / rate
        print(
            f"| {workers} | {rate:,.0f} | {rate * each / workers:.2f} | {asking:.0f} |"
            f" {asking + options.fixed:.0f} |"
        )


def report_costs(ray):
    """Return CPU seconds of the driver for an empty beat, and for each trial in one."""

    class Echo:
        def beat(self, orders, size):
            arrays = [array("q", range(size)) for _ in range(3)]
            counts = Counter({("m", "d", "answered"): size})
            noted = (RecordPlaces("w.jsonl", *arrays),)
            return WorkReport(noted, counts, (), {"m": 5}, 1, Tally(), Amount(), None, {}, 0.0)

    actor = ray.remote(Echo).remote()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in (0, 1000):
            journal = Journal(Path(folder), 1000)
            ray.get(actor.beat.remote(WorkMessage(), size))
            began = time.process_time()
            for _ in range(1000):
                for noted in ray.get(actor.beat.remote(WorkMessage(), size)).noted:
                    journal.note(noted)
            found[size] = (time.process_time() - began) / 1000
    return found[0], (found[1000] - found[0]) / 1000


def simulated(workers, each, report, note, seconds=60.0, beat=0.5):
    """Return trials a second.

    A worker reports every beat and holds units for three beats at most.
    """
    free, done = 0.0, 0
    ready = [(beat * n / workers, 0.0, n) for n in range(workers)]  # when, having worked how long
    heapq.heapify(ready)
    while ready:
        now, worked, number = heapq.heappop(ready)
        if now > seconds:
            continue
        trials = min(worked, 3 * beat) / each
        free = max(free, now) + report + note * trials
        done += trials
        # Until it is served it goes on with what it holds; then the next beat begins.
        heapq.heappush(ready, (max(now + beat, free), max(beat, free - now), number))
    return done / seconds


if __name__ == "__main__":
    main()
