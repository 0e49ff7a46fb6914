"""`medassay verify SITE|PUBLICATION|RUN|ADDRESS`."""

import tempfile
from pathlib import Path

import typer

from medassay.cli.location import read
from medassay.cli.options import TRUST_CODE
from medassay.cli.output import out
from medassay.errors import InputError, IntegrityError

_PLACE = typer.Argument(
    ...,
    help=(
        "A run, a suite, a publication or a site: a folder, its http(s) address, or one in an"
        " object store."
    ),
)
_ANSWER = typer.Option(
    "", help="The sha256 of one answer: check it, and print its proof up to the ledger."
)
_SINCE = typer.Option(
    "", help="A head.json or a hash kept from the log: has the log only grown since?"
)
_SIGNED_BY = typer.Option("", help="The public key that must have signed the log's last line.")
_MOST_SECONDS = typer.Option(
    1800, min=0, help="Of an address: seconds in all, after which reading ends."
)
_MOST_BYTES = typer.Option(
    20 * 2**30, min=0, help="Of an address: bytes in all, more than which are not read."
)
_MOST_FILES = typer.Option(
    1_000_000, min=0, help="Of an address: files, more than which are not read."
)


def command(
    place: str = _PLACE,
    answer: str = _ANSWER,
    since: str = _SINCE,
    signed_by: str = _SIGNED_BY,
    trust_code: bool = TRUST_CODE,
    most_seconds: float = _MOST_SECONDS,
    most_bytes: int = _MOST_BYTES,
    most_files: int = _MOST_FILES,
) -> None:
    """Recompute hashes, scores, intervals and ranks; exit 6 names the first record that differs."""
    from medassay.publishing.fetch import ReadLimits, fetch_site, is_address
    from medassay.publishing.proof import prove
    from medassay.publishing.suites import verify_suite
    from medassay.publishing.verify import OUTSIDE, UNSEEN, verify
    from medassay.suite.run import is_suite_folder

    with tempfile.TemporaryDirectory(prefix="medassay-") as folder:
        bounds = ReadLimits(seconds=most_seconds, bytes=most_bytes, files=most_files)
        copied = is_address(place)
        here = fetch_site(place, Path(folder), bounds, out.say) if copied else read(place)
        try:
            if not copied and is_suite_folder(here):
                report = verify_suite(here, trust_code=trust_code)
            else:
                report = verify(here, since=since, signed_by=signed_by, trust_code=trust_code)
        except InputError as error:  # of a copy, name the address
            raise InputError(str(error).replace(str(here), place)) from None
        proof = None
        if answer and report.ok:
            answer_report, proof = prove(here, answer)
            report.merge(answer_report, "proof")
    note = f"{OUTSIDE}; {UNSEEN}" if copied else OUTSIDE
    lines = [
        f"{'ok      ' if check['ok'] else 'MISMATCH'} {check['name']}: {check['detail']}"
        for check in report.checks
    ]
    if proof is not None:
        lines += [f"the record\n{proof['record']}", "hashes beside it, from leaf to root"]
        lines += proof["path"]
    out.tell({**report.to_dict(), "note": note, "proof": proof}, *lines)
    if not report.ok:
        if out.json:  # the document says what is wrong
            raise typer.Exit(IntegrityError.exit_code)
        raise IntegrityError(f"{place}: {report.first_mismatch}")
    out.say(note)
