"""Reference records by a named model, for reports that have none.

A person may approve them afterwards.

What such a reference is worth is what its maker is worth: every score against it says `silver` and
by whom.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.card import next_version
from medassay.bank.folder import bank_records, write_bank
from medassay.bank.reports import WITHOUT
from medassay.core.canonical import sha256_hex
from medassay.core.records.card_object import CardObject
from medassay.core.records.health_record import RECORD, THINKING, Origin, record_from
from medassay.core.records.item import Bank, Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Report
from medassay.core.reply.json_value import read_json_reply
from medassay.errors import IncompleteError, InputError
from medassay.model.spec import load_models, named
from medassay.prompt.render import load_template, render
from medassay.runner.batch_prompts import Ask, UnusableReply, prompt_batch
from medassay.runner.progress import ProgressFactory
from medassay.runner.stages import refuse_leaving
from medassay.storage.object_store import using_stores

ASKED = 3  # times at most, for each report


class SilverOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who shall write the references: an entry of a models file; and the folder of the new bank.

    With `accept_failures` a report that gets no usable record stays without one. `again` names
    reports that are asked about once more, or is "failed" for all that got no usable record.
    """

    maker: str
    models_file: Path
    to: Path
    accept_failures: bool = False
    again: Collection[str] = ()


class Silver(msgspec.Struct, frozen=True, kw_only=True):
    """A bank with references by a model: where it is, how many were written, which reports have
    none and why.
    """

    folder: Path
    version: str
    written: int
    kept: int
    failed: Mapping[str, str]


def write_silver(
    bank: Bank,
    options: SilverOptions,
    *,
    secrets: Mapping[str, str],
    workspace: Path | str,
    engine: str = "local",
    watch: ProgressFactory | None = None,
) -> Silver:
    """Write a new version of a bank in which a model has written the records of reports that had
    none.

    References that are there stay as they are. Replies are stored, so that the same command asks
    for none of them again.

    Raises
    ------
    InputError
        When the model is unknown, the folder exists, no report lacks a record, or the bank may not
        leave.
    IncompleteError
        When a report got no usable record in three tries, unless failures are accepted: it stays
        without one.
    """
    spec = named(load_models(options.models_file), options.maker, "--maker:", options.models_file)
    if spec.is_baseline:
        raise InputError(f"--maker: '{options.maker}' is a baseline and reads no report")
    if options.to.exists():
        raise InputError(f"{options.to}: exists; choose another folder, nothing was written")
    reports = [item for item in bank.items if isinstance(item.target, Report)]
    if not reports:
        raise InputError(
            f"bank '{bank.name}': every report has its reference already; nothing to write"
        )
    refuse_leaving([(bank.name, bank.may_leave)], [spec])
    with using_stores(workspace) as folder:
        findings = prompt_batch(
            "references",
            _References(tuple(reports), spec),
            spec,
            secrets=secrets,
            workspace=folder,
            engine=engine,
            watch=watch,
            again=options.again,
        )
    findings_by_id = list(zip((item.id for item in reports), findings, strict=True))
    records_made = {
        name: finding.value for name, finding in findings_by_id if finding.value is not None
    }
    failed = {name: finding.problem for name, finding in findings_by_id if finding.value is None}
    if failed and not options.accept_failures:
        name, why = next(iter(failed.items()))
        raise IncompleteError(
            f"{len(failed)} of {len(reports)} reports got no usable record, '{name}': {why};"
            " nothing was written, what is usable is kept; --again failed asks once more,"
            " --accept-failures leaves them without one"
        )
    version = next_version(bank.version, dt.datetime.now(dt.UTC).year)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    card: CardObject = {**bank.card, "question_bank_version": version, "created": today}
    card.pop("content_sha256", None)
    before = bank.limits.replace(WITHOUT, "").strip()
    says = f"{len(records_made)} references are silver, written by the model {spec.id}."
    card |= {"limits": f"{before} {says}".strip()}
    write_bank(options.to, card, _records(bank, records_made))
    return Silver(
        folder=options.to,
        version=version,
        written=len(records_made),
        kept=len(bank.items) - len(reports),
        failed=failed,
    )


def _records(bank: Bank, records: Mapping[str, ItemObject]) -> Iterator[ItemObject]:
    for item, record in bank_records(bank):
        if item.id not in records:
            yield record
            continue
        record.pop("approval", None)
        record.update(records[item.id])
        record |= {"revision": item.revision + 1}
        yield record


class _References(msgspec.Struct, frozen=True):
    """Reports, and who writes the record of each."""

    reports: tuple[Item, ...]
    spec: ModelSpec
    study = "silver"
    repeats = 1

    def __len__(self) -> int:
        return len(self.reports)

    def handle(self, subject: int) -> str:
        """Return the id of a report."""
        return self.reports[subject].id

    def first(self, subject: int) -> Prompt:
        """Return what asks for the record of a report."""
        return render(
            load_template(THINKING),
            self.reports[subject],
            system=self.spec.system_line,
            system_role=self.spec.system_role,
        )

    async def about(self, subject: int, ask: Ask) -> dict[str, Any]:
        """Return record and origin of one report.

        Asked again with what was wrong, at most three times in all.
        """
        spec, first = self.spec, self.first(subject)
        prompt, problem = first, ""
        for _ in range(ASKED):
            text = (await ask(prompt)).text
            try:
                record = _read(text)
            except ValueError as error:
                problem = str(error)
                prompt = _again(first, text, problem)
                continue
            origin = Origin(
                standing="silver",
                maker=spec.id,
                family=spec.family,
                prompt_sha256=sha256_hex(first.encoded),
            )
            return {"record": record, "origin": origin.to_dict()}
        raise UnusableReply(problem)


def _read(text: str) -> dict[str, Any]:
    reply = read_json_reply(text)
    if reply.value is None:
        raise ValueError(reply.reason)
    if not isinstance(reply.value, dict) or RECORD not in reply.value:
        raise ValueError(f"{RECORD}: absent")
    return record_from(reply.value[RECORD]).to_dict()


def _again(first: Prompt, text: str, problem: str) -> Prompt:
    """Return the prompt that shows a model its reply and what was wrong with it."""
    notice = f"That reply could not be used: {problem}. Reply with the whole JSON object again."
    return first.with_turns(
        {"role": "assistant", "content": text or "–"}, {"role": "user", "content": notice}
    )
