"""Whether the files of a run are those that were sealed: the seal, the sums of files, the root of
the records, and that of each run of a joined one. Each check returns what it found in a line.
"""

from collections.abc import Iterator
from pathlib import Path

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import parse_record
from medassay.core.wording import counted
from medassay.errors import MedassayError
from medassay.own_code.kept import FOLDER, check_kept
from medassay.publishing.redaction import item_of
from medassay.publishing.report import Mismatch
from medassay.publishing.tombstone import AmendedFile, check_amendments, read_tombstones
from medassay.publishing.tree import files_in
from medassay.storage.merkle import Leaf, MerkleTree
from medassay.storage.run import (
    JOURNALS,
    LEASES,
    LOCK,
    SEAL,
    SUMS,
    TOMBSTONES,
    Run,
    as_leaf,
    file_sha256,
    open_run,
    read_document,
    sealed_records,
    trial_cell,
)


def check_seal(folder: Path) -> str:
    """Check that the seal has its own hash, and that the list of sums is what was sealed."""
    if not (folder / SEAL).is_file():
        raise Mismatch(f"{SEAL}: missing")
    seal = read_document(folder / SEAL)
    stated_hash = seal.pop("hash", None)
    if (
        sha256_hex(canonical(seal)) != stated_hash
        or (folder / SEAL).read_bytes() != canonical({**seal, "hash": stated_hash}) + b"\n"
    ):
        raise Mismatch(f"{SEAL}: its content does not have its own hash")
    if not (folder / SUMS).is_file() or file_sha256(folder / SUMS) != seal["sums_sha256"]:
        raise Mismatch(f"{SUMS}: not the file that was sealed")
    return f"seal {stated_hash[:16]}"


def check_run_sums(folder: Path) -> str:
    """Check that each file of a run is as it was, kept own code among them."""
    if (folder / FOLDER).is_dir():
        manifest = Run(folder).manifest
        code = None if manifest.own_code is None else manifest.own_code.own_code
        if (wrong := check_kept(folder, code)) is not None:
            raise Mismatch(wrong)
    return check_sums(folder, folder / SUMS, of_run=True)


def check_sums(folder: Path, sums: Path, *, of_run: bool) -> str:
    """Check a folder against a list of sums: every file listed, no other, each as it was."""
    if not sums.is_file():
        raise Mismatch(f"{sums.name}: missing")
    listed: dict[str, str] = {}
    for line in sums.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    own_files = {sums.relative_to(folder).as_posix()}
    if of_run:
        own_files |= {SEAL, TOMBSTONES}
    amended = check_amendments(Run(folder)) if of_run and (folder / TOMBSTONES).exists() else {}
    # What a kill just behind the seal leaves is no part of the run; `run` removes it.
    work = (*JOURNALS, LEASES, FOLDER) if of_run else ()
    present = files_in(folder, may_be_empty=work) - own_files
    unfinished = tuple(f"{name}/" for name in work)
    present = {n for n in present if not (of_run and n == LOCK) and not n.startswith(unfinished)}
    for name in sorted(listed.keys() | present):
        if name not in present:
            raise Mismatch(f"{name}: missing")
        if name not in listed:
            raise Mismatch(f"{name}: not among the files of {sums.name}")
        now = file_sha256(folder / name)
        amendment = AmendedFile(sealed=listed[name], now=now)
        if amendment != amended.get(name) and now != listed[name]:
            raise Mismatch(_changed_record(folder / name, name))
    return f"{len(listed)} files" + (f", {len(amended)} with tombstones" if amended else "")


def _changed_record(path: Path, name: str) -> str:
    """Name the file, and where its lines are canonical records the first that is none."""
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    is_canonical = canonical(parse_record(line, name)) + b"\n" == line
                except (ValueError, MedassayError):
                    is_canonical = False
                if not is_canonical:
                    return f"{name} line {number}: not the record that was sealed"
    return f"{name}: its bytes are not those that were sealed"


def check_root(folder: Path) -> str:
    """Check that the records have the root that was sealed; tombstones stand for what was deleted
    by law.
    """
    seal = Run(folder).seal
    deleted = read_tombstones(folder).items

    def leaves() -> Iterator[bytes]:
        for name, number, line in sealed_records(folder):
            leaf = as_leaf(line)
            if isinstance(leaf, Leaf):
                record = parse_record(line, f"{name} line {number}")
                if item_of(record) not in deleted:
                    raise Mismatch(
                        f"{name} line {number}: a tombstone that {TOMBSTONES} does not list"
                    )
            yield leaf

    tree = MerkleTree()
    tree.extend(leaves())
    root, count = tree.root().hex(), tree.count
    if (root, count) != (seal.root, seal.count):
        raise Mismatch(
            f"trials.jsonl, scores.jsonl: {count} records with root {root[:16]}, sealed were"
            f" {seal.count} with {seal.root[:16]}"
        )
    deleted_text = f"; {counted(len(deleted), 'item')} deleted, see {TOMBSTONES}" if deleted else ""
    return f"{counted(count, 'record')}, root {root[:16]}{deleted_text}"


def check_joined(folder: Path) -> str:
    """Check that the records of each member of a joined run are those that were sealed with it."""
    run = open_run(folder)
    members = run.manifest.joined or []
    trees = [MerkleTree() for _ in members]
    owner = {
        cell: tree for member, tree in zip(members, trees, strict=True) for cell in member.cells
    }
    for name, number, line in sealed_records(folder):
        cell = trial_cell(parse_record(line, f"{name} line {number}"))
        if cell not in owner:
            raise Mismatch(f"{name} line {number}: of no run that was joined")
        owner[cell].add(as_leaf(line))
    for member, tree in zip(members, trees, strict=True):
        if tree.root().hex() != member.root:
            raise Mismatch(f"run {member.run}: the records joined here have another root")
    return f"{len(members)} runs, each with its own root"
