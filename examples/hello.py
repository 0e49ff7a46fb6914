"""An accuracy with its interval, offline, in fifteen lines."""

from medassay import bootstrap_mean, extract_option, rank

replies = {
    "careful": ["B", "The answer is C.", "**A**", "(D)", "Answer: B", "C", "A", "D", "B", "C"],
    "wordy": [
        "Maybe A or B",
        "C",
        "A",
        "The correct option is B.",
        "B",
        "C",
        "<think>D?</think> A",
        "D",
        "A",
        "C",
    ],
}
keys = "BCADBCADBC"

scores = {
    model: [
        float(extract_option(text, "ABCD")[0] == key) for text, key in zip(texts, keys, strict=True)
    ]
    for model, texts in replies.items()
}
estimates = {model: bootstrap_mean(found, seed=1) for model, found in scores.items()}
for model, place in rank(estimates).items():
    print(f"{model}: {estimates[model]}, rank {place.rank} ({place.lo}–{place.hi})")
