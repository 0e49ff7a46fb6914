"""Templates and rendering: item → messages."""

from medassay.prompt.render import (
    Part,
    Template,
    check_examples,
    choose_examples,
    example_turns,
    load_part,
    load_template,
    render,
    shown_order,
    with_evidence,
)

__all__ = [
    "Part",
    "Template",
    "check_examples",
    "choose_examples",
    "example_turns",
    "load_part",
    "load_template",
    "render",
    "shown_order",
    "with_evidence",
]
