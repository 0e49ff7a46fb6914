"""One reply read as a run reads it: the door for scripts and notebooks."""

from typing import get_args

from msgspec.structs import replace

from medassay.core.parser import Extraction
from medassay.core.records.answer import Answer
from medassay.core.records.completion import Completion, Finish
from medassay.core.records.item import Item
from medassay.core.records.target import Form
from medassay.errors import InputError
from medassay.kinds.catalog import OWN_TASKS, PARSERS, TASKS
from medassay.kinds.read_answer import prompt_as_shown, read_answer

# The parser by which each form of item is read where a task does not say otherwise: that of the
# task by which such items are asked, else of the first one which takes them.
_FIRST = {form: task for task in reversed(TASKS.values()) for form in task.readers}
PARSER_OF: dict[Form, str] = {
    form: parser
    for form, task in (_FIRST | {f: TASKS[name] for f, name in OWN_TASKS.items()}).items()
    if (parser := task.parsers.get(form))
}


def read(
    item: Item,
    text: str,
    *,
    finish: Finish = "stop",
    letters: str | None = None,
    extraction: Extraction = "standard",
) -> Answer:
    """Return what a reply to an item says: its value, outcome and reason, and of diagnoses their
    codes.

    Parameters
    ----------
    item : the question; its form decides how the reply is read
    text : the reply, whole
    finish : why it ended, as the endpoint says: "stop", "length" (the token limit), "refusal" or
        "other"
    letters : of a choice, the letters as they were shown; default: those of the item's options.
        The value is a letter as shown: where options were shuffled, that is not the bank's. There
        give an item with its options as they were shown, since the text of one may be read, too
    extraction : "paper" reads letters and records by the rules of the published studies

    Returns
    -------
    Answer
        `value` is a letter, a number, the text, JSON of the ranked names or of the record; None
        where nothing was read. `outcome` is `answered`, `unparsed`, `refused` or `truncated`;
        `reason` names the rule or form by which the value was found, or why there is none.

    Raises
    ------
    InputError
        When no reply to such an item is read (imported scores, withheld items), or `finish` is
        unknown.

    Examples
    --------
    >>> from medassay import Diagnoses, Item, read
    >>> item = Item(id="q", domain="d", question="Which?", target=Diagnoses(diagnoses=()))
    >>> answer = read(item, "1. Gout (ICD-10 M10.9): painful")
    >>> answer.value
    '[{"codes":["ICD-10:M10.9"],"name":"Gout","rank":1}]'
    >>> answer.outcome, answer.reason, answer.codes
    ('answered', 'lines', (('ICD-10:M10.9',),))
    """
    if item.form not in PARSER_OF:
        forms = ", ".join(PARSER_OF)
        raise InputError(
            f"item '{item.id}': form '{item.form}' has no reply to read; expected one of {forms}"
        )
    if extraction not in get_args(Extraction):
        raise InputError(f"extraction '{extraction}'; expected {', '.join(get_args(Extraction))}")
    if finish not in get_args(Finish):
        raise InputError(f"finish '{finish}'; expected one of {', '.join(get_args(Finish))}")
    prompt = prompt_as_shown(item)
    if letters is not None:
        prompt = replace(prompt, letters=letters)
    completion = Completion(text=text, finish=finish)
    return read_answer(item, prompt, completion, PARSERS[PARSER_OF[item.form]], extraction)
