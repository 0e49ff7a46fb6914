"""Runs under way, made of sealed ones."""

import shutil

from medassay.storage.run import open_run

_SIDE_BY_SIDE = ("trials", "scores", "timings")


def journal_of(run, folder, *, lines=None):
    """Return an unfinished run with the records of a sealed one in its journal."""
    target = folder / "runs" / run.path.name
    shutil.copytree(run.path, target)
    target.chmod(0o755)
    for path in target.iterdir():
        path.chmod(0o644)
    journal = target / "journal"
    journal.mkdir()
    records = [
        b'{"score":' + score + b',"timing":' + timing + b',"record":' + trial + b"}\n"
        for trial, score, timing in zip(
            *((target / f"{name}.jsonl").read_bytes().splitlines() for name in _SIDE_BY_SIDE),
            strict=True,
        )
    ]
    for name in ("seal.json", "MANIFEST.sha256", "statistics.json", "findings.jsonl"):
        (target / name).unlink()
    for name in _SIDE_BY_SIDE:
        (target / f"{name}.jsonl").unlink()
    (journal / "d-1.jsonl").write_bytes(b"".join(records[:lines]))
    return open_run(target), records
