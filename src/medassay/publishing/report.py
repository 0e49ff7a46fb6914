"""What a check of hashes and numbers found, step by step."""

from collections.abc import Callable
from typing import TypedDict

import msgspec
from jinja2 import TemplateError

from medassay.errors import MedassayError


class Mismatch(Exception):
    """Says which record differs."""


class CheckResult(TypedDict):
    """One check of a verification."""

    name: str
    ok: bool
    detail: str


class ReportObject(TypedDict):
    """A report on what was checked, as `verify --json` prints it."""

    ok: bool
    checks: list[CheckResult]
    first_mismatch: str | None


class VerificationReport(msgspec.Struct):
    """What was checked, in order; `first_mismatch` names the first record that differs."""

    checks: list[CheckResult] = msgspec.field(default_factory=list)
    first_mismatch: str | None = None

    @property
    def ok(self) -> bool:
        """Return whether everything agrees."""
        return self.first_mismatch is None

    def add(self, name: str, detail: str, *, ok: bool = True) -> None:
        """Note one check."""
        self.checks.append({"name": name, "ok": ok, "detail": detail})
        if not ok and self.first_mismatch is None:
            self.first_mismatch = detail

    def to_dict(self) -> ReportObject:
        """Return the report as plain JSON values."""
        return {"ok": self.ok, "checks": self.checks, "first_mismatch": self.first_mismatch}

    def check(self, name: str, step: Callable[[], str]) -> bool:
        """Take one step; what it returns is told, what it raises is the mismatch it found."""
        try:
            self.add(name, step())
        except Mismatch as error:
            self.add(name, str(error), ok=False)
        except MedassayError as error:
            self.add(name, f"unreadable: {error}", ok=False)
        except FileNotFoundError as error:
            self.add(name, f"missing: {error.filename}", ok=False)
        except (
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            RuntimeError,  # RecursionError, and that of a process beside that was lost
            OSError,
            TemplateError,  # a page that cannot be made from what is there
        ) as error:
            self.add(name, f"unreadable: {type(error).__name__}: {error}", ok=False)
        return self.ok

    def merge(self, report: "VerificationReport", name: str) -> None:
        """Take over the checks of a part."""
        for check in report.checks:
            detail = check["detail"] if check["ok"] else f"{name}: {check['detail']}"
            self.add(f"{name}: {check['name']}", detail, ok=check["ok"])
