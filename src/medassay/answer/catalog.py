"""Every parser: one line each."""

from medassay.answer.diagnoses import read_diagnoses
from medassay.answer.parse import Parser, paragraph, read_choice, read_number, read_text
from medassay.answer.record import read_record

PARSERS: dict[str, Parser] = {
    "choice": read_choice,
    "diagnoses": read_diagnoses,
    "number": read_number,
    "paragraph": paragraph(),
    "paragraph_10": paragraph(10),
    "paragraph_5": paragraph(5),
    "record": read_record,
    "text": read_text,
}
