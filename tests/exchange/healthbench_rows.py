"""Rows of HealthBench with verdicts."""

GIVEN = {
    "prompt_id": "a",
    "prompt": [{"role": "user", "content": "What now?"}],
    "example_tags": ["theme:x"],
    "rubrics": [
        {"criterion": "Says rest.", "points": 5, "tags": ["axis:y"]},
        {"criterion": "Sells pills.", "points": -8, "tags": []},
    ],
    "prompt_response": [{"role": "assistant", "content": "Rest and buy these."}],
    "responses": [
        {"points": 5, "response_dict": {"criteria_met": True, "explanation": "yes"}},
        {"points": -8, "response_dict": {"criteria_met": True}},
    ],
}
