"""Measure what reading the trials of a run with their scores costs: CPU seconds, memory.

    python benchmarks/trials.py RUN [--copies 1] [--before SRC] [--rounds 5]

RUN is a run's folder; its lines are read so many times over as `--copies` says, from files in a
temporary folder. Each reading is a process of its own, the two sources in turn. Memory is the peak
of the process beyond what it held after its imports. `--before` names the `src` of another
checkout; one from before trials were records is read as dictionaries. Prints Markdown.
"""

import argparse
import collections
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"


def measure(folder):
    """Return [trials, CPU seconds, MiB of the peak, of it after the imports], by this process."""
    try:
        from medassay.storage.records import read_scored_trials
    except ImportError:
        from medassay.storage.jsonl import read_jsonl

        trials = zip(
            *(read_jsonl(folder / name) for name in ("trials.jsonl", "scores.jsonl")), strict=True
        )
    else:
        trials = read_scored_trials(folder)
    before = _peak()
    start = time.process_time()
    n = 0
    for _ in trials:
        n += 1
    seconds = time.process_time() - start
    return [n, seconds, _peak(), _peak() - before]


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    """Measure in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", type=Path, help="measure the code of this `src` once, as JSON")
    options = parser.parse_args()
    if options.once:
        sys.path.insert(0, str(options.once))
        print(json.dumps(measure(options.run)))
        return
    sources = {"now": SRC, **({"before": options.before} if options.before else {})}
    rounds = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("trials.jsonl", "scores.jsonl"):
            lines = (options.run / name).read_bytes()
            with (Path(folder) / name).open("wb") as file:
                file.writelines(lines for _ in range(options.copies))
        for _ in range(options.rounds):
            for name, source in sources.items():
                command = [sys.executable, __file__, folder, "--once", str(source)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rounds[name].append(json.loads(done.stdout))
    print(f"Python {platform.python_version()}, medians of {options.rounds} rounds\n")
    print("| source | trials | CPU s | peak MiB | MiB beyond the imports |\n|---|---|---|---|---|")
    for name, measured in rounds.items():
        n, seconds, peak, beyond = map(statistics.median, zip(*measured, strict=True))
        print(f"| {name} | {n:,.0f} | {seconds:.2f} | {peak:.1f} | {beyond:.1f} |")


if __name__ == "__main__":
    main()
