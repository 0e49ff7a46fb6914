"""Every parser: one line each."""

from medassay.answer.parse import Parser, read_choice, read_number, read_text

PARSERS: dict[str, Parser] = {
    "choice": read_choice,
    "number": read_number,
    "text": read_text,
}
