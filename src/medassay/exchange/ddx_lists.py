"""The CSV files of Kernel29 → lists with their cases: a table of labels, or raw replies of models.

A table of labels has a row for each diagnosis (`patient_id`, `model_name`, `prompt_name`,
`golden_diagnosis`, `golden_diagnosis_severity`, `rank`, `differential_diagnosis`, and the severity
and relationship that a judge gave). Files `diagnoses_<bench>_<model>.csv` hold the raw reply of a
model to each case (`GT`, `Diagnosis 1`); beside one may lie `scores_<bench>_<model>.csv` with the
rank at which somebody saw the golden diagnosis (`Score`: P1, P2 …, P0 for nowhere).
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from medassay.bank.builder import numbered_rows, read_csv, rows_of
from medassay.core.canonical import canonical
from medassay.core.records.diagnosis import RELATIONS, SEVERITY_MAPS, Diagnosis, Golden
from medassay.core.records.item_object import ItemObject
from medassay.errors import InputError
from medassay.kinds.diagnoses.grader import match_label
from medassay.kinds.diagnoses.parser import clean_name

# diagnoses_PUMCH_ADM_gpt4: the bench is in capitals, the model has a small letter somewhere.
_FILE = re.compile(
    r"diagnoses_(?P<bench>(?:[A-Z0-9]+_)*?[A-Z0-9]+)_(?P<model>(?:[a-z]|[^_]*[a-z]).*)\Z"
)
_FAILED = ("", "ERROR")  # what a row holds whose call failed
_LONGEST_NAME = 300
_LONGEST = 200_000  # characters of a reply
_MOST_RANK = 1000
_NOTHING = ("", "null", "none", "nan", "na", "n/a")


class _LabelledDiagnosis(msgspec.Struct):
    """A row of a table of labels."""

    patient_id: str
    model_name: str
    golden_diagnosis: str
    rank: str
    name: str = msgspec.field(name="differential_diagnosis")
    severity: str = msgspec.field(name="differential_diagnosis_severity_name")
    relation: str = msgspec.field(name="differential_diagnosis_semantic_relationship_name")
    bench_name: str = ""
    prompt_name: str = ""
    golden_severity: str = msgspec.field(name="golden_diagnosis_severity", default="")


class _RawReply(msgspec.Struct):
    golden: str = msgspec.field(name="GT")
    reply: str = msgspec.field(name="Diagnosis 1")


class _GivenRank(msgspec.Struct):
    score: str = msgspec.field(name="Score")


class ListedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One list: whose it is, of which case, and what came with it.

    `seen_at` is the rank at which somebody saw the golden diagnosis, 0 for nowhere.
    """

    domain: str
    model: str
    setting: str
    item: str
    text: str
    failed: bool = False
    seen_at: int | None = None
    labels: tuple[Diagnosis, ...] = ()


class Lists(msgspec.Struct, frozen=True, kw_only=True):
    """What was read: items by (domain, id), lists, how many cases had no golden diagnosis.

    `labelled` says that the lists came with labels, `several` how many cases name several golden
    diagnoses.
    """

    labelled: bool
    items: Mapping[tuple[str, str], ItemObject]
    lists: Sequence[ListedCase]
    dropped: int = 0
    several: int = 0


def list_files(path: Path) -> list[Path]:
    """Return the files that a path stands for: itself, or all tables of labels, or all raw replies,
    of a folder.

    Raises
    ------
    InputError
        When a folder holds neither, or both: their cases go by other names, so that one board
        cannot hold them.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    raw = sorted(path.glob("diagnoses_*.csv"))
    labelled = [file for file in sorted(path.glob("*labels*.csv")) if file not in raw]
    if raw and labelled:
        raise InputError(
            f"{path}: holds tables of labels ({', '.join(f.name for f in labelled)}) beside raw"
            f" replies ({', '.join(f.name for f in raw)}); import each kind by itself: name a file,"
            " or put them into folders of their own"
        )
    files = raw or labelled
    if not files:
        raise InputError(
            f"{path}: holds neither diagnoses_*.csv nor a table of labels (*labels*.csv)"
        )
    return files


def _is_labels(file: Path) -> bool:
    for row in rows_of(file, read_csv(file), _LabelledDiagnosis, _RawReply):
        return isinstance(row, _LabelledDiagnosis)
    raise InputError(f"{file.name}: no rows below the header")


def read_lists(files: Sequence[Path], golden: Golden = "one") -> Lists:
    """Return the lists in tables of labels, or in files of raw replies to the same cases.

    `golden` says which of several names counts.
    """
    kinds = {file: _is_labels(file) for file in files}
    if len({*kinds.values()}) > 1:
        tables = ", ".join(file.name for file, labelled in kinds.items() if labelled)
        raise InputError(
            f"{tables}: a table of labels among raw replies; import each kind by itself"
        )
    return _labelled(files) if kinds[files[0]] else _raw(files, golden)


def _labelled(files: Sequence[Path]) -> Lists:
    """Return the lists in tables of labels, each with its labels as given."""
    items: dict[tuple[str, str], ItemObject] = {}
    listed: dict[tuple[str, str, str, str], list[Diagnosis]] = {}
    owner: dict[tuple[str, str, str, str], str] = {}
    rows = ((file, row) for file in files for row in numbered_rows(file, _LabelledDiagnosis))
    for file, (number, row) in rows:
        where = f"{file.name} row {number}"
        domain = _checked_name(row.bench_name or "ddx", "bench_name", where)
        item: ItemObject = {
            "id": f"patient-{_checked_name(row.patient_id, 'patient_id', where)}",
            "domain": domain,
            "kind": "public",
            "answer_type": "open",
            "diagnoses": [_checked_name(row.golden_diagnosis, "golden_diagnosis", where)],
        }
        severity = _severity(row.golden_severity, where)
        if severity is not None:
            item |= {"severity": severity}
        key = (domain, str(item["id"]))
        if items.setdefault(key, item) != item:
            raise InputError(
                f"{where}: case '{row.patient_id}' has another golden diagnosis or severity in"
                " an earlier row or table"
            )
        model = _checked_name(row.model_name, "model_name", where)
        prompt = _checked_name(row.prompt_name or "zero_shot", "prompt_name", where)
        place = (domain, model, prompt, key[1])
        if owner.setdefault(place, file.name) != file.name:
            raise InputError(
                f"{where}: {owner[place]} has a list of model '{model}', prompt '{prompt}' for this"
                " case, too; expected one"
            )
        names = listed.setdefault(place, [])
        name = clean_name(row.name)
        if not name:  # a blank name is dropped; a list may be empty
            if row.relation.strip():
                raise InputError(
                    f"{where}: the label '{row.relation.strip():.40}' stands beside no diagnosis;"
                    " expected the name that was labelled"
                )
            continue
        rank = _rank(row.rank, where)
        if rank in {label.rank for label in names}:
            raise InputError(f"{where}: a second row for rank {rank} of this list")
        names.append(
            Diagnosis(
                rank=rank,
                name=name,
                relation=_relation(row.relation, where),
                relation_by="given",
                severity=_severity(row.severity, where),
                severity_by="given",
            )
        )
    lists = [
        _with_labels(place, sorted(labels, key=lambda label: label.rank))
        for place, labels in sorted(listed.items())
    ]
    return Lists(labelled=True, items=items, lists=lists)


def _with_labels(place: tuple[str, str, str, str], labels: list[Diagnosis]) -> ListedCase:
    domain, model, setting, item = place
    listed = [{"rank": label.rank, "name": label.name} for label in labels]
    text = canonical({"diagnoses": listed}).decode()
    return ListedCase(
        domain=domain, model=model, setting=setting, item=item, text=text, labels=tuple(labels)
    )


def _raw(files: Sequence[Path], which: Golden) -> Lists:
    """Return the raw replies of one or several models to the same cases."""
    items: dict[tuple[str, str], ItemObject] = {}
    lists: list[ListedCase] = []
    without: set[tuple[str, str]] = set()
    for file in files:
        named = _FILE.match(file.stem)
        domain = _checked_name(named["bench"].lower() if named else "ddx", "bench", file.name)
        model = named["model"] if named else file.stem
        rows = [*numbered_rows(file, _RawReply)]
        positions = _given_ranks(file, len(rows))
        for number, (row_number, row) in enumerate(rows):
            where = f"{file.name} row {row_number}"
            golden = _golden(row.golden, where)
            key = (domain, f"row-{number:04}")
            if not golden:
                without.add(key)
                continue
            item: ItemObject = {
                "id": key[1],
                "domain": domain,
                "kind": "public",
                "answer_type": "open",
                "diagnoses": golden if which == "any" else golden[:1],
            }
            if golden[1:]:
                item["rationale"] = f"Also recorded: {'; '.join(golden[1:])}."
            if items.setdefault(key, item) != item or key in without:
                raise InputError(f"{where}: GT differs from that of the same row in another file")
            reply = row.reply
            if len(reply) > _LONGEST:
                raise InputError(f"{where}: {len(reply)} characters; expected at most {_LONGEST}")
            lists.append(
                ListedCase(
                    domain=domain,
                    model=model,
                    setting="zero_shot",
                    item=key[1],
                    text=reply,
                    failed=reply.strip() in _FAILED,
                    seen_at=positions[number],
                )
            )
    if not lists:
        raise InputError(f"{files[0].name}: no row with a golden diagnosis")
    several = sum("rationale" in item for item in items.values())
    return Lists(labelled=False, items=items, lists=lists, dropped=len(without), several=several)


def _given_ranks(file: Path, n_rows: int) -> list[int | None]:
    """Return the ranks that somebody gave beside a file of replies, row by row; None without a
    file.

    Raises
    ------
    InputError
        When there are not as many ranks as replies: which is whose could not be told.
    """
    beside = file.with_name(file.name.replace("diagnoses_", "scores_", 1))
    if beside == file or not beside.is_file():
        return [None] * n_rows
    positions: list[int | None] = []
    for row in rows_of(beside, read_csv(beside), _GivenRank):
        match = re.fullmatch(r"P([0-9])", row.score.strip().strip('"'))
        positions.append(int(match[1]) if match else None)
    if len(positions) != n_rows:
        raise InputError(
            f"{beside.name}: {len(positions)} ranks beside {n_rows} replies in {file.name};"
            " expected one for each"
        )
    return positions


def _checked_name(text: str, column: str, where: str) -> str:
    """Return a name from a file, refused where it is none."""
    value = text.strip()
    if not value:
        raise InputError(f"{where}: '{column}' is empty; expected text")
    if len(value) > _LONGEST_NAME:
        raise InputError(
            f"{where}: '{column}' has {len(value)} characters; at most {_LONGEST_NAME}"
        )
    if value == "overall":
        raise InputError(
            f"{where}: '{column}' is 'overall', which names the ranking over all domains"
        )
    if not value.isprintable():
        raise InputError(f"{where}: '{column}' holds control characters; expected text")
    return value


def _rank(text: str, where: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text.strip()) or not 1 <= int(text) <= _MOST_RANK:
        raise InputError(f"{where}: 'rank' is '{text:.40}'; expected a whole number from 1")
    return int(text)


def _severity(text: str, where: str) -> str | None:
    return _label(text, SEVERITY_MAPS["published"].levels, "severity", where)


def _relation(text: str, where: str) -> str | None:
    return _label(text, RELATIONS, "relationship", where)


def _label(text: str, labels: Iterable[str], what: str, where: str) -> str | None:
    """Return a label, None for what says that there is none; NULL is a word in these files."""
    if text.strip().casefold() in _NOTHING:
        return None
    label = match_label(text, labels)
    if label is None:
        raise InputError(f"{where}: {what} '{text:.40}'; expected {', '.join(labels)}, or NULL")
    return label


def _golden(text: str, where: str) -> list[str]:
    """Return the names in a cell that holds a Python list; an empty list names none."""
    try:
        value = ast.literal_eval(text) if len(text) < _LONGEST else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(
        isinstance(n, str) and n.strip() and n.isprintable() for n in value
    ):
        raise InputError(f"{where}: 'GT' is '{text:.40}'; expected a list of names in brackets")
    return list(dict.fromkeys(value))
