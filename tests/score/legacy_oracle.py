"""The original MoverScore (v2) and bert-score on one model: pairs in, values out, as JSON.

Runs in the environment of legacy metrics.

The original was written for older libraries: its imports, one attribute and a removed name of numpy
are set right before it runs; what it computes is its own.
"""

import importlib.util
import json
import os
import sys
import tempfile
import types
from collections import Counter, defaultdict
from math import log
from pathlib import Path


def moverscore(folder, pairs):
    """Return 1 − cost of each pair, words weighed by the texts of each side."""
    import numpy
    import torch
    import transformers

    setattr(numpy, "float", float)  # noqa: B010 -- a plain assignment is taken for the removed name
    source = Path(importlib.util.find_spec("moverscore_v2").origin).read_text()
    names = "DistilBertConfig, DistilBertModel, DistilBertTokenizer"
    source = source.replace("from transformers import *", f"from transformers import {names}")
    source = source.replace("device = 'cuda:0'", "device = 'cpu'", 1)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "distilbert-base-uncased").symlink_to(folder)
        os.chdir(place)
        original = types.ModuleType("original")
        exec(compile(source, "moverscore_v2", "exec"), original.__dict__)
    original.tokenizer.max_len = original.tokenizer.model_max_length
    original.model.config.return_dict = False
    # In single precision the square root of what rounding leaves of a distance of 0 is 3e-4.
    original.model.double()
    said, wanted = ([pair[side] for pair in pairs] for side in (0, 1))

    def rarity(texts):
        counts = Counter(token for text in texts for token in original.process(text))
        found = defaultdict(lambda: log(len(texts) + 1))
        found.update({token: log((len(texts) + 1) / (n + 1)) for token, n in counts.items()})
        return found

    with torch.no_grad():
        made = original.word_mover_score(
            wanted, said, rarity(wanted), rarity(said), stop_words=[], n_gram=1, device="cpu"
        )
    assert transformers.__version__
    return [float(value) for value in made]


def bertscore(folder, layers, pairs):
    """Return F1 of each pair."""
    from bert_score import score

    _, _, found = score(
        [p for p, _ in pairs],
        [r for _, r in pairs],
        model_type=folder,
        num_layers=layers,
        device="cpu",
        # In a larger one padding counts as a likeness of 0, which beats a negative one
        batch_size=1,
    )
    return [float(value) for value in found]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)
    made = {"bertscore": bertscore(asked["folder"], asked["layers"], asked["pairs"])}
    made["moverscore"] = moverscore(asked["folder"], asked["pairs"])
    os.write(out, json.dumps(made).encode())
