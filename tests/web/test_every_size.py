"""Every kind of page of boards of 3, 10, 120 and 1,000 models, on a phone, on two desks, in the dark
and on paper: nothing overflows, no column is too narrow, colours can be told apart, axe-core finds
nothing, and the console stays empty.
"""

import json
import os
import random

import pytest
from tests import makers
from tests.accessibility import violations
from tests.web.looking import NARROW, UNNAMED

import medassay
from medassay.exchange.bank_predictions import import_on_banks
from medassay.publishing.disputes import close_dispute, open_dispute

pytestmark = pytest.mark.browser
DOMAINS = ("cardiology", "infectious-diseases", "neurology")
BOARD = """
title = "Questions of three disciplines"
purpose = "How language models answer questions of medicine. For clinicians who choose one."
publisher = "The institute of examples"
contact = "board@example.org"
address = "https://board.example.org/"
[domains]
cardiology = "Cardiology"
infectious-diseases = "Infectious diseases"
[settings]
zero_shot = "question alone"
"""

SMALLEST = 3  # models
LARGE = pytest.mark.skipif(
    not os.environ.get("MEDASSAY_EVERY_SIZE"),
    reason="minutes of looking: `make every-size` looks at boards of 120 and 1,000 models, too",
)


def make_site(folder, n_models):
    """Publish two months of a board: in the second a model more, and one key corrected."""
    (folder / "board.toml").write_text(BOARD)
    draw = random.Random(n_models)
    items = [
        {**item, "category": f"category {n % 4}", "harm": n % 9 == 0}
        for domain in DOMAINS
        for n, item in enumerate(makers.many_items(16, domain))
    ]
    for item in items:
        item["id"] = f"{item['domain']}-{item['id']}"
    makers.write_bank(folder / "bank", items, name="three", domains=DOMAINS)
    corrected = [dict(item) for item in items]
    corrected[0] |= {"expected": "D", "revision": 2}
    makers.write_bank(
        folder / "later",
        corrected,
        name="three",
        domains=DOMAINS,
        question_bank_version="three-2026.2",
    )
    names = [
        f"model-{m:04}-of-a-long-name-instruct" if m % 5 == 2 else f"model-{m}"
        for m in range(n_models)
    ]
    lines = ["item,model,prediction"]
    for m, name in enumerate(names):
        skill = 0.95 - 0.6 * m / n_models
        for item in items:
            key = item["expected"]
            said = key if draw.random() < skill else draw.choice("ABCD".replace(key, ""))
            lines.append(f"{item['id']},{name},{said}")
    entries = [
        {
            "id": name,
            "provider": "import",
            "family": f"family-{m % 6}",
            "licence": ["MIT", "", "Apache-2.0"][m % 3],
            **({"size": 1.5 * (m % 90) + 1} if m % 4 else {}),
        }
        for m, name in enumerate(names)
    ]
    (folder / "models.json").write_text(json.dumps({"schema_version": 1, "models": entries}))
    models = medassay.load_models(folder / "models.json")
    columns = {"item": "item", "model": "model", "prediction": "prediction"}
    rows_of_first = 1 + (n_models - 1) * len(items)
    for name, bank, n_lines in (("one", "bank", rows_of_first), ("two", "later", len(lines))):
        (folder / f"{name}.csv").write_text("\n".join(lines[:n_lines]))
        run = import_on_banks(
            folder / f"{name}.csv",
            columns,
            [medassay.load_bank(folder / bank)],
            runs=folder / "runs",
            models=models,
        ).run
        medassay.publish(run, folder / "site", publication=name)
    open_dispute(folder / "site", "two", "The key of the first question is wrong.")
    close_dispute(folder / "site", 1, "upheld", reason="It was, and is corrected.")
    open_dispute(folder / "site", "two", "The version that was asked is not ours.")
    return folder / "site"


def page_kinds(site):
    """Return page kind → its largest page: of the site, and of its second publication."""
    kinds = {}
    for path in site.rglob("*.html"):
        parts = path.relative_to(site).parts
        if parts[:2] == ("p", "one") or parts == ("404.html",):  # that one needs its address
            continue
        kind = parts[2] if parts[0] == "p" else parts[0]
        if kind not in kinds or path.stat().st_size > kinds[kind].stat().st_size:
            kinds[kind] = path
    return kinds


@pytest.fixture(
    scope="module",
    params=[SMALLEST, 10, *(pytest.param(n, marks=LARGE) for n in (120, 1000))],
    ids=lambda n: f"{n} models",
)
def kinds(request, tmp_path_factory):
    return page_kinds(make_site(tmp_path_factory.mktemp("board"), request.param))


LOOKS = {  # name → width of the window, scheme of colours, and what it is shown on
    "desk": (1440, "light", "screen"),
    "dark": (1440, "dark", "screen"),
    "paper": (1440, "light", "print"),
    "small desk": (1024, "light", "screen"),
    "phone": (390, "light", "screen"),
}


@pytest.mark.slow
def test_every_kind_of_page_can_be_read(kinds, browser, request):
    expected = {"about", "changes", "compare", "data", "dispute", "domain", "log", "model"}
    assert expected <= kinds.keys()
    context = browser.new_context()
    page = context.new_page()
    # A small desk has the colours of a desk; those of the dark, paper and phone depend on no number
    # of models, and are looked at on one board.
    looks = ("desk",)
    if request.node.callspec.params["kinds"] == SMALLEST:
        looks += ("dark", "paper", "phone")
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    found = {}
    for kind, path in kinds.items():
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        for look, (width, scheme, medium) in LOOKS.items():
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme, media=medium)
            bad = []
            wide = page.evaluate("document.documentElement.scrollWidth")
            if look != "paper" and wide > width:
                bad.append(f"{wide} px wide")
            if look in ("small desk", "desk"):
                bad += page.evaluate(NARROW)[:3]
            if look == "phone":
                bad += page.evaluate(UNNAMED)[:3]
            bad += problems  # before axe asks for the style sheets once more, which files refuse
            if look in looks:
                bad += violations(page, colours_only=look != "desk")
            problems.clear()
            if bad:
                found[kind, look] = bad
    context.close()
    assert found == {}
