"""Every parser: one line each."""

from medassay.answer.diagnoses import read_diagnoses
from medassay.answer.parse import Parser, read_choice, read_number, read_text

PARSERS: dict[str, Parser] = {
    "choice": read_choice,
    "diagnoses": read_diagnoses,
    "number": read_number,
    "text": read_text,
}
