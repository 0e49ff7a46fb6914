"""lm-evaluation-harness's own task over local files, with a model of transformers on the CPU.

`python harness.py SITE_PACKAGES TASK WEIGHTS DATA.jsonl OUT.json`: run by a Python with torch and
transformers; the harness comes from the environment of other harnesses, after that Python's own
packages. medassay is not imported.
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


def main(packages, name, weights, data, out):
    sys.path.append(packages)
    import lm_eval
    from lm_eval.models.huggingface import HFLM
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
        found = lm_eval.simple_evaluate(
            model=HFLM(pretrained=weights, dtype="float32", device="cpu", batch_size=4),
            tasks=["here"],
            task_manager=TaskManager(include_path=folder, include_defaults=False),
            num_fewshot=0,
            log_samples=True,
        )
    samples = found["samples"]["here"]
    told = [
        {
            "id": one["doc"]["id"],
            "prompt": one["arguments"][0][0],
            "acc": one["acc"],
            "log_p": [float(reply[0]) for reply in one["filtered_resps"]],
        }
        for one in samples
    ]
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"version": lm_eval.__version__, "items": told}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
