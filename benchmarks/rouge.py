"""ROUGE-1/2/L beside rouge-score on 20,000 real pairs.

Are they equal, and how much faster is ours? Pairs are answers and references of the public sets
below MEDASSAY_DATA, and references of one item against those of another; each is scored by both,
the programs taking turns, CPU seconds of this process.

    python benchmarks/rouge.py
"""

import itertools
import os
import random
import statistics
import time
from importlib.metadata import version
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer

from medassay.bank.catalog import BANKS
from medassay.score.text import rouge

SETS = {
    "mts_dialog": "mts_dialog",
    "meqsum": "meqsum",
    "openi": "openi_radiology",
    "olaph": "olaph_medlfqa",
    "mediqa_qa2019": "mediqa2019_qa",
    "aci_bench": "aci_bench",
}
PAIRS, ROUNDS, LONGEST = 20_000, 1, 3_000
NAMES = ("rouge1", "rouge2", "rougeL")


def pairs(data):
    """Return 20,000 pairs: question and reference, and reference against another item's reference
    of the same set.
    """
    found = []
    for name, folder in SETS.items():
        items = BANKS[name].load(data / folder).items
        references = [item.reference[:LONGEST] for item in items]
        found += [(item.question[:LONGEST], item.reference[:LONGEST]) for item in items]
        rng = random.Random(name)
        found += [tuple(rng.sample(references, 2)) for _ in range(PAIRS // len(SETS))]
    random.Random(1).shuffle(found)
    return list(itertools.islice(itertools.cycle(found), PAIRS))


def seconds(work):
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


def main():
    texts = pairs(Path(os.environ.get("MEDASSAY_DATA", "../shared/data")))
    theirs = RougeScorer(list(NAMES), use_stemmer=False)
    words = [len(a.split()) + len(b.split()) for a, b in texts]
    print(
        f"{len(texts)} pairs, {len(set(texts))} distinct, median {statistics.median(words):.0f}"
        f" words, longest {max(words)}"
    )
    ours_s, theirs_s, ratios, apart = [], [], [], 0.0
    for _ in range(ROUNDS):
        t_ours, ours = seconds(lambda: [rouge(said, wanted) for said, wanted in texts])
        t_theirs, found = seconds(lambda: [theirs.score(wanted, said) for said, wanted in texts])
        ours_s.append(t_ours)
        theirs_s.append(t_theirs)
        ratios.append(t_theirs / t_ours)
        apart = max(
            abs(one[name] - other[name].fmeasure)
            for one, other in zip(ours, found, strict=True)
            for name in NAMES
        )
    print(
        f"medassay {statistics.median(ours_s):.2f} s CPU, rouge-score {version('rouge-score')}"
        f" {statistics.median(theirs_s):.2f} s CPU"
    )
    print(
        f"ratio {statistics.median(ratios):.1f} (rounds {', '.join(f'{r:.1f}' for r in ratios)});"
        f" largest difference {apart:.1e}"
    )


if __name__ == "__main__":
    main()
