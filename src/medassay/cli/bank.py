"""`medassay bank …`: validate, show, diff, release, approve, silver, list, stats, import, fetch."""

import csv
import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli import bank_export, decisions, duplicates, flaws, synthesis
from medassay.cli.options import ENGINE, WORKSPACE, group, load_bank_argument
from medassay.cli.output import out
from medassay.core.records.card_object import CardObject
from medassay.core.wording import counted, listed, some_of
from medassay.errors import GateError, InputError, UsageError

if TYPE_CHECKING:
    from medassay.bank.delimited import TableForm
    from medassay.bank.stats import ItemStats
    from medassay.core.records.item import Bank

app = group("Question banks: check, compare, release, describe, import.")
# Making items: what each of these does stands in its own module.
_MAKING: dict[str, Callable[..., None]] = {
    "decide": decisions.decide,
    "duplicates": duplicates.duplicates,
    "export": bank_export.export,
    "flaws": flaws.flaws,
    "paths": synthesis.paths,
    "queue": decisions.queue,
    "synthesize": synthesis.synthesize,
    "votes": decisions.votes,
}
for _name, _command in _MAKING.items():
    app.command(_name)(_command)
_BANK = typer.Argument(..., help="A bank's folder, or 'demo'.")


@app.command()
def validate(bank: str = _BANK) -> None:
    """Check every row of a bank; exit 3 names the first that is wrong."""
    from medassay.bank.stats import items_with_twin_options

    bank_read = load_bank_argument(bank)
    twins = items_with_twin_options(bank_read)
    out.tell(
        {
            "ok": True,
            "bank": bank_read.name,
            "version": bank_read.version,
            "content_sha256": bank_read.content_hash,
            "items": len(bank_read.items),
            "twin_options": twins,
        },
        f"ok: {bank_read.version}, {counted(len(bank_read.items), 'item')}, content"
        f" {bank_read.content_hash}",
    )
    if twins:
        out.say(
            f"{counted(len(twins), 'item')} with two options that read alike, which no answer can"
            f" tell apart: {some_of(twins)}"
        )


@app.command()
def show(
    bank: str = _BANK,
    item: str = typer.Argument("", help="An item's id; without it, the card."),
) -> None:
    """Print a bank's card, or one item."""
    from medassay.bank.folder import bank_records

    loaded = load_bank_argument(bank)
    if not item:
        card = {
            "bank": loaded.name,
            "title": loaded.title,
            "version": loaded.version,
            "licence": loaded.licence,
            "domains": list(loaded.domains),
            "items": len(loaded.items),
            "limits": loaded.limits,
            "created": loaded.created,
            "may_leave": loaded.may_leave,
            "content_sha256": loaded.content_hash,
        }
        texts = ((k, ", ".join(v) if isinstance(v, list) else v) for k, v in card.items())
        out.tell(card, *(f"{key}: {text}" for key, text in texts))
        return
    for candidate, record in bank_records(loaded):
        if candidate.id == item:
            out.tell({"item": record}, *(f"{key}: {value}" for key, value in record.items()))
            return
    raise InputError(
        f"bank '{loaded.name}': no item '{item}'; `medassay bank stats` describes what there is"
    )


@app.command()
def diff(old: str = _BANK, new: str = _BANK) -> None:
    """Print which items were added, removed or changed; exit 1 if any."""
    from medassay.bank.release import diff_banks

    differences = diff_banks(
        load_bank_argument(old, check=False), load_bank_argument(new, check=False)
    )
    out.tell(
        differences,
        *(f"+ {name}" for name in differences.added),
        *(f"- {name}" for name in differences.removed),
        *(f"~ {name}: {', '.join(fields)}" for name, fields in differences.changed.items()),
    )
    if not differences.empty:
        raise typer.Exit(1)


@app.command()
def release(
    bank: Path = typer.Argument(
        ..., help="The bank's folder, or a workshop, whose accepted items become its bank."
    ),
    reason: str = typer.Option(..., help="Why; written into CHANGES.md."),
) -> None:
    """Bind the bank's items to a version, a new one if the present one is taken."""
    from medassay.bank.release import release as make
    from medassay.synthesis.project import JOURNAL

    if (bank / JOURNAL).is_file():
        released = synthesis.release_workshop(bank, reason)
        out.tell(released, f"{released['version']} {released['content_sha256']} {released['bank']}")
        return
    today = dt.datetime.now(dt.UTC).date()
    version, content = make(bank, reason=reason, lock=Path("banks.lock"), today=today)
    out.tell({"version": version, "content_sha256": content}, f"{version} {content}")


@app.command()
def approve(
    bank: Path = typer.Argument(..., help="The bank's folder."),
    items: list[str] = typer.Argument(None, help="Ids of the items; none for all."),
    by: str = typer.Option(..., "--by", help="Who approved them; it stands in every item."),
) -> None:
    """Note that a person has approved items (silver references, say), and release the bank with
    it.
    """
    from medassay.bank.release import approve as note

    today = dt.datetime.now(dt.UTC).date()
    version, content = note(bank, items or [], who=by, lock=Path("banks.lock"), today=today)
    out.tell({"version": version, "content_sha256": content}, f"{version} {content}")


_MAKER = typer.Option(..., help="The model that writes the references.")
_SILVER_TO = typer.Option(..., help="Folder of the new bank.")
_MODELS = typer.Option(Path("models.json"), help="The models file.")
_ACCEPT_FAILURES = typer.Option(
    False,
    "--accept-failures",
    help="Write the bank although reports got no usable record; they stay without one.",
)
_AGAIN = typer.Option(
    [],
    help=(
        "Ask once more for the record of a report, by its id, or failed for all reports that"
        " got no usable one."
    ),
)


@app.command()
def silver(
    bank: str = _BANK,
    maker: str = _MAKER,
    to: Path = _SILVER_TO,
    models: Path = _MODELS,
    accept_failures: bool = _ACCEPT_FAILURES,
    again: list[str] = _AGAIN,
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Have a named strong model write the health records of reports that have none."""
    from medassay.cli.progress import watch
    from medassay.study.silver import SilverOptions, write_silver

    options = SilverOptions(
        maker=maker, models_file=models, to=to, accept_failures=accept_failures, again=again
    )
    report = write_silver(
        load_bank_argument(bank),
        options,
        secrets=os.environ,
        workspace=workspace,
        engine=engine,
        watch=watch,
    )
    out.tell(
        {
            "path": str(to),
            "version": report.version,
            "written": report.written,
            "kept": report.kept,
            "failed": dict(report.failed),
        },
        f"{to}: {report.version}, {report.written} silver references by {maker}, {report.kept}"
        " items as they were",
        *(f"  without a reference: {name}: {why}" for name, why in report.failed.items()),
    )


@app.command(name="list")
def list_banks() -> None:
    """Print the catalogue of banks that can be loaded or imported."""
    from medassay.bank.catalog import BANKS
    from medassay.bank.hub import HUB
    from medassay.core.entry_point import entry_points, package_of

    rows: list[dict[str, object]] = [
        {"name": n, "checked": e.checked, "says": e.says, "fetch": n in HUB}
        for n, e in BANKS.items()
    ]
    packaged = entry_points("banks")
    rows += [{"name": n, "package": package_of(point)} for n, point in packaged.items()]
    out.tell(
        {"banks": rows},
        *(
            f"{name:<16} {entry.checked:<20} {entry.says}{' (bank fetch)' if name in HUB else ''}"
            for name, entry in BANKS.items()
        ),
        *(f"{name:<16} {package_of(point)}" for name, point in packaged.items()),
    )


@app.command()
def stats(bank: str = _BANK) -> None:
    """Print what a bank holds: counts, lengths, vocabulary, keys, paths."""
    from medassay.bank.stats import bank_stats, item_stats

    loaded = load_bank_argument(bank)
    statistics = item_stats(loaded.items)
    heading = f"{loaded.version}: {statistics.items} items, licence {loaded.licence}"
    out.tell(bank_stats(loaded, statistics), heading, _stats_lines(statistics))


def _stats_lines(statistics: "ItemStats") -> Iterator[str]:
    for name, counts in statistics.by.items():
        yield f"  by {name}: " + ", ".join(f"{value} {count}" for value, count in counts.items())
    tokens = statistics.tokens
    for name, lengths in (("question", tokens.question), ("answer", tokens.answer)):
        yield f"  {name}: longest {lengths.longest}, mean {lengths.mean} tokens"
    yield f"  vocabulary {tokens.vocabulary} (tokenizer: {tokens.tokenizer})"
    yield "  keys: " + ", ".join(f"{key} {count}" for key, count in statistics.keys.items())
    if statistics.clusters:
        yield f"  {statistics.clustered_items} items in {statistics.clusters} clusters"
    if statistics.paths:
        yield (
            f"  {statistics.conditions} conditions, {statistics.leaves} leaves,"
            f" {statistics.paths} paths"
        )
    for category, paths in statistics.categories.items():
        more = ", more than two paths a leaf allow" if paths.exceeds_bound else ""
        yield (
            f"  {category}: {paths.questions} questions, {paths.conditions} conditions,"
            f" {paths.leaves} leaves, {paths.paths} paths{more}"
        )


_NAME = typer.Argument(
    ...,
    help="A catalogued set (`bank list`), or csv, xlsx, or reports (a folder of texts).",
)
_PATH = typer.Argument(..., help="Its file or folder.")
_TO = typer.Option(None, help="Folder to write; default: the bank's name.")
_COLUMNS = typer.Option(
    "",
    help=(
        "For csv and xlsx: question=Frage,A=a,B=b,expected=key,reference=Musterantwort,…; default:"
        " found by the headings, and told."
    ),
)
_CALLED = typer.Option("", "--name", help="For csv, xlsx and reports: the bank's name.")
_LICENCE = typer.Option("unstated", help="For csv, xlsx and reports.")
_DOMAIN = typer.Option("general", help="For csv and xlsx without a domain column, and for reports.")
_LANGUAGE = typer.Option(
    "", help="For csv, xlsx and reports: the language of all items; default: en."
)
_ENCODING = typer.Option(
    "",
    help="For csv and reports: how text is encoded; default: found (UTF-8, Windows-1252).",
)
_MAY_LEAVE = typer.Option(
    False,
    "--may-leave",
    help=(
        "For reports, and tables with a column of records: they may go to models elsewhere and be"
        " published. Without it they stay (may_leave = false)."
    ),
)
_GOLDEN = typer.Option(
    "",
    help=(
        "For RareBench: of several recorded diseases the first is golden (one), or any of them"
        " (any); default: one."
    ),
)


@app.command(name="import")
def import_bank(
    name: str = _NAME,
    path: Path = _PATH,
    to: Path | None = _TO,
    columns: str = _COLUMNS,
    called: str = _CALLED,
    licence: str = _LICENCE,
    domain: str = _DOMAIN,
    language: str = _LANGUAGE,
    encoding: str = _ENCODING,
    may_leave: bool = _MAY_LEAVE,
    golden: str = _GOLDEN,
) -> None:
    """Make a bank folder from a data set's files, a spreadsheet, or a folder of clinical
    reports.
    """
    from medassay.bank.reports import load_reports

    if called.startswith(".") or "/" in called or "\\" in called:
        raise UsageError(f"--name: '{called}'; expected a name without slashes, not hidden")
    _check_options(
        name,
        {
            "--columns": columns,
            "--language": language,
            "--encoding": encoding,
            "--may-leave": may_leave,
            "--golden": golden,
        },
    )
    if golden not in ("", "one", "any"):
        raise UsageError(f"--golden: '{golden}'; expected one or any")
    more: Mapping[str, object] = {}
    if name in ("csv", "xlsx"):
        bank, more = _import_table(
            name,
            path,
            columns=read_columns(columns),
            called=called or path.stem,
            licence=licence,
            domain=domain,
            language=language,
            encoding=encoding,
            may_leave=may_leave,
        )
    elif name == "reports":
        bank = load_reports(
            path,
            name=called or path.resolve().name,
            licence=licence,
            domain=domain,
            language=language or "en",
            encoding=encoding,
            may_leave=may_leave,
            tell=out.say,
        )
        _say_whether_they_stay(bank)
    else:
        bank = _load_data_set(name, path, golden, licence=licence)
    _write_imported(bank, to or Path(bank.name), more)


def _import_table(
    kind: str,
    path: Path,
    *,
    columns: Mapping[str, str],
    called: str,
    licence: str,
    domain: str,
    language: str,
    encoding: str,
    may_leave: bool,
) -> "tuple[Bank, Mapping[str, object]]":
    """Say how the columns of a table of questions are understood; return the bank in it, and how
    its columns and kinds are told.
    """
    from medassay.bank.delimited import USUAL
    from medassay.bank.spreadsheet import is_workbook, sheets_of
    from medassay.bank.table import bank_of_table, read_table
    from medassay.bank.table_columns import DOCUMENT, looks_german

    _refuse_other_kind(kind, path)
    if language and not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]+)*", language):
        raise UsageError(f"--language: '{language}'; expected a code, as de or en")
    form = _form_of(path, encoding) if kind == "csv" else USUAL
    table = read_table(path, columns, form)
    if is_workbook(path) and len(sheets := sheets_of(path)) > 1:
        out.say(f"  sheet '{sheets[0]}' is read; not read: {', '.join(sheets[1:])}")
    if may_leave and DOCUMENT not in table.columns:
        raise UsageError("--may-leave is for reports and tables with a column of records")
    unused = [column for column in table.understood if not column.key]
    for column in table.understood:
        if column.key or len(unused) <= _UNUSED_TOLD:
            out.say(f"  {column}")
    if len(unused) > _UNUSED_TOLD:
        out.say(f"  {len(unused)} more columns are not used")
    if not language and "language" not in table.columns:
        hint = (
            "; the headings are German: is it --language de?" if looks_german(table.header) else ""
        )
        if "locale" in table.columns:
            hint = "; 'locale' is how numbers are written, a column 'language' says the language"
        out.say(f"  language: en, since nothing says another{hint}")
    bank = bank_of_table(
        table,
        name=called,
        licence=licence,
        domain=domain,
        language=language,
        may_leave=may_leave,
    )
    _say_whether_they_stay(bank)
    kinds = Counter(item.form for item in bank.items)
    counts = [f"{n} {_WORDS.get(form, form)}" for form, n in sorted(kinds.items())]
    out.say("  questions: " + ", ".join(counts))
    understood = {column.name: column.key or None for column in table.understood}
    return bank, {"columns": understood, "kinds": dict(sorted(kinds.items()))}


def _say_whether_they_stay(bank: "Bank") -> None:
    if not bank.may_leave:
        out.say(
            "may_leave = false: no model elsewhere is asked about these reports, and nothing of"
            " them is published; --may-leave allows both"
        )


_UNUSED_TOLD = 12  # columns that are not used and have a line each
# Names of forms in messages, where they differ from the form.
_WORDS = {
    "range": "number",
    "regex": "pattern",
    "text": "open (model answer)",
    "open": "open (facts)",
}


def _refuse_other_kind(kind: str, path: Path) -> None:
    from medassay.bank.spreadsheet import is_workbook

    if path.is_file() and is_workbook(path) != (kind == "xlsx"):
        content, other = ("an Excel workbook", "xlsx") if kind == "csv" else ("no workbook", "csv")
        raise InputError(f"{path}: {content}; `medassay bank import {other} …` reads it")


def _form_of(path: Path, encoding: str) -> "TableForm":
    """Return how a table is written; say so where that is not the usual way."""
    from medassay.bank.delimited import form_of

    form = form_of(path, encoding)
    if not form.usual:
        out.say(f"{path.name}: read as {form}")
    return form


def _check_options(name: str, options: Mapping[str, object]) -> None:
    """Refuse an option that is of no use to what is imported."""
    from medassay.bank.catalog import BANKS

    takers = {
        "--columns": ("csv", "xlsx"),
        "--language": ("csv", "xlsx", "reports"),
        "--encoding": ("csv", "reports"),
        "--may-leave": ("csv", "xlsx", "reports"),
        "--golden": tuple(n for n, entry in BANKS.items() if entry.golden),
    }
    for option, value in options.items():
        if value and name not in takers[option]:
            raise UsageError(f"{option} is for {listed(takers[option])}, not for '{name}'")


def _write_imported(bank: "Bank", folder: Path, more: Mapping[str, object]) -> None:
    """Write an imported bank, and say what was kept and what was dropped."""
    from medassay.bank.folder import bank_records, write_bank

    card: CardObject = {**bank.card, "created": dt.datetime.now(dt.UTC).date().isoformat()}
    content = write_bank(folder, card, (record for _, record in bank_records(bank)))
    dropped = ", ".join(f"{count} × {reason}" for reason, count in bank.dropped.items()) or "none"
    out.tell(
        {
            "path": str(folder),
            "kept": bank.kept,
            "dropped": bank.dropped,
            "content_sha256": content,
            **more,
        },
        f"{folder}: {bank.kept} items kept; dropped: {dropped}; content {content}",
    )


def _load_data_set(name: str, path: Path, golden: str, *, licence: str) -> "Bank":
    """Return a public bank from its files, or one that an installed package reads."""
    from medassay.bank.builder import bank_of_package
    from medassay.bank.catalog import BANKS
    from medassay.core.entry_point import entry_points

    if name not in BANKS and name in entry_points("banks"):
        return bank_of_package(name, path, licence=licence)
    loadable = {n: entry for n, entry in BANKS.items() if entry.checked != "shipped"}
    if name not in loadable:
        raise InputError(
            f"bank import: '{name}' is unknown; known are csv, xlsx, reports,"
            f" {', '.join((*loadable, *entry_points('banks')))}"
        )
    return loadable[name].load(path, **({"golden": golden} if golden else {}))


@app.command()
def fetch(
    name: str = typer.Argument(..., help="A set of `bank list` marked (bank fetch)."),
    to: Path = typer.Option(..., help="Folder for the downloaded files."),
) -> None:
    """Download a set's original files from its hub; nothing else ever downloads data."""
    from medassay.bank.hub import fetch as download

    files = download(name, to)
    if not files:
        raise GateError(f"bank fetch: {name} brought no file that its loader reads")
    out.tell(
        {"files": [str(path) for path in files]},
        f"{len(files)} files in {to}; now: medassay bank import {name} {to}",
    )


def read_columns(text: str) -> dict[str, str]:
    """Return `a=b,c=d` as a mapping."""
    mapping: dict[str, str] = {}
    parts = next(csv.reader([text], skipinitialspace=True), []) if text else []
    for part in filter(None, parts):
        key, sign, column = part.partition("=")
        if not sign or not key.strip() or not column.strip():
            raise UsageError(
                f"--columns: '{part}'; expected what=column, separated by commas (with a comma in"
                ' the name: "what=one, two" in double quotes)'
            )
        if key.strip() in mapping:
            raise UsageError(f"--columns: '{key.strip()}' is given twice")
        mapping[key.strip()] = column.strip()
    return mapping
