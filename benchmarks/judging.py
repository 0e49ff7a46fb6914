"""Measure the judges: 3,000 answers × 3 judges on the mock server; CPU per verdict, memory, wall.

    python benchmarks/judging.py [--answers 3000] [--rounds 3]

The answers are made by a first run; measured is `medassay judge` on it, a process of its own:
reading answers, prompts, asking, reading verdicts, journal, store, scores, agreement, statistics,
seal.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from processes import measure, server  # noqa: E402 -- beside this file


def write(folder, n, url):
    bank = folder / "bank"
    bank.mkdir()
    (bank / "bank.toml").write_text(
        'name = "b"\nquestion_bank_version = "b-2026.1"\nlicence = "CC0-1.0"\ndomains = ["d"]\n'
    )
    with (bank / "items.jsonl").open("w") as file:
        for i in range(n):
            facts = [f"Fact {k} of item {i} holds in most patients." for k in range(5)]
            item = {
                "id": f"i{i:06}",
                "domain": "d",
                "answer_type": "open",
                "question": f"What is true of item {i}?",
                "facts": facts,
                "source": "synthetic",
            }
            file.write(json.dumps(item) + "\n")
    words = "The first fact holds and the second may hold in some patients after treatment. " * 12
    entries = [{"id": "student", "provider": "fake", "script": {"reply": words}}]
    for family in ("alpha", "beta", "gamma"):
        entry = {
            "id": f"judge-{family}",
            "provider": "openai_compatible",
            "url": url,
            "model": family,
            "family": family,
            "location": "local",
            "max_tokens": 1000,
            "concurrency": 64,
        }
        entries.append(entry)
    entries += [
        {"id": f"script-{f}", "provider": "fake", "family": f, "script": {"judge": 0.5}}
        for f in ("alpha", "beta", "gamma")
    ]
    (folder / "models.json").write_text(json.dumps({"schema_version": 1, "models": entries}))
    (folder / "plan.toml").write_text(
        'task = "open"\nbanks = ["bank"]\nmodels = ["student"]\nseed = 1\n'
        'judges = ["script-alpha", "script-beta", "script-gamma"]\n'
    )
    measure([sys.executable, "-m", "medassay", "run", folder / "plan.toml", "--quiet"])
    return next((folder / "runs").iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| answers | verdicts | CPU ms/verdict | wall s | peak MiB |\n|---|---|---|---|---|")
    with server() as url:
        for n in (options.answers // 3, options.answers):
            found = []
            for _ in range(options.rounds):
                with tempfile.TemporaryDirectory() as name:
                    run = write(Path(name), n, url)
                    panel = "judge-alpha,judge-beta,judge-gamma"
                    command = [sys.executable, "-m", "medassay", "judge", run, "--panel", panel]
                    models = ["--models", Path(name) / "models.json", "--quiet"]
                    found.append(measure([*command, *models]))
            wall, cpu, peak = (statistics.median(f[k] for f in found) for k in range(3))
            print(f"| {n} | {3 * n} | {cpu / (3 * n) * 1000:.3f} | {wall:.2f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
