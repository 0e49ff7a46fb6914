"""Banks with choice and open questions in the same domain, and plans over them."""

from tests import makers

REFERENCE = "Sudden weakness of one side, trouble with speech, a drooping face."
GOOD = "Weakness of one side that comes suddenly, a drooping face, trouble with speech."


def text_items(n, domain="law"):
    return [
        {
            "id": f"t{i:03}",
            "domain": domain,
            "answer_type": "open",
            "question": f"How is rule {i} recognised?",
            "reference": f"{REFERENCE} Rule {i}.",
            "source": "written for a test",
        }
        for i in range(n)
    ]


def items(n_choice=24, n_text=16):
    return [*makers.many_items(n_choice), *text_items(n_text)]


def student(name="good", reply=GOOD, **more):
    return {**makers.fake(name, reply=reply, letters="hash"), **more}


def workspace(folder, *models, bank_items=None, **plan):
    makers.write_bank(folder / "bank", bank_items or items())
    makers.write_models(folder, *models)
    names = [m["id"] for m in models if not m["id"].startswith("judge")]
    return makers.write_plan(folder, **{"models": names, **plan})
