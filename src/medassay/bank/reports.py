"""Clinical reports as a bank: one's own texts, the letters of GraSCCo, the published example of the extraction study.

A report has no reference record until somebody writes one: a person, or a named model (`medassay bank silver`).
"""

from collections.abc import Iterator
from pathlib import Path

from medassay.bank.draft import Draft
from medassay.bank.markdown_record import read_markdown_record
from medassay.core.item import Bank
from medassay.errors import InputError

_SUFFIXES = (".txt", ".md")
_LONGEST = 200_000  # characters of a report


def load_reports(path: Path, *, name: str, licence: str, domain: str, language: str) -> Bank:
    """Return the reports of a folder, one of each `.txt` or `.md` file; empty ones are dropped and counted."""
    draft = Draft(
        name,
        licence=licence,
        source=f"file of {name}",
        title=name,
        limits="Reports without reference records: nothing is scored until there are some.",
    )
    for file, text in _texts(path):
        if not text.strip():
            draft.drop("empty report")
            continue
        draft.add(_report(file.stem, text, domain, language))
    return draft.bank()


def load_grascco(path: Path) -> Bank:
    """Return the 63 synthetic German letters of GraSCCo, without references; `path` holds the folder `texts`."""
    draft = Draft(
        "grascco",
        licence="CC-BY-4.0",
        source="GraSCCo, doi:10.5281/zenodo.6539131",
        title="GraSCCo: synthetic German clinical letters",
        limits="Fictional letters, as their authors say medically not always plausible. No reference records.",
    )
    for file, text in _texts(path / "texts" if (path / "texts").is_dir() else path):
        draft.add(_report(file.stem, text, "grascco", "de"))
    return draft.bank()


def load_example(path: Path) -> Bank:
    """Return the published example of the extraction study: its report, and its record converted from Markdown."""
    report, answer = (_read(path / name) for name in ("report.md", "golden_answer.md"))
    try:
        record = read_markdown_record(answer)
    except ValueError as error:
        raise InputError(f"{path / 'golden_answer.md'}: {error}") from None
    draft = Draft(
        "slm_extraction",
        licence="unstated",
        source="example of the SLM extraction study",
        title="The example of the SLM extraction study",
        limits="One synthetic report; its record is converted from the published Markdown form.",
    )
    origin = {"standing": "gold", "maker": "authors of the study", "converted": True}
    made = _report("example", report, "slm_extraction", "de")
    draft.add({**made, "record": record.to_dict(), "origin": origin})
    return draft.bank()


def _report(name: str, text: str, domain: str, language: str) -> dict[str, object]:
    return {
        "id": name,
        "domain": domain,
        "answer_type": "open",
        "language": language,
        "question": text.strip(),
        "record": None,
    }


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no folder; expected one with .txt or .md files")
    files = sorted(p for p in folder.iterdir() if p.suffix in _SUFFIXES and p.is_file())
    if not files:
        raise InputError(f"{folder}: holds no .txt or .md file")
    for file in files:
        yield file, _read(file)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    if len(text) > _LONGEST:
        raise InputError(f"{path}: longer than {_LONGEST:,} characters; no report is")
    return text
