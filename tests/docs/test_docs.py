import os
import re
import subprocess
from pathlib import Path

import pytest

from medassay.bank.catalog import BANKS
from medassay.cli.main import COMMANDS, GROUPS, call, command_line
from medassay.exchange.catalog import IMPORTS
from medassay.exchange.export import FORMS
from medassay.kinds.catalog import GRADERS, PARSERS, SCORERS, TASKS
from medassay.kinds.pages import PAGES
from medassay.model.catalog import PROVIDERS
from medassay.prompt.catalog import TEMPLATES
from medassay.report.plot.catalog import PLOTS
from medassay.review.form import FORMS as REVIEW_FORMS
from medassay.runner.engine.catalog import ENGINES
from medassay.score.catalog import TEXT_MEASURES

ROOT = Path(__file__).parents[2]
CATALOGUES = {
    "Banks": BANKS,
    "Templates": TEMPLATES,
    "Providers": PROVIDERS,
    "Parsers": PARSERS,
    "Scorers": SCORERS,
    "Metrics of texts": TEXT_MEASURES,
    "Graders": GRADERS,
    "Tasks": TASKS,
    "Pages": PAGES,
    "Plots": PLOTS,
    "Imports": IMPORTS,
    "Exports": FORMS,
    "Forms of reviews": REVIEW_FORMS,
    "Engines": ENGINES,
}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("title", CATALOGUES)
def test_every_catalogue_entry_has_its_row_and_every_row_its_entry(title):
    section = read("docs/reference/catalogues.md").split(f"## {title} ")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == set(
        CATALOGUES[title]
    )


def test_every_bank_row_says_how_it_was_checked():
    for name, entry in BANKS.items():
        row = next(
            line
            for line in read("docs/reference/catalogues.md").splitlines()
            if f"`{name}`" in line
        )
        assert entry.checked in row


@pytest.fixture
def help_of(monkeypatch, capsys):
    """Return what gives the help of a command as a terminal of 100 columns shows it."""
    for name, value in {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)

    def help_text(*command):
        assert call([*command, "--help"]) == 0
        text = capsys.readouterr().out.strip()
        assert len(text) > 80
        return text

    return help_text


def paths_of(branch, path):
    """Yield the words of each command of a group, of groups in it as well."""
    if not hasattr(branch, "commands"):
        yield path
        return
    for name, further in branch.commands.items():
        yield from paths_of(further, (*path, name))


def test_the_command_reference_is_the_help_itself(help_of):
    commands = [
        (),
        *((name,) for name in COMMANDS),
        *(
            path
            for group in GROUPS
            for path in paths_of(command_line(group).commands[group], (group,))
        ),
    ]
    text = "# Command line\n\nWritten by `make golden`.\n"
    for command in commands:
        text += f"\n## {' '.join(('medassay', *command))}\n\n```\n{help_of(*command)}\n```\n"
    path = ROOT / "docs/reference/cli.md"
    if os.environ.get("MEDASSAY_REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_what_the_documents_import_is_there():
    """Names that were moved stood in two how-tos for weeks."""
    n = 0
    for document in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for block in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
            for line in re.findall(r"^(?:from|import) .+", block, re.MULTILINE):
                exec(line, {})
                n += 1
    assert n > 10


def test_traceability_names_files_that_exist():
    for line in read("docs/traceability.md").splitlines():
        if re.match(r"\| [A-Z0-9]+-\d+", line):
            _, _, place, proof, _ = line.split("|")
            for name in re.findall(r"`([\w/.]+/[\w./]*)`", place):
                assert (ROOT / "src/medassay" / name).exists(), name
            for name in re.findall(r"`(tests/[\w./]+)`", proof):
                assert (ROOT / name).exists(), name
            assert "`tests/" in proof


def test_the_readme_lists_every_folder_once_and_its_pictures_exist():
    text = read("README.md")
    folders = [
        p.name for p in (ROOT / "src/medassay").iterdir() if p.is_dir() and p.name != "__pycache__"
    ]
    for name in folders:
        assert text.count(f"| `{name}/`") == 1, name
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (ROOT / picture).exists()
    assert "make demo" in text
    assert "make test" in text


def test_documents_name_files_and_functions_that_exist():
    """Of tour, how-tos, method, reference and contributing; decisions tell of their own day."""
    places = [ROOT, ROOT / "src/medassay", ROOT / "tests"]
    n_functions = 0
    for path in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        if path.name == "traceability.md" or "decisions" in path.parts:
            continue
        text = " ".join(path.read_text(encoding="utf-8").split())
        pattern = r"`([\w./]+/\w+\.py)(?:`: `([A-Za-z]\w+)`|: ([A-Za-z]\w+)`|`)"
        for name, beside, inside in re.findall(pattern, text):
            named = beside or inside
            if "NAME" in name or "KIND" in name:  # what a newcomer shall write
                continue
            files = [place / name for place in places if (place / name).exists()]
            assert files, (path.name, name)
            if named:
                n_functions += 1
                assert re.search(
                    rf"(?m)^(    )?((async )?def|class) {named}\b|^{named}\b",
                    files[0].read_text(encoding="utf-8"),
                ), (path.name, name, named)
    assert n_functions > 30


def test_links_between_documents_lead_somewhere():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", path.read_text(encoding="utf-8")):
            if re.search(r"reference/(python/|plan|models)|^(python/|plan\.|models\.)", target):
                continue  # made with the site, whose build refuses broken links
            assert (path.parent / target).exists(), (path, target)
        for target, heading in re.findall(
            r"\]\((?!http)([^)#]*)#([^)]+)\)", path.read_text(encoding="utf-8")
        ):
            if heading in ("only-light", "only-dark"):  # which scheme shows a picture
                continue
            page = (path.parent / target) if target else path
            headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
            anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert heading in anchors, (path.name, target, heading)


def test_no_path_of_one_machine_is_in_the_repository():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    pattern = re.compile(r"(?<![\w.])/(home/\w+|root|work)/")
    for name in tracked:
        path = ROOT / name
        if (
            path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".css", ".js", ".html"}
            and "test_docs" not in name
        ):
            assert not pattern.search(path.read_text(encoding="utf-8")), name


def told_commands():
    """Yield (document, command) of every call of medassay in README and docs: lines of code, and
    code within a sentence.
    """
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if document.name == "cli.md" or "decisions" in document.parts:
            continue
        text = re.sub(r"\\\n\s*", " ", document.read_text(encoding="utf-8"))
        lines = re.findall(r"(?m)^    (?:\$ )?(medassay [^\n]*)", text)
        inline = [" ".join(one.split()) for one in re.findall(r"`(medassay [^`]*)`", text)]
        yield from ((document.name, one) for one in [*lines, *inline])


def known_options(command):
    found = {"--json", "--quiet", "--no-color", "--debug", "--log", "--shared", "--help"}
    for parameter in command.params:
        found.update((*parameter.opts, *parameter.secondary_opts))
    return found


def test_every_command_of_the_documents_exists_with_its_options():
    """151 commands were held against the help once; one named an option of another command."""
    wrong, n = [], 0
    for document, line in told_commands():
        command, told = command_line(), re.split(r"\s#\s|\s\|\s|…$", line)[0]
        words = [word.strip("[]()\"',;.") for word in told.split()[1:]]
        n += 1
        options = [w.partition("=")[0] for w in words if re.match(r"--[a-z]", w)]
        for word in words:
            inner = getattr(command, "commands", None)
            if inner is None or word.startswith("-"):
                break
            names = word.split("|")
            if not set(names) <= inner.keys():
                wrong.append(f"{document}: {line}: no command '{word}'")
                break
            command = inner[names[0]]
        strange = set(options) - known_options(command)
        wrong += [f"{document}: {line}: no option {name}" for name in sorted(strange)]
    assert n > 150
    assert not wrong, "\n".join(wrong)
