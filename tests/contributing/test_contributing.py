"""What CONTRIBUTING.md promises: one file (or folder) and one line of a catalogue, tried on a copy.

The files of `additions` are laid over a copy of the package, and lines are put into catalogues; a
line of a catalogue is its entry, with the import that the entry needs.
"""

import difflib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import makers

ADDITIONS = Path(__file__).parent / "additions"
PACKAGE = Path(__file__).parents[2] / "src/medassay"
# Thing → catalogue → (line before which something stands, what).
LINES = {
    "kind": {
        "kinds/catalog.py": [
            (
                "from medassay.kinds.pattern.kind import PATTERN\n",
                "from medassay.kinds.ordering.kind import KIND as ORDERING\n",
            ),
            ('    "pattern": PATTERN,\n', '    "ordering": ORDERING,\n'),
        ]
    },
    "bank": {
        "bank/catalog.py": [
            ("    headqa,\n", "    first_aid,\n"),
            (
                '    "healthbench": BankEntry(',
                '    "first_aid": BankEntry(load=first_aid.load, checked="verified on data",'
                ' says="x"),\n',
            ),
        ]
    },
    "grader": {
        "judging/graders/catalog.py": [
            (
                "from medassay.judging.graders.g_eval import GEval\n",
                "from medassay.judging.graders.approval import Approval\n",
            ),
            ('    "g_eval": lambda', '    "approval": lambda bank, rules: Approval(),\n'),
        ]
    },
    "page": {
        "report/pages/catalog.py": [
            ("    compare,\n", "    colophon,\n"),
            ('    "compare": compare.pages,\n', '    "colophon": colophon.pages,\n'),
        ]
    },
    "command": {
        "cli/main.py": [
            ('    "init",\n', '    "hello",\n'),
        ]
    },
}


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """Return a copy of the package with everything added."""
    copy = tmp_path_factory.mktemp("extended") / "medassay"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ADDITIONS, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for catalogues in LINES.values():
        for name, lines in catalogues.items():
            text = (copy / name).read_text()
            for before, line in lines:
                assert text.count(before) == 1, (name, before)
                text = text.replace(before, line + before)
            (copy / name).write_text(text)
    return copy


def medassay(package, folder, *arguments):
    result = subprocess.run(
        [sys.executable, "-m", "medassay", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(package.parent), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, (arguments, result.stdout, result.stderr)
    return result.stdout


@pytest.fixture(scope="module")
def board(extended, tmp_path_factory):
    """Return the folder of a run of the new kind on the new bank, published."""
    folder = tmp_path_factory.mktemp("board")
    medassay(extended, folder, "bank", "import", "first_aid", ".")
    [bank] = (path.name for path in folder.iterdir() if (path / "bank.toml").is_file())
    replies = {f"s{n:02}": "C, A, B" if n % 3 else "A then B, at last C." for n in range(20)}
    makers.write_models(
        folder,
        makers.fake("steady", replies=replies),
        makers.fake("silent", replies={name: "A" for name in replies}),
        makers.fake("judge-alpha", reply="yes") | {"family": "alpha"},
    )
    for name, more in (("ordering", {}), ("ordering_graded", {"judges": ["judge-alpha"]})):
        path = makers.write_plan(
            folder, banks=[bank], models=["steady", "silent"], task=name, **more
        )
        path.rename(folder / f"{name}.toml")
        medassay(extended, folder, "run", f"{name}.toml")
    return folder


def test_a_thing_is_its_files_and_one_line_of_a_catalogue(extended):
    for thing, catalogues in LINES.items():
        assert len(catalogues) == 1, thing
        for name in catalogues:
            before = (PACKAGE / name).read_text().splitlines()
            after = (extended / name).read_text().splitlines()
            changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
            # With its import, where the catalogue has values.
            assert [line[0] for line in changed] == ["+"] * len(catalogues[name]), (thing, changed)
    others = [
        path
        for path in extended.rglob("*")
        if path.is_file()
        and not (ADDITIONS / path.relative_to(extended)).exists()
        and path.relative_to(extended).as_posix() not in {n for c in LINES.values() for n in c}
    ]
    assert all(
        path.read_bytes() == (PACKAGE / path.relative_to(extended)).read_bytes()
        for path in others
        if "__pycache__" not in path.parts
    )


@pytest.mark.slow
def test_a_new_kind_has_score_column_figure_and_page_and_is_recomputed(extended, board):
    [run] = (
        path
        for path in (board / "runs").iterdir()
        if json.loads((path / "manifest.json").read_text())["task"] == "ordering"
    )
    statistics = json.loads((run / "statistics.json").read_text())
    rows = {row["model"]: row for row in statistics["domains"]["overall"]}
    assert rows["silent"]["score"] == 0.0
    assert rows["silent"]["ordering"]["pairs_in_order"]["score"] == 0.0
    assert rows["silent"]["ordering"]["steps_named"]["score"] == pytest.approx(1 / 3)
    assert 0 < rows["steady"]["score"] < rows["steady"]["ordering"]["pairs_in_order"]["score"] < 1
    told = medassay(extended, board, "report", str(run))
    assert "pairs in order" in told
    assert "exact_order" in told
    medassay(extended, board, "report", str(run), "--figure", "ordering", "--to", "figure.svg")
    assert "<svg" in (board / "figure.svg").read_text()
    medassay(extended, board, "publish", str(run), "--to", "site", "--id", "first", "--yes")
    page = (board / "site/p/first/ordering/index.html").read_text()
    assert "pairs in order" in page
    assert "<img" in page or "<svg" in page
    front = (board / "site/p/first/index.html").read_text()
    assert '<a href="./ordering/index.html">Ordering</a>' in front
    assert "pairs_in_order" in (board / "site/p/first/data/ordering.csv").read_text()
    assert "Made by a test" in (board / "site/p/first/colophon/index.html").read_text()
    lines = (board / "site/p/first/data/run/items.jsonl").read_text().splitlines()
    withheld = [item for item in map(json.loads, lines) if "commitment" in item]
    assert len(withheld) == 4
    assert not any({"order", "question"} & item.keys() for item in withheld)
    verified = medassay(extended, board, "verify", "site")
    assert "scores recomputed" in verified
    scores = run / "scores.jsonl"
    scores.chmod(0o644)
    scores.write_bytes(scores.read_bytes().replace(b'"steps_named":1', b'"steps_named":0', 1))
    with pytest.raises(AssertionError, match=r"scores\.jsonl"):
        medassay(extended, board, "verify", str(run))


@pytest.mark.slow
def test_a_new_grader_judges_the_new_kind(extended, board):
    [run] = (
        path
        for path in (board / "runs").iterdir()
        if json.loads((path / "manifest.json").read_text())["task"] == "ordering_graded"
    )
    rows = json.loads((run / "statistics.json").read_text())["domains"]["overall"]
    assert [row["score"] for row in rows] == [1.0, 1.0]
    assert all(row["ordering"]["steps_named"]["score"] > 0 for row in rows)
    assert "scores recomputed" in medassay(extended, board, "verify", str(run))


def test_a_wrong_target_of_a_new_kind_is_refused_by_row_and_field(extended, tmp_path):
    item = {"id": "s1", "domain": "law", "question": "Order?", "source": "s", "order": ["A", "A"]}
    makers.write_bank(tmp_path / "bank", [item])
    with pytest.raises(AssertionError, match="row 1: field 'order': expected two letters"):
        medassay(extended, tmp_path, "bank", "validate", "bank")


def test_a_new_command_is_there(extended, tmp_path):
    assert medassay(extended, tmp_path, "hello") == "hello\n"
