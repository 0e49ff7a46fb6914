"""A whole run without a model: three baselines on the demo bank, sealed and verified."""

import tempfile

import medassay

names = ("random", "majority", "longest")
baselines = [medassay.ModelSpec(id=name, provider="baseline", model=name) for name in names]
plan = medassay.Plan(banks=("demo",), task="closed", models=names, seed=7)
run = medassay.run(plan, models=baselines, secrets={}, workspace=tempfile.mkdtemp())
print(medassay.leaderboard(run))
print("verified:", medassay.verify(run.path).ok)
