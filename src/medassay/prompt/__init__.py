"""Templates and rendering: item → messages."""

from medassay.prompt.render import (
    PromptPart,
    Template,
    check_examples,
    choose_examples,
    example_turns,
    id_with_evidence,
    load_part,
    load_template,
    render,
    shown_order,
)

__all__ = [
    "PromptPart",
    "Template",
    "check_examples",
    "choose_examples",
    "example_turns",
    "id_with_evidence",
    "load_part",
    "load_template",
    "render",
    "shown_order",
]
