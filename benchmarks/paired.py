"""CPU seconds of two checkouts on the same work, in turn: run, judge, publish, verify.

    python benchmarks/paired.py BEFORE/src AFTER/src [--rounds 7] [--items 2000] [--answers 800]

Every step is a process of its own; the checkouts take turns, and the first of a pair changes from
round to round, since machines drift. Both publish and verify the run that BEFORE made. Prints the
median CPU seconds of each, and the median of the ratios after ÷ before with their quartiles.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import scale  # noqa: E402
from processes import measure, server  # noqa: E402

import judging  # noqa: E402 -- beside this file

MODELS = 10


def cpu(source, *arguments):
    """Return the CPU seconds of a command of one checkout."""
    command = [sys.executable, "-m", "medassay", *map(str, arguments), "--quiet"]
    return measure(command, env={"PYTHONPATH": str(source)})[1]


def run(source, folder, options):
    """Return the CPU seconds of a run of scripted models in a folder of its own."""
    place = Path(tempfile.mkdtemp(dir=folder))
    plan = scale.write(place, options.items, MODELS)
    seconds = cpu(source, "run", plan)
    shutil.rmtree(place)
    return seconds


def judge(source, folder, answered, url):
    """Return the CPU seconds of three judges before stored answers, asked anew."""
    place = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(answered, place, dirs_exist_ok=True)
    panel = "judge-alpha,judge-beta,judge-gamma"
    one = next((place / "runs").iterdir())
    seconds = cpu(source, "judge", one, "--panel", panel, "--models", place / "models.json")
    shutil.rmtree(place)
    return seconds


def publish(source, folder, sealed):
    """Return the CPU seconds of publishing a run."""
    place = Path(tempfile.mkdtemp(dir=folder))
    seconds = cpu(source, "publish", sealed, "--to", place / "site", "--id", "one")
    shutil.rmtree(place)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--answers", type=int, default=800)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(options.before.resolve())
    sources = (options.before.resolve(), options.after.resolve())
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        answered, sealed = folder / "answered", folder / "sealed"
        answered.mkdir()
        judging.write(answered, options.answers, url)
        sealed.mkdir()
        cpu(sources[0], "run", scale.write(sealed, options.items, MODELS))
        one = next((sealed / "runs").iterdir())
        steps = {
            "run": lambda source: run(source, folder, options),
            "judge": lambda source: judge(source, folder, answered, url),
            "publish": lambda source: publish(source, folder, one),
            "verify": lambda source: cpu(source, "verify", one),
        }
        print("| step | before, CPU s | after, CPU s | after ÷ before | quartiles |")
        print("|---|---|---|---|---|", flush=True)
        for step, measured in steps.items():
            pairs = []
            for number in range(options.rounds):
                turn = sources if number % 2 == 0 else sources[::-1]
                seconds = {source: measured(source) for source in turn}
                pairs.append(tuple(seconds[source] for source in sources))
            before, after = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
            low, middle, high = statistics.quantiles([b / a for a, b in pairs], n=4)
            print(
                f"| {step} | {before:.2f} | {after:.2f} | {middle:.3f} | {low:.3f}–{high:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
