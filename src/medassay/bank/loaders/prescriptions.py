"""Prescriptions: which medicine fits a complaint. From documentation (the set is on a hub only).

Texts were read from photographs of handwritten prescriptions by a machine: many are garbled. Wrong
options are drawn once for each item, by its id, so that what is shown is what is scored.
"""

import ast
import random
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from medassay.bank.builder import BankBuilder, find_file, need_columns, read_records
from medassay.core.records.item import Bank

FREQUENCIES = (
    *("once a day", "twice a day", "three times a day", "four times a day", "every other day"),
    *("once a week", "at night", "before breakfast", "after food", "as needed"),
)
DURATIONS = (
    *("3 days", "5 days", "7 days", "10 days", "2 weeks", "3 weeks", "1 month", "2 months"),
    *("3 months", "6 months"),
)
_QUESTION = "A patient comes with this diagnosis or complaint: {}. What would you prescribe?"
_NOTHING = re.compile(r"^(?:|n/?a|none|not (?:specified|provided|mentioned).*)$", re.IGNORECASE)
_INDIC = re.compile("[\u0900-\u0a83\u0a85-\u0aff\u0b80-\u0bff\u0c00-\u0c7f]")
_COMPLAINTS = (
    *("chief_complaints_diagnosis", "disease_diagnosis", "Symptoms/Complaints"),
    *("chief_complaints", "diagnosis"),
)
_MEDICINES = ("medicine_details", "Medicines Prescribed")
_NAMES = ("medicine_name", "Name")
_DETAILS = (*("medicine_frequency", "medicine_dosage", "Dosage", "course_duration", "Duration"),)


def _load(root: Path, name: str, *, hard: bool) -> Bank:
    """Return complaints with the medicine prescribed among three of other patients; where it is
    hard, among medicines of the same patient, taken otherwise.
    """
    draft = BankBuilder(
        name,
        licence="unstated",
        source="prescription-full (devlocalhost)",
        title=f"Prescriptions, {'hard' if hard else 'easy'}",
        limits=(
            "Read from handwriting by a machine. Tests are of the published train split: a model"
            " may have learned them."
        ),
    )
    path = find_file(root, "*train*.json*", "*.json*", "*.csv")
    patients: dict[str, tuple[str, list[str]]] = {}
    for number, row in enumerate(read_records(path)):
        need_columns(path, row, {"results"})
        complaint, medicines = _read(row["results"])
        if not complaint:
            draft.drop("no complaint")
        elif not medicines:
            draft.drop("no medicine")
        else:
            patients[f"prescription-{number:05}"] = (complaint, medicines)
    everything = sorted(
        {medicine for _, prescribed in patients.values() for medicine in prescribed}
    )
    for item, (complaint, medicines) in patients.items():
        rng = random.Random(f"{name}\x1f{item}")
        right = rng.choice(medicines)
        wrong = (
            _otherwise(right, medicines, rng) if hard else _of_others(medicines, everything, rng)
        )
        options = [right, *wrong]
        rng.shuffle(options)
        draft.choice(
            item,
            _QUESTION.format(complaint),
            list(options),
            options.index(right) if len(set(options)) == 4 else None,
            domain=name,
        )
    return draft.bank()


load_easy = partial(_load, name="med_prescriptions_easy", hard=False)
load_hard = partial(_load, name="med_prescriptions_hard", hard=True)


def _of_others(medicines: list[str], everything: list[str], rng: random.Random) -> list[str]:
    others = [medicine for medicine in everything if medicine not in medicines]
    return rng.sample(others, min(3, len(others)))


def _otherwise(right: str, medicines: list[str], rng: random.Random) -> list[str]:
    """Return three medicines of the same patient, each with a frequency and a duration that are not
    its own.
    """
    names = [medicine.partition(",")[0] for medicine in medicines if medicine != right] or [
        right.partition(",")[0]
    ]
    rng.shuffle(names)
    orders: list[str] = []
    while len(orders) < 3:
        name = names[len(orders) % len(names)]
        order = f"{name}, {rng.choice(FREQUENCIES)}, {rng.choice(DURATIONS)}"
        if order not in medicines and order not in orders:
            orders.append(order)
    return orders


def _read(value: Any) -> tuple[str, list[str]]:
    """Return complaint and medicines of a record, which holds them as the text of a Python
    dictionary.
    """
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return "", []
    if not isinstance(value, dict):
        return "", []
    flat = {**value, **_part(value, "procedure"), **_part(value, "prescription_details")}
    complaint = next((text for key in _COMPLAINTS if (text := _plain(flat.get(key)))), "")
    listed: list[Any] = next(
        (flat[key] for key in _MEDICINES if isinstance(flat.get(key), list)), []
    )
    medicines = [text for entry in listed if isinstance(entry, dict) and (text := _medicine(entry))]
    return complaint, list(dict.fromkeys(medicines))


def _part(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _medicine(record: Mapping[str, Any]) -> str:
    name = next((text for key in _NAMES if (text := _plain(record.get(key)))), "")
    details = [text.lower() for key in _DETAILS if (text := _plain(record.get(key)))]
    return ", ".join([name, *details]) if name and not name.startswith("[") else ""


def _plain(value: Any) -> str:
    """Return a text on one line.

    "" where it says nothing, or in a script that the task leaves out.
    """
    if isinstance(value, list):
        value = ", ".join(str(element) for element in value)
    text = " ".join(str(value or "").split())
    return "" if _NOTHING.match(text) or _INDIC.search(text) else text
