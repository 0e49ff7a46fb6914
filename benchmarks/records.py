"""10,000 replies compared with records of 60 leaves each, and hostile replies.

    python benchmarks/records.py [--pairs 10000]

Replies are texts: extraction, alignment and scores are all counted. Each reply has its arrays in
another order, a tenth of its texts misspelt and a tenth of its elements missing or made up, so that
partners must be looked for.
"""

import argparse
import json
import random
import resource
import statistics
import time

from medassay.score import json_similarity

ROUNDS = 5
WORDS = (
    "Bisoprolol Apixaban Ramipril Vorhofflimmern Hypertonie SpO2 RR Puls LDL mmHg mg/l"
    " Kontrolle EKG".split()
)


def record(rng):
    """Return a record of 60 leaves in the shape of a health record."""

    def text():
        return f"{rng.choice(WORDS)} {rng.randrange(1000)}"

    def parts(n, *names):
        return [{name: text() for name in names} for _ in range(n)]

    drug = ("name", "dose", "schedule")
    return {
        "categories": [text(), text()],
        "date_and_source": {"date": "2025-09-22", "source": text()},
        "diagnosis": [text() for _ in range(4)],
        "relevant_metrics": parts(7, "name", "value", "unit", "note"),
        "medications": {
            "current": parts(3, *drug),
            "advised": parts(2, *drug),
            "discontinued": parts(1, *drug),
        },
        "follow_up": [text() for _ in range(6)],
    }


def disturbed(value, rng):
    """Return the value as a model might give it back."""
    if isinstance(value, dict):
        return {key: disturbed(part, rng) for key, part in value.items()}
    if isinstance(value, list):
        kept = [disturbed(part, rng) for part in value if rng.random() > 0.1]
        made_up = [disturbed(part, rng) for part in value if rng.random() > 0.9]
        return rng.sample(both := kept + made_up, len(both))
    return value if rng.random() > 0.1 else value[::-1]


HOSTILE = {
    "100,000 levels": "[" * 100_000 + "]" * 100_000,
    "one million opening brackets": "[" * 1_000_000,
    "one million brackets in pairs": "[]" * 500_000,
    "333,333 objects that are none": "{x}" * 333_333,
    "strings that begin within strings": '{"\\"' * 250_000,
    "every key twice": "{" + ",".join(f'"{i}":1,"{i}":2' for i in range(30_000)) + "}",
    "half a surrogate pair": '{"a": "\ud800"}',
    "a string of 10 MB": '{"a": "' + "x" * 10_000_000 + '"}',
    "a string of 0.9 MB": json.dumps({"follow_up": ["x" * 900_000]}),
    "19,000 elements": json.dumps({"follow_up": ["x" * 45] * 19_000}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000)
    n = parser.parse_args().pairs
    rng = random.Random(20261121)
    given = [(gold, json.dumps(disturbed(gold, rng))) for gold in (record(rng) for _ in range(n))]
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        found = [json_similarity(gold, reply) for gold, reply in given]
        rounds.append(time.process_time() - start)
    leaves = statistics.mean(len(one.leaf_scores) for one in found)
    overall = statistics.mean(one.overall for one in found)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{n:,} pairs of {leaves:g} leaves, mean similarity {overall:.3f}")
    print(f"{statistics.median(rounds):.2f} s CPU (median of {ROUNDS}), peak {peak:.0f} MiB")
    gold = given[0][0]
    for name, reply in HOSTILE.items():
        start = time.process_time()
        one = json_similarity(gold, reply)
        took = time.process_time() - start
        print(f"{took:6.3f} s  {name}: {one.reason or f'{one.overall:.3f}'}")


if __name__ == "__main__":
    main()
