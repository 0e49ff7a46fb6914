"""A whole run without a model: three baselines on the demo bank, sealed and verified."""

import json
import tempfile
from pathlib import Path

import medassay

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    models = [
        {"id": kind, "provider": "baseline", "model": kind}
        for kind in ("random", "majority", "longest")
    ]
    (folder / "models.json").write_text(json.dumps({"schema_version": 1, "models": models}))
    plan = medassay.Plan(
        banks=("demo",),
        models=("random", "majority", "longest"),
        models_file=str(folder / "models.json"),
        seed=7,
    )
    run = medassay.run(plan, secrets={}, workspace=folder)
    print(medassay.leaderboard(run))
    print("verified:", medassay.verify(run.path).ok)
