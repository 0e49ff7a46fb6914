"""lm-evaluation-harness's own task over local files, with a model of transformers on the CPU.

`python harness.py SITE_PACKAGES WEIGHTS FOLDER TASK…`: run by a Python with torch and transformers;
the harness comes from the environment of other harnesses, after that Python's own packages. Each
task reads FOLDER/TASK.jsonl and writes FOLDER/TASK.json. medassay is not imported.
"""

import json
import sys
import tempfile
from pathlib import Path

# Where the task's own file lies below the harness's folder of tasks.
_FILES = {
    "medqa_4options": "medqa/medqa.yaml",
    "mmlu_anatomy": "mmlu/default/mmlu_anatomy.yaml",
    "pubmedqa": "pubmedqa/pubmedqa.yaml",
}


def main(packages, weights, folder, *names):
    sys.path.append(packages)
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=weights, dtype="float32", device="cpu", batch_size=4)
    for name in names:
        items = evaluate(model, name, str(Path(folder) / f"{name}.jsonl"))
        (Path(folder) / f"{name}.json").write_text(json.dumps(items), encoding="utf-8")


def evaluate(model, name, data):
    """Return what the harness's task asked and found, item by item."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    tasks = Path(lm_eval.__file__).parent / "tasks"
    keys = {
        "include": str(tasks / _FILES[name]),
        "task": "here",
        "tag": None,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": {"test": data}},
        "training_split": None,
        "validation_split": None,
        "fewshot_split": None,
        "test_split": "test",
    }
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML; what is told of the data alone replaces what the task says.
        (Path(folder) / "here.yaml").write_text(json.dumps(keys))
        results = lm_eval.simple_evaluate(
            model=model,
            tasks=["here"],
            task_manager=TaskManager(include_path=folder, include_defaults=False),
            num_fewshot=0,
            log_samples=True,
        )
    return [
        {
            "id": sample["doc"]["id"],
            "prompt": sample["arguments"][0][0],
            "acc": sample["acc"],
            "log_p": [float(reply[0]) for reply in sample["filtered_resps"]],
        }
        for sample in results["samples"]["here"]
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
