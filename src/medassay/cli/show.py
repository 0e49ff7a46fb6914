"""`medassay show ID`: an item of a run with every answer, or one trial by its hash."""

from pathlib import Path
from typing import Any

import typer

from medassay.cli.output import out
from medassay.errors import IncompleteError, InputError


def command(
    name: str = typer.Argument(
        ..., metavar="ID", help="An item's id, or the first digits of a trial's SHA-256."
    ),
    run: Path | None = typer.Option(
        None, help="The run's folder; default: the newest in runs/."
    ),
) -> None:
    """Print an item with every model's answer, or one trial."""
    from medassay.core.canonical import canonical, sha256_hex
    from medassay.storage.jsonl import read_jsonl
    from medassay.storage.run import open_run
    from medassay.task.scoring import RunItems

    folder = run or _newest()
    found = open_run(folder)
    if not found.sealed:
        raise IncompleteError(f"run {found.id}: not finished; run its plan again to resume it")
    scores = read_jsonl(found.path / "scores.jsonl")
    hits: list[dict[str, Any]] = []
    for trial, score in zip(read_jsonl(found.path / "trials.jsonl"), scores, strict=True):
        digest = sha256_hex(canonical(trial))
        if trial["item"] == name or (len(name) >= 8 and digest.startswith(name.lower())):
            hits.append(
                {
                    "sha256": digest,
                    "trial": trial,
                    "score": score["score"],
                    "because": score["because"],
                }
            )
    if not hits:
        raise InputError(f"run {found.id}: no item '{name}', and no trial whose hash starts so")
    items = RunItems(found.path, found.manifest["domains"])
    item = items.get(hits[0]["trial"]["domain"], hits[0]["trial"]["item"])
    if out.json:
        out.document(
            {
                "run": found.id,
                "item": {"id": item.id, "question": item.question, "target": item.target},
                "trials": hits,
            }
        )
        return
    out.result(f"{item.id} · {item.domain} · target {item.target}")
    for text in filter(None, (item.context, item.question)):
        out.result(text)
    for letter, option in zip(item.letters, item.options, strict=True):
        out.result(f"  {letter}. {option}")
    for hit in hits:
        trial = hit["trial"]
        out.result(
            f"{trial['model']} · {trial['setting']} · {trial['mode']} · repeat {trial['repeat']}: "
            f"{trial.get('text', '')!r} → {trial['value']} ({trial['outcome']}, {trial['reason']}), "
            f"score {hit['score']}, sha256 {hit['sha256'][:16]}"
        )


def _newest() -> Path:
    folders = [p.parent for p in Path("runs").glob("*/seal.json")]
    if not folders:
        raise InputError("runs/: no finished run here; name one with --run")
    return max(folders, key=lambda p: (p / "seal.json").stat().st_mtime)
