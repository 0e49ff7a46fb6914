"""Flawed items, found in two stages over real runs, then reviewed by a model of another family; people decide.

Stage 1: wrong, in zero-shot quiz, for every large model. Stage 2: wrong also for at least half of the small ones. An answer that is
none counts as wrong; a call that failed is no answer, and says nothing.

Source: specification of bank synthesis, 10.1, flaw detection.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medassay.bank.folder import bank_records, load_bank
from medassay.core.canonical import canonical
from medassay.core.lookup import ToolRules
from medassay.core.plan import Budget
from medassay.errors import IncompleteError, InputError
from medassay.judge.shown import fence
from medassay.model.spec import load_models
from medassay.runner.asking import Asker
from medassay.runner.looking import Looking
from medassay.runner.stages import Watch, provide, refuse_leaving
from medassay.solver.tools.schema import tool_schema
from medassay.solver.tools.toolbox import Toolbox
from medassay.storage.jsonl import read_jsonl
from medassay.storage.response import ResponseStore
from medassay.storage.run import Run
from medassay.synthesis.author import Author
from medassay.synthesis.correction import read_correction, told_item
from medassay.synthesis.jobs import Job, decision_on, do_jobs
from medassay.synthesis.workshop import BY_PROGRAM, Workshop, basis_of, open_workshop

SETTING, MODE = "zero_shot", "solo"
_LARGE = 2  # models
Known = Mapping[str, bool]  # item → whether a model's answer was wrong


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """An item that is hard or flawed: which models were wrong."""

    item: str
    wrong_large: tuple[str, ...]
    wrong_small: tuple[str, ...]
    n_small: int


@dataclass(frozen=True, kw_only=True)
class Flaws:
    """What two stages leave of the items of some runs."""

    large: tuple[str, ...]
    small: tuple[str, ...]
    items: int
    candidates: tuple[str, ...]
    selected: tuple[Flaw, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain JSON values."""
        return {
            "setting": SETTING,
            "rule": f"wrong for all {len(self.large)} large models and for at least half of the {len(self.small)} small ones",
            "large": list(self.large),
            "small": list(self.small),
            "items": self.items,
            "candidates": list(self.candidates),
            "selected": [
                {
                    "item": one.item,
                    "wrong_large": list(one.wrong_large),
                    "wrong_small": list(one.wrong_small),
                    "small": one.n_small,
                }
                for one in self.selected
            ],
        }


def select_flaws(large: Mapping[str, Known], small: Mapping[str, Known]) -> Flaws:
    """Return the items that every large model and at least half of the small ones got wrong.

    Parameters
    ----------
    large, small : model → item → whether its answer was wrong

    Raises
    ------
    InputError
        When there is no large or no small model.

    Examples
    --------
    >>> hard = {"q1": True, "q2": False}
    >>> [one.item for one in select_flaws({"a": hard, "b": hard}, {"c": hard}).selected]
    ['q1']
    """
    if not large or not small:
        raise InputError(
            "flaws: large and small models are needed; name the large ones with --large"
        )
    items = sorted(set().union(*large.values(), *small.values()))
    candidates = [item for item in items if all(known.get(item) for known in large.values())]
    selected = []
    for item in candidates:
        asked = [model for model, known in small.items() if item in known]
        wrong = tuple(model for model in asked if small[model][item])
        if asked and 2 * len(wrong) >= len(asked):
            flaw = Flaw(
                item=item, wrong_large=tuple(large), wrong_small=wrong, n_small=len(asked)
            )
            selected.append(flaw)
    return Flaws(
        large=tuple(large),
        small=tuple(small),
        items=len(items),
        candidates=tuple(candidates),
        selected=tuple(selected),
    )


def flaws_of_runs(runs: Sequence[Run], large: Sequence[str] = ()) -> Flaws:
    """Return the flawed items of some runs of one bank.

    Parameters
    ----------
    large : the large models; without names the two of the largest stated size

    Raises
    ------
    InputError
        When runs are of different banks, two have one model, or it cannot be told which models are large.
    IncompleteError
        When a run is not finished.
    """
    known: dict[str, dict[str, bool]] = {}
    sizes: dict[str, float] = {}
    banks: set[str] = set()
    for run in runs:
        if not run.sealed:
            raise IncompleteError(
                f"run {run.id}: not finished; run its plan again to resume it"
            )
        banks |= {
            canonical(
                [[b["version"], b["content_sha256"]] for b in run.manifest["banks"]]
            ).decode()
        }
        found = _wrong(run)
        if twice := sorted(found.keys() & known.keys()):
            raise InputError(
                f"run {run.id}: '{twice[0]}' is in another run, too; expected each model once"
            )
        known |= found
        specs: Mapping[str, Any] = run.manifest["models"]
        sizes |= {name: specs[name]["size"] for name in found if specs[name].get("size")}
    if len(banks) > 1:
        raise InputError("the runs are of different versions of banks; expected one")
    if not known:
        raise InputError(
            f"no quiz was answered in the setting {SETTING}; expected runs of closed items"
        )
    names = [*large] or sorted(sizes, key=lambda name: (-sizes[name], name))[:_LARGE]
    if strange := [name for name in names if name not in known]:
        raise InputError(
            f"--large: '{strange[0]}' is not among the models: {', '.join(sorted(known))}"
        )
    if len(names) < _LARGE:
        raise InputError(
            "the sizes of fewer than two models are stated, so that the large ones are not known; name them with --large A,B"
        )
    return select_flaws(
        {name: known[name] for name in names},
        {name: found for name, found in sorted(known.items()) if name not in names},
    )


def _wrong(run: Run) -> dict[str, dict[str, bool]]:
    """Return model → item → whether more of its zero-shot answers were wrong than right."""
    scores: dict[str, dict[str, list[float]]] = {}
    quiz = {
        record["id"] for record in read_jsonl(run.path / "items.jsonl") if "options" in record
    }
    trials = read_jsonl(run.path / "trials.jsonl")
    for trial, score in zip(trials, read_jsonl(run.path / "scores.jsonl"), strict=True):
        here = trial["setting"] == SETTING and trial["mode"] == MODE and trial["item"] in quiz
        asked = run.manifest["models"].get(trial["model"], {})
        if not here or trial["outcome"] == "failed" or asked.get("provider") == "baseline":
            continue
        of = scores.setdefault(trial["model"], {})
        of.setdefault(trial["item"], []).append(score["score"] or 0.0)
    return {
        model: {item: 2 * sum(v) < len(v) for item, v in of.items()}
        for model, of in scores.items()
    }


@dataclass(frozen=True, kw_only=True)
class Commission:
    """Who shall review flawed items, an entry of a models file, with which tools; and the bank that they are in."""

    reviewer: str
    models_file: Path
    bank: Path
    tools: ToolRules | None = None


def review_flaws(
    flaws: Flaws,
    wanted: Commission,
    to: Path,
    *,
    secrets: Mapping[str, str],
    workspace: Path,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Have a model of another family review flawed items in a workshop; nothing is changed before a person decides.

    Returns
    -------
    dict
        reviewed (item → types), queue (items without a usable review), calls

    Raises
    ------
    InputError
        When the reviewer is unknown, of the family that wrote an item, or an item is not in the bank.
    IncompleteError
        When calls had no reply: the same call goes on.
    """
    known = load_models(wanted.models_file)
    if wanted.reviewer not in known or known[wanted.reviewer].is_baseline:
        listed = ", ".join(sorted(known)) or "none"
        raise InputError(
            f"--review: '{wanted.reviewer}' is no model of {wanted.models_file}; known are {listed}"
        )
    spec = known[wanted.reviewer]
    bank = load_bank(wanted.bank, lock=None)
    records = {item.id: record for item, record in bank_records(bank)}
    for flaw in flaws.selected:
        if flaw.item not in records:
            raise InputError(
                f"{wanted.bank}: no item '{flaw.item}'; expected the bank of the runs"
            )
        family = records[flaw.item].get("meta", {}).get("family")
        if family == spec.family:
            raise InputError(
                f"item '{flaw.item}' was written by the family {family}, as '{spec.id}'; who reviews must be of another"
            )
    private = any(records[f.item].get("kind") == "synthetic" for f in flaws.selected)
    refuse_leaving(
        [{"name": bank.name, "may_leave": bank.may_leave and not private}], [spec], wanted.tools
    )
    if wanted.tools is not None and spec.no_tools is not None:
        raise InputError(f"--review: '{spec.id}' cannot search: {spec.no_tools}")
    with open_workshop(to) as workshop, ResponseStore(workspace / "responses") as store:
        told = {
            "plan": {"name": bank.name, "bank": str(wanted.bank.resolve()), "maker": "flaws"},
            "models": {
                spec.id: {
                    "family": spec.family,
                    "provider": spec.provider,
                    "scripted": spec.is_scripted,
                }
            },
        }
        basis = basis_of(told, bank.content_hash, flaws.to_dict())
        if workshop.done("plan", "plan", basis) is None:
            selected = {**told, "content_sha256": bank.content_hash, "flaws": flaws.to_dict()}
            workshop.note("plan", "plan", "made", basis=basis, by=BY_PROGRAM, result=selected)
        asker = Asker(
            {spec.id: spec}, {spec.id: provide(spec, secrets)}, store, Budget(), seed=0
        )
        author = Author(spec, asker, seed=0, looking=_looking(wanted.tools, asker, secrets))
        jobs = [_job(records[flaw.item], author) for flaw in flaws.selected]
        failed = do_jobs("reviews", jobs, workshop, asker, watch)
        found = _reviewed(workshop, flaws)
    if failed:
        name, why = next(iter(failed.items()))
        raise IncompleteError(
            f"{len(failed)} reviews had no reply, {name}: {why}; the same command resumes"
        )
    return {**found, "calls": asker.tally.called}


def _looking(
    rules: ToolRules | None, asker: Asker, secrets: Mapping[str, str]
) -> tuple[Looking, bytes] | None:
    if rules is None:
        return None
    named = (rules.search_key_env, rules.pubmed_key_env)
    toolbox = Toolbox(
        rules,
        secrets={name: secrets[name] for name in named if name in secrets},
        index=None,
        use=lambda index: None,
    )
    return Looking(toolbox, asker), tool_schema(rules)


def _job(record: Mapping[str, Any], author: Author) -> Job:
    return Job(
        step="review",
        subject=record["id"],
        author=author,
        part="make_correction",
        holes={"item": fence(told_item(record), "item"), "searching": author.searches},
        read=lambda reply: read_correction(reply, record),
        sources=[("plan", "plan")],
    )


def _reviewed(workshop: Workshop, flaws: Flaws) -> dict[str, Any]:
    names = {flaw.item for flaw in flaws.selected}
    reviews = [event for event in workshop.all_latest("review") if event.place[1] in names]
    return {
        "reviewed": {e.place[1]: e.result["types"] for e in reviews if e.status == "made"},
        "queue": {e.place[1]: e.note for e in reviews if e.status == "queued"},
    }


def type_counts(workshop: Workshop) -> list[dict[str, Any]]:
    """Return how many reviews propose each type of change, by what people decided; an item may have two types.

    Each row has type, decision (accept, change, keep, remove, or waiting) and n.
    """
    counts: Counter[tuple[int, str]] = Counter()
    for event in workshop.all_latest("review"):
        decided = decision_on(workshop, event)
        for kind in (event.result or {}).get("types", ()):
            counts[kind, "waiting" if decided is None else decided.status] += 1
    return [
        {"type": kind, "decision": verb, "n": n} for (kind, verb), n in sorted(counts.items())
    ]


def is_correction(workshop: Workshop) -> bool:
    """Return whether a workshop is of corrections to a bank."""
    found = workshop.latest("plan", "plan")
    return found is not None and found.result["plan"].get("maker") == "flaws"


def corrected(workshop: Workshop) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Yield (item, verb, what stands there now) of every decided correction that changes or removes an item."""
    for event in workshop.all_latest("review"):
        decided = decision_on(workshop, event)
        if decided is None or decided.status == "keep":
            continue
        after = {"accept": (event.result or {}).get("after"), "change": decided.result}.get(
            decided.status
        )
        yield event.place[1], decided.status, after
