"""Measure what RESULTS.md says of many workers and of a million trials.

    python benchmarks/scale.py overhead [--items 20000] [--models 10] [--rounds 3]
    python benchmarks/scale.py workers [--items 20000] [--models 5] [--rounds 3]
    python benchmarks/scale.py kill [--items 20000] [--models 10] [--nodes 3] [--seed 1]
    python benchmarks/scale.py million [--items 100000] [--models 10]
    python benchmarks/scale.py stops FIGURES.json

`overhead` runs one plan by the local engine and by one Ray worker, `workers` by one and two workers; CPU seconds are those
of the driver and the workers as they tell them, and of Ray's own processes apart. `kill` starts several Ray nodes, kills a worker node and the
driver at random moments, resumes, and holds the sealed run against one of the local engine. `million` measures the whole
path. `stops` simulates more workers from measured parts. Everything runs on this machine, against the mock server of this folder or models
scripted in the process; prints Markdown.
"""

import argparse
import contextlib
import json
import os
import random
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path

import psutil

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import synthetic  # noqa: E402 -- beside this file

TOKEN = secrets.token_hex(16)
RAY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}
PORT = 6390


class Cluster:
    """Ray nodes on this machine, each a process group of its own that can be killed."""

    def __init__(self, nodes, cpus=1, port=PORT):
        self.port = port
        self.env = os.environ | RAY | {"RAY_ADDRESS": f"127.0.0.1:{port}"}
        # The head has no processor to give: workers live on nodes that may die.
        self.head = self._node(["--head", f"--port={port}", "--include-dashboard=false"], 0)
        self._wait(1)
        self.nodes = [self.add(cpus) for _ in range(nodes)]
        self._wait(1 + nodes)

    def _node(self, options, cpus):
        command = [Path(sys.executable).parent / "ray", "start", "--block", *options]
        command += [f"--num-cpus={cpus}", "--node-ip-address=127.0.0.1"]
        env = {k: v for k, v in self.env.items() if k != "RAY_ADDRESS"}
        return subprocess.Popen(
            list(map(str, command)),
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def add(self, cpus=1):
        return self._node([f"--address=127.0.0.1:{self.port}"], cpus)

    def _wait(self, nodes):
        ask = "import ray;ray.init(log_to_driver=False);print('nodes', sum(n['Alive'] for n in ray.nodes()))"
        for _ in range(60):
            told = subprocess.run(
                [sys.executable, "-c", ask], env=self.env, capture_output=True, text=True
            ).stdout
            if f"nodes {nodes}" in told:
                return
            time.sleep(0.5)
        raise SystemExit(f"no cluster of {nodes} nodes came up")

    def cpu(self):
        """Return the CPU seconds of Ray's own processes: those of nodes that are not workers."""
        spent = 0.0
        for node in (self.head, *self.nodes):
            with contextlib.suppress(psutil.Error):
                for process in psutil.Process(node.pid).children(recursive=True):
                    with contextlib.suppress(psutil.Error):
                        if "_Actor" not in " ".join(process.cmdline()):
                            times = process.cpu_times()
                            spent += times.user + times.system
        return spent

    def kill(self, node):
        """Kill a node as a power cut does: all its processes, at once."""
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(node.pid).children(recursive=True)
            for process in (psutil.Process(node.pid), *family):
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
        node.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for node in (*self.nodes, self.head):
            self.kill(node)


@contextlib.contextmanager
def server(*options):
    process = subprocess.Popen(
        [sys.executable, HERE / "mock_server.py", *map(str, options)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{re.search('[0-9]+', process.stdout.readline())[0]}/v1"
    finally:
        process.kill()
        process.wait()


def write(folder, items, models, url=None, connections=64, shard=1000):
    """Write a bank and a plan: models of an endpoint, or scripted in the process where there is no url."""
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
    """Return (wall, CPU seconds, peak MiB) of one process, its children included, and its events."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        wrapper = (
            "import resource,subprocess,sys,time,json;t=time.perf_counter();"
            "code=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE);"
            "w=time.perf_counter()-t;r=resource.getrusage(resource.RUSAGE_CHILDREN);"
            "print(json.dumps([w,r.ru_utime+r.ru_stime,r.ru_maxrss/1024,code.returncode,code.stderr.decode()[-400:]]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", wrapper, *arguments, "--log", str(log)],
            capture_output=True,
            text=True,
            check=True,
            env={
                k: v for k, v in (env or os.environ).items() if k != "PYTHONDONTWRITEBYTECODE"
            },
        )
        wall, cpu, peak, code, errors = json.loads(done.stdout)
        if code:
            raise SystemExit(f"{arguments[:6]} failed: {errors}")
        events = [json.loads(line) for line in log.read_text().splitlines()]
    return wall, cpu, peak, events


def one_run(folder, plan, engine="local", cluster=None):
    """Return what one whole run cost: CPU of driver, workers and Ray, and the wall time of the asking."""
    workspace = Path(tempfile.mkdtemp(dir=folder))
    env = cluster.env if cluster else os.environ
    before = cluster.cpu() if cluster else 0.0
    wall, cpu, peak, events = measured(
        command("run", plan, "--engine", engine, "--workspace", workspace, "--quiet"), env
    )
    workers = sum(e["cpu"] for e in events if e["event"] == "worker_left")
    asking = next(e for e in events if e["event"] == "stage_ended")
    ready = [e["timestamp"] for e in events if e["event"] == "worker_ready"]
    return {
        "wall": wall,
        "driver": cpu,
        "workers": workers,
        "ray": (cluster.cpu() - before) if cluster else 0.0,
        "asking": asking["seconds"],
        "asking_cpu": asking["cpu"],
        "ready": len(ready),
        "peak": peak,
        "digest": digest(next((workspace / "runs").iterdir())),
    }


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
            for _ in range(options.rounds):
                rows["local"].append(one_run(folder, plan))
                rows["ray, 1 worker"].append(one_run(folder, plan, "ray", cluster))
                print("done", rows["local"][-1], rows["ray, 1 worker"][-1], file=sys.stderr)
    assert len({row["digest"] for some in rows.values() for row in some}) == 1
    print(f"{trials:,} trials, shards of 1,000, medians of {options.rounds} rounds.\n")
    print(
        "| engine | CPU ms/trial | of it workers | Ray's own processes, CPU s | asking, wall s | whole, wall s | peak MiB of the driver |"
    )
    print("|---|---|---|---|---|---|---|")
    each = {}
    for name, some in rows.items():
        cpu = median([{"x": r["driver"] + r["workers"]} for r in some], "x")
        each[name] = cpu
        print(
            f"| {name} | {cpu / trials * 1000:.3f} | {median(some, 'workers') / trials * 1000:.3f} | {median(some, 'ray'):.1f} | "
            f"{median(some, 'asking'):.1f} | {median(some, 'wall'):.1f} | {median(some, 'peak'):.0f} |"
        )
    ratios = [
        (b["driver"] + b["workers"]) / (a["driver"] + a["workers"])
        for a, b in zip(*rows.values(), strict=True)
    ]
    print(f"\nRay ÷ local, CPU, by round: {', '.join(f'{r:.3f}' for r in ratios)}.")


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
    print("| workers | asking, wall s | CPU s of workers | CPU s of the driver while asking |")
    print("|---|---|---|---|")
    for count, some in found.items():
        print(
            f"| {count} | {median(some, 'asking'):.1f} | {median(some, 'workers'):.1f} | {median(some, 'asking_cpu'):.1f} |"
        )


def kill(options):
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        log = folder / "asked"
        with server("--log", log) as url:
            plan = write(folder, options.items, options.models, url)
            trials = options.items * options.models
            alone = one_run(folder, plan)
            whole = len(log.read_text().split())
            log.write_text("")
            workspace = folder / "many"
            drive = command("run", plan, "--engine", "ray", "--workspace", workspace, "--quiet")
            with Cluster(options.nodes) as cluster:
                events = folder / "events"
                for victim in ("a worker node", "the driver", "nobody"):
                    driver = subprocess.Popen(
                        [*drive, "--log", str(events)],
                        env=cluster.env,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                    if victim != "nobody":
                        at = chance.uniform(0.1, 0.3) * trials
                        before = len(log.read_text().split())
                        while len(log.read_text().split()) - before < at:
                            time.sleep(0.2)
                            assert driver.poll() is None, driver.stderr.read()
                    if victim == "a worker node":
                        cluster.kill(cluster.nodes[chance.randrange(len(cluster.nodes))])
                        at = chance.uniform(0.1, 0.3) * trials
                        before = len(log.read_text().split())
                        while len(log.read_text().split()) - before < at:
                            time.sleep(0.2)
                            assert driver.poll() is None, driver.stderr.read()
                        victim = "a worker node, then the driver"
                    if victim != "nobody":
                        driver.kill()
                    driver.communicate()
                    print(
                        f"- killed {victim} with {len(log.read_text().split()):,} requests answered"
                    )
            asked = Counter(log.read_text().split())
            # Models of one endpoint are asked the same prompts: as often as there are models, once each.
            twice = sum(asked.values()) - whole
            [run] = (workspace / "runs").iterdir()
            kept = Counter()
            for path in (workspace / "responses").glob("*.jsonl.zst"):
                kept.update(keys_of(path))
    assert digest_of_kept(kept)
    print(
        f"- {trials:,} trials, {options.nodes} nodes: {twice} requests asked twice (under way at a kill); "
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "workers", "kill", "million", "stops"])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    globals()[options.what](options)


if __name__ == "__main__":
    main()
