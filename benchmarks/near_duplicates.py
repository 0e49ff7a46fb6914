"""Near duplicates among many questions: MinHash with rapidfuzz behind it, and rapidfuzz on all
pairs of like length.

    python benchmarks/near_duplicates.py [--data ../shared/data] [--items 100000] [--all-pairs
    20000]

Texts are real exam questions, and new ones put together from their sentences; planted among them
are near duplicates with typing errors, changed words and another order of words. Both ways are run
on the same texts, each in a process of its own.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

PLANTED = 1000
SETS = {
    "headqa_en": "head_qa",
    "healthbranches": "healthbranches",
    "medcalc": "medcalc_bench",
    "medmcqa": "medmcqa",
    "medqa": "medqa",
    "mmlu_medical": "mmlu_medical",
    "pubmedqa": "pubmedqa",
}


def real_questions(data):
    """Return the questions of the public data sets, in plain words."""
    from medassay.bank.catalog import BANKS
    from medassay.bank.near_duplicates import compared_text
    from medassay.errors import InputError

    texts = set()
    for name, folder in SETS.items():
        try:
            bank = BANKS[name].load(data / folder)
        except InputError:  # a set that is not here is left out, and the count says so
            continue
        texts |= {compared_text(item) for item in bank.items}
    return sorted(texts)


def texts_for(data, n, seed=7):
    """Return n texts and the planted pairs among them that are near duplicates by the rule."""
    from rapidfuzz.distance import Levenshtein

    rng = random.Random(seed)
    real = real_questions(data)
    pieces = [
        " ".join(words[at : at + 12])
        for words in map(str.split, real)
        for at in range(0, len(words), 12)
    ]
    texts = list(real[: n - PLANTED])
    while len(texts) < n - PLANTED:
        texts.append(" ".join(rng.choice(pieces) for _ in range(rng.randrange(2, 6))))
    rng.shuffle(texts)
    planted = set()
    while len(texts) < n:
        at = rng.randrange(n - PLANTED)
        changed = altered(texts[at], rng)
        same = sorted(changed.split()) == sorted(texts[at].split())
        if changed != texts[at] and (
            same or Levenshtein.normalized_similarity(texts[at], changed) >= 0.85
        ):
            planted.add((at, len(texts)))
            texts.append(changed)
    return texts, planted, len(real)


def altered(text, rng):
    """Return a text with typing errors, changed words, or its words in another order."""
    kind = rng.randrange(3)
    words = text.split()
    if kind == 0:
        letters = list(text)
        for _ in range(max(1, len(text) // 25)):
            letters[rng.randrange(len(letters))] = rng.choice("abcdefghijklmnop")
        return "".join(letters)
    if kind == 1:
        for _ in range(max(1, len(words) // 12)):
            words[rng.randrange(len(words))] = rng.choice(("other", "changed", "possible", "whole"))
        return " ".join(words)
    rng.shuffle(words)
    return " ".join(words)


def minhash(texts):
    """Return the pairs that the product finds."""
    from medassay.bank.near_duplicates import NearIndex

    return {(one.first, one.second) for one in NearIndex(texts).pairs()}


def all_pairs(texts):
    """Return the pairs by rapidfuzz alone: every pair whose lengths allow it, and equal sets of
    words.
    """
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    found = set()
    words = {}
    for at, text in enumerate(texts):
        words.setdefault(frozenset(text.split()), []).append(at)
    for places in words.values():
        found |= {(places[0], other) for other in places[1:]}
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    lengths = np.array([len(texts[at]) for at in order])
    for start in range(0, len(order), 500):
        block = order[start : start + 500]
        longest = lengths[min(start + 499, len(order) - 1)] / 0.85
        end = int(np.searchsorted(lengths, longest, side="right"))
        others = order[start:end]
        scores = cdist(
            [texts[at] for at in block],
            [texts[at] for at in others],
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=0.85,
            dtype=np.float32,
        )
        for row, column in zip(*np.nonzero(scores >= 0.85), strict=True):
            if row < column:
                found.add(tuple(sorted((block[row], others[column]))))
    return found


WAYS = {"minhash": minhash, "all pairs": all_pairs}


def child(way, data, n):
    """Measure one way in this process and print it."""
    texts, planted, real = texts_for(data, n)
    before = time.process_time()
    started = time.perf_counter()
    found = WAYS[way](texts)
    wall = time.perf_counter() - started
    print(
        json.dumps(
            {
                "way": way,
                "items": n,
                "real": real,
                "seconds": round(wall, 1),
                "cpu": round(time.process_time() - before, 1),
                "pairs": len(found),
                "recall": round(len(planted & found) / len(planted), 4),
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


def main():
    """Run each way in a process of its own and print a line for it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--all-pairs", type=int, default=20_000)
    parser.add_argument("--child", default="")
    wanted = parser.parse_args()
    if wanted.child:
        child(wanted.child, wanted.data, wanted.items)
        return
    for way, n in (
        ("minhash", wanted.all_pairs),
        ("all pairs", wanted.all_pairs),
        ("minhash", wanted.items),
    ):
        command = [
            sys.executable,
            __file__,
            "--child",
            way,
            "--items",
            str(n),
            "--data",
            str(wanted.data),
        ]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
