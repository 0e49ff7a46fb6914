"""Every harness whose logs become runs: one line each."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.errors import InputError
from medassay.exchange import helm, inspect, lm_eval
from medassay.exchange.logs import run_of
from medassay.exchange.prediction import PredictionFile, UnfinishedLog
from medassay.storage.run import Run


class Import(msgspec.Struct, frozen=True):
    """How one harness's logs are known and read.

    `expected` says what they look like, `options` are those of the reader.
    """

    title: str
    expected: str
    recognises: Callable[[Path], bool]
    read: Callable[..., PredictionFile]

    def load(
        self,
        *places: Path,
        models: Sequence[str] = (),
        runs: Path | None = None,
        to: Path | None = None,
        **options: Any,
    ) -> Run:
        """Return the sealed run of some logs; of a folder all those in it, at any depth.

        A log in a folder whose evaluation did not end is left out, and named in the run; named by
        itself it is refused.

        Parameters
        ----------
        models : names of the models in place of those of the logs: one for all, or one for each
            log, in order

        Raises
        ------
        InputError
            When a folder holds no log, or a log cannot be read.
        """
        logs: list[PredictionFile] = []
        left_out: list[dict[str, str]] = []
        files = [(place, path) for place in places for path in self._log_files(place)]
        if len(models) > 1 and len(models) != len(files):
            listed = ", ".join(path.name for _, path in files)
            raise InputError(
                f"--model: {len(models)} for {len(files)} logs ({listed}); expected one for each"
            )
        for number, (place, path) in enumerate(files):
            if models:
                options["model"] = models[number % len(models)]
            try:
                logs.append(self.read(path, **options))
            except UnfinishedLog as error:
                if path == place:
                    raise
                file = str(path.relative_to(place))
                left_out.append({"file": file, "reason": error.reason})
        if not logs:
            reasons = "; ".join(f"{entry['file']}: {entry['reason']}" for entry in left_out)
            raise InputError(f"no finished log of {self.title} among those given ({reasons})")
        return run_of(logs, left_out=left_out, runs=runs, to=to)

    def _log_files(self, place: Path) -> Iterator[Path]:
        """Yield a log, or those in a folder: files, and folders that hold one log together."""
        if not place.is_dir():
            yield place
            return
        any_file = False
        for name, folders, files in os.walk(place):
            folders.sort()
            folder = Path(name)
            candidates = [folder] if self.recognises(folder) else [folder / file for file in files]
            for path in sorted(candidates):
                if path == folder or self.recognises(path):
                    any_file = True
                    yield path
        if not any_file:
            raise InputError(
                f"{place}: holds no log of {self.title}, at any depth; expected {self.expected}"
            )


IMPORTS: dict[str, Import] = {
    "helm": Import(
        "HELM", f"a run folder with {helm.STATS} and {helm.SPEC}", helm.recognises, helm.read
    ),
    "inspect": Import("Inspect", "*.eval or *.json", inspect.recognises, inspect.read),
    "lm-eval": Import(
        "lm-evaluation-harness",
        "samples_<task>_<time>.jsonl, as lm_eval --log_samples writes them",
        lm_eval.recognises,
        lm_eval.read,
    ),
}
