"""Health records in a terminal: likeness and medication beside each other."""

from collections.abc import Sequence
from typing import Any

from medassay.cli.output import out, visible


def print_records(rows: Sequence[dict[str, Any]]) -> None:
    """Print what stands beside the ranking of health records."""
    from rich.markup import escape
    from rich.table import Table

    from medassay.core.records.leaderboard import share_text

    graphs = list(rows[0]["record"]["graphs"])
    references = rows[0]["record"]["references"]
    table = Table(
        title=(
            "health records over all reports, % with 95 % intervals; references:"
            f" {references['gold']} gold, {references['silver']} silver"
        ),
        title_justify="left",
    )
    for heading in ("model", "setting"):
        table.add_column(heading, overflow="fold")
    for heading in (*graphs, "JSON similarity", "drugs in the right list"):
        table.add_column(heading.replace("_", " "), overflow="fold")
    for heading in ("stopped as current", "lost", "invented", "with JSON", "cut off"):
        table.add_column(heading, justify="right")
    for row in rows:
        record, counted = row["record"], row["record"]["counted"]
        cells = [
            row["model"],
            row["setting"],
            *(share_text(record["graphs"][graph]["score"]) for graph in graphs),
            share_text(record["similarity"]),
            f"{share_text(record['medication'])} {counted['correct']} of {counted['total']}",
            *(str(counted[name]) for name in ("stopped_as_current", "lost", "invented")),
            share_text(record["read"]),
            f"{row['outcomes']['truncated']} of {sum(row['outcomes'].values())}",
        ]
        table.add_row(*(escape(visible(cell)) for cell in cells))
    out.console().print(table)
    if "precision" in rows[0]["record"]:
        _print_details(rows)
    if not any(row["record"]["references"][name] for row in rows for name in ("gold", "silver")):
        out.result(
            "No report has a reference record: replies are read and nothing is scored; `medassay"
            " bank silver` has a model write references."
        )


def _print_details(rows: Sequence[dict[str, Any]]) -> None:
    """Print what is lost and invented, and how dose, unit, route and schedule of the common drugs
    agree.
    """
    from rich.markup import escape
    from rich.table import Table

    from medassay.core.records.health_record import DRUG_DETAILS, GOING_ON, LEAVES
    from medassay.core.records.leaderboard import share_text

    heads = [
        "precision",
        "F1",
        "lost",
        "invented",
        *DRUG_DETAILS,
        "stopped, as current",
        "share that goes on",
        "perhaps",
        "old dose",
    ]
    table = Table(
        title="leaves lost and invented, and details of drugs that agree, % with 95 % intervals",
        title_justify="left",
    )
    for heading in ("model", "setting", *heads):
        table.add_column(heading, overflow="fold")
    for row in rows:
        record = row["record"]
        drugs = record.get("drugs")
        cells = [row["model"], row["setting"], *(share_text(record[name]) for name in LEAVES)]
        if drugs is not None:
            counted = drugs["counted"]
            cells += [share_text(drugs[name]) for name in DRUG_DETAILS]
            cells += [
                f"{counted['as_current']} of {counted['matched']} matched",
                share_text(drugs[GOING_ON]),
                str(counted["perhaps"]),
                str(counted["old_dose"]),
            ]
        table.add_row(*(escape(visible(cell)) for cell in cells))
    out.console().print(table)
