import json
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import makers
from tests.publishing.private_items import QUESTION, WORDS, make_run, private_item

import medassay
from medassay.core.canonical import canonical
from medassay.errors import GateError, InputError, IntegrityError
from medassay.publishing.opening import open_item
from medassay.publishing.redaction import (
    PUBLIC_FIELDS,
    SCORE_FIELDS,
    TRIAL_FIELDS,
    commitment,
    select_fields,
)
from medassay.publishing.shingles import PrivateShingles, shingles
from medassay.publishing.verify import verify


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("withheld")
    some = [private_item(f"law-s{n}", f"{QUESTION} Case {n}.") for n in range(11)]
    run = make_run(folder, *some)
    medassay.publish(run, folder / "site", publication="one")
    return run, folder / "site"


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def everything(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_golden_redaction(golden):
    case = golden("bank_versioning")["redaction"]
    assert select_fields(case["private"], PUBLIC_FIELDS) == case["public"]


def test_no_word_of_a_synthetic_item_is_published_and_the_rest_is_whole(published):
    run, site = published
    for path, data in everything(site).items():
        for word in (*WORDS[:22], "which law applies", "First answer of it"):
            assert not re.search(rb"\b" + word.encode() + rb"\b", data), (path, word)
    data = site / "p/one/data/run"
    assert not (data / "salt.json").exists()
    for name, key, allowed in (
        ("items.jsonl", "id", {"id", "kind", "domain", "answer_type", "cluster", "commitment"}),
        ("trials.jsonl", "item", {*TRIAL_FIELDS, "commitment"}),
        ("scores.jsonl", "item", {*SCORE_FIELDS}),
    ):
        private = {canonical(record) for record in read(run.path / name)}
        for record in read(data / name):
            if record[key].startswith("law-s"):
                assert record.keys() <= allowed
            else:
                assert canonical(record) in private


def test_a_board_with_withheld_items_verifies_and_its_numbers_are_those_of_the_run(published):
    run, site = published
    report = verify(site)
    assert report.ok, report.first_mismatch
    assert "those of withheld items" in report.checks[-2]["detail"]
    public = json.loads((site / "p/one/data/run/statistics.json").read_text())
    assert public == run.statistics.document
    seal = json.loads((site / "p/one/data/run/seal.json").read_text())
    assert seal["withheld"] == {"items": 11, "root": run.seal.root, "seal": run.seal.hash}
    assert seal["root"] != run.seal.root


def test_a_cell_page_says_that_an_item_is_withheld(published):
    _, site = published
    page = next(site.glob("p/one/cell/one/law/*/index.html")).read_text()
    [item] = [r for r in read(site / "p/one/data/run/items.jsonl") if r["id"] == "law-s3"]
    article = page.split('data-answer="law-s3"')[1].split("</article>")[0]
    assert f'withheld; commitment sha256 <code class="hash">{item["commitment"]}' in article
    assert "#withheld" in article


def test_a_forged_publication_that_shows_a_reply_is_refused(published, tmp_path):
    from tests.publishing.tampering import copy, reseal

    run = copy(published[1] / "p/one/data/run", tmp_path / "run")
    records = read(run / "trials.jsonl")
    next(r for r in records if r["item"] == "law-s1")["text"] = "Answer: B"
    (run / "trials.jsonl").write_bytes(b"".join(canonical(r) + b"\n" for r in records))
    reseal(run)
    assert "'text' of a synthetic item is not withheld" in verify(run).first_mismatch


def test_the_holder_of_the_run_opens_an_item_and_proves_it(published, cli):
    run, site = published
    place = ("--run", run.path, "--publication", site / "p/one")
    code, shown, _ = cli("--json", "audit", "open", "law-s4", *place)
    opened = json.loads(shown)["opened"]
    assert code == 0
    assert [one["what"] for one in opened] == ["item", "answer of one", "answer of two"]
    assert opened[0]["record"]["question"] == f"{QUESTION} Case 4."
    for one in opened:
        assert one["public"] is True
        assert commitment(one["salt"], one["record"]) == one["commitment"]
        forged = {**one["record"], "id": "other"}
        assert commitment(one["salt"], forged) != one["commitment"]
    code, shown, _ = cli("audit", "open", "law-s4", *place, "--model", "two")
    assert "answer of one" not in shown
    assert "as published" in shown
    for name, says in (("law-00", "is public"), ("nothing", "no item 'nothing'")):
        code, _, errors = cli("audit", "open", name, *place)
        assert code == 3
        assert says in errors


def test_a_changed_text_does_not_open(published, tmp_path):
    run, site = published
    other = shutil.copytree(run.path, tmp_path / "run")
    (other / "items.jsonl").chmod(0o644)
    text = (other / "items.jsonl").read_text().replace("which law applies", "which law is it")
    (other / "items.jsonl").write_text(text)
    with pytest.raises(IntegrityError, match="not what was published"):
        open_item(medassay.open_run(other), "law-s4", publication=site / "p/one")
    with pytest.raises(InputError, match="no publication"):
        open_item(run, "law-s4", publication=tmp_path)


def test_salts_hide_equal_records_and_two_publications_are_the_same(published, tmp_path):
    run, site = published
    medassay.publish(run, tmp_path / "site", publication="one")
    one, two = (everything(place / "p/one") for place in (site, tmp_path / "site"))
    assert {p.relative_to(site): d for p, d in one.items()} == {
        p.relative_to(tmp_path / "site"): d for p, d in two.items()
    }
    found = [r["commitment"] for r in read(site / "p/one/data/run/trials.jsonl") if "text" not in r]
    assert len(set(found)) == len(found) == 22


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), min_size=8, max_size=14, unique=True),
    st.sampled_from(["reply", "category", "limits", "model"]),
    st.sampled_from([" ", "  ", ", ", " <b>", "\n", " &amp; ", "… "]),
)
def test_a_planted_stretch_is_found_wherever_it_would_become_public(
    tmp_path_factory, stretch, place, between
):
    folder = tmp_path_factory.mktemp("planted")
    text = " ".join(stretch)
    leak = between.join(word.upper() for word in stretch)
    items = makers.many_items(3)
    card, names = {}, ["one"]
    if place == "category":
        items[0]["category"] = leak
    elif place == "limits":
        card["limits"] = leak
    elif place == "model":
        names = ["-".join(stretch)]
    replies = {"q00001": f"(B) {leak}"} if place == "reply" else {}
    makers.write_bank(folder / "bank", [*items, private_item(question=f"Why {text}?")], **card)
    makers.write_models(folder, makers.fake(names[0], replies=replies))
    run = medassay.run(makers.write_plan(folder, models=names), secrets={})
    with pytest.raises(GateError, match="holds words of item 'law-s1', question"):
        medassay.publish(run, folder / "site", publication="x")
    assert not list((folder / "site").rglob("*.html"))


def test_what_models_say_everywhere_is_no_secret_and_what_they_say_of_the_item_alone_is(
    tmp_path,
):
    common = "The correct answer to this question of law must be option (B)."
    private = {"law-s1": f"{common} {' '.join(WORDS[:9])}"}
    said = dict.fromkeys([i["id"] for i in (*makers.law_items(), *makers.many_items(12))], common)
    run = make_run(tmp_path, private_item(question="Short one?"), replies={**said, **private})
    medassay.publish(run, tmp_path / "site")
    for data in everything(tmp_path / "site").values():
        assert b"amber" not in data


@given(st.text(max_size=200), st.integers(1, 9))
def test_shingles_are_all_runs_of_words(text, size):
    found = [word.casefold() for word in re.findall(r"[^\W_]+", text)]
    assert len(list(shingles(text, size))) == max(0, len(found) - size + 1)
    secrets = PrivateShingles()
    secrets.add(text, "x")
    assert (secrets.secret_source(f"before {text} after") == "x") is (len(found) >= 8)


def test_escapes_of_json_and_html_hide_nothing():
    secrets = PrivateShingles()
    secrets.add("größe der dosis für das kind beträgt fünf milligramm", "item")
    for shown in (
        json.dumps("Größe der Dosis für das Kind beträgt fünf Milligramm"),
        "<p>Gr&ouml;&szlig;e der <b>Dos</b>is f&#252;r das Kind betr&auml;gt f&uuml;nf Milligramm",
        "größe\\nder\\tdosis für das kind beträgt fünf milligramm",
    ):
        assert secrets.secret_source(shown) == "item", shown
    assert secrets.secret_source("größe der dosis für das kind") is None


def test_kinds_are_ranked_apart_with_the_gap_between_them(published, cli):
    run, site = published
    found = json.loads(cli("--json", "report", run.path)[1])["by_kind"]
    scores = {(r["model"], r["item"]): r["score"] for r in read(run.path / "scores.jsonl")}
    for model in ("one", "two"):
        own = {item: s for (m, item), s in scores.items() if m == model}
        apart = {
            "public": [s for i, s in own.items() if not i.startswith("law-s")],
            "synthetic": [s for i, s in own.items() if i.startswith("law-s")],
        }
        means = {kind: sum(values) / len(values) for kind, values in apart.items()}
        for kind, mean in means.items():
            [row] = [r for r in found[kind]["overall"] if r["model"] == model]
            assert row["score"] == pytest.approx(mean)
            assert row["lo"] <= mean <= row["hi"]
            assert row["n"] == len(apart[kind])
        [gap] = [g for g in found["gap"] if (g["model"], g["domain"]) == (model, "overall")]
        assert gap["gap"] == pytest.approx(means["public"] - means["synthetic"])
        assert gap["lo"] <= gap["gap"] <= gap["hi"]
    assert found["tools_minus_solo"] == []
    for page in ("index.html", "domain/law/index.html", "model/one/index.html"):
        assert 'data-kinds="one"' in (site / "p/one" / page).read_text()


def test_a_run_of_one_kind_has_no_by_kind(tmp_path):
    run = make_run(tmp_path)
    assert "by_kind" not in run.statistics.document
    assert not (run.path / "salt.json").exists()


def test_judged_answers_to_synthetic_items_become_numbers(tmp_path):
    items = makers.open_items(14)
    for item in items[:11]:
        item.update(kind="synthetic", question=f"{item['question']} {' '.join(WORDS[:9])}")
        item.pop("source", None)
    judges = makers.judges()
    makers.write_bank(tmp_path / "bank", items)
    told = {i["id"]: " ".join(f["text"] for f in i["facts"][:2]) for i in items}
    makers.write_models(tmp_path, makers.fake("m", replies=told), *judges)
    plan = makers.write_plan(tmp_path, judges=[j["id"] for j in judges], task="open")
    run = medassay.run(plan, secrets={})
    site = tmp_path / "site"
    medassay.publish(run, site)
    report = verify(site)
    assert report.ok, report.first_mismatch
    [data] = site.glob("p/*/data/run")
    names = {item["id"] for item in items[:11]}
    assert not names & {v["item"] for v in read(data / "verdicts.jsonl")}
    private = {s["item"]: s for s in read(run.path / "scores.jsonl")}
    for score in read(data / "scores.jsonl"):
        if score["item"] in names:
            assert score["panel_scores"] == list(private[score["item"]]["judges"].values())
            assert {"agreement", "extra_false_claim_count", "contradict_count"} <= score.keys()
    page = next(site.glob("p/*/cell/m/law/*/index.html")).read_text()
    assert "panel scores" in page


def test_names_in_synthetic_rubrics_and_a_banks_changes_stay_private(tmp_path):
    items = [
        {
            "id": f"r{n:02}",
            "domain": "law",
            "answer_type": "open",
            "kind": "synthetic" if n < 12 else "public",
            "question": f"What now, {n}?",
            "source": "test",
            "criteria": [
                {
                    "id": "good",
                    "text": "does good",
                    "points": 5,
                    "tags": ["recommends apixaban" if n < 12 else "axis:good"],
                },
                {
                    "id": "stops warfarin" if n < 12 else "bad",
                    "text": "stops it",
                    "points": -5,
                    "harm": True,
                },
            ],
        }
        for n in range(24)
    ]
    judge = makers.judges()[0]

    def reply(bad):
        return json.dumps(
            {
                "criteria": [
                    {"id": "good", "met": True, "why": ""},
                    {"id": bad, "met": True, "why": ""},
                ]
            }
        )

    judge["script"] = {
        "reply": reply("bad"),
        "replies": {f"r{n:02}": reply("stops warfarin") for n in range(12)},
    }
    makers.write_bank(tmp_path / "bank", items)
    (tmp_path / "bank/CHANGES.md").write_text("r01: the right answer is warfarin\n")
    makers.write_models(tmp_path, makers.fake(reply="Stop it."), judge)
    plan = makers.write_plan(tmp_path, judges=[judge["id"]], task="rubric")
    run = medassay.run(plan, secrets={})
    assert b"recommends apixaban" in (run.path / "statistics.json").read_bytes()
    medassay.publish(run, tmp_path / "site", publication="x")
    for path, data in everything(tmp_path / "site").items():
        assert b"warfarin" not in data, path
        assert b"apixaban" not in data, path
    assert b"law/r15/bad" in (tmp_path / "site/p/x/harm/index.html").read_bytes()
    report = verify(tmp_path / "site")
    assert report.ok, report.first_mismatch


def test_words_that_a_public_item_has_too_are_no_secret(tmp_path):
    phrase = "Which of the following is the single most likely diagnosis here"
    public = makers.many_items(3)
    for item in public:
        item["question"] = f"{phrase}, {item['id']}?"
    makers.write_bank(tmp_path / "bank", [*public, private_item(question=f"{phrase} now?")])
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    assert medassay.publish(run, tmp_path / "site").is_file()


def test_the_gap_is_over_domains_that_have_items_of_both_kinds(tmp_path):
    """A domain with hard synthetic items alone must not look as if public items were learned."""
    law = [
        {**i, "kind": "synthetic" if n % 2 else "public"}
        for n, i in enumerate(makers.many_items(40))
    ]
    tax = [{**i, "id": f"t{i['id']}", "kind": "synthetic"} for i in makers.many_items(20, "tax")]
    replies = {i["id"]: i["expected"] for i in law}
    makers.write_bank(tmp_path / "bank", [*law, *tax], domains=("law", "tax"))
    makers.write_models(tmp_path, makers.fake(reply="nothing", replies=replies))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    gaps = {g["domain"]: g["gap"] for g in run.statistics.document["by_kind"]["gap"]}
    assert gaps == {"overall": 0, "law": 0}


@pytest.mark.parametrize("domains", [("law",), ("law", "tax")])
def test_clusters_that_join_kinds_or_domains_stay_whole_without_their_names(tmp_path, domains):
    """A case with public and synthetic items, or items of two domains, is one case to outsiders
    too.
    """
    items = []
    for domain in domains:
        for n, item in enumerate(makers.many_items(24, domain)):
            case = f"secret case {n // 2}"
            kind = "public" if n < 12 and n % 2 else "synthetic"
            items.append({**item, "id": f"{domain}-{n:02}", "cluster": case, "kind": kind})
    makers.write_bank(tmp_path / "bank", items, domains=domains)
    makers.write_models(tmp_path, makers.fake("one", letters="hash"))
    run = medassay.run(makers.write_plan(tmp_path, models=["one"]), secrets={})
    medassay.publish(run, tmp_path / "site")
    report = verify(tmp_path / "site")
    assert report.ok, report.first_mismatch
    for data in everything(tmp_path / "site").values():
        assert b"secret case 11" not in data  # of synthetic items alone
