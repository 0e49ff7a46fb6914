"""MTSamples: which of forty specialties a transcribed report belongs to.

Verified on data (an excerpt of thirty).
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, find_file, read_csv, rows_of
from medassay.core.records.item import Bank

SPECIALTIES = (
    "Allergy / Immunology",
    "Autopsy",
    "Bariatrics",
    "Cardiovascular / Pulmonary",
    "Chiropractic",
    "Consult - History and Phy.",
    "Cosmetic / Plastic Surgery",
    "Dentistry",
    "Dermatology",
    "Diets and Nutritions",
    "Discharge Summary",
    "Emergency Room Reports",
    "Endocrinology",
    "ENT - Otolaryngology",
    "Gastroenterology",
    "General Medicine",
    "Hematology - Oncology",
    "Hospice - Palliative Care",
    "IME-QME-Work Comp etc.",
    "Lab Medicine - Pathology",
    "Letters",
    "Nephrology",
    "Neurology",
    "Neurosurgery",
    "Obstetrics / Gynecology",
    "Office Notes",
    "Ophthalmology",
    "Orthopedic",
    "Pain Management",
    "Pediatrics - Neonatal",
    "Physical Medicine - Rehab",
    "Podiatry",
    "Psychiatry / Psychology",
    "Radiology",
    "Rheumatology",
    "Sleep Medicine",
    "SOAP / Chart / Progress Notes",
    "Speech - Language",
    "Surgery",
    "Urology",
)
_QUESTION = f"Which medical specialty is this text about? One of: {'; '.join(SPECIALTIES)}."


class _Transcription(msgspec.Struct):
    medical_specialty: str
    transcription: str


def load(root: Path) -> Bank:
    """Return the reports that have a text and a known specialty."""
    draft = BankBuilder(
        "mtsamples",
        licence="unstated",
        source="MTSamples, transcribed sample reports",
        title="Medical transcriptions, forty specialties",
        limits=(
            "Specialties are mixed with kinds of documents (Letters, Discharge Summary), so labels"
            " overlap."
        ),
    )
    path = find_file(root, "mtsamples.csv", "*transcriptions*.csv", "*.csv")
    keys = {name.casefold(): at for at, name in enumerate(SPECIALTIES)}
    for number, row in enumerate(rows_of(path, read_csv(path), _Transcription)):
        text = row.transcription.strip()
        if not text:
            draft.drop("empty text")
            continue
        draft.choice(
            f"mtsamples-{number:04}",
            _QUESTION,
            list(SPECIALTIES),
            keys.get(row.medical_specialty.strip().casefold()),
            domain="mtsamples",
            context=text,
        )
    return draft.bank()
