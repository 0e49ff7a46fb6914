"""Raw quiz predictions of HealthBranches → a sealed run: replies read by our parser, scored against
the questions' keys.

A folder holds `questions.csv` (row, question, options, correct_option, condition …) and
`raw_predictions.csv` (row, run, condition_setting, model, raw_prediction). The authors' further
runs stand in settings of their own, `zero_shot:<run>`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from medassay.bank.builder import numbered_rows, read_csv, rows_of
from medassay.bank.check import build_item
from medassay.bank.loaders.healthbranches import load
from medassay.bank.serialize import item_record
from medassay.core.canonical import content_hash, sha256_hex, short_hash
from medassay.core.files import write_lines
from medassay.core.json import parse_json
from medassay.core.parser import Extraction
from medassay.core.records.item import Item
from medassay.errors import InputError
from medassay.exchange.imported import (
    ImportSource,
    file_digest,
    import_manifest,
    imported_answer,
    imported_trial,
    new_run,
    seal_import,
    write_trials,
)
from medassay.kinds.choice.tasks import CLOSED
from medassay.storage.run import Run

QUESTIONS, PREDICTIONS = "questions.csv", "raw_predictions.csv"
_MAIN = "quiz"  # the run whose settings stand without its name
_SETTINGS = {"zero_shot": "zero_shot", "zero_shot_rag": "rag"}
_CATEGORY = re.compile(r"[\w-]([\w -]{0,78}[\w-])?")
_LONGEST = 100_000  # characters of a reply

Key = tuple[str, str, str, str]  # domain, model, setting, item


class _QuestionRow(msgspec.Struct):
    row: str


class _RawPrediction(_QuestionRow):
    run: str
    condition_setting: str
    model: str
    raw_prediction: str


def import_healthbranches(
    folder: Path,
    *,
    runs: Path | None = None,
    to: Path | None = None,
    extraction: str = "standard",
) -> Run:
    """Return the sealed run made from a folder of raw predictions.

    Questions whose options cannot be read are left out, for all models, and counted.

    Parameters
    ----------
    runs : folder for the new run; `to` names the run's own folder instead
    extraction : "standard" or "paper", the rules by which letters are read

    Raises
    ------
    InputError
        Naming the file, the row and what was expected; nothing is left half-written.
    """
    if extraction not in get_args(Extraction):
        raise InputError(
            f"extraction '{extraction}'; expected one of {', '.join(get_args(Extraction))}"
        )
    mode: Extraction = "paper" if extraction == "paper" else "standard"
    digests = [file_digest(folder / name) for name in (QUESTIONS, PREDICTIONS)]
    digests += [file_digest(path) for path in _category_files(folder)]
    source = ImportSource(
        file=folder / PREDICTIONS,
        digest=sha256_hex("".join(digests).encode()),
        task=CLOSED.name,
        licence="CC-BY-NC-SA-4.0",
        limits=(
            "Imported predictions: how they were asked for is known to their makers. Non-commercial"
            " licence."
        ),
    )
    return new_run(
        digests if mode == "standard" else [*digests, mode],
        lambda place, name: _fill(place, folder, source, name, mode),
        runs=runs,
        to=to,
    )


def _items(folder: Path) -> tuple[dict[str, Item], dict[str, int]]:
    """Return the questions by row, their categories as domains, and what was left out."""
    bank = load(folder / QUESTIONS)
    categories = _categories(folder)
    items: dict[str, Item] = {}
    for item in bank.items:
        record = item_record(item)
        category = categories.get((item.condition or "").casefold())
        if category:
            record["domain"] = category
        items[item.id.removeprefix("hb-")] = build_item(record)
    return items, dict(bank.dropped)


def _category_files(folder: Path) -> list[Path]:
    """Return the file of categories, in the folder or above it, if there is one."""
    candidates = (place / "category.json" for place in (folder, folder.parent))
    return [path for path in candidates if path.is_file()][:1]


def _categories(folder: Path) -> dict[str, str]:
    """Return condition → category, as far as there is a file that says so."""
    for path in _category_files(folder):
        categories = parse_json(path.read_bytes(), path.name)
        named = isinstance(categories, dict) and all(
            isinstance(category, str) and _CATEGORY.fullmatch(category)
            for category in categories.values()
        )
        if not named:
            raise InputError(
                f'{path.name}: expected {{"condition": "category", …}}, categories of letters,'
                ' digits, "_", "-" and blanks'
            )
        return {name.casefold(): category for name, category in categories.items()}
    return {}


def _predictions(folder: Path, items: Mapping[str, Item]) -> dict[Key, tuple[Item, str]]:
    row_names = {
        question.row
        for question in rows_of(folder / QUESTIONS, read_csv(folder / QUESTIONS), _QuestionRow)
    }
    predictions: dict[Key, tuple[Item, str]] = {}
    for number, row in numbered_rows(folder / PREDICTIONS, _RawPrediction):
        where = f"{PREDICTIONS} row {number}"
        setting = _SETTINGS.get(row.condition_setting)
        if setting is None or not row.model:
            settings_known = ", ".join(_SETTINGS)
            raise InputError(
                f"{where}: expected a model and a condition_setting of {settings_known}"
            )
        item = items.get(row.row)
        if row.row not in row_names:
            raise InputError(f"{where}: row '{row.row}' is not among those of {QUESTIONS}")
        if item is None:  # its options cannot be read
            continue
        if len(row.raw_prediction) > _LONGEST:
            raise InputError(f"{where}: 'raw_prediction' is longer than {_LONGEST} characters")
        setting_name = setting if row.run == _MAIN else f"{setting}:{row.run}"
        key = (item.domain, row.model, setting_name, item.id)
        if key in predictions:
            raise InputError(f"{where}: a second prediction of {row.model} for row {row.row}")
        predictions[key] = (item, row.raw_prediction)
    if not predictions:
        raise InputError(f"{PREDICTIONS}: no predictions")
    return predictions


def _fill(place: Path, folder: Path, source: ImportSource, name: str, mode: Extraction) -> None:
    items, dropped = _items(folder)
    predictions = _predictions(folder, items)
    items_kept = sorted({item.id: item for item, _ in predictions.values()}.values(), key=_place)
    write_lines(place / "items.jsonl", map(item_record, items_kept))
    write_trials(place, _trials(predictions, mode))
    manifest = import_manifest(
        replace(source, forms={item.form for item in items_kept}),
        domains=sorted({item.domain for item in items_kept}),
        models=sorted({model for _, model, _, _ in predictions}),
        settings=sorted({setting for _, _, setting, _ in predictions}),
        n_items=len(items_kept),
        content=content_hash(item_record(item) for item in items_kept),
        dropped=dropped,
    )
    if mode != "standard":  # other rules make another series
        manifest["plan"]["extraction"] = mode
        manifest["methodology"] = short_hash([manifest["methodology"], mode])
    seal_import(place, name, manifest, CLOSED)


def _place(item: Item) -> tuple[str, str]:
    return item.domain, item.id


def _trials(
    predictions: Mapping[Key, tuple[Item, str]], mode: Extraction
) -> Iterator[dict[str, Any]]:
    for (domain, model, setting, name), (item, text) in sorted(
        predictions.items(), key=lambda pair: pair[0]
    ):
        answer = imported_answer(item, text, "choice", mode)
        place = (domain, model, setting, "solo", name, 0)
        yield imported_trial(place, text, answer.outcome, answer.value, answer.reason)
