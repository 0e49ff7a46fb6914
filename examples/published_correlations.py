"""What the published tables of the CareQA suite say of its benchmarks and metrics, from the numbers
alone.

Reads the results of twelve models (Tables 7 to 20 of the paper) below MEDASSAY_DATA; without them
it says so and ends.
"""

import os
from pathlib import Path

from medassay.model.spec import load_models
from medassay.study.closed_accuracy import ITEMS
from medassay.study.correlation import correlation_study
from medassay.study.correlation_sheet import correlation_sheet
from medassay.study.long_table import read_long

table = (
    Path(os.environ.get("MEDASSAY_DATA", "../shared/data"))
    / "careqa_suite_results/results_long.csv"
)
if not table.is_file():
    print(f"{table.name} is not here: set MEDASSAY_DATA")
    raise SystemExit

plans = Path(__file__).parents[1] / "plans"
sizes = {
    name: one.size
    for name, one in load_models(plans / "careqa_suite_models.json").items()
    if one.size is not None
}
rows = read_long(table)
study = correlation_study(rows, sizes=sizes)
print(correlation_sheet(study).reading)

print(
    "\n1. Accuracies of closed benchmarks: Pearson's r over 12 models [95 % interval by drawing"
    " models]"
)
view = study.views["accuracy over data sets"]
names, matrices = view.columns, view.matrices
for first, second in (
    ("CareQA (en)", "MMLU"),
    ("MedMCQA", "MedQA"),
    ("PubMedQA", "MMLU"),
    ("PubMedQA", "MedQA"),
):
    i, j = names.index(first), names.index(second)
    r, lo, hi = (
        matrix[i][j] for matrix in (matrices.pearson, matrices.pearson_lo, matrices.pearson_hi)
    )
    print(f"   {first:12} {second:8} {r:5.2f} [{lo:.2f}, {hi:.2f}]")

print("\n2. Metrics of MedText fall into clusters (distance 1 − |r| below 0.5)")
for cluster in study.views["metrics of MedText"].clusters:
    print(f"   {', '.join(cluster)}")

print("\n3. The published mean over MultiMedQA is that of its parts, each by its items")
parts = {"PubMedQA": 500, **{name: ITEMS[name] for name in ("MedMCQA", "MedQA", "MMLU")}}
accuracy = {(r.dataset, r.model): r.value for r in rows if r.metric == "accuracy"}
for model in study.models[:3]:
    mean = sum(n * accuracy[name, model] for name, n in parts.items()) / sum(parts.values())
    print(f"   {model:28} {mean:.3f} published {accuracy['multimedqa', model]:.3f}")

print(
    "\n4. Tasks against the accuracy of multiple choice questions (mean r, interval by drawing"
    " models)"
)
for group, closed in study.closed.groups.items():
    print(f"   {group}, {closed.n_models} models")
    for task in sorted(closed.tasks, key=lambda task: task.mean):
        if task.lo is not None:
            print(f"      {task.task:40} {task.mean:5.2f} [{task.lo:.2f}, {task.hi:.2f}]")
