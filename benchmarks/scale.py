"""Measure what RESULTS.md says of many workers and of a million trials.

    python benchmarks/scale.py overhead [--items 20000] [--models 10] [--rounds 3]
    python benchmarks/scale.py workers [--items 20000] [--models 5] [--rounds 3]
    python benchmarks/scale.py kill [--items 20000] [--models 10] [--nodes 3] [--seed 1]
    python benchmarks/scale.py million [--items 100000] [--models 10]

`overhead` runs one plan by the local engine and by one Ray worker, `workers` by one and two
workers; CPU seconds are those of the driver and the workers as they tell them, and of Ray's own
processes apart. `kill` starts several Ray nodes, kills a worker node and the driver at random
moments, resumes, and holds the sealed run against one of the local engine. `million` measures the
whole path. Everything runs on this machine, against the mock server of this folder or models
scripted in the process; prints Markdown.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import synthetic  # noqa: E402 -- beside this file
from processes import measure, server  # noqa: E402
from ray_nodes import Cluster  # noqa: E402


def write(folder, items, models, url=None, connections=64, shard=1000):
    """Write a bank and a plan: models of an endpoint, or scripted in the process where there is no
    url.
    """
    synthetic.write(folder, items, url or "http://127.0.0.1:1", connections)
    entry = json.loads((folder / "models.json").read_text())["models"][0]
    if url is None:
        entry = {"provider": "fake", "location": "local", "script": {"letters": "hash"}}
        entry["concurrency"] = connections
    names = [f"m{n:03}" for n in range(models)]
    entries = [{**entry, "id": name} for name in names]
    (folder / "models.json").write_text(json.dumps({"schema_version": 1, "models": entries}))
    (folder / "plan.toml").write_text(
        f'name = "scale"\nbanks = ["bank"]\nmodels = {json.dumps(names)}\nseed = 1\n'
        f"[engine]\nshard = {shard}\n"
    )
    return folder / "plan.toml"


def command(*arguments):
    return [sys.executable, "-m", "medassay", *map(str, arguments)]


def measured(arguments, env=None):
    """Return (wall, CPU seconds, peak MiB) of one process, its children included, and its
    events.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        figures = measure([*arguments, "--log", log], env=env)
        return *figures, [json.loads(line) for line in log.read_text().splitlines()]


def one_run(folder, plan, engine="local", cluster=None):
    """Return what one whole run cost: CPU of driver, workers and Ray, and the wall time of the
    asking.
    """
    workspace = Path(tempfile.mkdtemp(dir=folder))
    env = cluster.env if cluster else None
    before = cluster.cpu() if cluster else 0.0
    wall, cpu, peak, events = measured(
        command("run", plan, "--engine", engine, "--workspace", workspace, "--quiet"), env
    )
    workers = sum(e["cpu"] for e in events if e["event"] == "worker_left")
    asking = next(e for e in events if e["event"] == "stage_ended")
    ready, left = (
        [moment(e) for e in events if e["event"] == name]
        for name in ("worker_ready", "worker_left")
    )
    began = next(moment(e) for e in events if e["event"] == "stage_began")
    return {
        "wall": wall,
        "driver": cpu,
        "workers": workers,
        "ray": (cluster.cpu() - before) if cluster else 0.0,
        "asking": asking["seconds"],
        "asking_cpu": asking["cpu"],
        "start": max(ready, default=began) - began,
        "work": max(left) - min(ready) if ready else asking["seconds"],
        "peak": peak,
        "digest": digest(next((workspace / "runs").iterdir())),
    }


def moment(event):
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def digest(run):
    """Return what a sealed run says, as a hash: items, trials, scores, statistics."""
    names = ("items.jsonl", "trials.jsonl", "scores.jsonl", "statistics.json")
    return sha256(
        b"".join(sha256((run / name).read_bytes()).digest() for name in names)
    ).hexdigest()


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def overhead(options):
    trials = options.items * options.models
    with tempfile.TemporaryDirectory() as made, server() as url:
        folder = Path(made)
        plan = write(folder, options.items, options.models, url)
        rows = {"local": [], "ray, 1 worker": []}
        with Cluster(1) as cluster:
            for number in range(options.rounds):
                # A machine that others use, too, may be slower after a minute of work: each goes
                # first in turn.
                for name in list(rows)[:: -1 if number % 2 else 1]:
                    ray = ("ray", cluster) if name != "local" else ()
                    rows[name].append(one_run(folder, plan, *ray))
                    print("done", name, rows[name][-1], file=sys.stderr)
    assert len({row["digest"] for some in rows.values() for row in some}) == 1
    print(f"{trials:,} trials, shards of 1,000, medians of {options.rounds} rounds.\n")
    print(
        "| engine | CPU ms/trial | of it workers | Ray's own processes, CPU s | asking, wall s |"
        " whole, wall s | peak MiB of the driver |"
    )
    print("|---|---|---|---|---|---|---|")
    each = {}
    for name, some in rows.items():
        cpu = median([{"x": r["driver"] + r["workers"]} for r in some], "x")
        each[name] = cpu
        print(
            f"| {name} | {cpu / trials * 1000:.3f} | {median(some, 'workers') / trials * 1000:.3f}"
            f" | {median(some, 'ray'):.1f} | {median(some, 'asking'):.1f} |"
            f" {median(some, 'wall'):.1f} | {median(some, 'peak'):.0f} |"
        )
    ratios = [
        (b["driver"] + b["workers"]) / (a["driver"] + a["workers"])
        for a, b in zip(*rows.values(), strict=True)
    ]
    told = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    mean = statistics.geometric_mean(ratios)
    print(f"\nRay ÷ local, CPU, by round: {told}; geometric mean {mean:.3f}.")


def workers(options):
    trials = options.items * options.models
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        plan = write(folder, options.items, options.models)
        found = {}
        for count in (1, 2):
            with Cluster(count) as cluster:
                found[count] = [
                    one_run(folder, plan, "ray", cluster) for _ in range(options.rounds)
                ]
                print("done", count, found[count], file=sys.stderr)
    print(f"{trials:,} trials of models scripted in the process, shards of 1,000.\n")
    print(
        "| workers | start, wall s | from the first ready to the last done, wall s | all CPU of it"
        " ÷ cores used, s | CPU s of workers | of the driver | of Ray |"
    )
    print("|---|---|---|---|---|---|---|")
    for count, some in found.items():
        # One worker has a core to itself; of two on two cores each gives a share of its own to
        # driver and Ray.
        own = [row["workers"] + (row["asking_cpu"] + row["ray"]) * (count > 1) for row in some]
        print(
            f"| {count} | {median(some, 'start'):.1f} | {median(some, 'work'):.1f} |"
            f" {statistics.median(own) / count:.1f} | {median(some, 'workers'):.1f} |"
            f" {median(some, 'asking_cpu'):.1f} | {median(some, 'ray'):.1f} |"
        )


def kill(options):
    chance = random.Random(options.seed)
    trials = options.items * options.models
    with tempfile.TemporaryDirectory() as made:
        folder, log = Path(made), Path(made) / "asked"
        with server("--log", log) as url:
            plan = write(folder, options.items, options.models, url)
            alone = one_run(folder, plan)
            log.write_text("")
            workspace = folder / "many"
            drive = command("run", plan, "--engine", "ray", "--workspace", workspace, "--quiet")
            with Cluster(options.nodes) as cluster:
                driver = start(drive, cluster, folder / "events")
                wait_for(log, chance.uniform(0.1, 0.3) * trials, driver)
                node = chance.randrange(len(cluster.nodes))
                cluster.kill(cluster.nodes.pop(node))
                print(
                    f"- kill -9 of worker node {node + 1} of {options.nodes} after"
                    f" {answered(log):,} answers"
                )
                wait_for(log, answered(log) + chance.uniform(0.1, 0.3) * trials, driver)
                driver.kill()
                driver.communicate()
                print(f"- kill -9 of the driver after {answered(log):,} answers")
                cluster.nodes.append(cluster.add())
                driver = start(drive, cluster, folder / "events")
                errors = driver.communicate()[1]
                assert driver.returncode == 0, errors
            [run] = (workspace / "runs").iterdir()
            stored = Counter(
                key for path in (workspace / "responses").glob("*.zst") for key in keys_of(path)
            )
            events = [json.loads(x)["event"] for x in (folder / "events").read_text().splitlines()]
            same = digest(run) == alone["digest"]
            print(
                f"- {trials:,} trials, {len(stored):,} replies stored,"
                f" {sum(stored.values()) - len(stored)} of them twice"
            )
            print(
                f"- requests answered: {answered(log):,}; {answered(log) - trials} were under way"
                " at a kill and asked again"
            )
            print(f"- events: {dict(Counter(events))}")
            print(f"- sealed content equal to that of the local engine: {same}")
            assert same


def start(drive, cluster, events):
    return subprocess.Popen(
        [*drive, "--log", str(events)],
        env=cluster.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def answered(log):
    return log.read_bytes().count(b"\n") if log.exists() else 0


def wait_for(log, answers, driver):
    while answered(log) < answers:
        time.sleep(0.2)
        assert driver.poll() is None, driver.stderr.read()


def keys_of(path):
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    with zstd.open(path, "rb") as file:
        return [json.loads(line)["key"] for line in file]


def million(options):
    trials = options.items * options.models
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        plan = write(folder, options.items, options.models)
        rows = []
        wall, cpu, peak, events = measured(command("run", plan, "--quiet"))
        at = {e["event"]: moment(e) for e in events}
        asking = next(e for e in events if e["event"] == "stage_ended")
        rows.append(("asking, reading, scoring, journal", asking["seconds"], asking["cpu"], peak))
        after = at["run_sealed"] - at["stage_ended"]
        rows.append(("trials in order, statistics, seal", after, None, peak))
        rows.append(("the whole run", wall, cpu, peak))
        [run] = (folder / "runs").iterdir()
        for name, arguments in (
            ("site", ("publish", run, "--to", folder / "site")),
            ("verify the run", ("verify", run)),
            ("verify the site", ("verify", folder / "site")),
        ):
            wall, cpu, peak, _ = measured(command(*arguments))
            rows.append((name, wall, cpu, peak))
        sizes = {
            name: sum(p.stat().st_size for p in (folder / name).rglob("*") if p.is_file()) / 1e6
            for name in ("runs", "responses", "site")
        }
    print(f"{trials:,} trials ({options.models} scripted models × {options.items:,} items).\n")
    print("| part | wall s | CPU s | peak MiB of the largest process |\n|---|---|---|---|")
    for name, wall, cpu, peak in rows:
        print(f"| {name} | {wall:.1f} | {'' if cpu is None else f'{cpu:.1f}'} | {peak:.0f} |")
    print(f"\nOn disk, MB: {', '.join(f'{n} {size:,.0f}' for n, size in sizes.items())}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "workers", "kill", "million"])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    globals()[options.what](options)


if __name__ == "__main__":
    main()
