"""Build the documentation site: `python website/build.py`, or `make docs`, which also serves it.

Pages are those of `docs/` and a few of the repository's root; the reference of Python, plans and
models files is made from the records and their docstrings; notebooks are executed, and stand there
with what came out. Everything is put together in `website/build/`, where zensical makes the site.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Any

import medassay
from medassay.cli.record_schemas import SCHEMAS
from medassay.core.records.script import SCRIPT

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILD = HERE / "build"
PAGES = BUILD / "pages"

# Page of the repository → its place on the site; of `docs/` all, at the same place.
FROM_ROOT = {
    "GLOSSARY.md": "glossary.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "method/results.md",
    "benchmarks/coverage.md": "method/coverage.md",
}
# Long tables of numbers, and reasons of what is decided: found by their place, not by search.
_UNSEARCHED = ("changelog.md", "decisions/", "method/coverage.md", "method/results.md")
# Public names by what one does with them; a test holds that each name stands here once.
NAMES = {
    "Run and look": [
        *("run", "preview", "Run", "open_run", "show", "leaderboard", "Leaderboard", "figure"),
        *("export", "example_run"),
    ],
    "Compare and judge": ["compare", "judge", "judge_agreement", "rescore"],
    "Publish": ["publish", "verify"],
    "Plans and models": ["Plan", "load_plan", "ModelSpec", "load_models", "OwnTask", "Completion"],
    "Banks and items": [
        *("load_bank", "Bank", "Item", "Choice", "Pattern", "Range", "Facts", "Fact", "Criteria"),
        *("Criterion", "Reference", "Diagnoses", "Record"),
    ],
    "Answers and numbers": [
        *("read", "extract_option", "Answer", "import_predictions", "bootstrap_mean", "Estimate"),
        *("paired_difference", "rank", "MedassayError"),
    ],
}
COMMANDS_IN_PYTHON = {
    "run": "run",
    "run --plan": "preview",
    "report": "leaderboard",
    "report --figure": "figure",
    "show": "show",
    "compare": "compare",
    "judge": "judge",
    "score": "rescore",
    "study judges --people": "judge_agreement",
    "export": "export",
    "import csv": "import_predictions",
    "publish": "publish",
    "verify": "verify",
}
# Pages that are made here: others may link to them.
GENERATED = ("reference/python/index.md", "reference/plan.md", "reference/models.md")
# What the names above return: documented on one page.
RESULTS = [
    "medassay.core.records.trial.Trial",
    "medassay.core.records.score.TrialScore",
    "medassay.core.records.verdict.StoredVerdict",
    "medassay.core.records.statistics.LeaderboardRow",
    "medassay.exchange.compare.Comparison",
    "medassay.exchange.compared_pairs.ComparedPair",
    "medassay.core.records.preview.Preview",
    "medassay.core.records.preview.ModelPreview",
    "medassay.storage.shown_item.ShownItem",
    "medassay.storage.shown_item.ShownTrial",
    "medassay.study.judges.PeopleComparison",
    "medassay.study.judges.JudgeAgreement",
    "medassay.report.plot.figure.Figure",
    "medassay.publishing.report.VerificationReport",
    "medassay.publishing.publish.About",
    "medassay.core.frame.Tabular",
    "medassay.core.frame.Records",
]
_NUMBER = re.compile(r"# (\d+[.:]? )?")
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def assemble() -> list[Any]:
    """Write all pages, and return the navigation."""
    if PAGES.exists():
        shutil.rmtree(PAGES)
    PAGES.mkdir(parents=True)
    for source, target in site_pages().items():
        if source.suffix == ".md":
            head = (
                "---\nsearch:\n  exclude: true\n---\n\n" if target.startswith(_UNSEARCHED) else ""
            )
            write(target, head + linked(source.read_text(encoding="utf-8"), source))
        else:
            (PAGES / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, PAGES / target)
    for name in ("medassay.css", "medassay.js"):
        shutil.copyfile(HERE / name, PAGES / name)
    write("reference/plan.md", plan_page())
    write("reference/models.md", models_page())
    write("reference/python/index.md", names_page())
    write("reference/python/results.md", results_page())
    for names in NAMES.values():
        for name in names:
            write(f"reference/python/{name}.md", name_page(name))
    write("decisions/index.md", decisions_page())
    notebooks = [notebook_page(path) for path in sorted((ROOT / "examples").glob("*.ipynb"))]
    return navigation(notebooks)


def site_pages() -> dict[Path, str]:
    """Return which files of the repository stand where on the site."""
    pages = {ROOT / source: target for source, target in FROM_ROOT.items()}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.name != "traceability.md":
            pages[path] = path.relative_to(ROOT / "docs").as_posix()
    return pages


def write(target: str, text: str) -> None:
    """Write one page."""
    path = PAGES / target
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked(text: str, source: Path) -> str:
    """Return a page whose links lead to pages of the site; what is not there is named without a
    link.
    """
    pages = site_pages()
    here = (PAGES / pages[source]).parent

    def replaced(match: re.Match[str]) -> str:
        target, _, anchor = match["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = (source.parent / target).resolve()
        if path == ROOT / "README.md":  # the home page says the same
            path = ROOT / "docs/index.md"
        if path.suffix == ".ipynb":
            place = os.path.relpath(PAGES / "notebooks" / f"{path.stem}.md", here)
            return f"[{match['text']}]({place})"
        if path.is_relative_to(ROOT / "docs"):  # also what is made here
            page = path.relative_to(ROOT / "docs").as_posix()
            if page in GENERATED or page.startswith("reference/python/"):
                pages[path] = page
        if path not in pages:
            return match["text"] if "`" in match["text"] else f"`{path.relative_to(ROOT)}`"
        place = os.path.relpath(PAGES / pages[path], here)
        return f"{match['image']}[{match['text']}]({place}{'#' if anchor else ''}{anchor})"

    return _LINK.sub(replaced, text)


def name_page(name: str) -> str:
    """Return the page of one public name."""
    page = f"---\ntitle: {name}\n---\n\n::: medassay.{name}\n"
    if name in _TARGETS:  # how they are read from files is nothing that users call
        page += "    options:\n      members: []\n"
    return page


_TARGETS = frozenset(
    ["Choice", "Pattern", "Range", "Facts", "Criteria", "Reference", "Diagnoses", "Record"]
)


def results_page() -> str:
    """Return the page of what the public names return."""
    lines = [
        "# Results",
        "",
        "What the functions and methods return; nobody makes these by hand.",
        "",
    ]
    for path in RESULTS:
        lines += [f"::: {path}", "    options:", "      heading_level: 2"]
        lines += ["      inherited_members: false", ""]
    return "\n".join(lines)


def names_page() -> str:
    """Return the list of all public names with their first sentences."""
    lines = [
        "# Python",
        "",
        "Everything is in `import medassay`. Paths are text or `Path`, plans may be mappings, and",
        "each page has an example that runs as it stands. Errors are",
        "[`MedassayError`](MedassayError.md) with a sentence on what was expected.",
        "",
    ]
    for title, names in NAMES.items():
        lines += [f"## {title}", "", "| name | what it is |", "|---|---|"]
        for name in names:
            first = (inspect.getdoc(getattr(medassay, name)) or "").split("\n\n")[0]
            lines.append(f"| [`{name}`]({name}.md) | {' '.join(first.split())} |")
        lines.append("")
    lines += ["## The commands in Python", "", "| command | in Python |", "|---|---|"]
    for command, name in COMMANDS_IN_PYTHON.items():
        lines.append(f"| `medassay {command}` | [`{name}`]({name}.md) |")
    lines += [
        "",
        "## Signatures of your own code",
        "",
        "For type checkers: `medassay.own_code.signatures` has `ScoreFunction`, `ReadFunction` and",
        "`GraderClass`; see [your own code](../../how-to/your-own-code.md).",
    ]
    return "\n".join(lines) + "\n"


_PLAN = """# Keys of a plan

A plan is a TOML file, or the same as a mapping in Python ([`Plan`](python/Plan.md)).
`medassay schema plan` prints its JSON Schema, with which editors complete and check.

"""
_MODELS = """# Keys of models.json

`models` is a list of entries, each a [`ModelSpec`](python/ModelSpec.md) in Python; `trusted_hosts`
beside it names hosts of this place. `medassay schema models` prints the JSON Schema. What is usual
of each vendor: [add an endpoint](../how-to/endpoints.md).

"""
_SCRIPT = """

## `script`

A scripted model (`"provider": "fake"`) asks nobody: it is for trying things out and for tests. It
is ranked only in plans with `demonstration = true`, whose pages say so.

| key | what it does |
|---|---|
"""
_TABLES_OF_PLANS = {
    "OwnTask": "[task]",
    "BudgetRules": "[budget]",
    "DdxRules": "[ddx]",
    "EngineRules": "[engine]",
    "RelaxedSetting": "[relaxed_perplexity]",
    "Retrieval": "[retrieval]",
    "ToolRules": "[tools]",
}


def plan_page() -> str:
    """Return the reference of the keys of a plan."""
    return _PLAN + "\n".join(_keys(SCHEMAS["plan"](), _TABLES_OF_PLANS))


def models_page() -> str:
    """Return the reference of the keys of an entry of models.json, and of its script."""
    schema = SCHEMAS["models"]()
    entry = {**schema["properties"]["models"]["items"], "$defs": schema["$defs"]}
    script = "".join(f"| `{key}` | {what} |\n" for key, what in SCRIPT.items())
    return _MODELS + "\n".join(_keys(entry, {"Price": "price"})) + _SCRIPT + script


def decisions_page() -> str:
    """Return the list of decisions."""
    lines = [
        "# Decisions",
        "",
        "Why something is as it is, what was refused, what would change it.",
        "",
    ]
    for path in sorted((ROOT / "docs/decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0]
        lines.append(f"- {path.name[:4]} [{re.sub(_NUMBER, '', title)}]({path.name})")
    return "\n".join(lines) + "\n"


def _keys(schema: dict[str, Any], tables: dict[str, str]) -> Iterator[str]:
    yield from _table(schema)
    for name, part in schema.get("$defs", {}).items():
        if "properties" in part:
            yield f"\n## `{tables[name]}`\n\n{part.get('description', '')}\n"
            yield from _table(part)


def _table(schema: dict[str, Any]) -> Iterator[str]:
    yield "| key | what it is | values | default |"
    yield "|---|---|---|---|"
    for key, field in schema["properties"].items():
        if not key.startswith("$"):
            default = default_of(field, is_needed=key in schema.get("required", ()))
            yield f"| `{key}` | {field['description']} | {values_of(field)} | {default} |"


def default_of(field: dict[str, Any], *, is_needed: bool) -> str:
    """Return what a key is where it is left out."""
    default = field.get("default")
    if is_needed or default in (None, "", [], {}) or isinstance(default, dict):
        return "**needed**" if is_needed else "none"
    return ", ".join(f"`{v}`" for v in (default if isinstance(default, list) else [default]))


def values_of(field: dict[str, Any]) -> str:
    """Return what a key may hold, in words."""
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "anyOf" in field:
        parts = [values_of(part) for part in field["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    if "$ref" in field:
        return "table"
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {values_of(field.get('items', {}))}"
    words = {"string": "text", "boolean": "true, false", "integer": "whole number"}
    return words.get(kind, "table" if kind == "object" else kind)


def notebook_page(path: Path) -> tuple[str, str]:
    """Execute a notebook and write it as a page; return its title and place."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    folder = BUILD / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    parts, n_pictures = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            pictures = pictures_of(output)
            if pictures:
                n_pictures += 1
                parts.append('<div class="output" markdown>\n')
            for scheme, (title, svg) in pictures.items():
                name = f"{path.stem}-{n_pictures}-{scheme}.svg"
                (PAGES / "notebooks").mkdir(exist_ok=True)
                (PAGES / "notebooks" / name).write_bytes(svg)
                parts.append(f"![{title}]({name}#only-{scheme})")
            if pictures:
                parts.append("</div>")
            if not pictures and (text := output_html(output)):
                parts.append(f'<div class="output">\n{text}\n</div>')
    target = f"notebooks/{path.stem}.md"
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    head = f"*This page is the notebook `examples/{path.name}`, executed when the site was built.*"
    first, *others = parts
    heading, _, rest = first.partition("\n")
    write(target, "\n\n".join([heading, head, rest, *others]) + "\n")
    return title, target


def pictures_of(output: Any) -> dict[str, tuple[str, bytes]]:
    """Return an output that is a figure, as its title with the SVG for light and dark pages."""
    html = output.get("data", {}).get("text/html", "")
    found = re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", html)
    if not found:
        return {}
    title = unescape(re.findall(r'alt="([^"]*)"', html)[0])
    dark, light = map(b64decode, found)
    return {"light": (title, light), "dark": (title, dark)}


def output_html(output: Any) -> str:
    """Return an output of a cell as HTML on lines without gaps, so that Markdown leaves it."""
    if output.output_type == "stream":
        told = re.sub(r"(?m)^\S+\.py:\d+: ", "", output.text.rstrip())  # no path of this machine
        return one_block(f"<pre>{escape(told)}</pre>")
    if output.output_type == "error":
        raise RuntimeError(output.evalue)
    data = output.data
    if "text/html" in data:
        return one_block(re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.S))
    return one_block(f"<pre>{escape(data.get('text/plain', ''))}</pre>")


def one_block(html: str) -> str:
    """Return HTML without blank lines, which would end a block of it in Markdown."""
    return re.sub(r"\n\s*\n", "\n&#8203;\n", html)


def navigation(notebooks: list[tuple[str, str]]) -> list[Any]:
    """Return the navigation of the site."""
    methods = sorted(p.name for p in (ROOT / "docs/method").glob("*.md") if p.name != "index.md")
    return [
        {"Home": "index.md"},
        {"Why": "why.md"},
        {
            "First hour": [
                {"Your own questions": "how-to/your-own-questions.md"},
                *({title: place} for title, place in notebooks),
            ]
        },
        {"How-to": ["how-to/index.md", *(f"how-to/{p}" for p in how_tos())]},
        {
            "Reference": [
                "reference/index.md",
                {"Python": ["reference/python/index.md", *python_navigation()]},
                {"Command line": "reference/cli.md"},
                {"Keys of a plan": "reference/plan.md"},
                {"Keys of models.json": "reference/models.md"},
                {"Files": "reference/files.md"},
                {"Exit codes": "reference/exit-codes.md"},
                {"Catalogues": "reference/catalogues.md"},
            ]
        },
        {
            "Method": [
                "method/index.md",
                *(f"method/{name}" for name in methods),
                {"Measured": "method/results.md"},
                {"Simulations": "method/coverage.md"},
            ]
        },
        {"Decisions": "decisions/index.md"},
        {
            "About": [
                {"Glossary": "glossary.md"},
                {"Changelog": "changelog.md"},
                {"A tour of the code": "tour.md"},
                {"Contributing": "contributing.md"},
                {"Security": "security.md"},
            ]
        },
    ]


def how_tos() -> list[str]:
    """Return the how-to pages in the order of their index."""
    text = (ROOT / "docs/how-to/index.md").read_text(encoding="utf-8")
    names = dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)\)", text))
    return [name for name in names if name != "your-own-questions.md"]


def python_navigation() -> list[Any]:
    """Return the navigation of the public names."""
    return [{"Results": "reference/python/results.md"}] + [
        {title: [{name: f"reference/python/{name}.md"} for name in names]}
        for title, names in NAMES.items()
    ]


def toml(value: Any) -> str:
    """Return a value of the navigation as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def compact(html: str) -> str:
    r"""Return a page that looks the same in fewer bytes.

    Blanks at the beginning of lines, a third of a page, go, but for those of code. In code, marks
    of plain names and of blanks go: the theme shows both as it shows unmarked code.

    Examples
    --------
    >>> compact("<p>\n   a\n\n <pre>\n  b</pre>\n  c")
    '<p>\na\n<pre>\n  b</pre>\nc'
    >>> compact('<pre><span class="n">a</span><span class="w"> </span><span class="o">=</span>')
    '<pre>a <span class="o">=</span>'
    """
    parts = re.split(r"(<pre.*?</pre>|<script.*?</script>)", html, flags=re.S)
    parts[::2] = [re.sub(r"\n\s+", "\n", part) for part in parts[::2]]
    page = re.sub(
        r"<nav.*?</nav>", lambda nav: nav[0].replace("\n", ""), "".join(parts), flags=re.S
    )
    return re.sub(r'<span class="[nw]">([^<]*)</span>', r"\1", page)


def main() -> None:
    """Assemble the pages and build the site; `--serve` serves it then."""
    serve = "--serve" in sys.argv
    config = (HERE / "zensical.toml").read_text(encoding="utf-8")
    head, project = config.split("[project]\n")
    places = toml(assemble())
    (BUILD / "zensical.toml").write_text(
        f"{head}[project]\nnav = {places}\n{project}", encoding="utf-8"
    )
    shutil.rmtree(BUILD / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=BUILD, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    shutil.rmtree(BUILD / "site/assets/stylesheets/classic")  # the other look of the theme
    for page in (BUILD / "site").rglob("*.html"):
        page.write_text(compact(page.read_text(encoding="utf-8")), encoding="utf-8")
    subprocess.run([sys.executable, HERE / "style_pages.py", BUILD / "site/style"], check=True)
    print(f"the site is in {BUILD / 'site'}")
    if serve:
        subprocess.run(
            [sys.executable, "-m", "http.server", "8000", "--bind", "127.0.0.1"],
            cwd=BUILD / "site",
            check=False,
        )


if __name__ == "__main__":
    main()
