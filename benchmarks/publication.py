"""Time and memory of publishing and verifying a board of 1,000 models × 50 domains, a million
trials.

    python benchmarks/publication.py [--models 1000] [--domains 50] [--items 20]

Each step runs as a process of its own; seconds are wall and CPU (children among it), memory is the
peak.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def write_table(path, models, domains, items):
    chance = random.Random(1)
    skill = [chance.uniform(0.3, 0.9) for _ in range(models)]
    ease = [chance.uniform(0.7, 1.1) for _ in range(items)]
    with path.open("w") as file:
        file.write("item,model,domain,prediction,key\n")
        for d in range(domains):
            for m in range(models):
                for i in range(items):
                    key = "ABCD"[(i + d) % 4]
                    right = chance.random() < skill[m] * ease[i]
                    said = key if right else "ABCD"[(i + d + 1) % 4]
                    file.write(f"q{d:02}-{i:04},model-{m:04},domain-{d:02},{said},{key}\n")


def step(name, *command):
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            "/usr/bin/env",
            "python3",
            "-c",
            _PEAK,
            sys.executable,
            "-m",
            "medassay",
            *map(str, command),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    peak = int(done.stderr.strip().splitlines()[-1]) / 1024
    print(f"{name:8} {wall:7.1f} s wall {cpu:7.1f} s CPU {peak:7.0f} MiB peak", flush=True)
    return {"step": name, "wall_s": wall, "cpu_s": cpu, "peak_mib": peak}


# The peak of a process and its workers together: the sum over the group, sampled.
_PEAK = """
import subprocess, sys, time, os
child = subprocess.Popen(sys.argv[1:])
peak = 0
def rss(pid):
    total = 0
    try:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                total = int(line.split()[1])
        for name in os.listdir(f"/proc/{pid}/task"):
            for kid in open(f"/proc/{pid}/task/{name}/children").read().split():
                total += rss(kid)
    except OSError:
        pass
    return total
while child.poll() is None:
    peak = max(peak, rss(child.pid))
    time.sleep(0.2)
print(peak, file=sys.stderr)
sys.exit(child.returncode)
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--domains", type=int, default=50)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="folder to keep run and site in")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        columns = "item=item,model=model,domain=domain,prediction=prediction,key=key"
        found = []
        if not Path("run").exists():
            write_table(Path("table.csv"), given.models, given.domains, given.items)
            found.append(
                step("import", "import", "csv", "table.csv", "--columns", columns, "--to", "run")
            )
        shutil.rmtree("site", ignore_errors=True)
        found.append(step("publish", "publish", "run", "--to", "site", "--id", "one"))
        found.append(step("verify", "verify", "site"))
        size = sum(p.stat().st_size for p in Path("site").rglob("*") if p.is_file())
        count = sum(1 for p in Path("site").rglob("*") if p.is_file())
        print(f"site: {count} files, {size / 2**20:.0f} MiB")
        print(json.dumps(found))
    finally:
        if given.keep is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
