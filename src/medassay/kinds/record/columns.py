"""Health records in a terminal: likeness and medication beside each other."""

from collections.abc import Iterator, Sequence

from medassay.core.records.estimate import percent_text
from medassay.core.records.health_record import DRUG_DETAILS, GOING_ON, LEAVES
from medassay.core.records.statistics import Statistics
from medassay.core.table import Table
from medassay.kinds.record.row import RecordRow

_UNSCORED = (
    "No report has a reference record: replies are read and nothing is scored; `medassay bank"
    " silver` has a model write references."
)


def tables(statistics: Statistics, domain: str) -> Iterator[Table]:
    """Yield what stands beside a ranking of health records."""
    rows = statistics.rows_as(RecordRow, domain)
    graphs = list(rows[0].record.graphs)
    references = rows[0].record.references
    cells = []
    for row in rows:
        record, counted = row.record, row.record.counted
        cells.append(
            [
                *row.key,
                *(percent_text(record.graphs[graph].score) for graph in graphs),
                percent_text(record.similarity),
                f"{percent_text(record.medication)} {counted.correct} of {counted.total}",
                str(counted.stopped_as_current),
                str(counted.lost),
                str(counted.invented),
                percent_text(record.read),
                f"{row.outcomes['truncated']} of {sum(row.outcomes.values())}",
            ]
        )
    graph_names = [graph.replace("_", " ") for graph in graphs]
    yield Table(
        rows=cells,
        text=("model", "setting", *graph_names, "JSON similarity", "drugs in the right list"),
        numbers=("stopped as current", "lost", "invented", "with JSON", "cut off"),
        title=(
            "health records over all reports, % with 95 % intervals; references:"
            f" {references.gold} gold, {references.silver} silver"
        ),
    )
    if rows[0].record.tells_leaves:
        yield _details(rows)
    if not any(row.record.references.gold or row.record.references.silver for row in rows):
        yield Table(notes=(_UNSCORED,))


def _details(rows: Sequence[RecordRow]) -> Table:
    """Return what is lost and invented, and how dose, unit, route and schedule of the common drugs
    agree.
    """
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
    table = []
    for row in rows:
        drugs = row.record.drugs
        cells = [*row.key, *(percent_text(row.record.estimate(name)) for name in LEAVES)]
        if drugs is not None:
            counted = drugs.counted
            cells += [percent_text(drugs.estimate(name)) for name in DRUG_DETAILS]
            cells += [
                f"{counted.as_current} of {counted.matched} matched",
                percent_text(drugs.estimate(GOING_ON)),
                str(counted.perhaps),
                str(counted.old_dose),
            ]
        table.append(cells)
    return Table(
        rows=table,
        text=("model", "setting", *heads),
        title="leaves lost and invented, and details of drugs that agree, % with 95 % intervals",
    )
