"""Workers that follow a script, and what their runs must hold."""

import json

from tests import makers


def workspace(folder, items, *models, **plan):
    folder.mkdir(exist_ok=True)
    makers.write_bank(folder / "bank", items)
    makers.write_models(folder, *models)
    names = [m["id"] for m in models if not m["id"].startswith("judge")]
    return makers.write_plan(folder, models=names, **plan)


def sealed(run):
    return {
        name: (run.path / name).read_bytes()
        for name in ("items.jsonl", "trials.jsonl", "scores.jsonl", "statistics.json")
    }


def keys_of(path):
    import sys

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    with zstd.open(path, "rb") as file:
        return [json.loads(line)["key"] for line in file]
