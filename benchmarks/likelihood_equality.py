"""The same plans and prompts through medassay and lm-evaluation-harness: log-likelihoods, acc,
acc_norm, perplexities.

    python benchmarks/likelihood_equality.py ours FOLDER [--dtype float64]
    HARNESS/python benchmarks/likelihood_equality.py harness FOLDER
    python benchmarks/likelihood_equality.py compare FOLDER

`ours` makes small random models (Llama, GPT-2, Qwen2, Gemma) beside the embedded one, runs the
plans of likelihood over the demo bank, and leaves prompts and results in FOLDER. The harness, in an
environment of its own, gets the same texts as a task of multiple choice and one of rolling
log-likelihoods.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

TASKS = {
    "choices": ("closed_likelihood", ("acc", "acc_norm")),
    "texts": ("perplexity", ("word_perplexity", "byte_perplexity", "bits_per_byte")),
}
MODELS = ("llama", "gpt2", "qwen2", "gemma")


def make_model(name, folder, texts):
    """Write a random model with a byte-level tokenizer of 800 pieces."""
    import tokenizers
    import torch
    import transformers

    base = tokenizers.Tokenizer(tokenizers.models.BPE())
    base.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=800,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
    )
    base.train_from_iterator(texts, trainer)
    if name == "gemma":  # as Gemma's own tokenizer does
        base.post_processor = tokenizers.processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=base, bos_token="<s>", eos_token="</s>"
    )
    sizes = {
        "vocab_size": len(tokenizer),
        "bos_token_id": 0,
        "eos_token_id": 1,
        "max_position_embeddings": 512,
    }
    usual = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    configs = {
        "llama": lambda: transformers.LlamaConfig(**sizes, **usual),
        "qwen2": lambda: transformers.Qwen2Config(**sizes, **usual),
        "gemma": lambda: transformers.GemmaConfig(**sizes, **usual, head_dim=16),
        "gpt2": lambda: transformers.GPT2Config(**sizes, n_embd=64, n_layer=3, n_head=4),
    }
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(configs[name]())
    with torch.no_grad():  # wide enough that options differ clearly
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def ours(args):
    """Run the plans, and write what the harness needs."""
    import medassay
    from medassay import pipeline
    from medassay.core.records.plan import load_plan
    from medassay.kinds.likelihood.perplexity import corpus
    from medassay.model.context import joined
    from medassay.model.embedded import embedded_folder
    from medassay.model.likelihood import LikelihoodEngine

    root = Path(args.folder).resolve()
    root.mkdir(parents=True, exist_ok=True)
    items = [i for i in _demo_items() if i.form == "choice"]
    rows = [
        {
            "id": f"{n:04}",
            "domain": "d",
            "question": item.question,
            "source": "demo",
            "language": item.language,
        }
        for n, item in enumerate(items)
    ]
    banks = {
        "choices": [
            {**row, "options": list(item.options), "expected": item.expected}
            for row, item in zip(rows, items, strict=True)
        ],
        "texts": [
            {**row, "answer_type": "open", "facts": ["A fact."]}
            | {"reference": f"{item.question} {item.target}"}
            for row, item in zip(rows, items, strict=True)
        ],
    }
    for name, wanted in banks.items():
        (root / name).mkdir(exist_ok=True)
        (root / name / "bank.toml").write_text(
            f'name = "{name}"\nquestion_bank_version = "{name}-2026.1"\nlicence ='
            ' "CC0-1.0"\ndomains = ["d"]\n'
        )
        (root / name / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in wanted))
    folders = {"smollm2": str(embedded_folder("embedded:smollm2"))}
    for name in MODELS:
        folders[name] = str(root / name)
        make_model(name, folders[name], [row["reference"] for row in banks["texts"]])
    specs = [
        {
            "id": name,
            "provider": "transformers",
            "path": path,
            "device": "cpu",
            "dtype": args.dtype,
        }
        for name, path in folders.items()
    ]
    (root / "models.json").write_text(json.dumps({"schema_version": 1, "models": specs}))
    results, asked = {}, {}
    for kind, (task, _) in TASKS.items():
        plan = root / f"{kind}.toml"
        plan.write_text(
            f'task = "{task}"\nbanks = ["{kind}"]\nmodels = {json.dumps(sorted(folders))}\n'
            + ('templates = ["choice_texts"]\n' if kind == "choices" else "")
        )
        run = medassay.run(plan, secrets={})
        schedule, _, _ = pipeline.prepare(load_plan(plan), root, root)
        trials = [json.loads(line) for line in (run.path / "trials.jsonl").open()]
        scores = [json.loads(line) for line in (run.path / "scores.jsonl").open()]
        for number, (trial, score) in enumerate(zip(trials, scores, strict=True)):
            cell, item, _ = schedule.trial(number)
            one = {"item": item.id, "totals": [x["total"] for x in trial["likelihoods"]]}
            if kind == "choices":
                one["acc"] = score["score"]
                one["acc_norm"] = score["parts"]["acc_norm_characters"]  # as the harness
            results.setdefault(kind, {}).setdefault(cell.model, []).append(one)
            doc = {"item": item.id, "text": item.reference_text, "options": ["-"], "gold": 0}
            if kind == "choices":
                prompt = schedule.prompt(cell, item)
                doc = {
                    "item": item.id,
                    "text": joined(prompt.messages),
                    "options": list(prompt.options),
                    "gold": item.letters.index(item.expected),
                }
            asked.setdefault(kind, {})[item.id] = doc
        board = medassay.leaderboard(run)
        for row in board.domains["overall"]:
            metrics = row["likelihood"]["metrics"]
            results[f"{kind} {row['model']}"] = {n: one["score"] for n, one in metrics.items()}
    for kind, docs in asked.items():
        (root / f"{kind}.jsonl").write_text(
            "".join(json.dumps(docs[name]) + "\n" for name in sorted(docs))
        )
    # The harness scores the BOS of a text too, where the tokenizer adds one.
    engine = LikelihoodEngine(folders["gemma"], scores_bos=True)
    texts = [row["reference"] for row in banks["texts"]]
    found = corpus([one.total for one in engine.rolling(texts)], texts)
    results["gemma with its BOS scored"] = asdict(found)
    (root / "ours.json").write_text(
        json.dumps({"folders": folders, "dtype": args.dtype, "results": results})
    )


def _demo_items():
    from medassay.bank.catalog import BANKS

    folder = Path(sys.modules["medassay"].__file__).parent / "bank" / BANKS["demo"].folder
    return BANKS["demo"].load(folder).items


def harness(args):
    """Evaluate the same documents."""
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    root = Path(args.folder).resolve()
    known = json.loads((root / "ours.json").read_text())
    tasks = root / "tasks"
    tasks.mkdir(exist_ok=True)
    for kind, (_, metrics) in TASKS.items():
        choice = kind == "choices"
        listed = "".join(f"  - metric: {name}\n" for name in metrics)
        (tasks / f"{kind}.yaml").write_text(
            f"task: {kind}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test:"
            f" {root / kind}.jsonl\ntest_split: test\noutput_type:"
            f" {'multiple_choice' if choice else 'loglikelihood_rolling'}\n"
            + (
                'doc_to_text: "{{text}}"\ndoc_to_choice: "{{options}}"\ndoc_to_target: "{{gold}}"\n'
                if choice
                else 'doc_to_text: ""\ndoc_to_target: "{{text}}"\n'
            )
            + f"metric_list:\n{listed}"
        )
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    results = {}
    for name, folder in known["folders"].items():
        lm = HFLM(pretrained=folder, device="cpu", dtype=known["dtype"], batch_size=args.batch)
        found = lm_eval.simple_evaluate(
            model=lm, tasks=list(TASKS), task_manager=manager, log_samples=True
        )
        for kind, (_, metrics) in TASKS.items():
            results[f"{kind} {name}"] = {
                metric: found["results"][kind][f"{metric},none"] for metric in metrics
            }
            results.setdefault(kind, {})[name] = [
                {
                    "item": sample["doc"]["item"],
                    "totals": [
                        float(r[0] if isinstance(r, list | tuple) else r)
                        for r in sample["filtered_resps"]
                    ],
                    **{metric: sample[metric] for metric in metrics if kind == "choices"},
                }
                for sample in found["samples"][kind]
            ]
    (root / "harness.json").write_text(
        json.dumps({"version": lm_eval.__version__, "results": results})
    )


def compare(args):
    """Print how far both are apart."""
    root = Path(args.folder)
    known, other = (json.loads((root / f"{n}.json").read_text()) for n in ("ours", "harness"))
    print(f"lm-evaluation-harness {other['version']}, {known['dtype']}")
    for kind, (_, metrics) in TASKS.items():
        for model in known["folders"]:
            mine = {one["item"]: one for one in known["results"][kind][model]}
            theirs = {one["item"]: one for one in other["results"][kind][model]}
            assert mine.keys() == theirs.keys()
            apart = [
                abs(a - b)
                for item in mine
                for a, b in zip(mine[item]["totals"], theirs[item]["totals"], strict=True)
            ]
            line = (
                f"{kind} {model}: {len(mine)} items, log-likelihoods at most {max(apart):.1e} apart"
            )
            for metric in metrics:
                if kind == "choices":
                    unlike = sum(mine[i][metric] != theirs[i][metric] for i in mine)
                    line += (
                        f"; {metric} {other['results'][f'{kind} {model}'][metric]:.2f}, {unlike}"
                        " items differ"
                    )
                else:
                    a = known["results"][f"{kind} {model}"][metric]
                    b = other["results"][f"{kind} {model}"][metric]
                    line += f"; {metric} {b:.6g}, relative difference {abs(a - b) / b:.1e}"
            print(line)
    told = known["results"]["gemma with its BOS scored"]
    for metric in TASKS["texts"][1]:
        theirs = other["results"]["texts gemma"][metric]
        print(
            f"gemma with its BOS scored: {metric} relative difference"
            f" {abs(told[metric] - theirs) / theirs:.1e}"
        )


def main():
    """Run one side, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ours", "harness", "compare"))
    parser.add_argument("folder")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    {"ours": ours, "harness": harness, "compare": compare}[args.what](args)


if __name__ == "__main__":
    main()
