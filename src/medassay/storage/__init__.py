"""Append-only storage: response store, journal, runs, seals."""

from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run, open_run

__all__ = ["Run", "open_run", "read_jsonl"]
