"""A bank with flawed items, and models of two sizes."""

from tests import makers

from medassay.synthesis.reviewing import ReviewerOptions

N = 12


def items():
    """Twelve items in six clusters; the key of q0 is wrong, q1 is hard for all."""
    made = []
    for n in range(N):
        record = {
            "id": f"q{n}-quiz",
            "domain": "medicine",
            "question": f"Question number {n}?",
            "options": [f"{c} {n}" for c in ("one", "two", "three", "four", "five")],
            "expected": "A",
            "cluster": f"c{n % 6}",
            "path": "Start -> Middle -> End",
            "condition": "Salt",
            "source": "test",
            "meta": {"family": "author"},
        }
        made.append(record)
    made[0]["expected"] = "B"
    twin = {k: v for k, v in made[0].items() if k not in ("options", "expected")}
    return [*made, {**twin, "id": "q0-open", "answer_type": "open", "reference": "two 0"}]


def model(name, wrong, *, size=None, letter="C"):
    replies = {f"q{n}-quiz": letter if n in wrong else "A" for n in range(N)}
    more = {} if size is None else {"size": size}
    return {**makers.fake(name), "script": {"replies": replies}, **more}


MODELS = [
    model("huge", {1}, size=405),
    model("big", {1, 2}, size=70),
    *(model(f"small{n}", {1, 2, 3} if n < 2 else set(), size=7) for n in range(4)),
]


CORRECTION = {
    "sense": True,
    "key_right": False,
    "also_right": [],
    "path_right": True,
    "guidelines": ["A guideline, 2024"],
    "issues": ["the key is wrong"],
    "types": [1],
    "reasons": "Option A follows from the pathway.",
    "item": [
        "Question number 0?",
        "one 0",
        [f"{c} 0" for c in ("one", "two", "three", "four", "five")],
        "A",
    ],
    "path": "Start -> Middle -> End",
}


def unchanged(n, **more):
    options = [f"{c} {n}" for c in ("one", "two", "three", "four", "five")]
    return {
        **CORRECTION,
        "types": [0],
        "item": [f"Question number {n}?", f"one {n}", options, "A"],
        **more,
    }


def commission(tmp_path, reviewer="checker"):
    return ReviewerOptions(
        reviewer=reviewer, models_file=tmp_path / "models.json", bank=tmp_path / "bank"
    )
