"""A synthetic bank of four-option items (90-word stems), and a plan that runs it on a mock server.

python benchmarks/synthetic.py FOLDER --items 5000 --url http://127.0.0.1:8901/v1 --connections 64
"""

import argparse
import json
import random
from pathlib import Path

WORDS = (
    "adult child presents with sudden gradual pain swelling fever cough rash fatigue loss of weight"
    " history of diabetes asthma surgery raised normal low serum level pressure pulse scan shows"
    " small large lesion effusion mass treated with oral topical intravenous agent the most likely"
    " next step diagnosis finding cause mechanism complication an in on after before during without"
    " and or"
).split()


def write(folder: Path, n_items: int, url: str, connections: int, seed: int = 1) -> Path:
    source = random.Random(seed)
    bank = folder / "bank"
    bank.mkdir(parents=True)
    (bank / "bank.toml").write_text(
        'name = "synthetic"\nquestion_bank_version = "synthetic-2026.1"\nlicence = "CC0-1.0"\n'
        'domains = ["synthetic"]\n'
    )
    with (bank / "items.jsonl").open("w") as file:
        for number in range(n_items):
            item = {
                "id": f"s{number:07}",
                "domain": "synthetic",
                "question": " ".join(source.choices(WORDS, k=90)) + f" (case {number})?",
                "options": [" ".join(source.choices(WORDS, k=5)) + f" {i}" for i in range(4)],
                "expected": "ABCD"[source.randrange(4)],
                "source": "synthetic",
            }
            file.write(json.dumps(item) + "\n")
    model = {
        "id": "mock",
        "provider": "openai_compatible",
        "url": url,
        "concurrency": connections,
        "max_tokens": 16,
        "location": "local",
        "timeout": 30,
    }
    (folder / "models.json").write_text(json.dumps({"schema_version": 1, "models": [model]}))
    (folder / "plan.toml").write_text(
        'name = "bench"\nbanks = ["bank"]\nmodels = ["mock"]\nseed = 1\n'
    )
    return folder / "plan.toml"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--url", default="http://127.0.0.1:8901/v1")
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    print(write(options.folder, options.items, options.url, options.connections))


if __name__ == "__main__":
    main()
