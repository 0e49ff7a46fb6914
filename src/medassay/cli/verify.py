"""`medassay verify DIR|RUN`."""

from pathlib import Path

import typer

from medassay.cli.output import out
from medassay.errors import IntegrityError


def command(path: Path = typer.Argument(..., help="A run, a publication or a site.")) -> None:
    """Recompute hashes, scores, intervals and ranks; exit 6 names the first record that differs."""
    from medassay.audit.verify import verify

    report = verify(path)
    if out.json:
        out.document(report.to_dict())
        if not report.ok:
            raise typer.Exit(IntegrityError.exit_code)
        return
    for check in report.checks:
        out.result(
            f"{'ok      ' if check['ok'] else 'MISMATCH'} {check['name']}: {check['detail']}"
        )
    if not report.ok:
        raise IntegrityError(f"{path}: {report.first_mismatch}")
