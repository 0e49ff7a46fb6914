"""A gate for the machines that build and release: JUnit XML, GitHub's annotations, Markdown.

Names of models come from outside: none of the forms lets them say anything but their name.
"""

import re
import xml.etree.ElementTree as ET
from html import escape

from medassay.core.wording import visible
from medassay.exchange.gate import GateCheck, GateReport

_TITLE = "medassay gate"
_MARK = re.compile(r"[\\|`*_\[\]#~]")


def junit(report: GateReport) -> str:
    """Return a gate as JUnit XML: one test case for each rule."""
    failures = sum(not check.passed for check in report.rules)
    suite = ET.Element(
        "testsuite",
        name=_TITLE,
        tests=str(len(report.rules)),
        failures=str(failures),
        errors="0",
        skipped="0",
    )
    for check in report.rules:
        case = ET.SubElement(suite, "testcase", classname=_TITLE, name=check.rule)
        if check.passed:
            ET.SubElement(case, "system-out").text = visible(check.reason)
        else:
            failure = ET.SubElement(case, "failure", message=_line(check.reason), type="gate")
            failure.text = visible(check.reason)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def annotations(report: GateReport) -> list[str]:
    """Return a gate as workflow commands of GitHub: an error for each rule that is not passed."""
    lines = []
    for check in report.rules:
        kind = "notice" if check.passed else "error"
        title = f"{_TITLE} {check.rule} {_word(check)}"
        lines.append(f"::{kind} title={_property(title)}::{_data(check.reason)}")
    return lines


def markdown(report: GateReport) -> str:
    """Return a gate as a table for the summary of a job."""
    lines = [
        f"### Gate {'passed' if report.passed else 'not passed'}: {_cell(report.new.model)} against"
        f" {_cell(report.old.model)}",
        "",
        "| rule | | why |",
        "|---|---|---|",
    ]
    lines += [f"| {_cell(c.rule)} | {_word(c)} | {_cell(c.reason)} |" for c in report.rules]
    lines += ["", *(f"- {_cell(note)}" for note in report.notes)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _word(check: GateCheck) -> str:
    return "passed" if check.passed else "not passed"


def _line(text: str) -> str:
    return visible(text).replace("\n", " ")


def _data(text: str) -> str:
    """Return text that cannot end a workflow command or begin another one."""
    return _line(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    """Return text for a cell: no cell, link, tag or code begins in it."""
    return _MARK.sub(r"\\\g<0>", escape(_line(text), quote=False))
