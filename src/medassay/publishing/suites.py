"""Checking a suite: each of its runs, and that they asked the banks that its record names."""

from pathlib import Path

from medassay.publishing.recompute import verify_run
from medassay.publishing.report import Mismatch, VerificationReport
from medassay.storage.run import Run
from medassay.suite.places import runs_of
from medassay.suite.run import SuiteRun, open_suite


def verify_suite(folder: Path, *, trust_code: bool = False) -> VerificationReport:
    """Return the report on a suite.

    Parameters
    ----------
    trust_code : whether own code beside its runs may be executed
    """
    suite = open_suite(folder)
    report = VerificationReport()
    report.check("suite", lambda: _check_banks(suite))
    for name, run in runs_of(suite):
        report.merge(verify_run(run.path, trust_code=trust_code), name)
    return report


def _check_banks(suite: SuiteRun) -> str:
    checked = 0
    for part in suite.parts:
        expected = part.bank.content_sha256
        for name in part.runs.values():
            run: Run = suite.run(name)
            contents = {bank.content_sha256 for bank in run.manifest.banks}
            if part.bank and contents != {expected}:
                raise Mismatch(f"suite.json: '{part.benchmark}' names another bank than {run.id}")
            checked += 1
    return f"{len(suite.parts)} benchmarks, {checked} runs of the banks that it names"
