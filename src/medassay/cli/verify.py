"""`medassay verify DIR|RUN`."""

from pathlib import Path

import typer

from medassay.cli.output import out
from medassay.errors import IntegrityError


def command(
    path: Path = typer.Argument(..., help="A run, a publication or a site."),
    answer: str = typer.Option(
        "", help="The sha256 of one answer: check it, and print its proof up to the ledger."
    ),
) -> None:
    """Recompute hashes, scores, intervals and ranks; exit 6 names the first record that differs."""
    from medassay.audit.proof import prove
    from medassay.audit.verify import verify

    report = verify(path)
    proof = None
    if answer and report.ok:
        report, proof = prove(path, answer)
    if out.json:
        out.document(report.to_dict() | ({} if proof is None else {"proof": proof}))
        if not report.ok:
            raise typer.Exit(IntegrityError.exit_code)
        return
    for check in report.checks:
        out.result(
            f"{'ok      ' if check['ok'] else 'MISMATCH'} {check['name']}: {check['detail']}"
        )
    if proof is not None:
        out.result(f"the record\n{proof['record']}")
        out.result("\n".join(["hashes beside it, from leaf to root", *proof["path"]]))
    if not report.ok:
        raise IntegrityError(f"{path}: {report.first_mismatch}")
