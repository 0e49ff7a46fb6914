"""Templates and rendering: item → messages."""

from medassay.prompt.render import (
    Template,
    check_examples,
    choose_examples,
    example_turns,
    load_template,
    render,
    shown_order,
    with_evidence,
)

__all__ = [
    "Template",
    "check_examples",
    "choose_examples",
    "example_turns",
    "load_template",
    "render",
    "shown_order",
    "with_evidence",
]
