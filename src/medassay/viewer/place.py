"""The runs that a viewer shows: one, or those of a workspace, here or in an object store."""

import json
import re
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from medassay.core.catch import caught
from medassay.core.log import log
from medassay.core.records.manifest import Manifest
from medassay.core.records.statistics import OVERALL
from medassay.core.wording import listed
from medassay.errors import InputError, IntegrityError, MedassayError
from medassay.runner.overview import trial_outcomes
from medassay.storage.leftover import at_work
from medassay.storage.object_store import Mirror, is_address
from medassay.storage.run import LOCK, SEAL, Run, is_locked, open_run, sealed_names
from medassay.storage.spend import SPEND, Spending, spendings, summed
from medassay.viewer.groups import count_failed
from medassay.viewer.index import RunIndex, run_state
from medassay.viewer.prompts import SentPrompts

_UNREADABLE = (IntegrityError, InputError, OSError)
_FIRST = 200  # trials that are indexed at once, so that the first page shows some
_RATE_WINDOW = 60.0  # seconds over which the rate is taken
_PULL_EVERY = 5.0  # seconds between two looks into an object store
_SPENT_EVERY = 5.0  # seconds for which a sum of spending is remembered
_IN_STORE = re.compile(r"(?P<workspace>[a-z0-9+]+://.+)/runs/(?P<run>[^/]+)/?")


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One run as the list of runs shows it.

    Attributes
    ----------
    expected : trials that the run has when it is finished; None where that is not known
    rate : trials a minute lately; None where nobody looked long enough, or nothing came
    spent : what it cost by now, as people read it
    reason : why it cannot be read, "" where it can
    """

    name: str
    plan: str = ""
    task: str = ""
    models: list[str] = msgspec.field(default_factory=list)
    created_at: str = ""
    state: str
    trials: int = 0
    failed: int = 0
    expected: int | None = None
    rate: float | None = None
    spent: str = ""
    reason: str = ""

    @property
    def live(self) -> bool:
        """Return whether somebody works on it."""
        return self.state == "at work"


class ViewedRun:
    """A run that somebody looks at: its index, its prompts, and how fast it grows."""

    def __init__(self, path: Path) -> None:
        self.run = open_run(path)
        self.index = RunIndex(self.run)
        self.prompts = SentPrompts(self.run)
        self._samples: deque[tuple[float, int]] = deque(maxlen=600)
        self._expected: int | None = None
        if self.index.n_trials == 0:
            try:
                self.index.catch_up(_FIRST)
            except (MedassayError, OSError) as error:  # told on its pages
                self.index.note_error(str(error))

    @property
    def expected(self) -> int | None:
        """Return how many trials the run has when it is finished."""
        if self._expected is None and not self.index.sealed:
            self._expected = self.prompts.n_trials
        elif self._expected is None:
            with suppress(*_UNREADABLE):
                self._expected = trial_outcomes(self.run).total()
        return self._expected

    def rate(self) -> float | None:
        """Return how many trials a minute came lately."""
        now, n_trials = time.monotonic(), self.index.n_trials
        self._samples.append((now, n_trials))
        while len(self._samples) > 2 and now - self._samples[0][0] > _RATE_WINDOW:
            self._samples.popleft()
        began, before = self._samples[0]
        if now - began < 1 or n_trials == before:
            return None
        return 60 * (n_trials - before) / (now - began)


class ViewedPlace:
    """What a viewer was started on.

    Parameters
    ----------
    place : a workspace, a run, or the address of either in an object store

    Raises
    ------
    InputError
        When there is no run at the place.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._mirror: Mirror | None = None
        self._runs: dict[str, ViewedRun] = {}
        self._lock = threading.RLock()
        self._spent: tuple[float, list[Spending]] = (-_SPENT_EVERY, [])
        self._sealed: dict[str, tuple[str, RunSummary]] = {}
        self._named: Path | None = None  # the folder of the one run
        self.only, self.workspace = self._opened(place)
        self._follower: subprocess.Popen[str] | None = None
        self._stopped = threading.Event()

    def _opened(self, place: str) -> tuple[str, Path]:
        """Return the name of the one run that is summary, "" for all, and the workspace."""
        if is_address(place):
            match = _IN_STORE.fullmatch(place)
            self._mirror = Mirror(match["workspace"] if match else place)
            only = match["run"] if match else ""
            self._pull(only)
            folder = self._mirror.folder
            if not (folder / "runs").is_dir() or (only and not (folder / "runs" / only).is_dir()):
                raise InputError(f"{place}: no runs are there; expected a workspace, or a run")
            return only, folder
        folder = Path(place)
        if (folder / "manifest.json").is_file():
            run = folder.resolve()
            self._named = run
            return run.name, run.parent.parent if run.parent.name == "runs" else run.parent
        if not (folder / "runs").is_dir():
            raise InputError(
                f"{place}: no workspace and no run; expected a folder with runs/, or one with"
                " manifest.json"
            )
        return "", folder.resolve()

    @property
    def called(self) -> str:
        """Return the place as people know it: its address, or its whole path."""
        return self.place if self._mirror is not None else str(Path(self.place).resolve())

    def start(self) -> None:
        """Start what works beside the pages: the process that indexes, and the fetching of what an
        object store has anew.
        """
        self._start_follower()
        if self._mirror is not None:
            threading.Thread(target=self._keep_pulling, daemon=True).start()

    def _start_follower(self) -> None:
        if self._follower is not None and self._follower.stdin is not None:
            with suppress(OSError):
                self._follower.stdin.close()
        # In a session of its own: it ends with its input, and a Ctrl-C is for the server alone.
        self._follower = subprocess.Popen(
            [sys.executable, "-m", "medassay.viewer.follow"],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def stop(self) -> None:
        """Stop it, and close what is open."""
        self._stopped.set()
        if self._follower is not None and self._follower.stdin is not None:
            with suppress(OSError):
                self._follower.stdin.close()
            self._follower.wait(timeout=30)
        for viewed in self._runs.values():
            viewed.index.close()

    def _pull(self, only: str) -> None:
        if self._mirror is not None:
            # A sealed run does not change: it is here, and stays as it is.
            self._mirror.pull(f"runs/{only}" if only else "runs", accepts=self._is_wanted)
            self._mirror.pull(SPEND)

    def _is_wanted(self, name: str) -> bool:
        parts = name.split("/")
        if self._mirror is None or len(parts) < 2:
            return True
        run = self._mirror.folder / parts[0] / parts[1]
        return not (is_whole(run) or is_locked(run / LOCK))

    def _keep_pulling(self) -> None:
        while not self._stopped.wait(_PULL_EVERY):
            try:
                self._pull(self.only)
            except (MedassayError, OSError) as error:
                log.warn("not_fetched", address=self.place, why=str(error))

    def _folder(self, name: str) -> Path:
        return self.workspace / "runs" / name if self._named is None else self._named

    def names(self) -> list[str]:
        """Return the names of the runs, in no order."""
        if self.only:
            return [self.only]
        manifests = (self.workspace / "runs").glob("*/manifest.json")
        # A name in another encoding cannot stand in an address.
        return [path.parent.name for path in manifests if path.parent.name.isprintable()]

    def open(self, name: str) -> ViewedRun:
        """Return a run, which is read on from now; a later call tells that it is still looked at.

        Raises
        ------
        InputError
            When there is no such run.
        """
        if name not in self.names():
            raise InputError(f"no run '{name}' here; the list of runs names those that are")
        with self._lock:
            viewed = self._runs.get(name)
            if viewed is not None and viewed.index.is_stale:
                viewed.index.close()
                viewed = None
            if viewed is None:
                viewed = self._runs[name] = ViewedRun(self._folder(name))
        self._follow(viewed)
        return viewed

    def _follow(self, viewed: ViewedRun) -> None:
        if self._follower is None or self._follower.stdin is None:
            return
        with self._lock, suppress(OSError):  # it may have ended just now: the next page sees it
            if self._follower.poll() is not None:
                self._start_follower()
            print(json.dumps(str(viewed.run.path.resolve())), file=self._follower.stdin, flush=True)

    def spent(self, run: str) -> str:
        """Return what a run cost by now, requests under way at their upper bound; "" for nothing
        that is known.
        """
        with self._lock:
            at, rows = self._spent
            if time.monotonic() - at > _SPENT_EVERY:
                rows = []
                with suppress(*_UNREADABLE):
                    rows = spendings(self.workspace / SPEND)
                self._spent = time.monotonic(), rows
        sums = [row for row in summed(rows, "run") if row.name == run and row.amount.calls]
        return listed([text for row in sums if (text := row.spent_text)])

    def summary(self, name: str) -> RunSummary:
        """Return a run as the list of runs shows it."""
        run = Run(self._folder(name))
        with caught() as errors:  # what is wrong with one run must not hide the others
            return self._sealed_summary(name, run) if run.sealed else self._open_summary(name, run)
        reason = errors[0]
        if not isinstance(reason, MedassayError | OSError):
            reason = IntegrityError(f"damaged, or made by another version ({reason!r:.200})")
        with caught():
            return _named(name, run.manifest, state="unreadable", reason=str(reason))
        return RunSummary(name=name, state="unreadable", reason=str(reason))

    def _sealed_summary(self, name: str, run: Run) -> RunSummary:
        state = run_state(run)
        remembered_state, summary = self._sealed.get(name, ("", None))
        if summary is None or state != remembered_state:
            # Baselines have no rows where they are not asked, but trials.
            n_trials, statistics = trial_outcomes(run).total(), run.statistics
            domains = [name for name in statistics.domains if name != OVERALL]
            rows = [row for domain in domains for row in statistics.rows(domain)]
            summary = _named(
                name,
                run.manifest,
                state="sealed",
                trials=n_trials,
                failed=sum(row.outcomes.get("failed", 0) for row in rows),
                expected=n_trials,
                spent=self.spent(run.id),
            )
            self._sealed[name] = state, summary
        viewed = self._runs.get(name)
        return summary if viewed is None else replace(summary, reason=viewed.index.error)

    def _open_summary(self, name: str, run: Run) -> RunSummary:
        viewed = self.open(name)
        index = viewed.index
        failed = count_failed(index)
        return _named(
            name,
            run.manifest,
            state="at work" if at_work(viewed.run.path) else "unfinished",
            trials=index.n_trials,
            failed=failed,
            expected=viewed.expected,
            rate=viewed.rate(),
            spent=self.spent(viewed.run.id),
            reason=index.error,
        )

    def summaries(self) -> list[RunSummary]:
        """Return all runs, the newest first."""
        runs = [self.summary(name) for name in self.names()]
        return sorted(runs, key=lambda run: (run.created_at, run.name), reverse=True)


def _named(name: str, manifest: Manifest, **more: object) -> RunSummary:
    return RunSummary(
        name=name,
        plan=manifest.name,
        task=", ".join(sorted(manifest.task_names)),
        models=sorted(manifest.models),
        created_at=manifest.created_at,
        **more,  # type: ignore[arg-type]
    )


def is_whole(run: Path) -> bool:
    """Return whether a sealed run is here with all its files."""
    if not (run / SEAL).is_file():
        return False
    try:
        return all((run / name).is_file() for name in sealed_names(run))
    except (OSError, UnicodeDecodeError):
        return False
