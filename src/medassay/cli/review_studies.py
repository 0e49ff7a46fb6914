"""`medassay review study …`: list, assign, close, and what is due again."""

import sys

import msgspec
import typer

from medassay.cli.options import group
from medassay.cli.output import out
from medassay.cli.review_store import DATABASE, WHO, named_study, opened_database
from medassay.core.clock import now
from medassay.errors import UsageError

study = group("Studies.")


class StudyLine(msgspec.Struct, frozen=True, kw_only=True):
    """A study with its progress, in reviews."""

    study: str
    form: str
    entries: int
    done: int
    assigned: int
    closed_at: str | None

    def __str__(self) -> str:
        state = f"closed {self.closed_at[:10]}" if self.closed_at else "open"
        return (
            f"{self.study}  [{self.form}, {state}]  {self.entries} entries, {self.done} of"
            f" {self.assigned} reviews"
        )


@study.command("list")
def list_studies(database: str = DATABASE) -> None:
    """Print the studies with their progress."""
    with opened_database(database) as opened:
        from medassay.review.store import reading
        from medassay.review.store.schema import Study

        rows: list[StudyLine] = []
        with opened.read() as db:
            for study in db.query(Study).order_by(Study.id):
                progress = reading.progress_of(db, study.id)
                rows.append(
                    StudyLine(
                        study=study.id,
                        form=study.form,
                        entries=len(reading.entries_of(db, study.id)),
                        done=sum(row.done for row in progress),
                        assigned=sum(row.total for row in progress),
                        closed_at=study.closed_at,
                    )
                )
        out.tell({"studies": rows}, *map(str, rows))


@study.command("assign")
def assign(
    name: str = typer.Argument(..., metavar="STUDY", help="The study."),
    database: str = DATABASE,
) -> None:
    """Give every entry the reviewers that it lacks, evenly and by the seed."""
    with opened_database(database) as opened:
        from medassay.review.store import studies

        with opened.write() as db:
            n_assigned = studies.assign_all(db, named_study(db, name), who=WHO)
        out.tell({"study": name, "assignments": n_assigned}, f"{n_assigned} assignments made")


@study.command("close")
def close(
    name: str = typer.Argument(..., metavar="STUDY", help="The study."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
    database: str = DATABASE,
) -> None:
    """Freeze a study for good, and print the hash that the audit trail now holds."""
    with opened_database(database) as opened:
        from medassay.review.store import frozen, studies

        with opened.read() as db:
            studies.refuse_closed(named_study(db, name))
        if not yes and (out.json or not sys.stdin.isatty()):
            raise UsageError("closing is for good: say --yes")
        if not yes and not typer.confirm(f"Close '{name}' for good?"):
            raise typer.Exit(1)
        with opened.write() as db:
            closed = frozen.close(db, named_study(db, name), who=WHO)
        out.tell({"study": name, "sha256": closed}, closed)


@study.command("due")
def due(
    on: str = typer.Option("", help="The day, such as 2027-01-31; default: today."),
    database: str = DATABASE,
) -> None:
    """Print the items that are due for review again."""
    with opened_database(database) as opened:
        from medassay.review.store import reading
        from medassay.review.store.studies import checked_day

        day = checked_day(on) or now()[:10]
        with opened.read() as db:
            rows = [row for row in reading.due_of(db) if row.due <= day]
        lines = (f"{row.due}  {row.study}  {row.bank}  {row.item}" for row in rows)
        out.tell({"on": day, "due": [msgspec.structs.asdict(row) for row in rows]}, *lines)
        out.say(f"{len(rows)} items due on {day}")
