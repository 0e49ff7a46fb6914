"""From one record to the ledger: the whole chain of hashes that says it was published so."""

import re
from pathlib import Path
from typing import TypedDict

from medassay.core.canonical import sha256_hex
from medassay.core.ledger import LEDGER, publications_in
from medassay.errors import InputError
from medassay.publishing.report import VerificationReport
from medassay.storage.ledger import read_ledger
from medassay.storage.merkle import inclusion_proof, proves
from medassay.storage.run import (
    PUBLISHED_RUN,
    SEAL,
    SUMS,
    Run,
    as_leaf,
    file_sha256,
    sealed_records,
)

_SHORTEST = 8  # digits of a hash that may stand for it


class ProvenLine(TypedDict):
    """A line of a ledger: its number, and its hash with the one before."""

    line: int
    prev: str
    hash: str


class Proof(TypedDict, total=False):
    """What proves one record: where it stands, and the hashes from its leaf to the root.

    `sums_sha256` and `ledger` lead from there to a publication and the ledger of its site.
    """

    record: str
    sha256: str
    file: str
    line: int
    leaf: int
    count: int
    path: list[str]
    root: str
    publication: str
    sums_sha256: str
    ledger: ProvenLine


def prove(place: str | Path, answer: str) -> tuple[VerificationReport, Proof]:
    """Return the report on the proof of one record, and the proof: record, path, root, ledger line.

    Parameters
    ----------
    place : a site, a publication or a run
    answer : the SHA-256 of a trial, verdict or score as its page shows it, or its first 8 digits or
        more

    Raises
    ------
    InputError
        When no record, or more than one, has this hash.
    """
    if not re.fullmatch(rf"[0-9a-f]{{{_SHORTEST},64}}", answer.lower()):
        raise InputError(
            f"--answer '{answer}': expected the sha256 of an answer, at least {_SHORTEST} digits"
        )
    folder, run, index, (name, line, record) = _find(Path(place), answer.lower())
    report = VerificationReport()
    digest = sha256_hex(record)
    report.add("record", f"{name} line {line}, sha256 {digest}")
    seal = Run(run).seal
    path = inclusion_proof((as_leaf(leaf) for _, _, leaf in sealed_records(run)), index)
    root = bytes.fromhex(seal.root)
    report.add(
        "data root",
        f"leaf {index} of {seal.count}, {len(path)} hashes to root {seal.root}",
        ok=proves(as_leaf(record), index, seal.count, path, root),
    )
    proof: Proof = {
        "record": record.decode(),
        "sha256": digest,
        "file": name,
        "line": line,
        "leaf": index,
        "count": seal.count,
        "path": [node.hex() for node in path],
        "root": seal.root,
    }
    if run != folder:
        sums = file_sha256(folder / "data" / SUMS)
        listed = (folder / "data" / SUMS).read_text(encoding="utf-8").splitlines()
        held = f"{file_sha256(run / SEAL)}  data/run/{SEAL}" in listed
        report.add("publication", f"{folder.name}: its {SUMS} lists the seal", ok=held)
        proof["publication"], proof["sums_sha256"] = folder.name, sums
        _add_ledger(report, proof, folder)
    return report, proof


def _add_ledger(report: VerificationReport, proof: Proof, folder: Path) -> None:
    site = folder.parents[1]
    if folder.parent.name != "p" or not (site / LEDGER).exists():
        return
    for number, entry in enumerate(read_ledger(site), 1):
        if entry.event.is_publication and entry.event.publication == folder.name:
            same = (entry.event.root, entry.event.sums_sha256) == (
                proof["root"],
                proof["sums_sha256"],
            )
            report.add("ledger", f"{LEDGER} line {number}, hash {entry.hash}", ok=same)
            proof["ledger"] = {"line": number, "prev": entry.prev, "hash": entry.hash}
            return
    report.add("ledger", f"{LEDGER}: no line for {folder.name}", ok=False)


def _find(place: Path, answer: str) -> tuple[Path, Path, int, tuple[str, int, bytes]]:
    """Return publication (or run), run, place in the tree, and the record."""
    lines = publications_in(read_ledger(place)) if (place / LEDGER).exists() else []
    order = {event.publication: number for number, event in enumerate(lines)}
    publications = sorted(
        (p for p in place.glob("p/*/") if not p.name.startswith(".")),
        key=lambda p: (order.get(p.name, -1), p.name),
    )
    folders = publications or [place]
    matches = []
    for folder in folders:
        run = folder / PUBLISHED_RUN if (folder / PUBLISHED_RUN).is_dir() else folder
        if not (run / SEAL).is_file():
            raise InputError(f"{folder}: neither a run, nor a publication, nor a site")
        matches += [
            (folder, run, index, located)
            for index, located in enumerate(sealed_records(run))
            if sha256_hex(located[2]).startswith(answer)
        ]
    if not matches:
        raise InputError(f"{place}: no record whose sha256 begins with {answer}")
    digests = {sha256_hex(located[2]) for *_, located in matches}
    if len(digests) > 1:
        raise InputError(f"{place}: {len(digests)} records begin with {answer}; give more digits")
    return matches[-1]  # of what was published twice, the newer
