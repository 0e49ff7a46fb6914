"""A bank for other tools: CSV, Parquet, a Hugging Face data set, tasks of lm-evaluation-harness.

Card and licence come with it.

What is private stays: a bank with a synthetic item, or one that may not leave, is refused whole.
"""

import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from medassay.bank.folder import bank_records
from medassay.core.canonical import canonical
from medassay.core.records.item import Bank
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import GateError, InputError
from medassay.report.tables import harmless
from medassay.storage.parquet import write_parquet

_PLAIN = (
    *("id", "revision", "domain", "category", "language", "answer_type", "split", "context"),
    *("question", "options", "expected", "reference", "path", "leaf", "condition", "cluster"),
    *("year", "source", "licence", "rationale"),
)
_COLUMNS = (*_PLAIN, "more")
Records = Sequence[ItemObject]


def export_bank(bank: Bank, form: str, to: Path) -> Path:
    """Write a bank in another form into a new folder, whole or not at all, and return the folder.

    Raises
    ------
    GateError
        When the bank holds a private item, or may not leave.
    InputError
        When the form is unknown, or the folder exists.
    UnavailableError
        When an extra is missing.
    """
    if form not in BANK_FORMS:
        raise InputError(f"--format '{form}': expected one of {', '.join(BANK_FORMS)}")
    records = [record for _, record in bank_records(bank)]
    private = [record["id"] for record in records if record.get("kind", "public") != "public"]
    if private or not bank.may_leave:
        why = (
            f"{len(private)} private items, first '{private[0]}'"
            if private
            else "may_leave = false"
        )
        raise GateError(
            f"bank '{bank.name}': {why}; private items are never exported, nothing was written"
        )
    if to.exists():
        raise InputError(f"{to}: exists; nothing is overwritten, choose another folder")
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
    try:
        finished = draft / "whole"
        finished.mkdir()
        BANK_FORMS[form](bank, records, finished)
        finished.rename(to)
    finally:
        shutil.rmtree(draft)
    return to


def _rows(records: Records) -> Iterator[dict[str, Any]]:
    """Yield an item a row: what a spreadsheet can hold, lists and all other fields as JSON."""
    for record in records:
        row = {key: record.get(key) for key in _PLAIN}
        if row["options"] is not None:
            row["options"] = canonical(row["options"]).decode()
        more = {k: v for k, v in record.items() if k not in (*_PLAIN, "approval")}
        # Who approved is private; that somebody did, and when, is not.
        if "approval" in record:
            more["approved"] = record["approval"].get("when", "")
        row["more"] = canonical(more).decode()
        yield row


def _card(bank: Bank, how: str) -> str:
    dropped = "".join(f"\n- left out: {n} × {why}" for why, n in bank.dropped.items())
    return (
        f"# {bank.title or bank.name}\n\n- version: {bank.version}\n- content: sha256"
        f" {bank.content_hash}\n- licence: {bank.licence}\n- items: {len(bank.items)}\n- domains:"
        f" {', '.join(bank.domains)}\n- created: {bank.created or 'unknown'}{dropped}\n\n##"
        f" Limits\n\n{bank.limits or 'None are stated.'}\n\n## Use\n\n{how}\n"
    )


def _write_card(bank: Bank, folder: Path, how: str, head: str = "") -> None:
    (folder / "README.md").write_text(head + _card(bank, how), encoding="utf-8")


def _csv(bank: Bank, records: Records, folder: Path) -> None:
    with (folder / f"{bank.name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in _rows(records):
            writer.writerow({key: harmless(value) for key, value in row.items()})
    _write_card(
        bank,
        folder,
        "One row an item; options and further fields are JSON. Cells that a spreadsheet would run"
        " begin with an apostrophe.",
    )


def _parquet(bank: Bank, records: Records, folder: Path) -> None:
    _write_parquet(records, folder / f"{bank.name}.parquet")
    _write_card(bank, folder, "One row an item; options are a list, further fields JSON.")


def _write_parquet(records: Records, to: Path) -> None:
    typed = {"revision": "BIGINT", "year": "BIGINT", "options": "VARCHAR[]"}
    types = {name: typed.get(name, "VARCHAR") for name in _COLUMNS}
    rows = (
        {**row, "options": record.get("options")}
        for row, record in zip(_rows(records), records, strict=True)
    )
    write_parquet(rows, types, to, asked_by="--format parquet or hf")


def _hugging_face(bank: Bank, records: Records, folder: Path) -> None:
    """Write a data set repository: a card with its header, and a Parquet file for each split."""
    (folder / "data").mkdir()
    splits: dict[str, list[ItemObject]] = {}
    for record in records:
        splits.setdefault(record.get("split", "test"), []).append(record)
    for split, members in splits.items():
        _write_parquet(members, folder / "data" / f"{split}-00000-of-00001.parquet")
    files = [{"split": s, "path": f"data/{s}-*.parquet"} for s in splits]
    head = {
        "license": bank.licence.lower(),
        "language": sorted({record.get("language", "en") for record in records}),
        "pretty_name": bank.title or bank.name,
        "task_categories": ["question-answering"],
        "tags": ["medical", "medassay"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    how = "`datasets.load_dataset(FOLDER)` reads it; so does the hub once the folder is uploaded."
    _write_card(bank, folder, how, f"---\n{written}---\n\n")


def _lm_eval(bank: Bank, records: Records, folder: Path) -> None:
    """Write tasks: the quiz by likelihood of its options, the open items by generation."""
    quiz = [r for r in records if "options" in r]
    texts = [r for r in records if "options" not in r and r.get("reference")]
    left_out = len(records) - len(quiz) - len(texts)
    if not quiz and not texts:
        raise InputError(
            f"bank '{bank.name}': no item has options or a reference; lm-eval asks no other ones"
        )
    named = "".join(c if c.isalnum() else "_" for c in bank.name.lower())
    tasks = []
    for kind, questions, more in (("quiz", quiz, _QUIZ), ("open", texts, _OPEN)):
        if not any(record.get("split", "test") == "test" for record in questions):
            continue
        task = f"medassay_{named}_{kind}"
        tasks.append(task)
        splits = {}
        for split in ("test", "dev"):
            docs = [_doc(record) for record in questions if record.get("split", "test") == split]
            if docs:
                splits[split] = f"{task}-{split}.jsonl"
                lines = "".join(json.dumps(doc, ensure_ascii=False) + "\n" for doc in docs)
                (folder / splits[split]).write_text(lines, encoding="utf-8")
        head = {
            "task": task,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": splits},
            "test_split": "test",
            **({"fewshot_split": "dev"} if "dev" in splits else {}),
        }
        document = {
            **head,
            **more,
            "metadata": {"version": bank.version, "sha256": bank.content_hash},
        }
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        (folder / f"{task}.yaml").write_text(text, encoding="utf-8")
    how = (
        "In this folder: `lm_eval --model hf --model_args pretrained=MODEL --include_path ."
        f" --tasks {','.join(tasks)}`."
        + (f" {left_out} items of other forms are not among them." if left_out else "")
    )
    _write_card(bank, folder, how)


def _doc(record: Mapping[str, Any]) -> dict[str, Any]:
    question = "\n\n".join(filter(None, (record.get("context"), record["question"])))
    doc = {"id": record["id"], "domain": record["domain"], "question": question}
    if "options" not in record:
        return {**doc, "answer": record["reference"]}
    letters = list(LETTERS[: len(record["options"])])
    options = "\n".join(f"{a}. {o}" for a, o in zip(letters, record["options"], strict=True))
    return {
        **doc,
        "shown": options,
        "letters": letters,
        "answer": letters.index(record["expected"]),
    }


_QUIZ: dict[str, Any] = {
    "output_type": "multiple_choice",
    "doc_to_text": "Question: {{question}}\n{{shown}}\nAnswer:",
    "doc_to_choice": "{{letters}}",
    "doc_to_target": "answer",
    "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
}
_OPEN: dict[str, Any] = {
    "output_type": "generate_until",
    "doc_to_text": "Question: {{question}}\nAnswer:",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"], "do_sample": False, "max_gen_toks": 256},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}
BANK_FORMS: dict[str, Callable[[Bank, Records, Path], None]] = {
    "csv": _csv,
    "hf": _hugging_face,
    "lm-eval": _lm_eval,
    "parquet": _parquet,
}
