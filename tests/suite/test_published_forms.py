"""Closed benchmarks of suites in their published form, item by item beside the task of
lm-evaluation-harness that published it.
"""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import makers
from tests.conftest import absent

from medassay.kinds.catalog import TASKS
from medassay.model.embedded import embedded_folder
from medassay.prompt.render import load_template
from medassay.storage.jsonl import read_jsonl
from medassay.suite.catalog import BENCHMARKS
from medassay.suite.plan import SuitePlan
from medassay.suite.run import SuiteContext, run_suite, suite_models

ROOT = Path(__file__).parents[2]
N = 3


def pubmedqa(data, folder):
    """Write some articles as the bank reads them; return them as the harness does."""
    articles = json.loads((data / "pubmedqa/ori_pqal.json").read_text())
    tests = json.loads((data / "pubmedqa/test_ground_truth.json").read_text())
    # Of each answer the same number: a form that always says one thing would be seen.
    some = []
    for answer in ("yes", "no", "maybe"):
        some += [k for k in tests if articles[k]["final_decision"] == answer][: N // 3]
    (folder / "ori_pqal.json").write_text(json.dumps({key: articles[key] for key in some}))
    return [{"id": f"pubmedqa-{key}", **articles[key]} for key in some]


def medqa(data, folder):
    lines = (data / "medqa/test.jsonl").read_text().splitlines()[:N]
    (folder / "test.jsonl").write_text("\n".join(lines) + "\n")
    rows = map(json.loads, lines)
    return [
        {
            "id": f"medqa-{row['realidx']}",
            "sent1": row["question"],
            **{f"ending{n}": row["options"][letter] for n, letter in enumerate("ABCD")},
            "label": "ABCD".index(row["answer_idx"]),
        }
        for row in rows
    ]


def anatomy(data, folder):
    with (data / "mmlu_medical/test/anatomy_test.csv").open() as file:
        rows = list(csv.DictReader(file))[:N]
    (folder / "test").mkdir()
    with (folder / "test/anatomy_test.csv").open("w") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return [
        {
            "id": f"mmlu-anatomy-test-{n:04}",
            "question": row["question"],
            "choices": [row[f"choice{i}"] for i in range(4)],
            "answer": int(row["answer"]),
        }
        for n, row in enumerate(rows)
    ]


# Benchmark → the harness's task of it, and what writes some of its items.
PUBLISHED = {
    "pubmedqa": ("pubmedqa", pubmedqa),
    "medqa": ("medqa_4options", medqa),
    "mmlu_medical": ("mmlu_anatomy", anatomy),
}


def small_weights(folder):
    """Write a model with the tokenizer and the kind of SmolLM2, and far fewer weights, at random:
    their likelihoods lie far apart.
    """
    import shutil

    import torch
    import transformers

    real = Path(embedded_folder("embedded:smollm2"))
    shutil.copytree(real, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = transformers.AutoConfig.from_pretrained(real)
    config.update({"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128})
    config.update({"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16})
    config.update({"initializer_range": 0.3})
    torch.manual_seed(3)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


@pytest.mark.real_data
@pytest.mark.local_model
def test_prompts_likelihoods_and_scores_are_those_of_the_harness(data, tmp_path):
    [packages] = list(ROOT.glob(".venv-interop/lib/python*/site-packages")) or [None]
    if packages is None:
        absent("other harnesses are not installed: make interop")
    pytest.importorskip("torch")
    weights = small_weights(tmp_path / "small")
    for benchmark, (task, write) in PUBLISHED.items():
        folder = tmp_path / "data" / BENCHMARKS[benchmark].folder
        folder.mkdir(parents=True)
        rows = write(data, folder)
        (tmp_path / f"{task}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    plan = SuitePlan(suite=tuple(PUBLISHED), models=("small",))
    specs = suite_models(tmp_path / "models.json", (str(weights),))
    suite = run_suite(
        plan, specs, SuiteContext(data=tmp_path / "data", workspace=tmp_path, secrets={})
    )
    tasks = [task for task, _ in PUBLISHED.values()]
    harness = subprocess.run(
        [sys.executable, ROOT / "tests/suite/harness.py", packages, weights, tmp_path, *tasks],
        capture_output=True,
        text=True,
        check=False,
    )
    assert harness.returncode == 0, harness.stderr[-2000:]
    for part, task in zip(suite.parts, tasks, strict=True):
        theirs = json.loads((tmp_path / f"{task}.json").read_text())
        compare(suite, part, {one["id"]: one for one in theirs})


def compare(suite, part, theirs):
    """Hold one benchmark of a suite against what the harness asked and found."""
    run = suite.run(part.runs["answers"])
    trials = {one["item"]: one for one in read_jsonl(run.path / "trials.jsonl")}
    scores = {one["item"]: one["score"] for one in read_jsonl(run.path / "scores.jsonl")}
    bank = suite.workspace / "banks" / part.bank.folder / "items.jsonl"
    assert theirs.keys() == trials.keys() == scores.keys()
    assert len(theirs) == N
    from medassay.bank.check import build_item

    template = load_template(BENCHMARKS[part.benchmark].template)
    for line in bank.read_text().splitlines():
        item = build_item(json.loads(line))
        mine, other = trials[item.id], theirs[item.id]
        assert template.fill(item, None) == other["prompt"]
        likelihoods = [one["total"] for one in mine["likelihoods"]]
        assert likelihoods == pytest.approx(other["log_p"], abs=2e-3)
        assert scores[item.id] == other["acc"]


def test_pubmedqa_asks_for_the_words_yes_no_and_maybe():
    template = load_template(BENCHMARKS["pubmedqa"].template)
    assert template.options_as_texts
    assert "A." not in template.fill(
        build("pubmedqa", ("yes", "no", "maybe"), "Does it?", "It was seen."), None
    )


def build(domain, options, question, context):

    return makers.item(
        id="i",
        domain=domain,
        question=question,
        form="choice",
        options=options,
        expected="A",
        context=context,
    )


def test_the_docs_say_of_every_benchmark_what_its_published_form_is():
    text = (ROOT / "docs/how-to/suites.md").read_text()
    table = text[text.index("## Published forms") :]
    told = set(re.findall(r"^\| `([a-z0-9_]+)`", table, re.MULTILINE))
    assert told == set(BENCHMARKS)
    for name, one in BENCHMARKS.items():
        [row] = re.findall(rf"^\| `{name}` .*$", table, re.MULTILINE)
        template = one.template or TASKS[one.task].template
        assert f"`{template}`" in row, name
