"""Every parser: one line each, with its revision."""

from medassay.core.parser import Parser, whichever_end
from medassay.kinds.choice.parser import read_choice
from medassay.kinds.diagnoses.parser import read_diagnoses
from medassay.kinds.pattern.parser import read_number
from medassay.kinds.record.parser import read_record, read_record_text
from medassay.kinds.reference.parser import paragraph, read_text

PARSERS: dict[str, Parser] = {
    parser.name: parser
    for parser in (
        Parser("choice", whichever_end(read_choice), revision=1),
        Parser("diagnoses", read_diagnoses, revision=1),
        Parser("number", whichever_end(read_number), revision=1),
        Parser("paragraph", whichever_end(paragraph()), revision=1),
        Parser("paragraph_10", whichever_end(paragraph(10)), revision=1),
        Parser("paragraph_5", whichever_end(paragraph(5)), revision=1),
        Parser("record", read_record, revision=1),
        Parser("record_text", read_record_text, revision=1),
        Parser("text", whichever_end(read_text), revision=1),
    )
}
