"""A bank for other tools: CSV, Parquet, a Hugging Face data set, tasks of lm-evaluation-harness.

Card and licence come with it.

What is private stays: a bank with a synthetic item, or one that may not leave, is refused whole.
"""

import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from medassay.bank.folder import bank_records
from medassay.core.canonical import canonical
from medassay.core.records.item import Bank, Item
from medassay.core.records.target import Choice
from medassay.errors import GateError, InputError
from medassay.report.tables import harmless
from medassay.storage.parquet import write_parquet

_PLAIN = (
    *("id", "revision", "domain", "category", "language", "answer_type", "split", "context"),
    *("question", "options", "expected", "reference", "path", "leaf", "condition", "cluster"),
    *("year", "source", "licence", "rationale"),
)
_COLUMNS = (*_PLAIN, "more")


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
    private = [item.id for item in bank.items if item.kind != "public"]
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
        BANK_FORMS[form](bank, finished)
        finished.rename(to)
    finally:
        shutil.rmtree(draft)
    return to


def _rows(bank: Bank, split: str = "") -> Iterator[dict[str, Any]]:
    """Yield an item a row: its fields as the file has them, options as a list, and all that no
    column is for as JSON; of one split alone where it is named.
    """
    for item, record in bank_records(bank):
        if split not in ("", item.split):
            continue
        more = {k: v for k, v in record.items() if k not in (*_PLAIN, "approval")}
        # Who approved is private; that somebody did, and when, is not.
        if "approval" in record:
            more["approved"] = record["approval"].get("when", "")
        yield {**{key: record.get(key) for key in _PLAIN}, "more": canonical(more).decode()}


def _write_card(bank: Bank, folder: Path, how: str, head: str = "") -> None:
    dropped = "".join(f"\n- left out: {n} × {why}" for why, n in bank.dropped.items())
    card = (
        f"# {bank.title or bank.name}\n\n- version: {bank.version}\n- content: sha256"
        f" {bank.content_hash}\n- licence: {bank.licence}\n- items: {len(bank.items)}\n- domains:"
        f" {', '.join(bank.domains)}\n- created: {bank.created or 'unknown'}{dropped}\n\n##"
        f" Limits\n\n{bank.limits or 'None are stated.'}\n\n## Use\n\n{how}\n"
    )
    (folder / "README.md").write_text(head + card, encoding="utf-8")


def _csv(bank: Bank, folder: Path) -> None:
    with (folder / f"{bank.name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in _rows(bank):
            writer.writerow({key: harmless(_cell(value)) for key, value in row.items()})
    _write_card(
        bank,
        folder,
        "One row an item; options and further fields are JSON. Cells that a spreadsheet would run"
        " begin with an apostrophe.",
    )


def _cell(value: Any) -> Any:
    return canonical(value).decode() if isinstance(value, list) else value


def _parquet(bank: Bank, folder: Path) -> None:
    _write_parquet(_rows(bank), folder / f"{bank.name}.parquet")
    _write_card(bank, folder, "One row an item; options are a list, further fields JSON.")


def _write_parquet(rows: Iterator[dict[str, Any]], to: Path) -> None:
    typed = {"revision": "BIGINT", "year": "BIGINT", "options": "VARCHAR[]"}
    types = {name: typed.get(name, "VARCHAR") for name in _COLUMNS}
    write_parquet(rows, types, to, asked_by="--format parquet or hf")


def _hugging_face(bank: Bank, folder: Path) -> None:
    """Write a data set repository: a card with its header, and a Parquet file for each split."""
    (folder / "data").mkdir()
    splits = [*dict.fromkeys(item.split for item in bank.items)]
    for split in splits:
        _write_parquet(_rows(bank, split), folder / "data" / f"{split}-00000-of-00001.parquet")
    files = [{"split": s, "path": f"data/{s}-*.parquet"} for s in splits]
    head = {
        "license": bank.licence.lower(),
        "language": sorted({item.language for item in bank.items}),
        "pretty_name": bank.title or bank.name,
        "task_categories": ["question-answering"],
        "tags": ["medical", "medassay"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    how = "`datasets.load_dataset(FOLDER)` reads it; so does the hub once the folder is uploaded."
    _write_card(bank, folder, how, f"---\n{written}---\n\n")


def _lm_eval(bank: Bank, folder: Path) -> None:
    """Write tasks: the quiz by likelihood of its options, the open items by generation."""
    quiz = [item for item in bank.items if item.options]
    texts = [item for item in bank.items if not item.options and item.reference]
    left_out = len(bank.items) - len(quiz) - len(texts)
    if not quiz and not texts:
        raise InputError(
            f"bank '{bank.name}': no item has options or a reference; lm-eval asks no other ones"
        )
    if keyless := [item.id for item in quiz if not item.target_text]:
        raise InputError(
            f"bank '{bank.name}': item '{keyless[0]:.60}' has options and no key; lm-eval needs the"
            " key of each"
        )
    named = "".join(c if c.isalnum() else "_" for c in bank.name.lower())
    tasks = []
    for kind, questions, more in (("quiz", quiz, _QUIZ), ("open", texts, _OPEN)):
        if not any(item.split == "test" for item in questions):
            continue
        task = f"medassay_{named}_{kind}"
        tasks.append(task)
        splits = {}
        for split in ("test", "dev"):
            docs = [_doc(item) for item in questions if item.split == split]
            if docs:
                splits[split] = name = f"{task}-{split}.jsonl"
                lines = "".join(json.dumps(doc, ensure_ascii=False) + "\n" for doc in docs)
                (folder / name).write_text(lines, encoding="utf-8")
        document = {
            "task": task,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": splits},
            "test_split": "test",
            **({"fewshot_split": "dev"} if "dev" in splits else {}),
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


def _doc(item: Item) -> dict[str, Any]:
    question = "\n\n".join(filter(None, (item.context, item.question)))
    doc = {"id": item.id, "domain": item.domain, "question": question}
    target = item.target
    if not isinstance(target, Choice):
        return {**doc, "answer": item.reference}
    options = "\n".join(f"{a}. {o}" for a, o in zip(target.letters, target.options, strict=True))
    return {**doc, "shown": options, "letters": [*target.letters], "answer": target.place}


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
BANK_FORMS: dict[str, Callable[[Bank, Path], None]] = {
    "csv": _csv,
    "hf": _hugging_face,
    "lm-eval": _lm_eval,
    "parquet": _parquet,
}
