"""Measure what reading a reply costs: letters, ranked lists, records, and pages of PDF.

    python benchmarks/reading.py [--data FOLDER] [--before SRC] [--rounds 5]

CPU seconds a reply, medians over rounds. Replies are the raw ones of `--data` (HealthBranches,
Kernel29, RareBench), where it is there, and the layouts of `tests/corpora`. `--before` names the
`src` of another checkout, read in a process of its own in turn with this one. Prints Markdown.
"""

import argparse
import csv
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MANY = 2_000  # replies of one kind, at most


def replies(data):
    """Return kind → replies."""
    corpus = json.loads((ROOT / "tests" / "corpora" / "layouts.json").read_text("utf-8"))
    found = {"lists, our layouts": [case["reply"] for case in corpus["cases"]]}
    quiz = data / "healthbranches" / "predictions_v3_full" / "raw_predictions.csv"
    if quiz.is_file():
        with quiz.open(newline="", encoding="utf-8") as file:
            texts = [row["raw_prediction"] for row in csv.DictReader(file)]
        found["letters, HealthBranches"] = texts
        found["letters, replies of over 20 characters"] = [t for t in texts if len(t) > 20]
        lists = []
        for path in sorted((data / "kernel29_pumch_adm").glob("diagnoses_*.csv")):
            with path.open(newline="", encoding="utf-8") as file:
                lists += [row["Diagnosis 1"] for row in csv.DictReader(file)]
        found["lists, Kernel29"] = lists
        excerpt = data / "rarebench" / "prompt_comparison_excerpt.jsonl"
        found["lists, RareBench"] = [
            json.loads(line)["predict_diagnosis"]
            for line in excerpt.read_text("utf-8").splitlines()
        ]
    return {kind: texts[:_MANY] for kind, texts in found.items()}


def measure(texts_of):
    """Return kind → CPU milliseconds a reply, by the code of this process."""
    from medassay import extract_option
    from medassay.kinds.diagnoses.parser import read_list

    spent = {}
    for kind, texts in texts_of.items():
        read = extract_option if kind.startswith("letters") else read_list
        for text in texts[:50]:
            read(text)
        start = time.process_time()
        for text in texts:
            read(text)
        spent[kind] = 1000 * (time.process_time() - start) / len(texts)
    return spent


def main():
    """Measure in turn, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", type=Path, help="measure the code of this `src` once, as JSON")
    options = parser.parse_args()
    if options.once:
        sys.path.insert(0, str(options.once))
        print(json.dumps(measure(replies(options.data))))
        return
    sources = [ROOT / "src", *([options.before] if options.before else [])]
    rounds = {source: [] for source in sources}
    for _ in range(options.rounds):
        for source in sources:
            command = [
                sys.executable,
                __file__,
                "--once",
                str(source),
                "--data",
                str(options.data),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rounds[source].append(json.loads(done.stdout))
    counts = {kind: len(texts) for kind, texts in replies(options.data).items()}
    print(f"Python {platform.python_version()}, {options.rounds} rounds, CPU ms a reply (median)\n")
    print("| replies | n | now |" + (" before |" if options.before else ""))
    print("|---|---|---|" + ("---|" if options.before else ""))
    for kind, n in counts.items():
        cells = [statistics.median(one[kind] for one in rounds[source]) for source in sources]
        print(f"| {kind} | {n:,} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
