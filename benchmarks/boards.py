"""Boards of many models: seconds to publish, sizes of pages, first paint, filtering and sorting.

    python benchmarks/boards.py [--models 1000]

Two publications of imported predictions on 48 items of three domains are made and looked at in a
browser; needs the extras of `make test`.
"""

import argparse
import gzip
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.web.test_every_size import make_site

PAGES = ("index.html", "domain/neurology/index.html", "matrix/index.html", "changes/index.html")
BROWSER = "/usr/bin/chromium-headless-shell"
ROUNDS = 7
# Sets a field of the form of filters and waits for the layout; returns milliseconds.
CHANGE = """([where, value]) => {
  const field = document.querySelector(where), start = performance.now();
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  document.body.offsetHeight;
  return performance.now() - start;
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def main() -> None:
    """Measure, and print lines for RESULTS.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=1000)
    models = parser.parse_args().models
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        site = make_site(Path(folder), models)
        print(f"two publications of {models} models: {time.perf_counter() - start:.0f} s")
        for name in PAGES:
            content = (site / "p/two" / name).read_bytes()
            print(f"| {name} | {len(content):,} | {len(gzip.compress(content)):,} |")
        with served(site) as address:
            look(f"{address}/p/two/index.html")


def look(page_address: str) -> None:
    """Print how long a browser takes for the ranking page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for scripts in (True, False):
            times = []
            for _ in range(ROUNDS):
                context = browser.new_context(java_script_enabled=scripts)
                page = context.new_page()
                start = time.perf_counter()
                page.goto(page_address)
                page.screenshot()
                times.append(1000 * (time.perf_counter() - start))
                context.close()
            word = "with" if scripts else "without"
            print(f"loaded and drawn {word} scripts: {statistics.median(times):.0f} ms")
        page = browser.new_page()
        page.goto(page_address)
        for where, values in (
            ("#filter", [f"model-{n}" for n in range(ROUNDS)]),
            ("[data-sort-by]", ["size", "family", "", "size", "licence", "", "model"]),
        ):
            times = [page.evaluate(CHANGE, [where, value]) for value in values]
            print(f"{where}: {statistics.median(times):.0f} ms, at most {max(times):.0f}")
        browser.close()


if __name__ == "__main__":
    main()
