"""Small data sets in their documented layouts, and scripted models for them."""

import json

from medassay.core.records.model import ModelSpec

LETTERS = "ABCD"


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def small_sets(tmp_path):
    """Write small sets in their documented layouts: CareQA in both languages, CareQA-Open, MeQSum,
    MedQA, MedMCQA.
    """
    folder = tmp_path / "data"
    for language in ("en", "es"):
        rows = [
            {
                "unique_id": f"u{n}",
                "question": f"Question {n}?",
                **{f"op{o}": f"option {o}" for o in range(1, 5)},
                "cop": n % 4 + 1,
                "category": "Medicine",
            }
            for n in range(16)
        ]
        write(folder / f"careqa_{language}" / f"CareQA_{language}.json", rows)
    answers = [
        {"unique_id": n, "question": f"Which {n}?", "answer": f"The answer number {n} is it."}
        for n in range(14)
    ]
    write(folder / "careqa_open/CareQA_en_open.json", answers)
    (folder / "meqsum").mkdir()
    lines = "".join(f"f{n},A long question {n},A short one {n}?\n" for n in range(12))
    (folder / "meqsum/MeQSum.csv").write_text("File,CHQ,Summary\n" + lines)
    medqa = [
        {
            "question": f"Case {n}?",
            "options": dict(zip(LETTERS, ["a", "b", "c", "d"], strict=True)),
            "answer_idx": "A",
        }
        for n in range(12)
    ]
    write(folder / "medqa/test.jsonl", medqa)
    return folder


def fake(name, **script):
    return ModelSpec(id=name, provider="fake", location="local", script=script)


GOOD = {f"careqa-open-{n}": f"The answer number {n} is it." for n in range(14)}


MODELS = {
    "good": fake("good", replies=GOOD, letters="hash"),
    "poor": fake("poor", reply="No idea.", letters="hash"),
    "judge": fake("judge", reply="Feedback: as it is. [RESULT] 4"),
}
