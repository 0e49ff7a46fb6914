"""Run other harnesses on questions of ours with scripted models, offline, and keep their logs.

    python make_logs.py inspect|lm-eval|helm FOLDER

Run by a Python that has the harness (requirements/interop.txt); medassay is not imported.
"""

import json
import os
import random
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ELECTROLYTES = ("Sodium", "Potassium", "Calcium")
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")


def inspect(folder):
    from inspect_ai import Task, eval, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import choice, includes, match
    from inspect_ai.solver import generate, multiple_choice

    @task
    def electrolytes():
        samples = [
            Sample(
                id=f"q{i}",
                input=f"Case {i}: which electrolyte is disturbed?",
                choices=list(ELECTROLYTES),
                target="ABC"[i % 3],
            )
            for i in range(12)
        ]
        data = MemoryDataset(samples, name="electrolytes")
        return Task(dataset=data, solver=multiple_choice(), scorer=choice())

    @task
    def doses():
        samples = [Sample(id=i + 1, input=f"Dose {i}?", target="ABC"[i % 3]) for i in range(4)]
        data = MemoryDataset(samples, name="doses")
        return Task(dataset=data, solver=generate(), scorer=[match(), includes()], epochs=2)

    def scripted(seed):
        chance = random.Random(seed)
        name = f"mockllm/m{seed}"

        def outputs():
            while True:
                made = ModelOutput.from_content(name, f"ANSWER: {chance.choice('ABC')}")
                made.usage = ModelUsage(input_tokens=30, output_tokens=4, total_tokens=34)
                yield made

        return get_model(name, custom_outputs=outputs(), memoize=False)

    for seed in (1, 2):
        for made, form in ((electrolytes, "eval"), (doses, "json")):
            [log] = eval(
                made(), scripted(seed), log_dir=str(folder), log_format=form, display="none"
            )
            Path(log.location).rename(folder / f"{log.eval.task}-m{seed}.{form}")


def lm_eval(folder):
    import lm_eval as harness
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        def __init__(self, seed):
            super().__init__()
            self.chance = random.Random(seed)

        def loglikelihood(self, requests, **more):
            return [(-5 * self.chance.random(), False) for _ in requests]

        def loglikelihood_rolling(self, requests, **more):
            return [-1.0 for _ in requests]

        def generate_until(self, requests, **more):
            return [str(self.chance.randrange(4)) for _ in requests]

    tasks = folder / "tasks"
    tasks.mkdir()
    choices = [c.lower() for c in ELECTROLYTES]
    closed = [
        {"q": f"Case {i}: which electrolyte?", "choices": choices, "gold": i % 3} for i in range(12)
    ]
    doses = [{"q": f"Dose {i}?", "a": str(i % 4)} for i in range(12)]
    for name, rows in (("electrolytes", closed), ("doses", doses)):
        (tasks / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    head = "dataset_path: json\ntest_split: test\ndoc_to_text: '{{q}}'\n"
    data = "dataset_kwargs: {{data_files: {{test: {}}}}}\n"
    (tasks / "electrolytes.yaml").write_text(
        f"task: electrolytes\n{head}{data.format(tasks / 'electrolytes.jsonl')}output_type:"
        " multiple_choice\ndoc_to_choice: '{{choices}}'\ndoc_to_target:"
        " '{{gold}}'\nmetric_list: [{metric: acc}, {metric: acc_norm}]\n"
    )
    (tasks / "doses.yaml").write_text(
        f"task: doses\n{head}{data.format(tasks / 'doses.jsonl')}"
        "output_type: generate_until\ndoc_to_target: '{{a}}'\n"
        "generation_kwargs: {until: ['.'], max_gen_toks: 8}\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    for seed in (1, 2):
        tracker = EvaluationTracker(output_path=str(folder / f"m{seed}"))
        found = harness.simple_evaluate(
            model=Scripted(seed),
            tasks=["electrolytes", "doses"],
            task_manager=manager,
            log_samples=True,
            evaluation_tracker=tracker,
            bootstrap_iters=0,
        )
        samples = found.pop("samples")
        found["pretty_env_info"] = ""  # tells of the machine
        tracker.save_results_aggregated(results=found, samples=samples)
        for task, rows in samples.items():
            tracker.save_results_samples(task_name=task, samples=rows)


def helm(folder):
    command = [
        str(Path(sys.executable).with_name("helm-run")),
        *("--run-entries", "simple_mcqa:model=simple/model1"),
        *("--suite", "t", "--max-eval-instances", "12", "--local-path", str(folder / "env")),
        *("--output-path", str(folder / "out")),
    ]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    for run in (folder / "out/runs/t").glob("simple_mcqa*"):
        run.rename(folder / run.name.replace(":", "-").replace("=", "-"))


if __name__ == "__main__":
    which, place = sys.argv[1], Path(sys.argv[2])
    place.mkdir(parents=True)
    {"inspect": inspect, "lm-eval": lm_eval, "helm": helm}[which](place.resolve())
    package = {"inspect": "inspect-ai", "lm-eval": "lm-eval", "helm": "crfm-helm"}[which]
    (place / "VERSION").write_text(f"{package} {version(package)}\n")
