"""Every command that stands in README and docs as a line of code runs as written, in a folder that
holds what it names.

Commands that need a network, a cluster, a server that stays or half an hour are named in
`ELSEWHERE`, with the test that runs them or the reason why none does here.
"""

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.worlds import WORLDS, World, stood_in

from medassay.cli.main import call

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.name != "cli.md" and "decisions" not in path.parts
]
# Command, or its beginning → where it is run, or why not here.
ELSEWHERE = {
    "pip install": "a package index; CI installs from one",
    "make demo": (
        "the demo that a newcomer sees first, by hand; its plan is that of"
        " tests/cli/test_first_use.py"
    ),
    "make test": "this suite",
    "export ": "several machines",
    "ray start": "several machines: tests/runner/engine/test_ray.py",
    "RAY_ADDRESS=": "several machines: tests/runner/engine/test_ray.py",
    "kubectl ": "a cluster; its manifest is tests/docs/test_deploy.py",
    "medassay run plan.toml --engine ray": "Ray: tests/runner/engine/test_ray.py",
    "medassay judge runs/<id> --panel judge-a,judge-b,judge-c --engine ray": (
        "Ray: tests/runner/engine/test_ray.py"
    ),
    "medassay study injection --judge judge-a --engine ray": (
        "Ray and an object store: tests/runner/engine/test_inquiry.py"
    ),
    "medassay study resilience runs/<id> --rephraser strong": (
        "Ray: tests/runner/engine/test_inquiry.py"
    ),
    "medassay bank silver letters --maker strong --to letters-silver --engine ray": (
        "Ray: tests/runner/engine/test_inquiry.py"
    ),
    "medassay run plan.toml --workspace s3://": (
        "an object store: tests/runner/engine/test_object_store.py"
    ),
    "medassay report s3://": "an object store: tests/runner/engine/test_object_store.py",
    "medassay publish s3://": "an object store: tests/runner/engine/test_object_store.py",
    "medassay verify s3://": "an object store: tests/runner/engine/test_object_store.py",
    "medassay --install-completion": (
        "writes into the shell's settings: tests/cli/test_first_use.py"
    ),
    "medassay demo rag": "minutes: tests/study/test_contexts.py",
    "medassay review serve": "a server that stays: tests/web/review/test_serve.py",
    "medassay view": "a server that stays: tests/web/viewer/test_access.py",
    "medassay suite run": "half an hour of a small model: tests/suite/test_suite.py",
    "medassay suite report": "of such a run: tests/suite/test_suite.py",
    "medassay suite join": "of such runs: tests/suite/test_open_suite.py",
    "medassay compare suites/": "of such runs: tests/suite/test_open_suite.py",
    "medassay publish suites/": "of such runs: tests/suite/test_open_suite.py",
    "medassay verify suites/": "of such runs: tests/suite/test_open_suite.py",
    "medassay export suites/": "of such runs: tests/suite/test_open_suite.py",
}


def commands(document):
    """Return the commands of a document's lines of code, in their order, without what is said
    behind them.
    """
    text = re.sub(r"\\\n\s*", " ", document.read_text(encoding="utf-8"))
    found, fence = [], None
    for line in text.splitlines():
        if mark := re.match(r"\s*```(\w*)", line):
            fence = None if fence is not None else mark[1]
        elif fence in ("", "sh", "bash", "console") or (fence is None and line[:4] == "    "):
            bare = re.sub(r"\s{2,}#.*|\s+→.*", "", line.strip()).removeprefix("$ ")
            if re.match(r"medassay |make |pip |python3? |ray |kubectl |export |[A-Z_]+=\S+ ", bare):
                found.append(re.sub(r"\s\[--.*?\]", "", re.sub(r"\s+# .*", "", bare)))
    return found


def is_elsewhere(command):
    return any(command.startswith(beginning) for beginning in ELSEWHERE)


# Demos need nothing that stands before them: those of how-tos are not run for the README again.
DEMOS = {
    command
    for document in DOCUMENTS
    for command in commands(document)
    if document.name != "README.md" and command.startswith("medassay demo ")
}


@pytest.mark.slow
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if commands(d)], ids=lambda d: d.name)
def test_every_command_of_a_document_runs_as_written(
    document, tmp_path, monkeypatch, capsys, mock_server, data
):
    here = [command for command in commands(document) if not is_elsewhere(command)]
    if document.name == "README.md":
        here = [command for command in here if command not in DEMOS]
    if not here:
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)  # somebody sits there, and says yes
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    world = World(folder=tmp_path, serve=mock_server, url=mock_server(), data=data)
    WORLDS[document.name](world)
    capsys.readouterr()
    for command in here:
        for beginning, step in world.steps.items():
            if command.startswith(beginning):
                step()
        written, _, target = stood_in(command, world).partition(" > ")
        written, _, inner = written.partition(" && cd ")
        code = call(shlex.split(written)[1:])
        told = capsys.readouterr()
        right = {0, *(n for start, n in world.exits.items() if command.startswith(start))}
        assert code in right, f"{command}\n{told.err}\n{told.out[-2000:]}"
        if inner:
            monkeypatch.chdir(inner)
        if target:
            Path(target).write_text(told.out)


def test_what_runs_elsewhere_stands_in_the_documents_and_its_test_exists():
    told = [command for document in DOCUMENTS for command in commands(document)]
    for beginning, why in ELSEWHERE.items():
        assert any(command.startswith(beginning) for command in told), beginning
        for path in re.findall(r"tests/[\w/]+\.py", why):
            assert (ROOT / path).is_file(), path
    assert len(told) > 100
