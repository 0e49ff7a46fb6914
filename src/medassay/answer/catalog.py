"""Every parser: one line each."""

from medassay.answer.diagnoses import read_diagnoses
from medassay.answer.parse import (
    Parser,
    paragraph,
    read_choice,
    read_number,
    read_text,
    whichever_end,
)
from medassay.answer.record import read_record, read_record_text

PARSERS: dict[str, Parser] = {
    "choice": whichever_end(read_choice),
    "diagnoses": read_diagnoses,
    "number": whichever_end(read_number),
    "paragraph": whichever_end(paragraph()),
    "paragraph_10": whichever_end(paragraph(10)),
    "paragraph_5": whichever_end(paragraph(5)),
    "record": read_record,
    "record_text": read_record_text,
    "text": whichever_end(read_text),
}
