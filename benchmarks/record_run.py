"""A whole run of health records as four processes: run, verify, publish, study.

    python benchmarks/record_run.py [--reports 2000]

The reports are the shipped ones under new ids, each cluster its own; two scripted models answer
under both prompts, one right, one with stopped drugs listed as current. So everything but a model's
time is counted.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path


def write(folder, n):
    """Write bank, models and plan; return the plan's path."""
    shipped = files("medassay.bank") / "health_record_de" / "items.jsonl"
    items = [json.loads(line) for line in shipped.read_text(encoding="utf-8").splitlines()]
    made = [{**items[i % len(items)], "id": f"r-{i:06}", "cluster": f"c-{i:06}"} for i in range(n)]
    bank = folder / "bank"
    bank.mkdir()
    card = {"name": "bank", "question_bank_version": "bank-2026.1", "licence": "CC0-1.0"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in card.items()]
    (bank / "bank.toml").write_text("\n".join([*lines, 'domains = ["health_record_de"]', ""]))
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in made)
    (bank / "items.jsonl").write_text(text, encoding="utf-8")
    replies = {"right": {}, "hasty": {}}
    for item in made:
        record = json.loads(json.dumps(item["record"]))
        replies["right"][item["id"]] = json.dumps({"structured_health_record": record})
        drugs = record["medications"]
        drugs["current"], drugs["discontinued"] = drugs["current"] + drugs["discontinued"], []
        replies["hasty"][item["id"]] = json.dumps({"structured_health_record": record})
    models = [
        {"id": name, "provider": "fake", "script": {"replies": said}}
        for name, said in replies.items()
    ]
    document = {"schema_version": 1, "models": models}
    (folder / "models.json").write_text(json.dumps(document), encoding="utf-8")
    plan = {
        "task": "record",
        "banks": ["bank"],
        "models": [*replies],
        "templates": ["health_record", "health_record_direct"],
        "seed": 1,
    }
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in plan.items())
    (folder / "plan.toml").write_text(text + "\n")
    return folder / "plan.toml"


def timed(name, *args, cwd):
    """Run a command; print wall and CPU seconds and the largest memory of any so far."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "medassay", *args]
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall = time.perf_counter() - start
    print(f"{name:8} {wall:6.1f} s wall, {cpu:6.1f} s CPU, peak {after.ru_maxrss // 1024} MiB")


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=2000)
    n = parser.parse_args().reports
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, n)
        print(f"{n} reports, 2 models, 2 prompts: {4 * n} answers")
        timed("run", "run", "plan.toml", "--yes", cwd=folder)
        [run] = (str(path) for path in (folder / "runs").iterdir())
        timed("verify", "verify", run, cwd=folder)
        timed("publish", "publish", run, "--to", "site", cwd=folder)
        timed("study", "report", run, "--study", "extraction", "--to", "study", cwd=folder)


if __name__ == "__main__":
    main()
