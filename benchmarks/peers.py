"""The peers of the runner benchmark: a bare aiohttp loop, lm-evaluation-harness, Inspect."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import synthetic

BARE = """
import asyncio, json, sys
import aiohttp

async def main(url, path, connections):
    items = [json.loads(line) for line in open(path)]
    waiting = iter(items)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:
        async def work():
            for item in waiting:
                text = item["question"] + "".join(f"\\n{l}. {o}" for l, o in zip("ABCD", item["options"]))
                body = {"model": "mock", "messages": [{"role": "user", "content": text}], "max_tokens": 16, "temperature": 0}
                async with session.post(url + "/chat/completions", json=body) as reply:
                    (await reply.json())["choices"][0]["message"]["content"]
        await asyncio.gather(*(work() for _ in range(connections)))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""

TASK = """task: mcq
dataset_path: json
dataset_kwargs: {data_files: {test: items.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}\\nA. {{options[0]}}\\nB. {{options[1]}}\\nC. {{options[2]}}\\nD. {{options[3]}}\\nReply with one letter."
doc_to_target: "{{expected}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 16, temperature: 0}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""

INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

@task
def mcq(file: str):
    read = lambda r: Sample(id=r["id"], input=r["question"], choices=r["options"], target=r["expected"])
    return Task(dataset=json_dataset(file, read), solver=multiple_choice(), scorer=choice())
"""


def _items(folder, n):
    synthetic.write(folder, n, "http://127.0.0.1:1/v1", 1)
    return (folder / "bank" / "items.jsonl").rename(folder / "items.jsonl")


def bare_aiohttp(measure, url, n, connections):
    """Post every prompt and parse every reply; no journal, no hashes, no scores."""
    with tempfile.TemporaryDirectory() as name:
        items = _items(Path(name), n)
        return measure([sys.executable, "-c", BARE, url, items, connections])


def lm_eval(measure, python, url, n, connections):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _items(folder, n)
        (folder / "mcq.yaml").write_text(TASK)
        arguments = f"model=mock,base_url={url}/chat/completions,num_concurrent={connections}"
        command = [
            Path(python).parent / "lm_eval",
            "run",
            "--model",
            "local-chat-completions",
            "--model_args",
            arguments,
            "--tasks",
            "mcq",
            "--include_path",
            ".",
            "--apply_chat_template",
            "--output_path",
            "out",
            "--log_samples",
        ]
        return measure(command, cwd=folder, env={"OPENAI_API_KEY": "x", "HF_HOME": str(folder)})


def inspect(measure, python, url, n, connections):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items = _items(folder, n)
        (folder / "mcq.py").write_text(INSPECT)
        command = [
            Path(python).parent / "inspect",
            "eval",
            "mcq.py",
            "-T",
            f"file={items}",
            "--model",
            "openai-api/mock/mock",
            "--max-connections",
            connections,
            "--max-samples",
            connections,
            "--display",
            "none",
        ]
        return measure(command, cwd=folder, env={"MOCK_API_KEY": "x", "MOCK_BASE_URL": url})


def versions(python):
    code = (
        "import json,importlib.metadata as m; print(json.dumps({n: m.version(n) for n in"
        " ('lm_eval', 'inspect_ai', 'openai')}))"
    )
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    return json.loads(done.stdout)
