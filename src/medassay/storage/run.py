"""A run on disk: its folder, its manifest, its seal."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.files import write_whole
from medassay.core.frame import Records, table_html
from medassay.core.json import parse_record, record_as
from medassay.core.private import make_folder
from medassay.core.records.item import Item
from medassay.core.records.leaderboard import Leaderboard
from medassay.core.records.manifest import Manifest
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.score import TrialScore
from medassay.core.records.seal import Seal
from medassay.core.records.sealed_object import TrialKeys
from medassay.core.records.statistics import Statistics
from medassay.core.records.statistics_object import StatisticsObject
from medassay.core.records.table_rows import item_row, score_row, trial_row, verdict_row
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import StoredVerdict
from medassay.core.wording import visible
from medassay.errors import IncompleteError, InputError, IntegrityError
from medassay.storage.journal import JOURNAL, VERDICTS
from medassay.storage.merkle import Leaf, MerkleTree
from medassay.storage.run_records import (
    AnswersTable,
    FileRecords,
    items_of,
    scores_of,
    trials_of,
    verdicts_of,
)

if TYPE_CHECKING:
    import pandas
    import polars

SPOT_CHECK = "audit"
JUDGED = (f"{VERDICTS}.jsonl", f"{SPOT_CHECK}.jsonl")  # of judged runs only
SEALED_RECORDS = ("trials.jsonl", *JUDGED, "scores.jsonl")
SUMS = "MANIFEST.sha256"
TOMBSTONES = "tombstones.json"  # what was deleted by law after sealing
_TOMBSTONE = b'"tombstone":'
SEAL = "seal.json"
LOCK = "lock"
PUBLISHED_RUN = Path("data/run")  # where a publication keeps the run that its pages are made of
RERUN = "rerun.json"  # of a fresh run: how it differs from the stored one, cell by cell
SALT = "salt.json"  # the secret behind the commitments to synthetic items; never published
LEASES = "leases"  # who holds work of it
STUDIES = "studies"  # of a workspace: studies that ask, while they are under way
JOURNALS = (JOURNAL, VERDICTS, SPOT_CHECK)  # folders that a sealed run no longer needs
_LOOKS, _LOOK_SECONDS = 5, 0.02  # how often, and how long apart, a lock is tried
_RUN_ID = re.compile(r"(?P<plan>[0-9a-z][0-9a-z-]*)-(?P<counter>\d+)\Z")


@dataclass(frozen=True)
class Run:
    """One execution of a plan. Its files are read when asked for.

    Of a run that is not finished, `trials`, `scores`, `verdicts` and the frames give what is there
    by now; what is computed over all answers, statistics and leaderboards, needs a sealed run.

    Attributes
    ----------
    path : its folder

    Examples
    --------
    >>> import medassay
    >>> run = medassay.example_run()
    >>> run
    Run(example · sealed · 48 trials)
    >>> trial = next(iter(run.trials()))
    >>> trial.model, trial.item, trial.outcome, trial.value
    ('careful', 'cardiology-013', 'answered', 'E')
    >>> sum(score.score for score in run.scores() if score.model == "careful")
    17.0
    >>> run.to_pandas().groupby("model")["score"].mean().round(3).to_dict()
    {'careful': 0.708, 'hasty': 0.333}
    """

    path: Path

    def __post_init__(self) -> None:
        """Take a text for a path."""
        object.__setattr__(self, "path", Path(self.path))

    @property
    def id(self) -> str:
        """Return the run's id, plan hash and counter."""
        name = self.manifest_document.get("run")
        if not isinstance(name, str):
            raise IntegrityError("manifest.json: names no run")
        return name

    @property
    def sealed(self) -> bool:
        """Return whether the run is finished and sealed."""
        return (self.path / SEAL).is_file()

    @cached_property
    def manifest(self) -> Manifest:
        """Return what the run was made with."""
        return record_as(self.manifest_document, Manifest, "manifest.json")

    @cached_property
    def manifest_document(self) -> ManifestObject:
        """Return the manifest as it stands in its file, with keys that this code does not know: for
        who copies it.
        """
        return cast(ManifestObject, read_document(self.path / "manifest.json"))

    @cached_property
    def seal(self) -> Seal:
        """Return the seal."""
        return record_as(read_document(self.path / SEAL), Seal, SEAL)

    @cached_property
    def statistics(self) -> Statistics:
        """Return the sealed statistics."""
        document = read_document(self.path / "statistics.json")
        return Statistics(cast(StatisticsObject, document))

    @property
    def leaderboard(self) -> Leaderboard:
        """Return the rankings of a sealed run.

        Raises
        ------
        IncompleteError
            When the run is not finished.
        """
        self.refuse_unfinished()
        return Leaderboard.of(self.id, self.statistics.document)

    def refuse_unfinished(self) -> None:
        """Refuse a run that is not sealed.

        Raises
        ------
        IncompleteError
            When it is not.
        """
        if not self.sealed:
            raise IncompleteError(f"run {self.id}: not finished; run its plan again to resume it")

    def trials(self) -> Records[Trial]:
        """Return the trials: what each model was asked, replied, and what was read in it."""
        return FileRecords("trials", lambda: trials_of(self.path), trial_row)

    def scores(self) -> Records[TrialScore]:
        """Return the score of each trial, with its parts, metrics of texts and scores by judge."""
        return FileRecords("scores", lambda: scores_of(self.path), score_row)

    def verdicts(self) -> Records[StoredVerdict]:
        """Return what each judge said of each answer; none of a run without judges."""
        return FileRecords("verdicts", lambda: verdicts_of(self.path), verdict_row)

    def items(self) -> Records[Item]:
        """Return the items that were asked, as they were then."""
        return FileRecords("items", lambda: items_of(self.path, self.manifest.domains), item_row)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a trial with its seconds, its score, and the item that was asked.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        return AnswersTable(self.path, self.manifest.domains).to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return the same as `to_pandas` for polars.

        Raises
        ------
        InputError
            When polars is not installed.
        """
        return AnswersTable(self.path, self.manifest.domains).to_polars()

    def __repr__(self) -> str:
        return visible(f"Run({self._summary})")

    def _repr_html_(self) -> str:
        if self.sealed:
            return self.leaderboard.table(title=self._summary)
        return table_html(["unfinished run"], [[self._summary]])

    @property
    def _summary(self) -> str:
        n_trials = len(self.trials())
        state = "sealed" if self.sealed else "not finished"
        name = self.manifest.name or self.id
        return f"{name} · {state} · {n_trials:,} trials"


def read_document(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a run."""
    try:
        document = parse_record(path.read_bytes(), path.name, IntegrityError)
    except FileNotFoundError:
        raise InputError(
            f"{path.parent}: holds no {path.name}; expected the folder of a run"
        ) from None
    if not isinstance(document, dict):
        raise IntegrityError(f"{path.name}: not a JSON object")
    return document


def open_run(path: Path | str) -> Run:
    """Return the run in a folder, finished or not.

    Raises
    ------
    InputError
        When there is no run.

    Examples
    --------
    >>> import medassay
    >>> from medassay import open_run
    >>> path = medassay.example_run().path
    >>> open_run(str(path)).sealed
    True
    """
    if not isinstance(path, str | Path):
        raise InputError(f"a run: expected a folder's path, or a Run; got {path!r:.60}")
    path = Path(path)
    if not (path / "manifest.json").is_file():
        raise InputError(f"{path}: not a run; expected a folder with manifest.json (see runs/)")
    return Run(path)


def runs_of_plan(runs: Path, plan_hash: str) -> list[Run]:
    """Return the runs of a plan, oldest counter first; none that was scored or judged again."""
    runs_found = []
    for folder in runs.glob(f"{plan_hash}-*"):
        match = _RUN_ID.match(folder.name)
        if match and match["plan"] == plan_hash and (folder / "manifest.json").is_file():
            runs_found.append((int(match["counter"]), folder))
    return [Run(folder) for _, folder in sorted(runs_found)]


def latest(runs: Path, plan_hash: str) -> tuple[int, Run | None]:
    """Return the highest counter used by a plan (0 if none) and that run."""
    runs_found = runs_of_plan(runs, plan_hash)
    if not runs_found:
        return 0, None
    match = _RUN_ID.match(runs_found[-1].path.name)
    return (int(match["counter"]) if match else 0), runs_found[-1]


def create_run(runs: Path, name: str, manifest: ManifestObject) -> Run:
    """Create a run's folder with its manifest; refuse a name in use."""
    folder = runs / name
    make_folder(folder)
    write_new(
        folder / "manifest.json",
        canonical({"schema_version": 1, "run": name, **manifest}) + b"\n",
    )
    return Run(folder)


def refuse_inside(target: Path) -> None:
    """Refuse to write where nothing may change any more: in a sealed run, a publication, a site.

    The folder of a site itself is no such place for a publication; what lies below it is.
    """
    for folder in target.resolve().parents:
        if (folder / SEAL).is_file() or (folder / SUMS).is_file():
            raise InputError(f"{target}: lies in the sealed run {folder}; choose another place")
        if (folder / "log.jsonl").is_file():
            raise InputError(f"{target}: lies in the site {folder}; choose another place")
    here = target.resolve()
    if (here / SEAL).is_file() or (here / "data" / SUMS).is_file():
        raise InputError(f"{target}: is a sealed run or a publication; choose another folder")


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, whole or not at all."""
    if path.exists():
        raise InputError(f"{path.name}: exists already in {path.parent}; nothing was overwritten")
    write_whole(path, data)


def lock_run(run: Run) -> IO[bytes]:
    """Return an open lock on a run; a second process is refused."""
    file = (run.path / LOCK).open("ab")
    for _ in range(_LOOKS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody works on it, or looks whether somebody does (`is_locked`)
            time.sleep(_LOOK_SECONDS)
        else:
            return file
    file.close()
    raise IncompleteError(f"run {run.id}: another process is working on it; wait for it") from None


def is_locked(lock: Path) -> bool:
    """Return whether a process of this machine holds a lock."""
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except OSError:  # there is none, or it is somebody else's and says nothing to us
        return False
    with open(descriptor, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def record_root(folder: Path) -> tuple[str, int]:
    """Return the Merkle root over the lines of the sealed record files, and their number."""
    tree = MerkleTree()
    tree.extend(as_leaf(line) for _, _, line in sealed_records(folder))
    return tree.root().hex(), tree.count


def items_root(folder: Path) -> str:
    """Return the Merkle root over the SHA-256 of each line of `items.jsonl`, of a deleted item the
    one that its tombstone keeps.
    """
    tree = MerkleTree()
    with (folder / "items.jsonl").open("rb") as file:
        for line in file:
            leaf = as_leaf(line.removesuffix(b"\n"))
            tree.add(bytes(leaf) if isinstance(leaf, Leaf) else sha256(leaf).digest())
    return tree.root().hex()


def as_leaf(line: bytes) -> bytes:
    """Return a record as a leaf of the tree; a tombstone as the leaf that it stands for."""
    if _TOMBSTONE not in line:
        return line
    record = parse_record(line, "tombstone")
    tombstone = record.get("tombstone") if isinstance(record, dict) else None
    if not isinstance(tombstone, str) or not re.fullmatch("[0-9a-f]{64}", tombstone):
        return line
    return Leaf(bytes.fromhex(tombstone))


def sealed_records(folder: Path) -> Iterator[tuple[str, int, bytes]]:
    """Yield (file, line number, record) of every record under the seal, in the order of the
    tree.
    """
    for name in SEALED_RECORDS:
        if name in JUDGED and not (folder / name).exists():
            continue
        with (folder / name).open("rb") as file:
            for number, line in enumerate(file, 1):
                yield name, number, line.removesuffix(b"\n")


def trial_cell(record: TrialKeys) -> str:
    """Return what names the model, setting and mode of a record: where it belongs in joined
    runs.
    """
    return "\x1f".join((record["model"], record["setting"], record["mode"]))


def sealed_names(folder: Path) -> list[str]:
    """Return the names of the files that belong to a sealed run, sums and seal among them."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    more = [TOMBSTONES] if (folder / TOMBSTONES).exists() else []
    return sorted([*(line.partition("  ")[2] for line in lines), SUMS, SEAL, *more])


def seal_run(run: Run, *, sealed_at: str, previous: str | None = None, **more: Any) -> None:
    """Write sums and seal, remove the journal, and make every file read-only.

    The seal is written last: a run without one is unfinished and resumes. `more` is what it says
    besides.
    """
    for left_over in run.path.glob("*.part"):  # of an interrupted sealing
        left_over.unlink()
    root, count = record_root(run.path)
    names = sorted(
        p.name for p in run.path.iterdir() if p.is_file() and p.name not in (SUMS, SEAL, LOCK)
    )
    sums = "".join(f"{file_sha256(run.path / name)}  {name}\n" for name in names).encode()
    (run.path / SUMS).unlink(missing_ok=True)
    write_new(run.path / SUMS, sums)
    body = {
        "schema_version": 1,
        "run": run.id,
        "sealed_at": sealed_at,
        "count": count,
        "root": root,
        **({"items_root": items_root(run.path)} if "items.jsonl" in names else {}),
        "sums_sha256": sha256_hex(sums),
        "previous": previous,
        **more,
    }
    write_new(run.path / SEAL, canonical({**body, "hash": sha256_hex(canonical(body))}) + b"\n")
    tidy(run)


def tidy(run: Run) -> None:
    """Remove what a sealed run no longer needs, also after a kill just behind the seal."""
    for journal in (run.path / name for name in JOURNALS):
        if journal.is_dir():
            for segment in journal.iterdir():
                segment.unlink()
            journal.rmdir()
    for name in sealed_names(run.path):
        (run.path / name).chmod(0o444)
    with suppress(OSError):  # held in an object store until the run is carried over
        (run.path / LEASES).rmdir()
    (run.path / LOCK).unlink(missing_ok=True)
