"""Ranked diagnoses end to end: asked, judged, aggregated, sealed, verified, published."""

import csv
import json

import numpy as np
import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.cli.main import call
from medassay.core.records.plan import DdxRules
from medassay.errors import GateError, InputError
from medassay.kinds.results import leaderboard
from medassay.runner.preview import preview
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.runner.rescore import rescore
from medassay.statistic import reliability_weighted_mean, rescale

N = 15


def workspace(folder, *models, judge=None, items=None, **plan):
    makers.write_bank(
        folder / "bank", items or makers.ddx_items(N), name="medicine", domains=("medicine",)
    )
    seated = [] if plan.get("task") == "ddx_names" else [judge or makers.ddx_judge(N)]
    makers.write_models(folder, *models, *seated)
    return makers.write_plan(
        folder,
        models=[m["id"] for m in models],
        **({"judges": [j["id"] for j in seated]} if seated else {}),
        **{"task": "ddx", **plan},
    )


def good(name="good"):
    """Names the disease first in every case, then one of its group and a stranger."""
    replies = {
        f"case-{i:03}": makers.listed(f"Malady {i}", f"Kin {i}", f"Disease {(i + 1) % N}")
        for i in range(N)
    }
    return makers.fake(name, replies=replies)


def poor(name="poor"):
    """One of the group in some cases, strangers in most, no list in one."""
    replies = {
        f"case-{i:03}": makers.listed(f"Disease {(i + 2) % N}", *([f"Kin {i}"] if i % 3 else []))
        for i in range(N)
    }
    return makers.fake(name, replies=replies | {"case-004": "I cannot say."})


def lines(run, name):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


def rows(run, domain="overall"):
    return {(r["model"], r["setting"]): r for r in medassay.leaderboard(run).domains[domain]}


def test_a_run_gives_both_scores_with_every_label_and_its_source(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    assert medassay.verify(run.path).ok
    first = lines(run, "verdicts.jsonl")[0]
    assert [d["relation_by"] for d in first["body"]["diagnoses"]] == [
        "other name in the bank",
        "judge",
        "judge",
    ]
    assert len(first["replies"]) == len(first["prompt_sha256"]) == 2
    scores = lines(run, "scores.jsonl")
    assert scores[0]["score"] == pytest.approx((16 + 0.8 * 4) / 2.4)
    assert scores[0]["parts"]["hit"] == 1
    found = rows(run)["good", "zero_shot"]
    assert found["top1"]["score"] == 1
    assert found["unjudged"] == 0
    assert found["prompt"] == "zero_shot"
    assert found["semantic"]["hard"] | {"k": 3, "x0": 0} == found["semantic"]["hard"]
    assert found["semantic_mean"]["scale"] == [0, 16]


def test_the_aggregates_are_those_of_the_cases(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    for model in ("good", "poor"):
        own = [s for s in lines(run, "scores.jsonl") if s["model"] == model]
        semantic = [s["score"] for s in own]
        # The case without a list is worth nothing, in both scores.
        severity = [s["parts"]["severity"] if "parts" in s else 0.0 for s in own]
        found = rows(run)[model, "zero_shot"]
        for name, values in (("semantic", semantic), ("severity", severity)):
            shown = rescale(values)
            assert found[name]["mean"]["score"] == pytest.approx(shown.mean())
            assert found[f"{name}_mean"]["score"] == pytest.approx(np.mean(values))
            for preset, (k, x0) in {"easy": (1, 0.3), "medium": (2, 0), "hard": (3, 0)}.items():
                estimate = found[name][preset]
                assert estimate["score"] == pytest.approx(
                    reliability_weighted_mean(shown, k=k, x0=x0)
                )
                assert estimate["lo"] - 1e-9 <= estimate["score"] <= estimate["hi"] + 1e-9
                assert estimate["n"] == N
    assert rows(run)["poor", "zero_shot"]["outcomes"]["unparsed"] == 1
    places = rows(run)["good", "zero_shot"]["quadrants"]
    assert sum(places.values()) == N


def test_prompts_are_rows_of_their_own(tmp_path):
    plan = workspace(
        tmp_path,
        good(),
        templates=["ddx", "ddx_steps", "ddx_few_shot"],
        settings=["zero_shot"],
    )
    run = medassay.run(plan, secrets={})
    assert set(rows(run)) == {
        ("good", f"zero_shot:{name}") for name in ("ddx", "ddx_steps", "ddx_few_shot")
    }
    assert len({t["template"] for t in lines(run, "trials.jsonl")}) == 3
    assert run.manifest_document["template"].count("+") == 2
    before = makers.set_aside(run)
    again = medassay.run(plan, secrets={})
    assert (again.path / "trials.jsonl").read_bytes() == (before / "trials.jsonl").read_bytes()


def test_pairs_are_differences_of_the_leading_aggregate(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    found = rows(run)
    document = run.statistics.document["ddx"]
    for name in ("semantic", "severity"):
        [pair] = document["pairs"]["solo"][name]
        assert (pair["first"][0], pair["second"][0]) == ("good", "poor")
        ends = [found[m, "zero_shot"][name]["hard"]["score"] for m in ("good", "poor")]
        assert pair["difference"] == pytest.approx(ends[0] - ends[1])
        assert pair["lo"] <= pair["difference"] <= pair["hi"]
        assert pair["p_holm"] == pair["p"]
    assert document["pairs"]["solo"]["semantic"][0]["different"]
    same = medassay.run(workspace(tmp_path / "same", good("a"), good("b")), secrets={})
    [pair] = same.statistics.document["ddx"]["pairs"]["solo"]["semantic"]
    assert (pair["difference"], pair["different"]) == (0, False)


def test_errors_are_told_by_golden_severity_category_and_diagnosis(tmp_path):
    run = medassay.run(workspace(tmp_path, poor()), secrets={})
    found = {(e["by"], e["value"]): e for e in run.statistics.document["ddx"]["errors"]}
    assert {by for by, _ in found} == {"golden_severity", "category", "golden_diagnosis"}
    # A stranger two diseases on is listed first: mild is met by severe, two levels above.
    assert found["golden_severity", "mild"]["severity_shift"]["score"] > 0
    assert found["golden_severity", "critical"]["severity_shift"]["score"] < 0
    assert found["category", "even"]["n"] == 8
    assert found["golden_diagnosis", "Disease 3"]["n"] == 1


def test_names_alone_ask_nobody_and_know_no_severity(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor(), task="ddx_names"), secrets={})
    assert medassay.verify(run.path).ok
    found = rows(run)["good", "zero_shot"]
    assert found["top1"]["score"] == 1
    assert found["semantic_mean"]["score"] == pytest.approx(16 / 2.4)
    assert found["severity"] == dict.fromkeys(("easy", "medium", "hard", "mean"))
    assert rows(run)["poor", "zero_shot"]["severity_mean"] is None
    assert "unjudged" not in found["flags"]  # nobody was asked
    assert {v["judge"] for v in lines(run, "verdicts.jsonl")} == {"rule"}


def test_a_judge_cannot_sit_where_names_are_compared(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.ddx_items(3), domains=("medicine",), name="m")
    makers.write_models(tmp_path, good("m"), makers.ddx_judge(3))
    plan = makers.write_plan(tmp_path, task="ddx_names", judges=["judge"])
    with pytest.raises(InputError, match="asks nobody"):
        medassay.run(plan, secrets={})
    with pytest.raises(InputError, match="no silent"):
        medassay.run(makers.write_plan(tmp_path, task="ddx"), secrets={})


def test_synonyms_of_a_file_are_kept_with_the_run(tmp_path):
    names = {f"X:{i}": f"Disease {i}/Ailment {i}" for i in range(N)}
    (tmp_path / "names.json").write_text(json.dumps(names | {"X:99": "Other/Thing"}))
    replies = {f"case-{i:03}": makers.listed(f"Ailment {i}") for i in range(N)}
    plan = workspace(tmp_path, makers.fake("m", replies=replies), task="ddx_names")
    with plan.open("a") as file:
        file.write('[ddx]\nnames = ["names.json"]\n')
    run = medassay.run(plan, secrets={})
    assert rows(run)["m", "zero_shot"]["top1"]["score"] == 1
    assert run.manifest_document["ddx"]["files"][0]["form"] == "rarebench"
    assert len(run.manifest_document["ddx"]["synonyms"]) == N  # of the run's own diagnoses only
    (tmp_path / "names.json").unlink()
    assert medassay.verify(run.path).ok


def test_a_silent_judge_is_null_and_a_partly_silent_one_is_counted(tmp_path):
    silent = {"id": "judge", "provider": "fake", "family": "f", "script": {"reply": "{}"}}
    plan = workspace(tmp_path, poor(), good(), judge=silent)
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    of = {m: [s for s in lines(run, "scores.jsonl") if s["model"] == m] for m in ("good", "poor")}
    # Where names found the diagnosis the rest counts as unjudged; where they found nothing, nothing
    # is known.
    assert [s["score"] for s in of["good"]] == pytest.approx([16 / 2.4] * N)
    assert {s["parts"]["unjudged"] for s in of["good"]} == {2 + 3}
    assert {s["parts"]["severity"] for s in of["good"]} == {None}
    assert {s["score"] for s in of["poor"] if s["because"] != "unparsed"} == {None}
    found = rows(run)
    assert "unjudged" in found["good", "zero_shot"]["flags"]
    assert found["poor", "zero_shot"]["judge_failures"] == N - 1
    assert found["poor", "zero_shot"]["skipped"] == N - 1
    assert medassay.verify(run.path).ok
    strange = makers.ddx_judge(N)
    strange["script"]["labels"]["severity"] |= {f"Kin {i}": "awful" for i in range(N)}
    run = medassay.run(workspace(tmp_path / "b", good(), judge=strange), secrets={})
    found = rows(run)["good", "zero_shot"]
    assert (found["unjudged"], found["labels"]) == (N, 6 * N)
    assert "unjudged" in found["flags"]


def test_other_weights_are_a_question_to_the_sealed_run(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    before = (run.path / "statistics.json").read_bytes()
    board = leaderboard(run, ddx=DdxRules(k=5, x0=0.1, semantic_max="published"))
    [row] = [r for r in board.domains["overall"] if r["model"] == "poor"]
    own = [s["score"] for s in lines(run, "scores.jsonl") if s["model"] == "poor"]
    wanted = reliability_weighted_mean(rescale(own, "published"), k=5, x0=0.1)
    assert row["semantic"]["free"]["score"] == pytest.approx(wanted)
    assert (row["semantic"]["free"]["k"], row["semantic"]["free"]["x0"]) == (5, 0.1)
    assert (run.path / "statistics.json").read_bytes() == before
    with pytest.raises(InputError, match="go together"):
        leaderboard(run, ddx=DdxRules(k=5))


def test_a_run_is_judged_and_scored_again_without_asking_models(tmp_path):
    plan = workspace(tmp_path, good(), poor(), task="ddx_names")
    run = medassay.run(plan, secrets={})
    makers.write_models(tmp_path, good(), poor(), makers.ddx_judge(N))
    options = JudgingOptions(judges=["judge"], models_file=tmp_path / "models.json", task="ddx")
    judged = judge_run(run, options, secrets={})
    direct = medassay.run(workspace(tmp_path / "direct", good(), poor()), secrets={})
    assert [s["score"] for s in lines(judged, "scores.jsonl")] == [
        s["score"] for s in lines(direct, "scores.jsonl")
    ]
    again = rescore(judged)
    assert lines(again, "scores.jsonl") == lines(judged, "scores.jsonl")
    assert medassay.verify(judged.path).ok
    assert medassay.verify(again.path).ok


def test_a_label_that_was_changed_is_found(tmp_path):
    run = medassay.run(workspace(tmp_path, good()), secrets={})
    path = run.path / "verdicts.jsonl"
    path.chmod(0o644)
    text = path.read_text().replace('"Exact Disease Group"', '"Exact Synonym"', 1)
    path.write_text(text)
    report = medassay.verify(run.path)
    assert not report.ok
    assert "verdicts.jsonl" in report.first_mismatch


def test_private_cases_are_published_as_numbers(tmp_path):
    names = {f"X:{i}": f"Disease {i}/Ailment-{i}-of-old" for i in range(N)}
    (tmp_path / "names.json").write_text(json.dumps(names))
    items = [
        {
            **item,
            "kind": "synthetic" if i % 2 else "public",
            "diagnoses": [f"Disease {i}", f"Malady-{i}-by-name"],
        }
        for i, item in enumerate(makers.ddx_items(N))
    ]
    replies = {f"case-{i:03}": makers.listed(f"Malady-{i}-by-name", "Flu") for i in range(N)}
    plan = workspace(tmp_path, makers.fake("m", replies=replies), items=items)
    with plan.open("a") as file:
        file.write('[ddx]\nnames = ["names.json"]\n')
    run = medassay.run(plan, secrets={})
    place = medassay.publish(run, tmp_path / "site").parent
    assert medassay.verify(tmp_path / "site").ok
    records = [json.loads(x) for x in (place / "data/run/scores.jsonl").read_text().splitlines()]
    for record in records:
        private = int(record["item"][-3:]) % 2
        assert ("judges" not in record) == private
        assert record["parts"]["hit"] == 1
    texts = (p for p in place.rglob("*") if p.suffix not in (".svg", ".css", ".js"))
    everything = b"".join(p.read_bytes() for p in texts if p.is_file())
    for i in range(N):
        for word in (f"Malady-{i}-by-name", f"Ailment-{i}-of-old", f"tient: sign {i}."):
            assert (word.encode() in everything) == (i % 2 == 0), word


def test_the_rules_of_a_plan_are_checked(tmp_path):
    plan = workspace(tmp_path, good())
    text = plan.read_text()
    for rules, says in (
        ("k = 3", "go together"),
        ("k = -1\nx0 = 0", "above 0"),
        ('semantic_max = "theirs"', "published"),
        ("rank_limit = 0", "1 to 40"),
        ("rank_limit = 1000000000000000000", "1 to 40"),
        ("rank_limit = 10000000000000000000000", "'ddx.rank_limit' is an integer of more than 64"),
        ("k = 101\nx0 = 0", "at most 100"),
        ("k = 3\nx0 = 2", "-1 to 1"),
        ("semantic_max = 0.5", "from 1 to 16"),
        ('unjudged = "guess"', "d_max"),
        ("colour = 1", "colour"),
        ('names = ["absent.json"]', "absent.json: cannot be read"),
    ):
        plan.write_text(f"{text}[ddx]\n{rules}\n")
        with pytest.raises(InputError, match=says):
            medassay.run(plan, secrets={})
    assert not (tmp_path / "runs").exists()


def test_a_plan_says_every_call_of_the_judge_beforehand(tmp_path):
    found = preview(workspace(tmp_path, good(), poor()))
    calls = {row.model: row.calls for row in found.models}
    assert calls == {"good": N, "poor": N, "judge": 2 * 2 * N}
    found = preview(workspace(tmp_path / "b", good(), task="ddx_names"))
    assert {row.model: row.calls for row in found.models} == {"good": N, "rule": 0}


def test_figures_of_a_run_are_those_of_its_board(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    page = medassay.publish(run, tmp_path / "site")
    for name in ("quadrant", "semantic", "severity", "top"):
        figure = medassay.figure(run, name)
        [drawn] = (page.parent / "figure").glob(f"ddx-{name}-*[!k].svg")
        assert drawn.read_text() == figure.svg()
    with pytest.raises(InputError, match="quadrant"):
        medassay.figure(run, "pie")


def test_the_number_of_names_stands_beside_every_score(tmp_path, capsys):
    """A model that lists one right name stands first by the published score, and not over all
    places.
    """
    makers.write_bank(tmp_path / "bank", makers.ddx_items(N), name="c", domains=("medicine",))
    five = {
        f"case-{i:03}": makers.listed(f"Malady {i}", "Flu", "Gout", "Mumps", "Rash")
        for i in range(N)
    }
    one = {f"case-{i:03}": makers.listed(f"Malady {i}") for i in range(N)}
    none = {f"case-{i:03}": "I cannot say." for i in range(N)}
    models = {"five": five, "one": one, "none": none}
    makers.write_models(
        tmp_path, *(makers.fake(name, replies=found) for name, found in models.items())
    )
    plan = makers.write_plan(tmp_path, task="ddx_names", models=[*models])
    run = medassay.run(plan, secrets={})
    rows = {row["model"]: row for row in medassay.leaderboard(run).domains["overall"]}
    assert [rows[name]["names"]["score"] for name in models] == [5, 1, 0]
    assert [rows[name]["short_lists"]["score"] for name in models] == [0, 1, 1]
    assert [rows[name]["semantic_mean"]["score"] for name in models] == pytest.approx(
        [16 / 3, 16, 0]
    )
    assert [rows[name]["all_places_mean"]["score"] for name in models] == pytest.approx(
        [16 / 3, 16 / 3, 0]
    )
    assert call(["report", str(run.path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "names a list" in said
    assert "1.0 [1.0, 1.0]" in said
    page = medassay.publish(run, tmp_path / "site").parent
    assert "1.0 names a list, 100.0 % of lists short" in (page / "index.html").read_text()
    assert "The same over all places" in (page / "ddx/index.html").read_text()
    assert medassay.verify(tmp_path / "site").ok


def test_the_table_of_a_board_holds_every_estimate(tmp_path):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    page = medassay.publish(run, tmp_path / "site")
    with (page.parent / "data" / "diagnoses.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["domain"] == "overall"]
    assert len(found) == 2 * (2 * 4 + 2 + 3 + 3)
    for row in found:
        assert float(row["lo"]) <= float(row["estimate"]) + 1e-9
        assert float(row["estimate"]) <= float(row["hi"]) + 1e-9
    [hard] = [
        row
        for row in found
        if (row["model"], row["number"], row["weights"]) == ("good", "semantic, rescaled", "hard")
    ]
    assert (hard["k"], hard["x0"], hard["n"]) == ("3", "0", "15")


def test_a_private_bank_of_cases_never_leaves(tmp_path):
    items = makers.ddx_items(4)
    plan = workspace(tmp_path, good(), items=items)
    card = tmp_path / "bank" / "bank.toml"
    card.write_text(card.read_text() + "may_leave = false\n")
    run = medassay.run(plan, secrets={})
    with pytest.raises(GateError, match="may not leave"):
        medassay.publish(run, tmp_path / "site")


def two_domains(folder, **more):
    """Return a run over two domains with clusters and repeats."""
    items = []
    for domain, n in (("alpha", 11), ("beta", 7)):
        for i, item in enumerate(makers.ddx_items(n, domain)):
            items.append({**item, "id": f"{domain}-{i:02}", "cluster": f"{domain}{i // 2}"})
    makers.write_bank(folder / "bank", items, name="m", domains=("alpha", "beta"))
    lists = {
        item["id"]: makers.listed(f"Kin {i % 11}", *([item["diagnoses"][0]] if i % 3 else []))
        for i, item in enumerate(items)
    }
    models = [makers.fake("a", replies=lists), good("b"), makers.ddx_judge(N)]
    makers.write_models(folder, *models)
    plan = makers.write_plan(
        folder, task="ddx", models=["a", "b"], judges=["judge"], repeats=2, **more
    )
    return medassay.run(plan, secrets={})


def test_overall_draws_each_domain_and_its_clusters(tmp_path):
    """Recomputed from the score records: the aggregates, and their first interval by stretched
    sums.
    """
    from medassay.statistic.draws import seed_of, stream

    run = two_domains(tmp_path)
    values, sizes = {}, {}
    for score in lines(run, "scores.jsonl"):
        if score["model"] == "a":
            values.setdefault((score["domain"], score["item"]), []).append(score["score"])
    draws = np.zeros((1000, 2))
    everything = []
    for domain in ("alpha", "beta"):
        means = [np.mean(v) for (d, _), v in sorted(values.items()) if d == domain]
        shown = rescale(means)
        everything += shown.tolist()
        weights = 1 / (1 + np.exp(3 * shown))
        groups = np.arange(len(means)) // 2
        n = sizes[domain] = groups.max() + 1
        both = np.array([np.bincount(groups, weights * shown), np.bincount(groups, weights)]).T
        seed = seed_of(run.manifest_document["domains"][domain], run.id, domain, "solo")
        index = (stream(seed).random_sample((1000, n)) * n).astype(int)
        sums = both.sum(axis=0)
        draws += sums + np.sqrt(n / (n - 1)) * (both[index].sum(axis=1) - sums)
    found = rows(run)["a", "zero_shot"]["semantic"]["hard"]
    assert found["score"] == pytest.approx(reliability_weighted_mean(everything, k=3, x0=0))
    lo, hi = np.quantile(draws[:, 0] / draws[:, 1], [0.025, 0.975])
    assert (found["lo"], found["hi"]) == (pytest.approx(lo), pytest.approx(hi))
    assert (found["n"], found["n_clusters"]) == (18, sum(sizes.values()))
    assert found["second"]["method"] == "stratified_t"
    alone = rows(run, "alpha")["a", "zero_shot"]["semantic"]["hard"]
    assert alone["second"]["method"] == "cluster_t"
    assert medassay.verify(run.path).ok


def test_rows_are_aggregated_over_the_cases_they_have_in_common(tmp_path):
    """One model has no answer to two cases: both are compared on the others, as the ranking is."""
    some = good("some")
    some["script"]["fail_items"] = ["case-001"]
    plan = workspace(tmp_path, good("all"), some)
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    found = rows(run)
    for name in ("all", "some"):
        row = found[name, "zero_shot"]
        assert row["semantic"]["hard"]["n"] == row["n"] == N - 1
        assert row["top1"]["n"] == N - 1
    assert found["some", "zero_shot"]["skipped"] == 1
    bounds = found["some", "zero_shot"]["semantic_mean"]
    assert bounds["worst"] < bounds["score"] < bounds["best"]
    [pair] = run.statistics.document["ddx"]["pairs"]["solo"]["semantic"]
    assert (pair["n"], pair["difference"]) == (N - 1, 0)


def test_a_reply_without_a_list_counts_among_its_golden_severity(tmp_path):
    run = medassay.run(workspace(tmp_path, poor()), secrets={})
    found = {(e["by"], e["value"]): e for e in run.statistics.document["ddx"]["errors"]}
    assert found["golden_severity", "rare"]["n"] == 3  # case-004 holds no list, and is one of them
    worth = [s["score"] for s in lines(run, "scores.jsonl") if int(s["item"][-3:]) % 5 == 4]
    mean = found["golden_severity", "rare"]["semantic_mean"]["score"]
    assert mean == pytest.approx(np.mean(worth))


def test_a_private_or_deleted_case_without_a_list_counts_among_its_severity_still(tmp_path):
    """Nobody judged its golden severity, so that the bank alone tells it: it stays public."""
    from medassay.publishing.tombstone import forget

    items = makers.ddx_items(N)
    items[4]["kind"] = "synthetic"  # of which `poor` lists nothing
    run = medassay.run(workspace(tmp_path, poor(), items=items), secrets={})
    medassay.publish(run, tmp_path / "site")
    report = medassay.verify(tmp_path / "site")
    assert report.ok, report.first_mismatch
    public = run.path.parents[1] / "site/p"
    [published] = public.glob("*/data/run")
    report = medassay.verify(published)
    assert report.ok, report.first_mismatch
    forget("case-004", tmp_path, reason="law", at="2026-11-21T00:00:00Z")
    report = medassay.verify(run.path)
    assert report.ok, report.first_mismatch


def test_the_steepest_weights_seal_and_what_is_steeper_is_refused_before_any_call(tmp_path):
    plan = workspace(tmp_path, good(), poor())
    text = plan.read_text()
    plan.write_text(text + "[ddx]\nk = 100\nx0 = 0.5\n")
    run = medassay.run(plan, secrets={})
    assert medassay.verify(run.path).ok
    assert rows(run)["poor", "zero_shot"]["semantic"]["free"]["k"] == 100


def test_a_model_that_never_answered_has_no_aggregate_and_the_report_says_so(tmp_path, cli):
    dead = good("dead")
    dead["script"]["fail_items"] = [f"case-{i:03}" for i in range(N)]
    plan = workspace(tmp_path, dead, poor())
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    row = rows(run)["dead", "zero_shot"]
    assert row["semantic"]["hard"] is None
    assert row["skipped"] == N
    code, out, err = cli("report", str(run.path))
    assert (code, err) == (0, "")
    assert "weighted aggregates" in out
    medassay.publish(run, tmp_path / "site")


def test_a_preset_and_a_figure_follow_the_rules_of_the_command_line(tmp_path, cli):
    run = medassay.run(workspace(tmp_path, good(), poor()), secrets={})
    code, out, _ = cli("report", str(run.path), "--rules", "preset=easy")
    assert code == 0
    assert "easy: k = 1, x0 = 0.3" in out
    for name, rules in (("a.svg", "preset=hard"), ("b.svg", "k=9,x0=0.5")):
        target = str(tmp_path / name)
        code, *_ = cli(
            "report", str(run.path), "--figure", "quadrant", "--to", target, "--rules", rules
        )
        assert code == 0
    assert (tmp_path / "a.svg").read_text() != (tmp_path / "b.svg").read_text()
    assert "k = 9" in (tmp_path / "b.svg").read_text()


def test_what_is_forgotten_leaves_no_name_behind_and_the_run_verifies(tmp_path):
    from medassay.publishing.tombstone import forget

    (tmp_path / "names.json").write_text(json.dumps({"X:1": "Singulitis/Aloneness"}))
    items = makers.ddx_items(N)
    items[3] |= {"diagnoses": ["Singulitis"], "category": "Uniquology"}
    plan = workspace(tmp_path, poor(), items=items)
    with plan.open("a") as file:
        file.write('[ddx]\nnames = ["names.json"]\n')
    run = medassay.run(plan, secrets={})
    assert "Aloneness" in (run.path / "manifest.json").read_text()
    forget("case-003", tmp_path, reason="law", at="2026-11-21T00:00:00Z")
    report = medassay.verify(run.path)
    assert report.ok, report.first_mismatch
    for path in run.path.iterdir():
        text = path.read_text()
        for word in ("Singulitis", "Aloneness", "Uniquology"):
            assert word not in text, (path.name, word)


def test_synonyms_of_a_private_case_do_not_widen_a_public_one(tmp_path):
    names = {"X:1": "Gout/Podagra", "X:2": "Hidden malady/Secretitis"}
    (tmp_path / "names.json").write_text(json.dumps(names))
    items = makers.ddx_items(N)
    items[0] |= {"diagnoses": ["Gout"]}
    items[1] |= {"diagnoses": ["Gout", "Hidden malady"], "kind": "synthetic"}
    replies = {"case-000": makers.listed("Secretitis"), "case-001": makers.listed("Secretitis")}
    plan = workspace(tmp_path, makers.fake("m", replies=replies), items=items, task="ddx_names")
    with plan.open("a") as file:
        file.write('[ddx]\nnames = ["names.json"]\n')
    run = medassay.run(plan, secrets={})
    assert run.manifest_document["ddx"]["synonyms"]["gout"] == ["Gout", "Podagra"]
    assert lines(run, "scores.jsonl")[0]["parts"]["hit"] is None
    place = medassay.publish(run, tmp_path / "site").parent
    assert "Hidden malady" not in (place / "data" / "run" / "manifest.json").read_text()
