"""What the answers and verdicts of a run took: seconds of generation, tokens, money.

What synthetic items took is summed before they are withheld, and stands in the seal of the public
copy.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from hashlib import blake2b
from ipaddress import ip_address
from typing import Any, ClassVar, Literal, TypedDict
from urllib.parse import urlsplit

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.json import record_as
from medassay.core.keyed import KeyedRecord
from medassay.core.records.completion import Usage
from medassay.core.records.manifest import RunMachine, RunModel
from medassay.core.records.model import Price
from medassay.core.records.target import OPEN_FORMS
from medassay.model.spec import remembered_price
from medassay.report.times import TimesRow
from medassay.storage.journal import VERDICTS
from medassay.storage.jsonl import read_as
from medassay.storage.run import Run

Role = Literal["model", "judge"]
Origin = Literal["public", "synthetic"]  # of items


class _TimedTrial(msgspec.Struct):
    """What names a trial and its reply, and its outcome."""

    domain: str
    model: str
    setting: str
    mode: str
    item: str
    outcome: str = ""
    response: str = ""


class _Timing(msgspec.Struct):
    """What one answer took; a part of its tokens is told where the endpoint told it."""

    seconds: float = 0.0
    tokens: tuple[int, int] = (0, 0)
    cached: int = 0
    reasoning: int = 0

    @property
    def usage(self) -> Usage:
        read, written = self.tokens
        return Usage(prompt=read, completion=written, cached=self.cached, reasoning=self.reasoning)


class _Verdict(msgspec.Struct):
    """What names a verdict, and what its replies took.

    Verdicts of before 2026-12 do not tell their tokens.
    """

    domain: str
    item: str
    judge: str
    responses: list[str] = msgspec.field(default_factory=list)
    seconds: list[float] = msgspec.field(default_factory=list)
    usage: list[Usage] = msgspec.field(default_factory=list)


class TimesKey(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Of what the times are summed: replies of a model or judge to one kind of question, of public
    or of synthetic items.
    """

    KEYS: ClassVar = ("role", "model", "setting", "mode", "kind", "items")

    role: Role
    model: str
    setting: str
    mode: str
    kind: str
    items: Origin


class TimesObject(TypedDict, total=False):
    """The sums of `Times` as a public copy's seal keeps them, beside the keys of `TimesKey`."""

    replies: int
    seconds: float
    usage: dict[str, int]
    untold: int
    squares: float


class Times(msgspec.Struct, kw_only=True):
    """What replies took: their number, seconds of generation, and tokens.

    `untold` is how many replies told no tokens.
    """

    replies: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    untold: int = 0
    # Of the seconds, for the interval of their mean; copies of earlier versions do not tell them.
    squares: float | None = 0.0

    def add(self, seconds: float, usage: Usage) -> None:
        """Add what a reply took."""
        self.replies += 1
        self.seconds += seconds
        self.squares = None if self.squares is None else self.squares + seconds**2
        self.usage += usage
        self.untold += not usage.prompt

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the mean seconds of a reply, by Student's t; None below two
        replies.

        Seconds are never below 0, and neither is the interval.
        """
        if self.squares is None or self.replies < 2:
            return None
        from scipy.special import stdtrit

        mean = self.seconds / self.replies
        variance = max(0.0, self.squares / self.replies - mean**2) / (self.replies - 1)
        half = float(stdtrit(self.replies - 1, 0.975)) * math.sqrt(variance)
        return max(0.0, mean - half), mean + half

    def to_dict(self) -> TimesObject:
        """Return the sums as plain JSON values."""
        plain: TimesObject = {
            "replies": self.replies,
            "seconds": round(self.seconds, 6),
            "usage": self.usage.to_dict(),
            "untold": self.untold,
        }
        if self.squares is not None:
            plain |= {"squares": round(self.squares, 6)}
        return plain


class _SealedTimes(msgspec.Struct, kw_only=True):
    """Times as the seal of a public copy keeps them."""

    role: Role
    model: str
    setting: str
    mode: str
    kind: str
    items: Origin
    replies: int
    seconds: float
    usage: Usage
    untold: int
    squares: float | None = None


def times_of(
    run: Run, items: RunItems, synthetic: AbstractSet[tuple[str, str]] = frozenset()
) -> tuple[dict[TimesKey, Times], Counter[str]]:
    """Return what the replies of a run took, and how many trials of each model failed.

    A reply that several trials or verdicts name was given once, and counts once.

    Parameters
    ----------
    synthetic : (domain, item) of those whose times are told apart
    """
    times_by_key: dict[TimesKey, Times] = {}
    failures: Counter[str] = Counter()
    seen: set[bytes] = set()
    trials = read_as(run.path / "trials.jsonl", _TimedTrial)
    timings = read_as(run.path / "timings.jsonl", _Timing)
    for trial, timing in zip(trials, timings, strict=True):
        if trial.outcome == "failed":
            failures[trial.model] += 1
        elif timing.seconds and _is_new(trial.response, seen):
            key = TimesKey(
                role="model",
                model=trial.model,
                setting=trial.setting,
                mode=trial.mode,
                kind="open" if items.form(trial.domain, trial.item) in OPEN_FORMS else "quiz",
                items="synthetic" if (trial.domain, trial.item) in synthetic else "public",
            )
            times_by_key.setdefault(key, Times()).add(timing.seconds, timing.usage)
    path = run.path / f"{VERDICTS}.jsonl"
    for verdict in read_as(path, _Verdict) if path.exists() else ():
        key = TimesKey(
            role="judge",
            model=verdict.judge,
            setting="",
            mode="",
            kind="verdicts",
            items="synthetic" if (verdict.domain, verdict.item) in synthetic else "public",
        )
        usages = verdict.usage or [Usage()] * len(verdict.seconds)
        # Imported verdicts may tell no seconds.
        for reply, seconds, used in zip(verdict.responses, verdict.seconds, usages, strict=False):
            if _is_new(reply, seen):
                times_by_key.setdefault(key, Times()).add(seconds, used)
    return times_by_key, failures


def _is_new(key: str, seen: set[bytes]) -> bool:
    """Return whether a reply was not counted before, and note that it is now, by a short hash of
    its key: of a million, no two are alike in 64 bits. One without a key is always new.
    """
    short = blake2b(key.encode(), digest_size=8).digest()
    if key and short in seen:
        return False
    seen.add(short)
    return True


def to_sealed(times_by_key: Mapping[TimesKey, Times]) -> list[dict[str, Any]]:
    """Return times as the seal of a public copy keeps them."""
    return [{**key.to_dict(), **took.to_dict()} for key, took in sorted(times_by_key.items())]


def from_sealed(rows: Sequence[Mapping[str, Any]]) -> dict[TimesKey, Times]:
    """Return the times that the seal of a public copy keeps."""
    sealed_times = record_as(rows, list[_SealedTimes], "seal.json: withheld.times")
    times_by_key = {}
    for row in sealed_times:
        sums = {name: getattr(row, name) for name in Times.__struct_fields__}
        key = TimesKey(**{name: getattr(row, name) for name in TimesKey.KEYS})
        times_by_key[key] = Times(**sums)
    return times_by_key


def shown_times(run: Run, times_by_key: Mapping[TimesKey, Times]) -> list[TimesRow]:
    """Return a row for each sum as pages and times.csv show it, with cost, engine and machine."""
    prices = _prices(run)
    rows = sorted(times_by_key.items(), key=lambda entry: (entry[0].role == "judge", entry[0]))
    return [_row(run, prices, key, took) for key, took in rows]


def _prices(run: Run) -> dict[tuple[Role, str], Price | None]:
    """Return what tokens cost, by role and name; None where nobody said."""
    document, manifest = run.manifest_document, run.manifest
    entries: list[tuple[Role, RunModel, dict[str, Any]]] = [
        ("model", model, document["models"][name]) for name, model in manifest.models.items()
    ]
    entries += [
        ("judge", judge, entry)
        for judge, entry in zip(manifest.judges, document.get("judges", ()), strict=True)
    ]
    return {(role, model.id): remembered_price(entry) for role, model, entry in entries}


def _row(
    run: Run,
    prices: Mapping[tuple[Role, str], Price | None],
    key: TimesKey,
    took: Times,
) -> TimesRow:
    spec = _entry(run, key)
    price = prices.get((key.role, key.model))
    # Of an endpoint elsewhere nobody here knows the machine.
    machine = _machine(run, key) if _is_on_this_machine(spec) else None
    usage = took.usage
    lo, hi = took.ends or (None, None)
    return TimesRow(
        **key.to_dict(),
        replies=took.replies,
        mean_seconds=took.seconds / took.replies,
        seconds_lo=lo,
        seconds_hi=hi,
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        cached_tokens=usage.cached,
        reasoning_tokens=usage.reasoning,
        without_tokens=took.untold,
        cost=None if price is None else price.of(usage),
        currency="" if price is None else price.currency,
        price_known=price is not None,
        free=price is not None and price.dearest.input == price.dearest.output == 0,
        engine=spec.engine or "",
        quantisation=spec.quantisation or "",
        location=spec.location,
        gpu="" if machine is None else machine.gpu or "none",
        cpu="" if machine is None else machine.cpu or "",
        memory_gib=None if machine is None else machine.memory_gib,
    )


def _is_on_this_machine(spec: RunModel) -> bool:
    """Return whether a model ran where the run was made: weights loaded here, or a server at a
    loopback address.

    A server in the next room is local, too (nothing leaves the house), but it is another machine.
    """
    if spec.location != "local":
        return False
    host = urlsplit(spec.url or "").hostname
    if host is None or host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False


def _entry(run: Run, key: TimesKey) -> RunModel:
    if key.role == "model":
        return run.manifest.models[key.model]
    judges = {judge.id: judge for judge in run.manifest.judges}
    return judges.get(key.model, RunModel(id=key.model, provider=""))


def _machine(run: Run, key: TimesKey) -> RunMachine | None:
    """Return the machine that a row ran on: that of its member where runs are joined.

    None where a run, made elsewhere, names none.
    """
    cell = f"{key.model}\x1f{key.setting}\x1f{key.mode}"
    machine = run.manifest.machine
    for member in run.manifest.joined or ():
        if cell in member.cells:
            machine = member.machine
            break
    return record_as(machine, RunMachine, "manifest.json: machine") if machine else None
