"""BLEURT, F1-RadGraph and CheXbert: asked of a worker process, which is started on demand, watched,
and started again.

What a dead worker had not answered is asked again, so nothing is lost; a reply counts once, by the
number of its request. The worker sees no secret: of the environment it gets what finds files, and
nothing else.

Source: specification of text metrics.
"""

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import platformdirs

from medassay.core.scale import Scale
from medassay.errors import IncompleteError, UnavailableError
from medassay.score.measure import UNBOUNDED, Pair, Values, find_model, model_name

TIMEOUT = 600.0  # seconds for one request, the first loads the model
DEATHS = 5  # in a row, without a reply between them
_BATCH = 16
_LAST_READ = 5.0  # seconds for what a dead worker left in its pipes
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "XDG_CACHE_HOME", "HF_HOME")
_CACHE = "the package's cache"  # reasons are published: no path of this machine
_PROGRAM = Path(__file__).with_name("worker.py")


def legacy_folder() -> Path:
    """Return where the environment of legacy metrics lies."""
    return platformdirs.user_data_path("medassay") / "legacy-metrics"


class LegacyWorker:
    """One worker process; the next request starts another where it died."""

    def __init__(self, command: Sequence[str], *, timeout: float = TIMEOUT) -> None:
        self._command = tuple(command)
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: Queue[bytes | None] = Queue()
        self._number = 0
        self._last_words = ""

    @property
    def pid(self) -> int | None:
        """Return the process id, None where none runs."""
        return self._process.pid if self._process else None

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request.

        Raises
        ------
        IncompleteError
            When the worker died several times in a row; what was answered before is kept.
        """
        self._number += 1
        line = json.dumps({**request, "id": self._number}).encode() + b"\n"
        for _ in range(DEATHS):
            reply = self._exchange(line)
            if reply is not None:
                return reply
            self.close()
        raise IncompleteError(
            f"metric '{request['metric']}': its worker died {DEATHS} times in a row"
            f" ({self._last_words or 'without a word'}); the same command goes on from there"
        )

    def _exchange(self, line: bytes) -> dict[str, Any] | None:
        """Return the reply, None when the worker died or said nothing in time."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            while True:
                line_read = self._replies.get(timeout=self._timeout)
                if line_read is None:
                    return None
                reply: dict[str, Any] = json.loads(line_read)
                if reply.get("id") == self._number:
                    return reply
        except (BrokenPipeError, json.JSONDecodeError):
            return None
        except Empty:
            self._last_words = f"no reply within {self._timeout:g} s"
            return None

    def _start(self) -> None:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUTF8": "1"}
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, **offline, "TOKENIZERS_PARALLELISM": "false"},
        )
        self._replies = Queue()
        self._readers = [
            threading.Thread(target=_listen, args=(self._process, self._replies), daemon=True),
            threading.Thread(target=self._hear, args=(self._process,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _hear(self, process: "subprocess.Popen[bytes]") -> None:
        """Keep the last line that the worker's libraries printed: it often says why it died."""
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                if text := line.decode(errors="replace").strip():
                    self._last_words = text[:200]

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait()
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
        # Whoever reads a stream closes it: closed under a reader, it breaks in his hands.
        for reader in self._readers:
            reader.join(_LAST_READ)


def _listen(process: "subprocess.Popen[bytes]", replies: "Queue[bytes | None]") -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            replies.put(line if line.endswith(b"\n") else None)
    replies.put(None)


class LegacyMetric:
    """One metric of the worker."""

    context = ""

    def __init__(
        self, metric: str, model: Path, name: str, scale: Scale, command: Sequence[str] = ()
    ) -> None:
        self._metric, self._model = metric, model
        self.id = f"{metric}:{name}"
        self.columns = {metric: scale}
        self._worker = LegacyWorker(command or (str(_python(metric)), str(_PROGRAM)))

    def prepare(self, references: Iterable[str]) -> None:
        """Take nothing: values depend on the pair alone."""

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def score(self, pairs: Sequence[Pair]) -> list[Values]:
        """Return the value of each pair; None where its library fails on it."""
        values: list[Values] = []
        for at in range(0, len(pairs), _BATCH):
            values += self._batch(pairs[at : at + _BATCH])
        return values

    def _batch(self, pairs: Sequence[Pair]) -> list[Values]:
        request = {
            "metric": self._metric,
            "model": str(self._model),
            "pairs": [list(p) for p in pairs],
        }
        reply = self._worker.ask(request)
        if "values" in reply:
            return [tuple(values) for values in reply["values"]]
        if "fatal" in reply:
            raise IncompleteError(
                f"metric '{self._metric}': its model cannot be loaded: {reply['error']}; mend it,"
                " or leave the metric out: "
                f'metrics = ["{self._metric}=none"]; the same command goes on'
            )
        if len(pairs) == 1:
            return [(None,)]
        half = len(pairs) // 2  # which pair was it?
        return [*self._batch(pairs[:half]), *self._batch(pairs[half:])]


def _python(metric: str) -> Path:
    python = legacy_folder() / "bin" / "python"
    if not python.exists():
        raise UnavailableError(f"{metric}: `medassay metrics install legacy` brings its libraries")
    return python


def bleurt(place: str) -> LegacyMetric:
    """Return BLEURT; the reference checkpoint is bleurt-base-512."""
    _python("bleurt")
    folder = find_model(place, "lucadiliello/bleurt-base-512", "bleurt")
    return LegacyMetric("bleurt", folder, model_name(folder, place), UNBOUNDED)


def f1_radgraph(place: str) -> LegacyMetric:
    """Return F1-RadGraph, rewards partial.

    `place` holds a folder radgraph or radgraph-xl, by default the package's own cache.
    """
    _python("f1_radgraph")
    folder = Path(place) if place else platformdirs.user_cache_path("radgraph") / "0.1.18"
    names = [k for k in ("radgraph", "radgraph-xl") if (folder / k / "weights.th").is_file()]
    if not names:
        raise UnavailableError(
            f"f1_radgraph: {place or _CACHE}: no folder radgraph with a weights.th; unpack"
            " radgraph.tar.gz of StanfordAIMI/RRG_scorers there, or name its parent: metrics ="
            ' ["f1_radgraph=FOLDER"]'
        )
    name = _digest(folder / names[0] / "weights.th")
    return LegacyMetric("f1_radgraph", folder.resolve(), f"{names[0]}@{name}/partial", Scale())


def chexbert(place: str) -> LegacyMetric:
    """Return CheXbert: whether five observations are labelled alike.

    `place` holds chexbert.pth, by default the package's cache.
    """
    _python("chexbert")
    folder = Path(place) if place else platformdirs.user_cache_path("chexbert")
    tokenizer = folder / "bert-base-uncased"
    if (folder / "chexbert.pth").is_file() and not tokenizer.is_dir():
        raise UnavailableError(
            f"chexbert: {place or _CACHE}: no folder bert-base-uncased, whose tokenizer it needs; "
            "`hf download bert-base-uncased --local-dir …` brings it"
        )
    if not (folder / "chexbert.pth").is_file():
        raise UnavailableError(
            f"chexbert: {place or _CACHE}: no chexbert.pth; take it from StanfordAIMI/RRG_scorers,"
            ' or name its folder: metrics = ["chexbert=FOLDER"]'
        )
    name = _digest(folder / "chexbert.pth")
    return LegacyMetric("chexbert", folder.resolve(), f"chexbert@{name}/five observations", Scale())


def _digest(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
