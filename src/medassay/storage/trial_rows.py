"""The trials of a run as rows of a table: one row a trial, with its score and its seconds."""

from collections.abc import Iterator
from typing import Any

from medassay.core.canonical import sha256_hex
from medassay.core.records.item import banked_letters
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run

COLUMNS = (
    "run",
    "domain",
    "model",
    "setting",
    "mode",
    "item",
    "repeat",
    "outcome",
    "value",
    "reason",
    "score",
    "because",
    "scorer",
    "seconds",
    "text",
    "order",
)


def trial_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield every trial of a run with its score and its seconds, by the names in `COLUMNS`, and
    `sha256`, the hash of its line.
    """
    with (run.path / "trials.jsonl").open("rb") as lines:
        digests = (sha256_hex(line.removesuffix(b"\n")) for line in lines)
        files = (read_jsonl(run.path / f"{name}.jsonl") for name in ("trials", "scores", "timings"))
        for digest, trial, score, timing in zip(digests, *files, strict=True):
            record = {**score, **trial, **timing, "run": run.id}
            if "order" in trial:  # positions, which no table can hold
                record["order"] = " ".join(banked_letters(trial["order"]))
            yield {name: record.get(name) for name in COLUMNS} | {"sha256": digest}
