"""Candidates in tables: a column that names diseases, parted by pipes, tabs, commas or
semicolons.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry, codes_in, split_entry
from medassay.kinds.diagnoses.ranked_list.outline import OutlineLine, subject_before
from medassay.kinds.diagnoses.ranked_list.subject import Subject

_CELL = re.compile(r"(?<!\\)\|")
_DIVIDER = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_NAME_COLUMN = re.compile(
    r"diagnos|diagnóst|disease|condition|disorder|\bddx\b|krankheit|erkrankung|enfermedad|"
    r"maladie|疾病|诊断|病名|differential",
    re.IGNORECASE,
)
_OTHER_COLUMN = re.compile(
    r"why|reason|support|evidence|against|argument|test|next|step|probab|likeli|score|\brank|"
    r"rationale|feature|begründ|wahrschein|razon|justific|icd|orpha|omim|code|"
    r"理由|依据|检查|概率|排名|编号|支持|feature|finding|symptom|comment|note|criteria|^#$|^n[ro°º.]*$",
    re.IGNORECASE,
)
_RANK_COLUMN = re.compile(
    r"^(?:rank\w*|#|n[ro°º.]{0,2}|no\.?|rang|platz|puesto|rango|排名|序号|编号|position|pos\.?)$",
    re.IGNORECASE,
)
_NAME_HEAD = re.compile(
    r"(?:(?:differential|most\s+likely|likely|possible|working)\s+)?(?:diagnos[ie]s|diagnos[ei]|"
    r"diagnóstic[oa]s?|diagnostics?|disease|condition|disorder|name|"
    r"disease[\s_]name|krankheit|erkrankung|enfermedad|maladie|疾病|诊断|疾病名称)",
    re.IGNORECASE,
)
_CODE_COLUMN = re.compile(r"icd|cie|cim|orpha|omim|code", re.IGNORECASE)


def tables(lines: Sequence[OutlineLine], last: int) -> Iterator[CandidateList]:
    """Yield the tables in which a column names diseases."""
    at = 0
    while at < len(lines):
        separator = _separator(lines[at].text)
        rows: list[OutlineLine] = []
        while at < len(lines) and separator and _separator(lines[at].text) == separator:
            rows.append(lines[at])
            at += 1
        if len(rows) >= 2 and (table := _table(lines, rows, separator, last)) is not None:
            yield table
        at += 0 if rows else 1


def comma_tables(lines: Sequence[OutlineLine], last: int) -> Iterator[CandidateList]:
    """Yield tables in which commas or semicolons part the cells, below a head that names
    diseases.
    """
    for at, line in enumerate(lines):
        if len(line.text) > 120:
            continue
        for separator in (",", ";"):
            if separator not in line.text:
                continue
            heads = line.text.split(separator)
            named = any(len(head.split()) <= 2 and _NAME_COLUMN.search(head) for head in heads)
            if not named:
                continue
            rows = [line]
            for below in lines[at + 1 :]:
                if separator not in below.text:
                    break
                rows.append(below)
            if len(rows) > 2 and (table := _table(lines, rows, separator, last)) is not None:
                yield table


def _table(
    lines: Sequence[OutlineLine], rows: Sequence[OutlineLine], separator: str, last: int
) -> CandidateList | None:
    """Return the list in a table, None where no column names diseases."""
    split = _pipe_cells if separator == "|" else partial(_csv_cells, separator=separator)
    heads = [cell.strip("*_ ") for cell in split(rows[0].text)]
    column, named = _name_column(heads, rows, split, piped=separator == "|")
    if column is None:
        return None
    above = subject_before(lines, rows[0].number)
    subject = Subject.DIAGNOSES if named else Subject.UNKNOWN
    if above in (Subject.EXCLUDED, Subject.INITIAL, Subject.FURTHER) or (
        above is Subject.OTHER and not named
    ):
        subject = above
    entries: list[ListEntry] = []
    cut_off = False
    for line in rows[1:]:
        if _DIVIDER.match(line.text):
            continue
        cells = split(line.text)
        entry = split_entry(cells[column]) if column < len(cells) else None
        open_cell = column == len(cells) - 1 and not line.text.rstrip().endswith("|")
        if line.number == last and (entry is None or open_cell):
            cut_off = True
        elif entry is not None:
            entries.append(_with_columns(entry, heads, cells, column))
    if not entries:
        return None
    return CandidateList(
        entries=tuple(entries),
        subject=subject,
        form="table",
        start=rows[0].number,
        strength=5,
        cut_off=cut_off,
    )


def _name_column(
    heads: Sequence[str],
    rows: Sequence[OutlineLine],
    split: Callable[[str], list[str]],
    *,
    piped: bool,
) -> tuple[int | None, bool]:
    """Return which column names diseases, None without one, and whether its head says so."""
    if not piped and (rows[0].mark is not None or not any(map(_NAME_HEAD.fullmatch, heads))):
        return None, False
    other = [bool(_OTHER_COLUMN.search(head)) for head in heads]
    for at, head in enumerate(heads):
        if _NAME_COLUMN.search(head) and not other[at]:
            return at, True
    if len(rows) < 2 or not _DIVIDER.match(rows[1].text):
        return None, False
    for at, head in enumerate(heads):
        if head and not other[at] and not _RANK_COLUMN.match(head) and _has_words(rows, split, at):
            return at, False
    return None, False


def _with_columns(
    entry: ListEntry, heads: Sequence[str], cells: Sequence[str], column: int
) -> ListEntry:
    """Return an entry with the rank and the codes that other columns give."""
    rank: int | None = None
    codes = list(entry.codes)
    for at, (head, cell) in enumerate(zip(heads, cells, strict=False)):
        if _RANK_COLUMN.match(head) and rank is None:
            rank = _whole(cell)
        elif _CODE_COLUMN.search(head) and at != column:
            codes += codes_in(cell) or codes_in(f"{head}: {cell}")
    return ListEntry(name=entry.name, rank=rank, codes=tuple(dict.fromkeys(codes)))


def _has_words(rows: Sequence[OutlineLine], split: Callable[[str], list[str]], column: int) -> bool:
    """Return whether the cells of a column hold words, and no numbers alone."""
    cells = [cells[column] for row in rows[1:] if column < len(cells := split(row.text))]
    return any(re.search(r"[^\W\d_]{3}|[\u4e00-\u9fff]", cell) for cell in cells)


def _whole(cell: str) -> int | None:
    digits = cell.strip(" *_.#º°)")
    return int(digits) if digits.isdecimal() and 0 < int(digits) <= 1000 else None


def _pipe_cells(text: str) -> list[str]:
    return [cell.strip() for cell in _CELL.split(text.strip().strip("|"))]


def _separator(text: str) -> str:
    """Return what parts the cells of a line, empty where it is no row."""
    if text.startswith("|") or text.count("|") >= 2 or ("--" in text and _DIVIDER.match(text)):
        return "|"
    return "\t" if "\t" in text and "\t" in text.strip() else ""


def _csv_cells(text: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([text], delimiter=separator), [])]
