"""The documentation site, built as `make docs` builds it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder):
    """Build the site from a copy of the repository's pages, and return its folder."""
    for name in ("docs", "examples", "website"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("build", "__pycache__")
        )
    (folder / "src").symlink_to(ROOT / "src")  # a copy would be compiled anew
    (folder / "benchmarks").mkdir()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md")):
        shutil.copyfile(path, folder / path.relative_to(ROOT))
    done = subprocess.run(
        [sys.executable, "website/build.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / "website/build/site"
