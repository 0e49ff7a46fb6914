"""A sealed run of many trials with replies of some sixty words, to measure the viewer with.

    python benchmarks/viewer_run.py FOLDER [--models 10] [--items 100000]

A small run is asked for real; its lines are then repeated with other items and other replies, and
sealed. Its statistics stay those of the small run.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import scale

from medassay.core.canonical import canonical
from medassay.storage.run import open_run, seal_run

_WORDS = 60
RARE = "phaeochromocytoma"  # in one reply of a thousand


def write(folder, models, items):
    """Write a workspace with one run, and return the folder of the run."""
    folder.mkdir(parents=True)
    plan = scale.write(folder, 100, models)
    subprocess.run(
        [sys.executable, "-m", "medassay", "--quiet", "run", str(plan)], check=True, cwd=folder
    )
    [small] = (folder / "runs").iterdir()
    small.chmod(0o755)
    run = folder / "runs" / "large-1"
    shutil.copytree(small, run)
    for path in run.iterdir():
        path.chmod(0o644)
    shutil.rmtree(small)
    draw = random.Random(1)
    words = [
        "".join(draw.choices("abcdefghilmnoprstu", k=draw.randint(3, 10))) for _ in range(20_000)
    ]
    weights = [1 / (1 + rank) for rank in range(len(words))]
    pool = draw.choices(words, weights, k=1_000_000)
    lines = {name: (run / name).read_bytes().splitlines() for name in _LINES}
    [item] = [json.loads(line) for line in lines["items.jsonl"][:1]]
    with (run / "items.jsonl").open("wb") as file:
        for number in range(items):
            file.write(canonical(item | {"id": f"q{number:06d}"}) + b"\n")
    trial, score, timing = (json.loads(lines[name][0]) for name in _LINES[1:])
    names = sorted({json.loads(line)["model"] for line in lines["trials.jsonl"]})
    files = [(run / name).open("wb") for name in _LINES[1:]]
    for model in names:
        for number in range(items):
            place = {"model": model, "item": f"q{number:06d}"}
            start = draw.randrange(len(pool) - _WORDS)
            text = " ".join(pool[start : start + _WORDS])
            if draw.random() < 0.001:
                text += f" {RARE}"
            letter = draw.choice("ABCD")
            outcome = draw.choices(["answered", "unparsed", "failed"], [95, 4, 1])[0]
            right = letter == "A" and outcome == "answered"
            reply = {
                "text": f"{text}. The answer is {letter}",
                "outcome": outcome,
                "value": letter if outcome == "answered" else None,
                "reason": "S2"
                if outcome == "answered"
                else "no option"
                if outcome == "unparsed"
                else "HTTP 500",
                "completion_tokens": draw.randrange(20, 900),
            }
            files[0].write(canonical(trial | place | reply) + b"\n")
            files[1].write(canonical(score | place | {"score": int(right)}) + b"\n")
            files[2].write(canonical(timing | {"seconds": draw.random()}) + b"\n")
    for file in files:
        file.close()
    for name in ("seal.json", "MANIFEST.sha256"):
        (run / name).unlink()
    manifest = json.loads((run / "manifest.json").read_bytes())
    (run / "manifest.json").write_bytes(canonical(manifest | {"run": "large-1"}) + b"\n")
    seal_run(open_run(run), sealed_at="2026-11-26T00:00:00Z")
    return run


_LINES = ("items.jsonl", "trials.jsonl", "scores.jsonl", "timings.jsonl")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--items", type=int, default=100_000)
    options = parser.parse_args()
    print(write(options.folder, options.models, options.items))


if __name__ == "__main__":
    main()
