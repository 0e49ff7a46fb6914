"""What Python costs a user: importing the package, `--help`, and the frames of a run.

    python benchmarks/python_api.py [ANSWERS]

Prints Markdown: medians of whole processes for the first two; for frames the CPU seconds and the memory that one call
takes, of a run of scripted answers, beside reading the same lines with pandas alone.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import medassay

CALLS = {
    "trials().to_pandas()": "run.trials().to_pandas()",
    "to_pandas(), trials with scores and items": "run.to_pandas()",
    "the lines of trials.jsonl, pandas alone": (
        "pandas.read_json(run.path / 'trials.jsonl', lines=True)"
    ),
    "iterating trials()": "sum(1 for _ in run.trials())",
}


def median_wall(code, n=11):
    """Return the median seconds of a whole process."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        subprocess.run([sys.executable, *code], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def answered(folder, n_answers):
    """Return a run of scripted answers to a fifth as many choice questions, by five models."""
    bank = folder / "bank"
    bank.mkdir()
    (bank / "bank.toml").write_text(
        'name = "b"\nquestion_bank_version = "b-2026.1"\nlicence = "CC0-1.0"\ndomains = ["d"]\n'
    )
    items = (
        {
            "id": f"q{n:07}",
            "domain": "d",
            "question": f"Question {n}?",
            "options": ["one", "two", "three", "four"],
            "expected": "ABCD"[n % 4],
            "source": "benchmark",
        }
        for n in range(n_answers // 5)
    )
    (bank / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    models = [
        medassay.ModelSpec(id=f"m{n}", provider="fake", script={"letters": "hash"})
        for n in range(5)
    ]
    plan = {"banks": [str(bank)], "models": [m.id for m in models], "task": "closed"}
    return medassay.run(plan, models=models, workspace=folder)


def measured(run, call):
    """Return CPU seconds and MiB that a call takes beyond a process with its imports."""
    code = (
        "import resource, sys, time, pandas, medassay\n"
        f"run = medassay.open_run({str(run.path)!r})\n"
        "def used(): return resource.getrusage(resource.RUSAGE_SELF)\n"
        "before = used(); started = time.process_time()\n"
        f"{call}\n"
        "print(time.process_time() - started, (used().ru_maxrss - before.ru_maxrss) / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split()))


def main():
    n_answers = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("| what | median wall, s |\n|---|---|")
    bare = median_wall(["-c", "pass"])
    print(
        f"| `import medassay`, beyond a bare Python | {median_wall(['-c', 'import medassay']) - bare:.3f} |"
    )
    print(f"| `medassay --help` | {median_wall(['-m', 'medassay', '--help']):.3f} |")
    with tempfile.TemporaryDirectory() as scratch:
        run = answered(Path(scratch), n_answers)
        print(f"\n| of {n_answers:,} answers | CPU s | MiB |\n|---|---|---|")
        for name, call in CALLS.items():
            rounds = [measured(run, call) for _ in range(3)]
            seconds, mib = (statistics.median(column) for column in zip(*rounds, strict=True))
            print(f"| {name} | {seconds:.2f} | {mib:.0f} |")


if __name__ == "__main__":
    main()
