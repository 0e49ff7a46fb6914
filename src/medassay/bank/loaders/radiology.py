"""Radiology reports, findings to impression: Open-i, verified on data.

MIMIC-III from documentation, for those who may read it.
"""

import re
from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, find_file, read_records, rows_of
from medassay.core.records.item import Bank
from medassay.errors import InputError

LEAST = 5  # characters of a reference, and of an answer
_END = re.compile(r" {5}|\t")  # what follows a section in these notes
MIMIC_IS_CREDENTIALED = (
    "MIMIC-III is patient data: PhysioNet gives it to credentialed users after training and a data"
    " use agreement (https://physionet.org/content/mimiciii/); put the file of notes (column"
    " extractive_notes_summ) into this folder, or take bank openi, which is free"
)


class _Report(msgspec.Struct):
    idx: Cell
    inputs: Cell
    target: Cell


class _Note(msgspec.Struct):
    extractive_notes_summ: Cell


def load_openi(root: Path) -> Bank:
    """Return the test reports of Open-i: findings, and the impression as reference."""
    draft = BankBuilder(
        "openi",
        licence="CC-BY-NC-ND-4.0 (as commonly given; not stated by the source)",
        source="Open-i, Indiana University chest X-rays",
        title="Open-i, findings to impression",
        limits=(
            "Many impressions are nearly the same sentence: a constant answer scores high by words."
            " De-identification left XXXX."
        ),
    )
    path = find_file(root, "test.jsonl", "*test*.jsonl")
    for row in rows_of(path, read_records(path), _Report):
        draft.text(f"openi-{row.idx}", row.inputs, row.target, least=LEAST)
    return draft.bank()


def load_mimic(root: Path) -> Bank:
    """Return the notes that have both findings and impression.

    Raises
    ------
    InputError
        Where the file is not there: it says how those who may can get it.
    """
    draft = BankBuilder(
        "mimic_repsum",
        licence="PhysioNet Credentialed Health Data License 1.5.0",
        source="MIMIC-III, radiology notes",
        title="MIMIC-III, findings to impression",
        limits=(
            "Real patients, de-identified; nothing of it may be sent to others, so its bank may not"
            " leave (may_leave = false)."
        ),
        may_leave=False,
    )
    try:
        path = find_file(root, "*test*.json*", "*test*.csv", "*.json*", "*.csv")
    except InputError:
        raise InputError(f"bank mimic_repsum: {root}: {MIMIC_IS_CREDENTIALED}") from None
    for number, row in enumerate(rows_of(path, read_records(path), _Note)):
        findings, impression = split_report(str(row.extractive_notes_summ or ""))
        if len(findings) < LEAST:
            draft.drop("no findings")
            continue
        draft.text(f"mimic-{number}", findings, impression, least=LEAST)
    return draft.bank()


def split_report(text: str) -> tuple[str, str]:
    """Return findings and impression of a note, each with its heading and up to the end of its
    section; "" where absent.

    Without a section of findings, all that stands before the impression takes its place.

    Examples
    --------
    >>> split_report("FINDINGS: Clear lungs.     IMPRESSION: No pneumonia.     DR. X")
    ('FINDINGS: Clear lungs.', 'IMPRESSION: No pneumonia.')
    """
    impression = re.search("impression", text, re.IGNORECASE)
    if impression is None:
        return "", ""
    finding = re.search("finding", text, re.IGNORECASE)
    at = impression.start()
    if finding is None:
        return text[:at].strip(), _END.split(text[at:])[0].strip()
    start = finding.start()
    ends = (at, len(text)) if start < at else (len(text), start)
    findings = _END.split(text[start : ends[0]])[0]
    concluded = _END.split(text[at : ends[1]])[0]
    if len(findings) < LEAST <= len(concluded):
        findings = text[:at]
    return findings.strip(), concluded.strip()
