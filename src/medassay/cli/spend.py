"""`medassay spend [WORKSPACE]`."""

from enum import StrEnum

import typer

from medassay.cli.output import out
from medassay.core.table import Table


class By(StrEnum):
    """What the sums are told by."""

    model = "model"
    run = "run"
    month = "month"


def command(
    workspace: str = typer.Argument(
        ".",
        help="The folder of runs/, responses/ and spend/, or an address as s3://bucket/work.",
    ),
    by: By = typer.Option(
        By.run, help="One row for each run (or study, or workshop), model or month."
    ),
) -> None:
    """Say what a workspace has cost: requests, tokens and money, as its spend journal holds
    them.
    """
    from medassay.runner.spending import spent_in_all
    from medassay.storage.spend import bounds_of, summed

    spent, folder = spent_in_all(workspace)
    rows = summed(spent, by.value)
    bounds = bounds_of(folder).to_dict()
    cells = []
    for row in rows:
        name = f"{row.name} (estimated)" if row.estimated else row.name
        amount, open_amount = row.amount, row.open
        open_text = (
            f"{open_amount.calls:,} requests, {open_amount.money:.4f}" if open_amount.calls else ""
        )
        cells.append((name, f"{amount.calls:,}", f"{amount.tokens:,}", row.spent_text, open_text))
    numbers = ("requests", "tokens", "money", "of it open")
    table = Table(rows=cells, text=(by.value,), numbers=numbers)
    out.tell(
        {"by": by.value, "rows": rows, "bounds": bounds},
        table if rows else "nothing was spent here",
    )
    if not rows:
        return
    if any(row.open.calls for row in rows):
        out.say(
            "open: requests that timed out, lost their connection or came back without their usage,"
            " at their upper bound, since vendors bill what was generated for them"
        )
    for name, bound in bounds.items():
        out.say(f"bound of the workspace, {name}: {bound:g} (medassay.toml)")
