"""The program that runs in the environment of legacy metrics: requests in, values out, one JSON
object a line.

It is started by `medassay.score.legacy.client` and imports nothing of medassay. A request is
`{"id", "metric", "model", "pairs"}`, a reply `{"id", "values"}`, one list a pair, or `{"id",
"error"}`, with `"fatal"` where the model cannot be loaded. Libraries print where they like: what
they print goes to standard error.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Pairs = list[list[str]]
Scores = Callable[[Pairs], list[list[float]]]


def bleurt(folder: str) -> Scores:
    """Return what scores pairs by a BLEURT checkpoint in PyTorch's form."""
    import torch
    from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer

    tokenizer = BleurtTokenizer.from_pretrained(folder)
    model = BleurtForSequenceClassification.from_pretrained(folder).eval()
    most = min(tokenizer.model_max_length, model.config.max_position_embeddings)

    def score(pairs: Pairs) -> list[list[float]]:
        predictions, references = ([pair[side] for pair in pairs] for side in (0, 1))
        with torch.no_grad():
            read = tokenizer(
                references,
                predictions,
                padding="longest",
                truncation=True,
                max_length=most,
                return_tensors="pt",
            )
            return [[float(value)] for value in model(**read).logits.flatten()]

    return score


def f1_radgraph(folder: str) -> Scores:
    """Return what scores pairs by the entities and relations that RadGraph finds in both.

    The reward level is "partial".
    """
    from radgraph import F1RadGraph

    kind = next(k for k in ("radgraph", "radgraph-xl") if os.path.isdir(os.path.join(folder, k)))
    scorer = F1RadGraph(reward_level="partial", model_type=kind, model_cache_dir=folder, cuda=-1)

    def score(pairs: Pairs) -> list[list[float]]:
        _, rewards, _, _ = scorer(hyps=[p for p, _ in pairs], refs=[r for _, r in pairs])
        return [[float(reward)] for reward in rewards]

    return score


def chexbert(folder: str) -> Scores:
    """Return what tells of each pair whether CheXbert labels five observations alike: 1 or 0."""
    from f1chexbert import F1CheXbert
    from f1chexbert import f1chexbert as module

    module.CACHE_DIR = folder
    os.chdir(
        folder
    )  # its tokenizer is named bert-base-uncased: a folder of that name here is taken
    labeler = F1CheXbert(device="cpu")
    labels = labeler.target_names_5_index

    def score(pairs: Pairs) -> list[list[float]]:
        scores = []
        for pair in pairs:
            first, second = (labeler.get_label(text.strip()) for text in pair)
            scores.append([float(all(first[at] == second[at] for at in labels))])
        return scores

    return score


TEXT_MEASURES: dict[str, Callable[[str], Scores]] = {
    "bleurt": bleurt,
    "chexbert": chexbert,
    "f1_radgraph": f1_radgraph,
}


def main() -> None:
    """Answer requests until there are no more."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    ready: dict[tuple[str, str], Scores] = {}
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"]}
        key = (request["metric"], request["model"])
        try:
            if key not in ready:
                reply["fatal"] = True  # unless it loads
                ready[key] = TEXT_MEASURES[key[0]](key[1])
                del reply["fatal"]
            reply["values"] = ready[key](request["pairs"])
        # Whatever a library raises is told, and the next request answered.
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            reply["error"] = f"{type(error).__name__}: {error}"[:300]
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
