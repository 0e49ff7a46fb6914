"""What own code costs: a run of scripted answers scored by rule, and by a function of a user's that
does the same, in turn.

    python benchmarks/own_code.py [ITEMS]

CPU seconds of the command and the processes that it started, median and range of the ratio.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = 5
SCORE = "def score(item, answer):\n    return float(answer.value == item.target.expected)\n"


def workspace(folder: Path, n: int) -> None:
    (folder / "bank").mkdir()
    (folder / "bank/bank.toml").write_text(
        'name = "b"\nquestion_bank_version = "b-2026.1"\nlicence = "CC0-1.0"\ndomains = ["d"]\n'
    )
    items = (
        {
            "id": f"q{i:06}",
            "domain": "d",
            "question": f"Question {i}?",
            "options": ["one", "two", "three", "four"],
            "expected": "ABCD"[i % 4],
            "source": "a benchmark",
        }
        for i in range(n)
    )
    (folder / "bank/items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "models.json").write_text(
        json.dumps({"models": [{"id": "m", "provider": "fake", "script": {"reply": "A"}}]})
    )
    (folder / "my.py").write_text(SCORE)
    plan = 'banks = ["bank"]\nmodels = ["m"]\n'
    (folder / "rule.toml").write_text(plan + 'task = "closed"\n')
    (folder / "own.toml").write_text(plan + '[task]\nlike = "closed"\nscorer = "my.py:score"\n')


def cpu_of(folder: Path, plan: str) -> float:
    """Return the CPU seconds of a run, its processes among them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "medassay", "run", plan, "--trust-code", "--quiet"]
    subprocess.run(command, cwd=folder, check=True, env=os.environ, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(n: int) -> None:
    pairs = []
    for _ in range(PAIRS):
        with tempfile.TemporaryDirectory() as scratch:
            workspace(Path(scratch), n)
            pairs.append((cpu_of(Path(scratch), "rule.toml"), cpu_of(Path(scratch), "own.toml")))
    ratios = sorted(own / rule for rule, own in pairs)
    per_item = statistics.median(1000 * (own - rule) / n for rule, own in pairs)
    print(f"{n} items, {PAIRS} pairs: by rule {statistics.median(r for r, _ in pairs):.2f} CPU s,")
    print(f"own code {statistics.median(o for _, o in pairs):.2f} CPU s; ratio")
    print(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f});")
    print(f"{per_item:.2f} ms of CPU more an item")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
