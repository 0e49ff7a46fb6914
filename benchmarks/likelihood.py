"""Log-likelihoods of answer options beside lm-evaluation-harness: equal values, items per second.

    python benchmarks/likelihood.py ours DATA [--items 100] > ours.json
    HARNESS/python benchmarks/likelihood.py harness DATA --model FOLDER > harness.json
    python benchmarks/likelihood.py compare ours.json harness.json

DATA is the folder `medqa` of the shared data; FOLDER the converted embedded model, whose place
`ours` tells. The harness runs in an environment of its own with torch and transformers of the same
versions.
"""

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path

BATCHES = (1, 4, 8, 16)  # the harness is measured at its best


def pairs(data, items, shots):
    """Return (context, option) for each option of each item, after `shots` first examples of the
    file.
    """
    rows = [json.loads(line) for line in (Path(data) / "test.jsonl").read_text().splitlines()]

    def asked(row):
        options = row["options"]
        listed = options.values() if isinstance(options, dict) else (o["value"] for o in options)
        return f"Question: {row['question'][:600]}\nAnswer:", [f" {text}" for text in listed]

    examples = []
    for row in rows[:shots]:
        context, _ = asked(row)
        examples.append(f"{context} {row['answer']}")
    begun = "\n\n".join(examples) + ("\n\n" if examples else "")
    made = []
    for row in rows[shots : shots + items]:
        context, options = asked(row)
        made.append([(begun + context, option) for option in options])
    return made


def told(name, shots, values, seconds, items, **more):
    """Return one measurement."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    per = {"items_per_second": items / seconds, "seconds": seconds, "peak_mib": peak}
    return {"by": name, "shots": shots, "values": values, **per, **more}


def ours(args):
    """Measure our engine; prints the model's folder too."""
    import torch
    import transformers

    from medassay.model.embedded import embedded_folder
    from medassay.model.likelihood import LikelihoodEngine

    folder = args.model or str(embedded_folder("embedded:smollm2"))
    found = []
    for shots in args.shots:
        grouped = pairs(args.data, args.items, shots)
        flat = [pair for group in grouped for pair in group]
        times = []
        for _ in range(args.rounds):
            engine = LikelihoodEngine(folder, add_bos=False)
            engine.score(flat[:4])
            start = time.perf_counter()
            scores = engine.score(flat)
            times.append(time.perf_counter() - start)
        values = [[s.total, s.greedy] for s in scores]
        found.append(told("medassay", shots, values, statistics.median(times), args.items))
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(json.dumps({"folder": folder, "versions": versions, "found": found}))


def harness(args):
    """Measure lm-evaluation-harness at several batch sizes."""
    import lm_eval
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    found = []
    for shots in args.shots:
        grouped = pairs(args.data, args.items, shots)
        asked = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i)
            for i, pair in enumerate(pair for group in grouped for pair in group)
        ]
        best = None
        for size in args.batches:
            lm = HFLM(pretrained=args.model, device="cpu", dtype="float32", batch_size=size)
            lm.loglikelihood(asked[:4], disable_tqdm=True)
            start = time.perf_counter()
            scores = lm.loglikelihood(asked, disable_tqdm=True)
            seconds = time.perf_counter() - start
            print(f"harness, {shots} shots, batch {size}: {seconds:.1f} s", file=sys.stderr)
            if best is None or seconds < best[0]:
                best = (
                    seconds,
                    size,
                    [[float(total), bool(greedy)] for total, greedy in scores],
                )
        seconds, size, values = best
        found.append(told("lm-eval", shots, values, seconds, args.items, batch=size))
    print(json.dumps({"versions": {"lm-eval": lm_eval.__version__}, "found": found}))


def compare(args):
    """Print the largest difference and the ratio of speeds."""
    first, second = (json.loads(Path(name).read_text()) for name in (args.data, args.other))
    print(first["versions"], second["versions"])
    for one, other in zip(first["found"], second["found"], strict=True):
        apart = max(abs(a[0] - b[0]) for a, b in zip(one["values"], other["values"], strict=True))
        greedy = sum(a[1] != b[1] for a, b in zip(one["values"], other["values"], strict=True))
        rates = [found["items_per_second"] for found in (one, other)]
        print(
            f"{one['shots']} shots: {rates[0]:.2f} items/s against {rates[1]:.2f} (batch"
            f" {other['batch']}), {rates[0] / rates[1]:.1f} ×; largest difference {apart:.2e},"
            f" greedy differs {greedy}; peak {one['peak_mib']} against {other['peak_mib']} MiB"
        )


def main():
    """Measure or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ours", "harness", "compare"))
    parser.add_argument("data")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--model", default="")
    parser.add_argument("--shots", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    {"ours": ours, "harness": harness, "compare": compare}[parser.parse_args().what](
        parser.parse_args()
    )


if __name__ == "__main__":
    main()
