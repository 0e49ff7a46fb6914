"""Runs with and without contexts, furnished once."""

from tests import makers

from medassay import pipeline

SETTINGS = ["zero_shot", "rag", "topline_path", "topline_text", "topline_all"]


def items(n=60):
    """Return quiz and open items of n / 2 conditions, in two categories."""
    made = []
    for at in range(n):
        condition = f"condition {at // 2}"
        base = {
            "domain": "gout" if at % 4 < 2 else "anaemia",
            "question": f"What next in case {at}?",
            "condition": condition,
            "cluster": condition,
            "path": f"{condition} -> step {at}",
            "source": "written for a test",
        }
        quiz = {"options": ["a", "b", "c", "d", "e"], "expected": "ABCDE"[at % 5]}
        made.append({**base, **quiz, "id": f"q{at:03}"})
        made.append(
            {**base, "id": f"o{at:03}", "answer_type": "open", "reference": f"do step {at}"}
        )
    return made


def answers(model, k):
    """Return replies: of the models the k-th is right where its number divides the item's, more so
    with a path.
    """
    quiz = {f"q{at:03}": "ABCDE"[at % 5] if at % 7 >= k else "none" for at in range(60)}
    text = {f"o{at:03}": f"do step {at}" if at % 7 >= k else "x" * 200 for at in range(60)}
    return {**makers.fake(model, replies={**quiz, **text}), "family": f"f{k}"}


def furnish(folder):
    """Write a bank, an index and three models for a quiz, judged answers and compared answers in
    all settings.
    """
    makers.write_bank(folder / "bank", items(), domains=("gout", "anaemia"))
    makers.write_index(folder, {f"condition {n}": f"About condition {n}." for n in range(30)})
    graded = "question_id,score\n" + "\n".join(f"q{n},{4 + n % 3}" for n in range(1, 4))
    models = [answers(f"m{k}", k) for k in range(3)]
    makers.write_models(folder, *models, {**makers.fake("judge", reply=graded), "family": "j"})
    return folder


def run(place, task, **more):
    plan = makers.write_plan(
        place,
        task=task,
        models=["m0", "m1", "m2"],
        settings=SETTINGS,
        retrieval={"index": "index"},
        **more,
    )
    return pipeline.run(plan, secrets={}, accept_failures=True)


def three_runs(place):
    """Return a quiz, judged answers and compared answers of three models."""
    return [
        run(place, "closed", templates=["healthbranches_quiz"]),
        run(place, "g_eval", templates=["healthbranches_open"], judges=["judge"]),
        run(place, "text", templates=["healthbranches_open"], metrics=NO_MODELS),
    ]


NO_MODELS = ["bertscore=none", "moverscore=none", "bleurt=none"]
