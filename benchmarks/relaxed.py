"""Relaxed Perplexity beside the naive method: equal values, seconds of scoring and of the whole
metric.

    python benchmarks/relaxed.py [--items 5] [--model FOLDER] [--max-tokens 128]

Naive: ten calls of `generate` one after the other, then every beginning with every target as a
sequence of its own. Both are timed on the same items in turn, in one process; scoring is timed on
the same completions, whose values must agree.
"""

import argparse
import json
import math
import resource
import statistics
import time

import torch
import transformers

from medassay.bank.catalog import BANKS
from medassay.core.records.relaxed import RelaxedSetting, prefixes, tables
from medassay.kinds.likelihood.relaxed_perplexity import combine
from medassay.model import relaxed
from medassay.model.embedded import embedded_folder
from medassay.model.likelihood import LikelihoodEngine
from medassay.model.sampling import draw


def questions(n):
    """Return (context, statements) of open items of the demo bank, those of the test split in
    order.
    """
    from pathlib import Path

    import medassay

    folder = Path(medassay.__file__).parent / "bank" / BANKS["demo"].folder
    items = [i for i in BANKS["demo"].load(folder).items if i.form == "open"]
    ask = (
        "Question: {}\nAnswer in a few complete sentences, as you would advise a"
        " clinician.\nAnswer:"
    )
    return [(ask.format(item.question), list(item.must_have)) for item in items[:n]]


def drawn_naively(engine, asked, setting):
    """Draw completions one after the other."""
    ids = torch.tensor([asked])
    found = []
    for _ in range(setting.samples):
        found.append(
            engine.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                top_p=setting.top_p,
                top_k=0,
                temperature=setting.temperature,
                max_new_tokens=setting.max_tokens,
                pad_token_id=engine.tokenizer.eos_token_id,
            )
        )
    return found


def scored_naively(engine, asked, begun, wanted):
    """Return beginning → log-probability of each target, from one whole sequence each."""
    found = {}
    with torch.inference_mode():
        for beginning in begun:
            values = []
            for target in wanted:
                ids = torch.tensor([[*asked, *beginning, *target]])
                logits = engine.model(input_ids=ids).logits[0]
                start = len(asked) + len(beginning) - 1
                own = logits[start : start + len(target)]
                # No log_softmax: in single precision it is too high by about 1e-5 a token.
                taken = own.gather(1, torch.tensor(target)[:, None])[:, 0]
                values.append(math.fsum((taken - own.logsumexp(-1)).tolist()))
            found[beginning] = tuple(values)
    return found


def timed(call):
    """Return what a call gives, and its seconds."""
    start = time.perf_counter()
    made = call()
    return made, time.perf_counter() - start


def one(engine, context, statements, setting, seed):
    """Return seconds of both methods on one item, and how far their values are apart."""
    asked = engine.begun(engine.ids(context))
    wanted = [relaxed._target(engine, context, text) for text in statements]
    (drawn, kept, states), drawing = timed(
        lambda: draw(engine, asked, setting, seed=seed, cached=True)
    )
    begun = [
        beginning
        for _, some in prefixes(kept, stride=setting.stride, max_tokens=setting.max_tokens)
        for beginning in some
    ]

    scores, scoring = timed(
        lambda: relaxed._scored_on_states(engine, asked, kept, begun, wanted, states)
    )
    _, naive_drawing = timed(lambda: drawn_naively(engine, asked, setting))
    naive, naive_scoring = timed(lambda: scored_naively(engine, asked, begun, wanted))
    apart = []
    for at, tokens in enumerate(wanted):
        values = [
            combine(
                tables(kept, setting, len(tokens), lambda x, s=some, at=at: s[x][at]), "sum"
            ).value
            for some in (scores, naive)
        ]
        apart.append(abs(values[0] - values[1]) / values[1])
    return {
        "ours": [drawing, scoring],
        "naive": [naive_drawing, naive_scoring],
        "beginnings": len(begun),
        "targets": len(wanted),
        "tokens": sum(len(c.tokens) for c in drawn),
        "apart": max(apart),
    }


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=5)
    parser.add_argument("--model", default="")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--max-tokens", type=int, default=128)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    engine = LikelihoodEngine(args.model or str(embedded_folder("embedded:smollm2")))
    engine.model.to(getattr(torch, args.dtype))
    setting = RelaxedSetting(max_tokens=args.max_tokens)
    found = []
    for seed, (context, statements) in enumerate(questions(args.items)):
        found.append(one(engine, context, statements, setting, seed))
        print(json.dumps(found[-1]), flush=True)
    ratios = {
        "scoring": [f["naive"][1] / f["ours"][1] for f in found],
        "whole": [sum(f["naive"]) / sum(f["ours"]) for f in found],
    }
    for name, values in ratios.items():
        print(
            f"{name}: median {statistics.median(values):.1f} ×, {min(values):.1f} to"
            f" {max(values):.1f}"
        )
    print(f"largest relative difference {max(f['apart'] for f in found):.1e}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, peak {peak} MiB")


if __name__ == "__main__":
    main()
