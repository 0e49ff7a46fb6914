"""From a workshop to a version of a bank: the items that people accepted, with who and when, and what limits them."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medassay.bank.folder import (
    bank_records,
    card_text,
    load_bank,
    next_version,
    read_card,
    write_bank,
)
from medassay.bank.lock import register, registered_hash
from medassay.bank.release import release
from medassay.core.canonical import canonical
from medassay.core.item import LETTERS
from medassay.errors import GateError, InputError
from medassay.synthesis.flaws import corrected, is_correction
from medassay.synthesis.items import accepted, present_items
from medassay.synthesis.jobs import decision_on
from medassay.synthesis.synthesize import summary
from medassay.synthesis.workshop import BY_PROGRAM, Workshop, basis_of

BANK = "bank"  # the folder in a workshop


def release_items(
    workshop: Workshop, *, reason: str, lock: Path, today: dt.date
) -> tuple[Path, str, str]:
    """Write the accepted items of a workshop as a bank and bind them to a version; a new one where there was one.

    An item that changed since the last version gets its next revision.

    Returns
    -------
    (folder of the bank, version, content hash)

    Raises
    ------
    InputError
        When no item was accepted.
    GateError
        When nothing changed since the last version.
    """
    if is_correction(workshop):
        return _release_corrections(workshop, reason, lock, today)
    records = accepted(workshop)
    if not records:
        left = len(present_items(workshop))
        raise InputError(
            f"{workshop.folder}: no item is accepted, {left} wait; `medassay bank queue` lists them, "
            "`medassay bank decide` notes what a person decides"
        )
    folder = workshop.folder / BANK
    known = _revised(folder, records)
    card = _card(workshop, records, folder, today)
    if not folder.exists():
        content = write_bank(folder, card, known)
        version = str(card["question_bank_version"])
        while registered_hash(lock, version) not in (None, content):
            version = next_version(version, today.year)
        if version != card["question_bank_version"]:
            named = {**card, "question_bank_version": version, "content_sha256": content}
            (folder / "bank.toml").write_text(card_text(named), encoding="utf-8")
        register(lock, version, content)
    else:
        _rewrite(folder, card, known)
        version, content = release(folder, reason=reason, lock=lock, today=today)
    names = [record["id"] for record in known]
    workshop.note(
        "release",
        version,
        "made",
        basis=basis_of(content),
        by=BY_PROGRAM,
        result={"version": version, "content_sha256": content, "items": names},
        note=" ".join(reason.split()),
    )
    return folder, version, content


def _release_corrections(
    workshop: Workshop, reason: str, lock: Path, today: dt.date
) -> tuple[Path, str, str]:
    """Write the decided corrections into the bank that they are of: same ids, next revisions, a new version."""
    folder = Path(_plan(workshop)["bank"])
    bank = load_bank(folder, lock=lock)
    records = {item.id: record for item, record in bank_records(bank)}
    told: list[str] = []
    for name, verb, after in corrected(workshop):
        for twin in _twins(records, name):
            if verb == "remove":
                del records[twin]
                told.append(f"{twin} removed")
            elif after is not None and (changed := _changed(records[twin], after)) is not None:
                decided = workshop.latest("decision", f"review:{name}")
                who = "" if decided is None else decided.record["by"]["person"]
                records[twin] = {
                    **changed,
                    "revision": records[twin].get("revision", 1) + 1,
                    "approval": {"who": who, "when": today.isoformat()},
                }
                told.append(f"{twin} changed")
    if not told:
        raise GateError(
            f"{workshop.folder}: no correction is decided that changes {folder}; nothing to release"
        )
    if not records:
        raise InputError(f"{folder}: every item would be removed; a bank needs one at least")
    _rewrite(folder, read_card(folder), [*records.values()])
    why = f"{' '.join(reason.split())} Corrections: {', '.join(told)}."
    version, content = release(folder, reason=why, lock=lock, today=today)
    names = [line.rpartition(" ")[0] for line in told]
    workshop.note(
        "release",
        version,
        "made",
        basis=basis_of(content),
        by=BY_PROGRAM,
        result={"version": version, "content_sha256": content, "items": names},
        note=why,
    )
    return folder, version, content


def _twins(records: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Return an item and its open version, which asks the same: a correction is of both."""
    base = name.removesuffix("-quiz")
    others = [f"{base}-open"] if base != name else []
    return [one for one in (name, *others) if one in records]


def _changed(record: dict[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a record with a correction, None where that changes nothing in it."""
    made = dict(record)
    made |= {key: after[key] for key in ("question", "path") if after.get(key)}
    right = after["options"][LETTERS.index(after["expected"])]
    if "options" in record:
        made |= {"options": after["options"], "expected": after["expected"]}
    if "reference" in record:
        made["reference"] = right
    return made if made != record else None


def _revised(folder: Path, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records with their revisions: one more where an item differs from the one of the last version."""
    before: dict[str, dict[str, Any]] = {}
    if folder.exists():
        bank = load_bank(folder, lock=None, check=False)
        before = {item.id: record for item, record in bank_records(bank)}
    made = []
    for record in records:
        old = before.get(record["id"])
        revision = 1 if old is None else old.get("revision", 1)
        if old is not None and _content(old) != _content(record):
            revision += 1
        made.append({**record, "revision": revision})
    return made


def _content(record: Mapping[str, Any]) -> bytes:
    return canonical({k: v for k, v in record.items() if k not in ("revision", "approval")})


def _rewrite(folder: Path, card: Mapping[str, Any], records: Sequence[dict[str, Any]]) -> None:
    """Put new items and limits into a bank folder; its version stays until the release."""
    lines = b"".join(
        canonical(record) + b"\n" for record in sorted(records, key=lambda one: str(one["id"]))
    )
    if (folder / "items.jsonl").read_bytes() == lines:
        raise GateError(
            f"{folder}: the accepted items equal those of the last version; nothing to release"
        )
    # The card first: it may name domains that the new items need, and old items need none of them less.
    for name, data in (("bank.toml", card_text(dict(card)).encode()), ("items.jsonl", lines)):
        part = folder / f"{name}.part"
        part.write_bytes(data)
        part.replace(folder / name)


def _card(
    workshop: Workshop, records: Sequence[Mapping[str, Any]], folder: Path, today: dt.date
) -> dict[str, Any]:
    plan = _plan(workshop)
    scripted = any(one["scripted"] for one in _models(workshop).values())
    title = plan["title"] or plan["name"]
    before = read_card(folder) if folder.exists() else {}
    counts = dict(summary(workshop, None, {}).dropped)
    undecided = len(present_items(workshop)) - len(records)
    if undecided:
        counts["not accepted by a person"] = undecided
    return {
        "name": plan["name"],
        "title": f"DEMONSTRATION: {title}" if scripted else title,
        "question_bank_version": before.get(
            "question_bank_version", f"{plan['name']}-{today.year}.1"
        ),
        "licence": plan["licence"],
        "created": before.get("created", today.isoformat()),
        "limits": limits_note(workshop),
        "domains": sorted({record["domain"] for record in records}),
        "may_leave": plan["may_leave"],
        "kept": len(records),
        "dropped": counts,
        **({"content_sha256": before["content_sha256"]} if "content_sha256" in before else {}),
    }


def _plan(workshop: Workshop) -> Mapping[str, Any]:
    found = workshop.latest("plan", "plan")
    if found is None:
        raise InputError(f"{workshop.folder}: a workshop without a plan")
    plan: Mapping[str, Any] = found.result["plan"]
    return plan


def _models(workshop: Workshop) -> Mapping[str, Mapping[str, Any]]:
    found = workshop.latest("plan", "plan")
    models: Mapping[str, Mapping[str, Any]] = {} if found is None else found.result["models"]
    return models


def limits_note(workshop: Workshop) -> str:
    """Return what whoever uses the items must know: who wrote them, what people did, and how old their sources are."""
    return " ".join(_limits(workshop))


def _limits(workshop: Workshop) -> Iterator[str]:
    plan, models = _plan(workshop), _models(workshop)
    if any(one["scripted"] for one in models.values()):
        yield "DEMONSTRATION: written by a script, not by a model; a score says nothing."
    if plan["limits"]:
        yield plan["limits"]
    if models:
        named = ", ".join(f"{name} (family {one['family']})" for name, one in models.items())
        yield f"Made with {named}: models of these families may find the items easier, and their errors may be in them."
    yield _review_share(workshop)
    yield _source_age(workshop)


def _review_share(workshop: Workshop) -> str:
    decided = [decision_on(workshop, event) for event in present_items(workshop)]
    taken = [one for one in decided if one is not None and one.status in ("accept", "change")]
    singly = sum(not one.record.get("together") for one in taken)
    people = Counter(one.record["by"]["person"] for one in taken)
    who = ", ".join(f"{name} ({n})" for name, n in people.most_common(5))
    share = 100 * singly / len(taken) if taken else 0.0
    return f"Decided by people: {singly} of {len(taken)} items one by one ({share:.0f} %), the others accepted together; by {who}."


def _source_age(workshop: Workshop) -> str:
    sources = workshop.all_latest("source")
    made = sorted(one.result["made"] for one in sources if one.result.get("made"))
    count = f"{len(sources)} source{'s' if len(sources) != 1 else ''}"
    if not made:
        return f"{count}, undated."
    told = made[0] if made[0] == made[-1] else f"{made[0]} to {made[-1]}"
    undated = len(sources) - len(made)
    return f"{count}, of {told}{f', {undated} undated' if undated else ''}; what changed in medicine since is not in the items."
