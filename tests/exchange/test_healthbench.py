import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exchange.healthbench_rows import GIVEN
from tests.runner.judged_plans import lines

import medassay
from medassay.bank.catalog import BANKS
from medassay.core.criteria_points import rubric_points
from medassay.errors import InputError, ScaleError
from medassay.exchange.healthbench import import_healthbench
from medassay.kinds.catalog import task_of_run
from medassay.storage.run import open_run, seal_run
from medassay.summary.breakdown import breakdown

points = st.integers(-10, 10).filter(bool)


@pytest.fixture(scope="module")
def imported(data, tmp_path_factory):
    path = data / "healthbench_sample" / "judge_responses.jsonl"
    runs = tmp_path_factory.mktemp("healthbench")
    return path, import_healthbench([path], models=["answerer"], runs=runs)


def test_reproduces_every_stored_score(imported):
    path, run = imported
    stored = {r["prompt_id"]: r["score"] for r in map(json.loads, path.read_text().splitlines())}
    scores = {s["item"]: s["score"] for s in lines(run, "scores.jsonl")}
    assert len(scores) == 100
    assert scores == pytest.approx(stored, abs=1e-9)
    assert min(scores.values()) < 0  # only the mean is clipped
    assert medassay.verify(run.path).ok


def test_reproduces_every_published_mean(imported):
    """Overall, each theme, and each tag of criteria: level, axis, cluster."""
    path, run = imported
    published = json.loads((path.parent / "final_metrics.json").read_text())
    [row] = medassay.leaderboard(run).domains["overall"]
    assert row["score"] == pytest.approx(published["overall_score"], abs=1e-9)
    themes = {
        g.value: g.estimate.value
        for g in breakdown(run, ["category"], task_of_run(run.manifest).scale)["category"]
    }
    assert len(themes) == 7
    for theme, score in themes.items():
        assert score == pytest.approx(published[f"theme:{theme}"], abs=1e-9)
    tags = {
        g.value: g.estimate for g in breakdown(run, ["tag"], task_of_run(run.manifest).scale)["tag"]
    }
    kinds = ("level:", "axis:", "cluster:")
    assert tags.keys() == {k for k in published if k.startswith(kinds) and k.count(":") == 1}
    for tag, found in tags.items():
        assert found.value == pytest.approx(published[tag], abs=1e-9), tag
        assert found.n == published[f"{tag}:n_samples"], tag


def test_the_board_of_an_import_shows_every_criterion(imported, tmp_path):
    _, run = imported
    page = medassay.publish(run, tmp_path / "site")
    [cell] = (page.parent / "cell").rglob("index.html")
    text = cell.read_text()
    assert "Which criteria the answer meets" in text
    assert 'data-verdict="not met"' in text
    model = next((page.parent / "model").rglob("index.html")).read_text()
    assert "axis:completeness" in model
    assert medassay.verify(tmp_path / "site").ok


def test_the_bank_of_the_same_file_can_be_asked(data, tmp_path):
    bank = BANKS["healthbench"].load(data / "healthbench_sample")
    assert (bank.kept, bank.dropped) == (100, {})
    assert sum(item.context is not None for item in bank.items) == 41  # earlier turns
    assert sum(len(item.target.criteria) for item in bank.items) == 1157


def test_scores_below_0_are_kept_and_equal_ones_have_no_interval(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps({**GIVEN, "prompt_id": n}) + "\n" for n in "abc"))
    run = import_healthbench([path], models=["m"], runs=tmp_path / "runs")
    assert [s["score"] for s in lines(run, "scores.jsonl")] == [pytest.approx(-0.6)] * 3
    [row] = medassay.leaderboard(run).domains["overall"]
    assert (row["score"], row["lo"], row["hi"]) == (None, None, None)
    assert "not_ranked:no_interval" in row["flags"]
    assert row["tags"]["axis:y"]["score"] == 1
    assert medassay.verify(run.path).ok


def test_given_verdicts_belong_to_imported_judges_only(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(GIVEN) + "\n")
    run = import_healthbench([path], models=["m"], runs=tmp_path / "runs")
    manifest = run.path / "manifest.json"
    for name in ("manifest.json", "MANIFEST.sha256", "seal.json"):
        (run.path / name).chmod(0o644)
    text = manifest.read_text()
    manifest.write_text(
        text.replace('"model":"","provider":"import"', '"model":"","provider":"fake"')
    )
    assert manifest.read_text() != text
    for name in ("MANIFEST.sha256", "seal.json"):
        (run.path / name).unlink()
    seal_run(open_run(run.path), sealed_at="2026-11-21T00:00:00Z")
    assert "by a judge that was not imported" in medassay.verify(run.path).first_mismatch


def test_an_answer_that_is_none_counts_in_every_tag(tmp_path):
    """A blank answer meets no criterion: overall, by category and by tag say the same."""
    path = tmp_path / "r.jsonl"
    blank = {"prompt_response": [{"role": "assistant", "content": " "}]}
    only = {"rubrics": GIVEN["rubrics"][:1], "responses": GIVEN["responses"][:1]}
    rows = [{**GIVEN, **only, "prompt_id": f"p{n}", **(blank if n < 4 else {})} for n in range(10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = import_healthbench([path], models=["m"], runs=tmp_path / "runs")
    [row] = medassay.leaderboard(run).domains["overall"]
    assert row["score"] == pytest.approx(0.6)
    assert row["tags"]["axis:y"]["score"] == pytest.approx(0.6)
    assert row["tags"]["axis:y"]["n"] == 10
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt_response": None}, "verdicts without the answer; expected it in prompt_response"),
        (
            {"prompt_response": [{"role": "assistant", "content": None}], "score": 1.0},
            "score 1.0 for an empty answer, which meets no criterion",
        ),
    ],
)
def test_verdicts_without_an_answer_are_not_passed_over(tmp_path, change, says):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({**GIVEN, **change}) + "\n")
    with pytest.raises(InputError, match=f"row 1: {says}"):
        import_healthbench([path], models=["m"], runs=tmp_path / "runs")


@pytest.mark.parametrize(
    "change",
    [
        {"responses": [{"points": 5, "response_dict": {"criteria_met": "yes"}}]},
        {"responses": GIVEN["responses"][::-1]},
        {"responses": GIVEN["responses"][:1]},
        {"responses": "[{"},
        {"rubrics": []},
        {"rubrics": 3},
        {"prompt": [{"role": "assistant", "content": "Hello"}]},
        {"prompt_response": "text"},
        {"example_tags": None},
        {"prompt_id": None},
        {"prompt": [{"role": "user", "content": ["x"]}]},
        {"prompt_response": [{"role": "user", "content": "x"}]},
        {"responses": "-" * 100_000 + "1"},
        {"score": 0.999},
        *(
            {
                "rubrics": [{**r, "points": p} for r in GIVEN["rubrics"]],
                "responses": [{**r, "points": p} for r in GIVEN["responses"]],
            }
            for p in (True, "5", 1e308, 10**400, 5e-324)
        ),
    ],
)
def test_a_row_of_another_form_is_named_and_nothing_is_left(tmp_path, change):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(GIVEN) + "\n" + json.dumps({**GIVEN, **change}) + "\n")
    with pytest.raises(InputError, match=r"r\.jsonl row 2: "):
        import_healthbench([path], models=["m"], runs=tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00", b"[1, 2", b"3\n", b'{"a": NaN}\n', b""])
def test_a_file_that_is_none_is_bad_input(tmp_path, junk):
    path = tmp_path / "r.jsonl"
    path.write_bytes(junk)
    with pytest.raises(InputError, match=r"r\.jsonl"):
        import_healthbench([path], models=["m"], runs=tmp_path / "runs")


@given(st.lists(st.tuples(points, st.booleans()), min_size=1, max_size=9))
def test_a_score_is_at_most_1_and_rises_with_every_wanted_criterion(rows):
    criteria, met = [{"points": p} for p, _ in rows], [yes for _, yes in rows]
    if not any(p > 0 for p, _ in rows):
        with pytest.raises(ScaleError):
            rubric_points(criteria, met)
        return
    score = rubric_points(criteria, met)
    assert score <= 1
    assert rubric_points(criteria, [p > 0 for p, _ in rows]) == 1
    for at, (p, yes) in enumerate(rows):
        if not yes:
            more = rubric_points(criteria, [*met[:at], True, *met[at + 1 :]])
            assert (more > score) == (p > 0)


def test_points_and_verdicts_go_together():
    with pytest.raises(ScaleError, match="2 criteria, 1 verdicts"):
        rubric_points([{"points": 1}, {"points": 2}], [True])


def test_files_of_several_models_make_one_run(tmp_path, cli):
    rows = [{**GIVEN, "prompt_id": n} for n in "abc"]
    folder = tmp_path / "results"
    folder.mkdir()
    for name in ("one", "two"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    code, _, errors = cli("import", "healthbench", folder, "--to", tmp_path / "run")
    assert code == 0, errors
    run = medassay.open_run(tmp_path / "run")
    assert sorted(run.manifest_document["models"]) == ["one", "two"]
    assert len(lines(run, "trials.jsonl")) == 6
    assert len(lines(run, "items.jsonl")) == 3
    assert medassay.verify(run.path).ok
    files = [folder / "one.jsonl", folder / "two.jsonl"]
    named = import_healthbench(files, models=["x", "y"], to=tmp_path / "named")
    assert named.manifest_document["domains"] == run.manifest_document["domains"]
    code, _, errors = cli("import", "healthbench", *files, "--model", "x")
    assert (code, errors.count("\n")) == (3, 1)
    assert "1 for 2 files (one.jsonl, two.jsonl)" in errors
    rows[0]["prompt"] = [{"role": "user", "content": "Something else?"}]
    (folder / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, errors = cli("import", "healthbench", folder, "--to", tmp_path / "other")
    assert (code, errors.count("\n")) == (3, 1)
    assert "two.jsonl row 1: prompt_id 'a' asks something else" in errors
