"""The rules of ranked diagnoses, given in one option: `k=4,x0=0.2,semantic_max=published`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from medassay.cli.options import listed
from medassay.errors import UsageError

if TYPE_CHECKING:  # plans bring pydantic, which --help need not wait for
    from medassay.core.records.plan import DdxRules

HELP = "preset=easy|medium|hard, or k=… and x0=…; semantic_max=16|published"
SCORING = ("rank_limit", "unjudged")


def read_rules(
    text: str, start: "DdxRules | None" = None, *, names: Sequence[str] = ()
) -> "DdxRules":
    """Return rules with what a command line gives in the place of those to start from.

    `names` are the rules that can be given; default: those that leave scores as they are.

    Raises
    ------
    UsageError
        Naming the rule, and what was expected.
    """
    from pydantic import ValidationError

    from medassay.core.record_check import first_wrong
    from medassay.core.records.plan import AGGREGATING, DdxRules, rules_from_dict

    names = names or AGGREGATING
    values: dict[str, Any] = {}
    for part in listed(text):
        name, _, value = part.partition("=")
        if name not in names or not value:
            raise UsageError(f"--rules: '{part}'; expected name=value of {', '.join(names)}")
        try:
            values[name] = int(value) if name == "rank_limit" else float(value)
        except ValueError:
            values[name] = value
    if "preset" in values and (conflicting := {"k", "x0"} & values.keys()):
        raise UsageError(
            f"--rules: preset={values['preset']} beside {' and '.join(sorted(conflicting))}; a"
            " preset stands for both: give the one or the other"
        )
    if "preset" in values:
        values |= {"k": None, "x0": None}  # a preset leads again
    try:
        rules = rules_from_dict({**(start or DdxRules()).to_dict(), **values})
    except ValidationError as error:
        place, message = first_wrong(error, "rules")
        raise UsageError(f"--rules: '{place}': {message}") from None
    if (problem := rules.problem()) is not None:
        raise UsageError(f"--rules: {problem}")
    return rules
