"""Measure what RESULTS.md says: the runner beside its peers, the bootstrap, the command line.

    python benchmarks/run.py [--quick] [--peers PYTHON] [--rounds 3]

Starts its own mock server on loopback. Every run is a process of its own, measured by the operating
system (CPU seconds user + system, wall, peak resident memory); figures are medians over rounds, the
programs taking turns within a round, since machines drift. `--peers` names a Python that has
lm-eval and inspect-ai. Prints Markdown.
"""

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import peers  # noqa: E402 -- beside this file
import synthetic  # noqa: E402
from processes import measure, server  # noqa: E402


def medassay(url, n, connections):
    with tempfile.TemporaryDirectory() as folder:
        plan = synthetic.write(Path(folder), n, url, connections)
        return measure([sys.executable, "-m", "medassay", "run", plan, "--quiet"])


def runner(rounds, python, sizes, delays):
    rows = []
    for delay in delays:
        with server("--delay-ms", delay) as url:
            for n in sizes:
                for connections in (64, 256):
                    programs = {"medassay": lambda u=url, a=n, c=connections: medassay(u, a, c)}
                    programs["bare aiohttp"] = lambda u=url, a=n, c=connections: peers.bare_aiohttp(
                        measure, u, a, c
                    )
                    # The slow peers are measured once a round where they can finish.
                    if python and n == min(sizes) and connections == 64 and delay == min(delays):
                        programs["lm-eval"] = lambda u=url, a=n, c=connections: peers.lm_eval(
                            measure, python, u, a, c
                        )
                        programs["Inspect"] = lambda u=url, a=n, c=connections: peers.inspect(
                            measure, python, u, a, c
                        )
                    found = {name: [] for name in programs}
                    for _ in range(rounds):
                        for name, program in programs.items():
                            found[name].append(program())
                    ideal = n / connections * delay / 1000
                    for name, runs in found.items():
                        wall, cpu, peak = (statistics.median(r[k] for r in runs) for k in range(3))
                        rows.append(
                            (
                                name,
                                n,
                                connections,
                                delay,
                                cpu / n * 1000,
                                wall,
                                wall / ideal if ideal else None,
                                peak,
                            )
                        )
                        print("done", rows[-1], file=sys.stderr, flush=True)
    return rows


def bootstrap():
    import numpy as np
    from scipy.stats import bootstrap as scipy_bootstrap

    from medassay.statistic.draws import draw_means

    scores = np.random.default_rng(1).integers(0, 2, (4, 100, 50)).astype(float)
    draw_means(scores[0], None, 10, 1)

    def ours():
        for domain in range(4):
            np.quantile(draw_means(scores[domain], None, 1000, domain), [0.025, 0.975], axis=0)

    def theirs():
        for domain in range(4):
            for model in range(50):
                scipy_bootstrap(
                    (scores[domain][:, model],),
                    np.mean,
                    n_resamples=1000,
                    method="percentile",
                    vectorized=True,
                )

    return {
        name: timed(call)
        for name, call in (
            ("medassay, all models sharing draws", ours),
            ("scipy.stats.bootstrap, each model alone", theirs),
        )
    }


def timed(call, rounds=5):
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", help="a Python with lm-eval and inspect-ai")
    parser.add_argument("--quick", action="store_true", help="5,000 items only")
    options = parser.parse_args()
    sizes = (5000,) if options.quick else (5000, 20000)
    versions = {n: metadata.version(n) for n in ("medassay", "aiohttp", "numpy", "scipy")}
    if options.peers:
        versions |= peers.versions(options.peers)
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    print(
        f"Machine: {cpu}, {os.cpu_count()} cores, {platform.system()}, Python"
        f" {platform.python_version()}."
    )
    print(
        f"Versions: {', '.join(f'{n} {v}' for n, v in versions.items())}. Medians of"
        f" {options.rounds} rounds.\n"
    )
    print(
        "| program | items | connections | delay ms | CPU ms/item | wall s | wall ÷ ideal | peak"
        " MiB |\n|---|---|---|---|---|---|---|---|"
    )
    for name, n, c, delay, per_item, wall, ratio, peak in runner(
        options.rounds, options.peers, sizes, (0, 100)
    ):
        print(
            f"| {name} | {n} | {c} | {delay} | {per_item:.3f} | {wall:.2f} |"
            f" {'–' if ratio is None else f'{ratio:.2f}'} | {peak:.0f} |"
        )
    print("\n| bootstrap 1000 × 50 × 4 × 100 | seconds |\n|---|---|")
    for name, seconds in bootstrap().items():
        print(f"| {name} | {seconds:.4f} |")
    command = [sys.executable, "-m", "medassay", "--help"]
    measure(command)
    print(
        "\n`medassay --help`, warm:"
        f" {statistics.median(measure(command)[0] for _ in range(7)):.3f} s."
    )
    shutil.rmtree(HERE / "__pycache__", ignore_errors=True)


if __name__ == "__main__":
    main()
