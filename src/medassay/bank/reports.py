"""Clinical reports as a bank: one's own texts, the letters of GraSCCo, the published example of the
extraction study.

A report has no reference record until somebody writes one: a person, or a named model (`medassay
bank silver`).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

from medassay.bank.builder import BankBuilder
from medassay.bank.delimited import encoding_name, encoding_of
from medassay.bank.markdown_record import read_markdown_record
from medassay.core.json import parse_json
from medassay.core.records.item import Bank
from medassay.core.records.item_object import ItemObject, OriginObject
from medassay.core.records.target import Report
from medassay.core.wording import some_of
from medassay.errors import InputError

WITHOUT = "Reports without reference records: nothing is scored until there are some."
_SUFFIXES = (".txt", ".md")
_LONGEST = 200_000  # characters of a report


def load_reports(  # noqa: PLR0913 -- a bank of texts says as much as a card
    path: Path,
    *,
    name: str,
    licence: str,
    domain: str,
    language: str,
    encoding: str = "",
    may_leave: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Bank:
    """Return the reports of a folder, one of each `.txt` or `.md` file; a `.json` of the same name
    is its reference record.

    Empty ones are dropped and counted.

    Parameters
    ----------
    encoding : of all files; empty to find it, file by file
    may_leave : whether the reports may go to models elsewhere and be published; they are somebody's
        unless one says otherwise
    tell : called with a line that names the files that are no UTF-8, or that are not read
    """
    draft = BankBuilder(
        name,
        licence=licence,
        source=f"file of {name}",
        title=name,
        limits=WITHOUT,
        may_leave=may_leave,
    )
    for language_found, files in _add_all(draft, path, domain, language, encoding).items():
        if language_found not in ("utf-8-sig", encoding):
            tell(f"read as {encoding_name(language_found)}: {some_of(files, 3)}")
    if unread := _unread(path):
        tell(f"not read, neither a text nor the record of one: {some_of(unread, 3)}")
    bank = draft.bank()
    n = sum(item.form != Report.form for item in bank.items)
    if n:
        tell(f"{n} of {len(bank.items)} reports have a reference record (.json beside the text)")
    if n == len(bank.items):
        return replace(bank, limits="", card={**bank.card, "limits": ""})
    return bank


def load_grascco(path: Path) -> Bank:
    """Return the 63 synthetic German letters of GraSCCo, without references.

    The folder `path` holds the folder `texts`.
    """
    draft = BankBuilder(
        "grascco",
        licence="CC-BY-4.0",
        source="GraSCCo, doi:10.5281/zenodo.6539131",
        title="GraSCCo: synthetic German clinical letters",
        limits="Fictional letters, as their authors say medically not always plausible.",
    )
    texts = path / "texts"
    _add_all(draft, texts if texts.is_dir() else path, "grascco", "de")
    return draft.bank()


def load_example(path: Path) -> Bank:
    """Return the published example of the extraction study: its report, and its record converted
    from Markdown.
    """
    report, answer = (_read(path / name) for name in ("report.md", "golden_answer.md"))
    try:
        record = read_markdown_record(answer)
    except ValueError as error:
        raise InputError(f"{path / 'golden_answer.md'}: {error}") from None
    draft = BankBuilder(
        "slm_extraction",
        licence="unstated",
        source="example of the SLM extraction study",
        title="The example of the SLM extraction study",
        limits="One synthetic report; its record is converted from the published Markdown form.",
    )
    origin: OriginObject = {"standing": "gold", "maker": "authors of the study", "converted": True}
    report_item = _report("example", report, "slm_extraction", "de")
    report_item.update({"record": record.to_dict(), "origin": origin})
    draft.add(report_item)
    return draft.bank()


def _report(name: str, text: str, domain: str, language: str) -> ItemObject:
    return {
        "id": name,
        "domain": domain,
        "answer_type": "open",
        "language": language,
        "question": text.strip(),
        "record": None,
    }


def _add_all(
    draft: BankBuilder, folder: Path, domain: str, language: str, encoding: str = ""
) -> dict[str, list[str]]:
    """Add a report for each text of a folder, named as the file without its suffix.

    Empty ones are counted.

    Returns
    -------
    dict
        encoding → the files that were read so.
    """
    named: dict[str, str] = {}
    read_as: dict[str, list[str]] = {}
    for file in _texts(folder):
        if (other := named.setdefault(file.stem, file.name)) != file.name:
            raise InputError(
                f"{folder}: {other} and {file.name} would both be report '{file.stem}'; rename one"
                " of them"
            )
        codec = encoding or encoding_of(file)
        read_as.setdefault(codec, []).append(file.name)
        text = _read(file, codec)
        if text.strip():
            draft.add(_with_record(_report(file.stem, text, domain, language), file))
        else:
            draft.drop("empty report")
    return read_as


def _with_record(report: ItemObject, file: Path) -> ItemObject:
    """Return a report with the record in the JSON file beside it, as it is where there is none."""
    path = file.with_suffix(".json")
    if not path.is_file():
        return report
    try:
        record = parse_json(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(record, dict) or not record:
        raise InputError(f"{path}: expected a JSON object, the reference record of {file.name}")
    del report["record"]
    return cast(ItemObject, {**report, "document": record})


def _unread(folder: Path) -> list[str]:
    """Return what lies in a folder of reports and is no part of it, by name."""
    texts = [*_texts(folder)]
    read = {*texts, *(text.with_suffix(".json") for text in texts)}
    return sorted(p.name for p in folder.iterdir() if p not in read and p.name[0] != ".")


def _texts(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no folder; expected one with .txt or .md files")
    files = sorted(p for p in folder.iterdir() if p.suffix.casefold() in _SUFFIXES and p.is_file())
    if not files:
        raise InputError(f"{folder}: holds no .txt or .md file")
    for file in files:
        if not file.stem.strip() or not file.name.isprintable():
            raise InputError(
                f"{folder}: file {file.name!a}: its name becomes the id of the report; rename it"
                " with letters and digits"
            )
        yield file


def _read(path: Path, encoding: str = "utf-8-sig") -> str:
    try:
        text = path.read_text(encoding=encoding)
    except (OSError, UnicodeError, LookupError) as error:
        raise InputError(
            f"{path}: cannot be read as {encoding_name(encoding)} text: {error}"
        ) from None
    if "\x00" in text:
        raise InputError(f"{path}: holds NUL characters; expected text")
    if len(text) > _LONGEST:
        raise InputError(f"{path}: longer than {_LONGEST:,} characters; no report is")
    return text
