"""The board in a real browser: what readers see, with and without scripts."""

import json
import re
import shutil
from collections import defaultdict

import pytest
from tests import makers
from tests.accessibility import violations
from tests.runner.mixed_plans import text_items
from tests.web.looking import served

import medassay
from medassay import pipeline
from medassay.bank.folder import load_bank
from medassay.exchange.bank_predictions import import_on_banks
from medassay.publishing.history import set_status
from medassay.publishing.publish import About

pytestmark = pytest.mark.browser
HOSTILE = (
    '<script>document.title="owned"</script><img src=x onerror="document.title=1">'
    " [x](javascript:alert(1)) \u202egnp"
)
STRONG, WEAK = "model-a", "model-b"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    items = [
        *makers.many_items(40, "alpha"),
        *({**i, "id": f"b{i['id']}"} for i in makers.many_items(12, "beta")),
    ]
    makers.write_bank(
        folder / "bank", items, domains=["alpha", "beta"], limits="Not clinically validated."
    )
    rows = ["item,model,domain,prediction,key,setting"]
    for n, item in enumerate(items):
        for model, wrong in (
            (STRONG, 9),
            (WEAK, 8),
            ("model-c", 2),
            ("<b>odd</b> & \u202emodel", 2),
        ):
            guess = "X" if n % wrong == 0 else item["expected"]
            rows.append(
                f"{item['id']},{model},{item['domain']},{guess},{item['expected']},zero_shot"
            )
        if n < 5:
            rows.append(f"{item['id']},absent,{item['domain']},A,{item['expected']},zero_shot")
    (folder / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    columns = {name: name for name in ("item", "model", "domain", "prediction", "key", "setting")}
    medassay.publish(
        medassay.import_predictions(folder / "t.csv", columns, runs=folder),
        folder / "site",
        publication="first",
    )
    publish_judged(folder)
    replies = {items[0]["id"]: HOSTILE, items[1]["id"]: "A or B"}
    makers.write_models(
        folder,
        makers.fake("scripted", reply="A", replies=replies),
        {"id": "random", "provider": "baseline", "model": "random"},
    )
    run = medassay.run(makers.write_plan(folder, models=["scripted", "random"]), secrets={})
    medassay.publish(run, folder / "site", publication="second")
    publish_private(folder)
    publish_mixed(folder)
    medassay.publish(diagnoses_run(folder), folder / "site", publication="diagnoses")
    medassay.publish(run, folder / "site", publication="compact", about=About(compact=True))
    return folder / "site"


def publish_private(folder):
    """Publish a board with items of both kinds, the synthetic ones withheld."""
    items = makers.many_items(26)
    for item in items[:12]:
        item["kind"] = "synthetic"
        item.pop("source")
    makers.write_bank(folder / "private", items, name="private")
    makers.write_models(folder, makers.fake("one", letters="hash"), makers.fake("two", reply="B"))
    plan = makers.write_plan(folder, banks=["private"], models=["one", "two"])
    medassay.publish(medassay.run(plan, secrets={}), folder / "site", publication="private")


def publish_mixed(folder):
    """Publish a board with choice and open questions in one domain, and open ones in another."""
    items = [*makers.many_items(24), *text_items(16), *text_items(12, "lore")]
    items[-12:] = [{**item, "id": f"lore-{item['id']}"} for item in items[-12:]]
    makers.write_bank(folder / "mixed", items, name="mixed", domains=("law", "lore"))
    rows = ["item,model,answer"]
    for name, wrong in (("one", 9), ("two", 2)):
        for n, item in enumerate(items):
            right = item.get("expected") or item["reference"]
            rows.append(f'{item["id"]},{name},"{"X" if n % wrong == 0 else right}"')
    (folder / "mixed.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    columns = {"item": "item", "model": "model", "prediction": "answer"}
    imported = import_on_banks(
        folder / "mixed.csv", columns, [load_bank(folder / "mixed", lock=None)], runs=folder
    )
    medassay.publish(imported.run, folder / "site", publication="mixed")


def diagnoses_run(folder):
    """Return a run of ranked diagnoses under two prompts.

    A name is hostile, a reply holds no list.
    """
    n = 10
    makers.write_bank(folder / "cases", makers.ddx_items(n), name="c", domains=("medicine",))
    near = {f"case-{i:03}": makers.listed(f"Malady {i}", f"Kin {i}", "Flu") for i in range(n)}
    far = {f"case-{i:03}": makers.listed(HOSTILE[:90], f"Kin {i}") for i in range(n)}
    models = [
        makers.fake("near", replies=near | {f"ddx_steps/{k}": v for k, v in far.items()}),
        makers.fake("far <i>", replies=far | {"case-003": "I cannot say."}),
        makers.ddx_judge(n),
    ]
    document = {"schema_version": 1, "models": models}
    (folder / "ddx.json").write_text(json.dumps(document), encoding="utf-8")
    plan = folder / "ddx.toml"
    plan.write_text(
        'task = "ddx"\nbanks = ["cases"]\nmodels = ["near", "far <i>"]\nmodels_file = "ddx.json"\n'
        'templates = ["ddx", "ddx_steps"]\njudges = ["judge"]\n'
    )
    return medassay.run(plan, secrets={})


def publish_judged(folder):
    """Publish a board of open answers: three judges that disagree, one failing on one answer."""
    makers.write_bank(folder / "open", makers.open_items(12), name="open")
    orders = (
        ("entail", "missing", "entail"),
        ("entail", "contradict", "missing"),
        ("missing", "entail", "contradict"),
    )
    judges = []
    for judge, order in zip(makers.judges(), orders, strict=True):
        facts = [{"id": f"f{n}", "verdict": v, "evidence": ""} for n, v in enumerate(order, 1)]
        facts[0]["evidence"] = "<b>bold</b>"
        claim = {"quote": HOSTILE[:60], "why": HOSTILE, "kind": "invented_source"}
        reply = json.dumps({"facts": facts, "extra_false_claims": [claim]})
        script = {"reply": reply}
        if judge["family"] == "gamma":
            script["replies"] = {"open-003": "It is fine."}
        judges.append({**judge, "script": script})
    student = {**makers.fake("student", reply=f"<b>bold</b> {HOSTILE}"), "family": "alpha"}
    (folder / "judged.json").write_text(
        json.dumps({"schema_version": 1, "models": [student, *judges]})
    )
    plan = folder / "judged.toml"
    names = json.dumps([j["id"] for j in judges])
    plan.write_text(
        'task = "open"\nbanks = ["open"]\nmodels = ["student"]\nmodels_file = "judged.json"\n'
        f"judges = {names}\n"
    )
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    medassay.publish(run, folder / "site", publication="judged")


def ranking(site):
    return (site / "p/first/index.html").as_uri()


def pages(site):
    return sorted(site.rglob("*.html"))


def of_each_kind(site):
    """Return the smallest page of each kind and the largest: the others differ in numbers alone."""
    kinds = defaultdict(list)
    for path in sorted(pages(site), key=lambda path: path.stat().st_size):
        kinds[path.relative_to(site).parts[2:3]].append(path)
    return [paths[0] for paths in kinds.values()], [paths[-1] for paths in kinds.values()]


def test_rows_of_a_group_share_rank_level_and_rendered_bar(page, site):
    page.goto(ranking(site))
    groups = defaultdict(set)
    for row in page.query_selector_all("tr[data-group]:not([data-group=''])"):
        bar = row.query_selector(".bar[data-level]")
        width = bar.query_selector(".level").bounding_box()["width"]
        groups[row.get_attribute("data-group")].add(
            (row.get_attribute("data-rank"), bar.get_attribute("data-level"), round(width))
        )
        text = row.query_selector(".rank").inner_text()
        lo, hi = (row.get_attribute(f"data-rank-{end}") for end in ("lo", "hi"))
        assert text == (lo if lo == hi else f"{lo}–{hi}")
        title = row.query_selector(".rank").get_attribute("title")
        assert title.startswith(f"{text}: ")
        assert "shown to be better" in title
    assert groups
    assert all(len(seen) == 1 for seen in groups.values())


def test_no_score_lacks_its_interval(site):
    for path in pages(site):
        for tag in re.findall(r"<[^>]*data-score=[^>]*>", path.read_text(encoding="utf-8")):
            score, lo, hi = (
                float(re.search(rf'data-{name}="([^"]*)"', tag)[1])
                for name in ("score", "lo", "hi")
            )
            assert lo <= score <= hi, (path, tag)


def test_beside_every_score_stands_the_share_of_unread_replies(site):
    folder = site / "p/compact"
    rows = json.loads((folder / "data/run/statistics.json").read_text())["domains"]["overall"]
    shares = [f"{100 * row['unread_rate']:.1f} %" for row in rows]
    shown = re.findall(
        r'class="number unread"[^>]*>([^<]*)</td>', (folder / "index.html").read_text()
    )
    assert sorted(shown) == sorted(shares)
    assert set(shares) > {"0.0 %"}


def test_sorting_and_filtering_leave_ranks_and_come_back_by_address(page, site):
    page.goto(ranking(site))

    def ranks():
        return {
            r.get_attribute("data-model"): r.get_attribute("data-rank")
            for r in page.query_selector_all("table.ranking tr[data-model]")
        }

    before = ranks()
    page.click("th[data-sort=score] button")
    page.fill("#filter", "model-")
    page.wait_for_selector("output:has-text('shown')")
    assert ranks() == before
    assert "ranks are those of the whole board" in page.inner_text("output")
    page.goto(page.url)
    assert page.input_value("#filter") == "model-"
    page.fill("#filter", "nobody")
    assert page.is_visible("p.empty")
    page.click("button[type=reset]")
    assert not page.is_visible("p.empty")


@pytest.mark.slow
def test_without_scripts_every_kind_of_page_shows_its_text(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in {path for kind in of_each_kind(site) for path in kind}:
        page.goto(path.as_uri())
        assert page.inner_text("h1")
        assert not page.is_visible("form.filter")
    context.close()


def test_a_board_of_two_metrics_shows_both_and_averages_neither(page, site):
    page.goto((site / "p/mixed/index.html").as_uri())
    assert page.locator("h1").inner_text() == "Overall ranking: Accuracy"
    assert page.locator("h2", has_text="chrF").count() == 1
    metrics = page.locator("nav.metrics a")
    assert metrics.all_inner_texts() == ["Accuracy", "chrF"]
    text = page.locator("main").inner_text()
    assert "one is shown to be better than two" in text
    assert "28 of 28 items" in text  # of the open ones, over two domains
    metrics.nth(1).click()
    assert page.locator("h1").inner_text() == "Overall ranking: chrF"
    assert "mean of 2 domains" in page.locator("main").inner_text()
    page.get_by_role("link", name="Compare").click()
    assert "metric/chrf/compare/" in page.url
    page.goto((site / "p/mixed/cell/one/law/zero-shot-solo/index.html").as_uri())
    assert page.locator("article").count() == 40
    answer = page.locator("article", has_text="How is rule 3 recognised?").first
    assert "Sudden weakness of one side" in answer.inner_text().split("Reply")[0]  # the target
    assert page.get_by_role("link", name="ranking by chrF").count() == 1


def test_links_lead_to_files(site):
    for path in pages(site):
        for target in re.findall(r'(?:href|src)="([^"#?]+)', path.read_text(encoding="utf-8")):
            assert not target.startswith(("http", "/", "javascript")), target
            assert (path.parent / target).exists(), (path, target)


def test_hostile_text_is_visible_and_does_nothing(page, site):
    cell = next(
        p for p in (site / "p/second/cell/scripted").rglob("index.html") if "alpha" in str(p)
    )
    page.goto(cell.as_uri())
    article = page.inner_text("article[data-answer=q00000]")
    assert '<script>document.title="owned"</script>' in article
    assert "U+202E" in article
    assert "owned" not in page.title()
    page.goto(ranking(site))
    assert page.query_selector("bdi b") is None
    assert "<b>odd</b>" in page.inner_text("main")


def test_from_a_score_to_the_hash_of_an_answer_in_four_clicks(page, site):
    page.goto(ranking(site))
    page.click("tr[data-rank='1'] th a")
    page.click("table.domainrows tr:nth-child(2) td.number a")
    article = page.query_selector("article[data-answer][data-sha256]")
    assert re.fullmatch("[0-9a-f]{64}", article.get_attribute("data-sha256"))
    assert article.get_attribute("data-sha256") in page.inner_text("main")


def test_states_say_what_they_are(page, site):
    page.goto(ranking(site))
    text = page.inner_text("main")
    assert "Not ranked: coverage 0.10" in text
    page.goto((site / "p/second/index.html").as_uri())
    text = page.inner_text("main")
    assert "Reference rows, never ranked" in text
    assert "Not ranked: scripted answers" in text
    assert "Not clinically validated." in page.inner_text("footer")


def test_an_anchor_opens_its_section_and_times_stand_on_the_run_page_only(page, site):
    page.goto((site / "p/first/methodology/index.html").as_uri() + "#ranks")
    assert page.is_visible("#ranks")
    assert not page.is_visible("#oracle")
    for path in pages(site):
        assert ("seconds of generation" in path.read_text(encoding="utf-8").lower()) <= (
            "/run/" in str(path) or "/data/" in str(path)
        )


@pytest.mark.slow
def test_every_kind_of_page_fits_every_width(browser, site):
    context = browser.new_context()
    page = context.new_page()
    for path in {path for kind in of_each_kind(site) for path in kind}:
        page.goto(path.as_uri())
        for width in (320, 768, 1200):
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            notes = page.locator("td.notes:visible").filter(has_text=re.compile(r"\w")).all()
            if width > 760:  # below, rows are cards
                assert all(cell.bounding_box()["width"] > 80 for cell in notes), (path, width)
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(ranking(site))
    first = page.query_selector("tr[data-rank='1']").inner_text()
    assert STRONG in first or WEAK in first
    assert "[" in first
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart(browser, site, scheme):
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(ranking(site))
    colours = page.evaluate(
        "() => { const probe = document.body.appendChild(document.createElement('i')); return"
        " Object.fromEntries(['--text','--back','--soft','--panel','--link','--level','--whisker','--flag','--right','--wrong'].map(n"
        " => { probe.style.color = `var(${n})`; return [n, getComputedStyle(probe).color] })) }"
    )
    for name in ("--text", "--soft", "--link", "--flag", "--right", "--wrong"):
        assert contrast(colours[name], colours["--back"]) >= 4.5, name
        assert contrast(colours[name], colours["--panel"]) >= 4.5, name
    assert contrast(colours["--level"], colours["--back"]) >= 3
    assert contrast(colours["--level"], colours["--panel"]) >= 3
    assert contrast(colours["--whisker"], colours["--level"]) >= 3
    context.close()


@pytest.mark.slow
def test_axe_finds_no_violation_on_a_page_of_any_kind(browser, site):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    found = {}
    _, largest = of_each_kind(site)
    for path in largest:  # in the dark: test_every_size, test_style
        page.goto(path.as_uri())
        if bad := violations(page):
            found[path] = bad
    context.close()
    assert found == {}


def contrast(one, other):
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_keyboard_reaches_skip_link_filter_and_sort(page, site):
    page.goto(ranking(site))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert "filter" in seen
    assert "BUTTON" in seen


def test_print_opens_details_and_is_light(page, site):
    page.goto((site / "p/first/methodology/index.html").as_uri())
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")


def test_every_judge_is_seen_on_every_fact(page, site):
    page.goto((site / "p/judged/cell/student/law/zero-shot-solo/index.html").as_uri())
    first = page.locator("article[data-answer='open-000']")
    cells = first.locator("td[data-judge]")
    assert cells.count() == 9
    said = [c.get_attribute("data-verdict") for c in cells.all()]
    assert said[:3] == ["entail", "entail", "missing"]
    assert "<b>bold</b>" in first.locator("q").first.inner_text()
    assert "false claim (invented source)" in first.inner_text()
    failed = page.locator("article[data-answer='open-003']")
    assert "null" in failed.get_attribute("class")
    assert failed.locator("td[data-verdict='']").count() == 3
    assert "judge failed: judge-gamma" in failed.inner_text()
    assert page.title() != "owned"


def test_a_judged_ranking_says_how_sure_its_scoring_is(page, site):
    page.goto((site / "p/judged/index.html").as_uri())
    row = page.locator("tr[data-model='student']").first
    assert float(row.get_attribute("data-agreement")) < 0.667
    text = row.inner_text()
    for part in (
        "scoring itself is uncertain here",
        "1 answer without all verdicts",
        "judge from the same vendor",
        "scripted",
    ):
        assert part in text
    assert page.is_visible("[data-scripted]")
    page.goto((site / "p/judged/methodology/index.html").as_uri() + "#judges")
    assert page.is_visible("#judges")


def test_over_http_a_publication_that_no_longer_stands_says_so(browser, site, tmp_path):
    copied = tmp_path / "site"
    shutil.copytree(site, copied)
    set_status(copied, "first", "retracted", reason="a <b>wrong</b> key", following="second")
    with served(copied) as address:
        page = browser.new_page()
        page.goto(f"{address}/p/first/index.html")
        banner = page.locator("[role=status]")
        assert "retracted: a <b>wrong</b> key" in banner.inner_text()
        banner.locator("a").click()
        page.wait_for_url("**/p/second/index.html")
        assert page.locator(".watermark[role=status]").count() == 0
        page.close()


def test_a_compact_board_shows_a_cell_over_http_and_its_files_without(browser, page, site):
    with served(site) as address:
        made = browser.new_page()
        refused = []
        made.on("console", lambda m: refused.append(m.text) if "Policy" in m.text else None)
        made.goto(f"{address}/p/compact/model/scripted/index.html")
        made.locator("td.number a").first.click()
        made.wait_for_selector("article[data-sha256]")
        assert made.locator("#cell-state").inner_text().startswith("40 answers")
        article = made.locator("article").first
        assert HOSTILE.replace("\u202e", "U+202E") in article.inner_text()
        assert made.title().startswith("Answers")
        digest = article.get_attribute("data-sha256")
        file = (site / "p/compact/cell/scripted.jsonl").read_text()
        assert digest in file
        assert len(file.splitlines()) == 52
        assert not refused
        made.close()
    page.goto((site / "p/compact/cell/index.html").as_uri())
    assert page.locator("ul.columns a").count() == 2
    page.goto((site / "p/compact/cell/index.html").as_uri() + "?file=scripted.jsonl&model=scripted")
    assert "Open over HTTP for the answers" in page.locator("#cell-state").inner_text()
    assert not list((site / "p/compact").glob("cell/*/"))
    assert medassay.verify(site / "p/compact").ok


def test_a_page_of_shuffled_options_says_which_letter_was_whose(browser, tmp_path, cli):
    """Readers of "B" beside "The answer is C" looked for an error that was none."""
    items = [
        {**item, "expected": "A", "options": ["right", "wrong", "bad", "worse"]}
        for item in makers.many_items(10)
    ]
    makers.write_bank(tmp_path / "bank", items)
    makers.write_models(tmp_path, makers.fake("habit", reply="The answer is C."))
    run = medassay.run(
        makers.write_plan(tmp_path, models=["habit"], shuffle_options=True), secrets={}
    )
    trials = [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]
    assert {trial["value"] for trial in trials} > {"C"}
    said = {
        trial["item"]: "options shown as A, B, C, D were "
        + ", ".join("ABCD"[place] for place in trial["order"])
        + " of the bank"
        for trial in trials
    }
    for trial in trials:  # the third letter shown is the one that was read
        assert said[trial["item"]].split(" were ")[1].split(", ")[2] == trial["value"]
    medassay.publish(run, tmp_path / "site", publication="whole")
    medassay.publish(run, tmp_path / "site", publication="compact", about=About(compact=True))
    for page in (tmp_path / "site/p/whole/cell").rglob("index.html"):
        for name, article in re.findall(
            r'(?s)data-answer="([^"]+)"(.*?)</article>', page.read_text()
        ):
            assert said.pop(name) in article
            [order] = [trial["order"] for trial in trials if trial["item"] == name]
            options = re.findall(r"<li[^>]*>(\w+).*?shown as (\w)", article)
            banked = ["right", "wrong", "bad", "worse"]
            assert options == [
                (option, "ABCD"[order.index(at)]) for at, option in enumerate(banked)
            ]
    assert not said
    with served(tmp_path / "site") as address:
        made = browser.new_page()
        made.goto(f"{address}/p/compact/model/habit/index.html")
        made.locator("td.number a").first.click()
        made.wait_for_selector("article[data-sha256]")
        shown = [article.inner_text() for article in made.locator("article").all()]
        made.close()
    for trial, text in zip(trials, shown, strict=True):
        banked = ", ".join("ABCD"[place] for place in trial["order"])
        assert f"options shown as A, B, C, D were {banked} of the bank" in text
        assert f"right (key) · shown as {'ABCD'[trial['order'].index(0)]}" in text
    code, text, _ = cli("show", trials[0]["item"], "--run", run.path)
    assert code == 0
    assert "options shown as A, B, C, D were " in text


def test_options_after_z_have_the_letters_that_models_are_shown(browser, tmp_path):
    """A list of HTML goes on with AA where our letters go on with Γ."""
    options = [f"specialty {n}" for n in range(30)]
    items = [{**i, "options": options, "expected": "Θ"} for i in makers.many_items(3)]
    run = medassay.run(makers.workspace(tmp_path / "w", items, makers.fake("m", reply="Δ")))
    for name in ("whole", "compact"):
        about = About(compact=name == "compact")
        medassay.publish(run, tmp_path / "site", publication=name, about=about)
    with served(tmp_path / "site") as address:
        page = browser.new_page()
        for name in ("whole", "compact"):
            page.goto(f"{address}/p/{name}/model/m/index.html")
            page.locator("td.number a").first.click()
            page.wait_for_selector("article[data-sha256] ol.options")
            page.wait_for_load_state("load")  # the style sheet, too
            letters = (
                page.locator("ol.options")
                .first.locator("li")
                .evaluate_all("rows => rows.map(row => getComputedStyle(row, '::before').content)")
            )
            assert letters == ["none"] * 26 + [f'"{letter}. "' for letter in "ΓΔΘΛ"], name
        page.close()
