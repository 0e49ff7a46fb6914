"""Plans whose answers are compared with reference texts."""

REFERENCE = "The patient has pain in the chest."


def items(n=12):
    return [
        {
            "id": f"t{i:02}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Question {i}?",
            "reference": f"{REFERENCE} Case {i}.",
            "source": "written for a test",
        }
        for i in range(n)
    ]


def fake(name, replies):
    return {"id": name, "provider": "fake", "script": {"replies": replies}}


GOOD = {f"t{i:02}": f"{REFERENCE} Case {i}.\n\nAnything else?" for i in range(12)}


POOR = {f"t{i:02}": "The patient is well." for i in range(12)} | {"t00": "", "t01": "\n\nLate."}
