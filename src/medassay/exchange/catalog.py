"""Every harness whose logs become runs: one line each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medassay.exchange import helm, inspect, lm_eval
from medassay.exchange.prediction import Log, run_of
from medassay.storage.run import Run


@dataclass(frozen=True)
class Import:
    """How one harness's logs are known and read; `options` are those of its reader."""

    recognises: Callable[[Path], bool]
    read: Callable[..., Log]

    def load(
        self, path: Path, *, runs: Path | None = None, to: Path | None = None, **options: Any
    ) -> Run:
        """Return the sealed run of a log."""
        return run_of(self.read(path, **options), runs=runs, to=to)


IMPORTS: dict[str, Import] = {
    "helm": Import(helm.recognises, helm.read),
    "inspect": Import(inspect.recognises, inspect.read),
    "lm-eval": Import(lm_eval.recognises, lm_eval.read),
}
