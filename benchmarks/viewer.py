"""Measure the viewer of runs: pages over a million trials, the index, memory, and what a run loses
while it is watched.

    python benchmarks/viewer.py pages [--models 10] [--items 100000] [--run FOLDER]
    python benchmarks/viewer.py watched [--items 2000] [--models 10] [--rounds 5]

`pages` writes a run (`viewer_run.py`) unless one is named, starts `medassay view` on it, and asks it
as a browser would: times are medians of seven requests, memory is that of all its processes (PSS).
`watched` runs one plan with and without a viewer whose overview and trials a browser keeps open, in
turn; CPU seconds are those of the run alone.
"""

import argparse
import http.client
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import scale
import viewer_run

_TIMES = 7


class Viewer:
    """`medassay view` in a process of its own, and a browser's requests to it."""

    def __init__(self, place, cache):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "medassay", "view", str(place), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        )
        link = urlsplit(self.process.stdout.readline().strip())
        self._address, self._cookie = link.netloc, ""
        _, headers, _ = self.get(f"{link.path}?{link.query}")
        self._cookie = headers["set-cookie"].partition(";")[0]

    def get(self, path):
        connection = http.client.HTTPConnection(self._address, timeout=120)
        connection.request("GET", path, headers={"cookie": self._cookie} if self._cookie else {})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, body

    def timed(self, path):
        started = time.perf_counter()
        status, _, body = self.get(path)
        assert status == 200, (path, status, body[:500])
        return time.perf_counter() - started, body

    def memory(self):
        return sum(map(_pss, _family(self.process.pid))) / 1024

    def cpu(self):
        """Return the CPU seconds of all its processes by now."""
        return sum(_cpu(pid) for pid in _family(self.process.pid))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def _family(pid):
    """Return a process and all that it started."""
    family = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            family += _family(int(child))
    return family


def _pss(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def pages(options):
    with tempfile.TemporaryDirectory() as made:
        run = options.run or viewer_run.write(Path(made) / "work", options.models, options.items)
        place, base = run.parents[1], f"/run/{run.name}"
        started = time.perf_counter()
        viewer = Viewer(place, Path(made) / "cache")
        print(f"started in {time.perf_counter() - started:.1f} s, {viewer.memory():.0f} MiB")
        rows = [("first page of trials, nothing indexed", [viewer.timed(f"{base}/trials")[0]])]
        peak = 0
        while b"Being read" in viewer.timed(f"{base}/trials")[1]:
            peak = max(peak, viewer.memory())
            time.sleep(0.5)
        print(f"indexed {time.perf_counter() - started:.1f} s after the start, peak {peak:.0f} MiB")
        for name, query in _QUERIES:
            path = f"{base}/{query}"
            times = [viewer.timed(path)[0] for _ in range(_TIMES)]
            body = viewer.timed(path)[1].decode()
            found = body.partition("<caption>")[2].partition("</caption>")[0]
            rows.append((f"{name} ({found})" if found else name, times))
            peak = max(peak, viewer.memory())
        print("\n| page | first ms | median ms |\n|---|---|---|")
        for name, times in rows:
            print(f"| {name} | {1e3 * times[0]:.0f} | {1e3 * statistics.median(times):.0f} |")
        cache = sum(
            p.stat().st_size for p in Path(made).rglob("*") if p.is_file() and "cache" in str(p)
        )
        print(f"\npeak memory {peak:.0f} MiB; index {cache / 1e6:,.0f} MB")
        viewer.stop()


_QUERIES = [
    ("first page of trials", "trials"),
    ("page 10,000", "trials?page=10000"),
    ("filter: model", "trials?model=m003"),
    ("filter: wrong", "trials?grade=wrong"),
    ("filter: model, unread", "trials?model=m003&outcome=unparsed"),
    ("filter: 400 to 420 characters", "trials?least=400&most=420"),
    ("sort: longest", "trials?sort=length&down=yes"),
    ("sort: slowest wrong ones of a model", "trials?model=m005&grade=wrong&sort=seconds&down=yes"),
    ("sort: item", "trials?sort=item"),
    ("text: a rare word", f"trials?text={viewer_run.RARE}"),
    ("text: words of every reply", "trials?text=the+answer"),
    ("text: a phrase", "trials?" + urlencode({"text": '"the answer is B"'})),
    ("text: words of every reply, wrong, sorted", "trials?text=answer&grade=wrong&sort=length"),
    ("text: a beginning, without a word", "trials?" + urlencode({"text": "phaeo* -zzz"})),
    ("side by side", "compare?a=m001&b=m002"),
    ("side by side, only A right", "compare?a=m001&b=m002&show=only-a"),
    ("failures in groups", "failures"),
    ("overview", ""),
    (
        "one trial",
        "trial?"
        + urlencode(
            {
                "domain": "synthetic",
                "model": "m004",
                "setting": "zero_shot",
                "mode": "solo",
                "item": "q000007",
            }
        ),
    ),
]


def watched(options):
    ratios, walls, rows = [], [], []
    with tempfile.TemporaryDirectory() as made:
        for number in range(options.rounds):
            alone_first = number % 2 == 0
            figures = {}
            for with_viewer in (False, True) if alone_first else (True, False):
                figures[with_viewer] = _one(Path(made), options, with_viewer=with_viewer)
            ratios.append(figures[True][0] / figures[False][0])
            walls.append(figures[True][1] / figures[False][1])
            rows.append(figures)
            print(
                f"CPU {figures[False][0]:.2f} → {figures[True][0]:.2f} s, "
                f"wall {figures[False][1]:.2f} → {figures[True][1]:.2f} s, "
                f"the viewer itself {figures[True][2]:.2f} s of CPU",
                flush=True,
            )
    print(
        f"{options.items * options.models:,} trials: CPU of the run × {statistics.median(ratios):.4f}, "
        f"wall × {statistics.median(walls):.4f} (medians of {options.rounds} pairs)"
    )


def _one(folder, options, *, with_viewer):
    place = Path(tempfile.mkdtemp(dir=folder))
    plan = scale.write(place, options.items, options.models)
    (place / "runs").mkdir()
    viewer = Viewer(place, place / "cache") if with_viewer else None
    stopped, looking = threading.Event(), None
    if viewer is not None:
        viewer.timed("/")
        time.sleep(3)  # until all of it has started
        looking = threading.Thread(target=_look, args=(viewer, stopped), daemon=True)
        looking.start()
    wall, cpu, _, _ = scale.measured(
        [*scale.command("--quiet", "run", str(plan)), "--workspace", str(place)]
    )
    stopped.set()
    if looking is not None:
        looking.join()
    own = 0.0
    if viewer is not None:
        own = viewer.cpu()
        viewer.stop()
    shutil.rmtree(place)
    return cpu, wall, own


def _look(viewer, stopped):
    """Ask for what an open page asks for, every two seconds."""
    while not stopped.wait(2) and viewer.process.poll() is None:
        _, body = viewer.timed("/")
        for name in {part.split("/")[0] for part in body.decode().split('href="/run/')[1:]}:
            viewer.timed(f"/run/{name}/")
            viewer.timed(f"/run/{name}/trials")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["pages", "watched"])
    parser.add_argument("--items", type=int)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", type=Path)
    options = parser.parse_args()
    options.items = options.items or {"pages": 100_000, "watched": 2_000}[options.what]
    globals()[options.what](options)


if __name__ == "__main__":
    main()
