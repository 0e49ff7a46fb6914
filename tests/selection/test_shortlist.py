import csv
import dataclasses
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from medassay.cli.main import call
from medassay.errors import InputError
from medassay.selection import Candidate, SelectionSteps, load_candidates, load_steps, shortlist
from medassay.selection.candidate import our_candidates
from medassay.selection.discipline import OtherScore, load_predictions
from medassay.selection.licence import FAMILIES, POLICIES, admits, family_of
from medassay.selection.written import csv_text, files_of, markdown

DISCIPLINES = ("biology", "chemistry", "health", "psychology")
SCORES = dict.fromkeys(DISCIPLINES, 0.5)


def of_golden(golden):
    return [
        Candidate(
            model=row["model"],
            qualifier=row["qualifier"],
            parameters_b=row["size_b"],
            open_weights=True,
            context_tokens=row["context_tokens"],
            licence=row["license"],
            scores={name: row[name] for name in DISCIPLINES},
        )
        for row in golden("model_selection")["models"]
    ]


def kept(found):
    return {step.name: list(step.kept) for step in found.taken}


# In the golden file a window that is None was below the bound, not unknown.
@pytest.mark.parametrize("table", ["golden", "ours"])
def test_the_published_tables(golden, table):
    wanted = golden("model_selection")
    candidates = of_golden(golden) if table == "golden" else our_candidates()
    steps = SelectionSteps(unknown="remove" if table == "golden" else "keep")
    found = shortlist(candidates, steps)
    stays = kept(found)
    assert stays["qualifier"] == stays["disciplines"] == wanted["after_steps_1_to_3"]
    assert stays["window"] == wanted["after_step_4"]
    assert stays["licence"] == wanted["after_step_5_permissive_only"]
    assert len(stays["window"]), len(found.rows) == (14, 7)
    published = shortlist(candidates, dataclasses.replace(steps, licences="as_published"))
    assert kept(published)["licence"] == wanted["after_step_5_as_published"]
    means = {row["model"]: row["published_mean"] for row in wanted["models"]}
    for row in published.rows:
        assert row.mean == pytest.approx(means[row.candidate.model], abs=1e-9)


def test_our_table_holds_the_golden_figures(golden):
    ours = {candidate.model: candidate for candidate in our_candidates()}
    for row in golden("model_selection")["models"]:
        mine = ours.pop(row["model"])
        assert (mine.parameters_b, mine.qualifier) == (row["size_b"], row["qualifier"])
        assert {n: mine.scores[n] for n in DISCIPLINES} == {n: row[n] for n in DISCIPLINES}
        if row["context_tokens"]:
            assert (mine.context_tokens, mine.licence) == (
                row["context_tokens"],
                row["license"],
            )
    assert not ours


maybe = st.none() | st.booleans()
candidates = st.lists(
    st.builds(
        Candidate,
        model=st.text(min_size=1, max_size=4),
        qualifier=st.sampled_from([None, "Chat", "instruct", "Base"]),
        parameters_b=st.none() | st.floats(0.1, 100),
        open_weights=maybe,
        context_tokens=st.none() | st.integers(1, 200_000),
        licence=st.sampled_from([None, "MIT", "apache-2.0", "Gemma", "Own"]),
        scores=st.sampled_from([SCORES, {**SCORES, "health": 0.9}, {"biology": 0.4}]),
    ),
    max_size=12,
    unique_by=lambda candidate: candidate.model,
)
ONE = Candidate(model="one model", scores=SCORES)


@given(candidates, st.sampled_from(["keep", "remove"]), st.randoms())
@settings(deadline=None)  # the first example loads the templates
def test_every_model_stays_or_goes_once_with_its_reason(given, unknown, random):
    given = [*given, ONE]
    steps = SelectionSteps(unknown=unknown)
    found = shortlist(given, steps)
    before = {candidate.model for candidate in given}
    for step in found.taken:
        gone = {model for model, reason in step.removed if reason}
        assert gone | set(step.kept) == before
        assert not gone & set(step.kept)
        assert set(step.unknown) <= set(step.kept)
        before = set(step.kept)
    assert [row.candidate.model for row in found.rows] == list(found.taken[-1].kept)
    means = [row.mean for row in found.rows if row.mean is not None]
    assert means == sorted(means, reverse=True)
    if unknown == "remove":
        assert not any(row.unknown for row in found.rows)
    mixed = random.sample(given, len(given))
    assert shortlist(mixed, steps).document() == found.document()
    assert len(markdown(found).splitlines()) > 10
    assert len(list(csv.reader(io.StringIO(csv_text(found), newline="")))) == 1 + len(found.rows)


def test_what_nobody_knows_stays_and_is_marked_or_goes():
    found = shortlist([ONE], SelectionSteps())
    [row] = found.rows
    assert row.unknown == ("size", "weights", "qualifier", "window", "licence")
    assert "Unknown, kept: one model." in markdown(found)
    assert shortlist([ONE], SelectionSteps(unknown="remove")).rows == ()
    few = Candidate(model="few", scores={"biology": 1.0})
    last = shortlist([few, ONE], SelectionSteps()).rows[-1]
    assert (last.candidate.model, last.mean) == ("few", None)


def test_a_bound_is_passed_by_what_equals_it():
    at = replace(ONE, parameters_b=18.0, context_tokens=8000, licence="Apache-2.0")
    over = replace(at, model="over", parameters_b=18.1)
    short = replace(at, model="short", context_tokens=7999)
    found = shortlist([at, over, short], SelectionSteps())
    assert [row.candidate.model for row in found.rows] == ["one model"]
    reasons = dict(pair for step in found.taken for pair in step.removed)
    assert reasons == {"over": "18.1 billion parameters", "short": "a window of 7,999 tokens"}


def test_policies_widen_and_each_family_has_its_say():
    for family in FAMILIES:
        for licence in family.licences:
            assert family_of(licence.upper()) is family
            admitted = [policy for policy in POLICIES if admits(policy, licence)]
            assert not family.open_source or len(admitted) == 3
    assert not admits("commercial_ok", "EXAONE NC")
    assert admits("commercial_ok", "Llama 3.1")
    assert not admits("as_published", "Llama 3.1")
    assert not any(admits(policy, "Own Licence") for policy in POLICIES)


def test_nothing_left_is_a_result():
    found = shortlist([replace(ONE, parameters_b=70.0)], SelectionSteps())
    assert found.rows == ()
    assert "No model passes every step." in markdown(found)


CSV = "model,parameters_b,open_weights,context_tokens,licence,biology\n"


def test_a_table_as_csv_or_json(tmp_path):
    (tmp_path / "m.csv").write_text("# a note\n" + CSV + "A,7,yes,128k,MIT,0.5\nB,,,,,\n")
    first, second = load_candidates(tmp_path / "m.csv")
    semicolons = (tmp_path / "m.csv").read_text().replace(",", ";")
    (tmp_path / "excel.csv").write_text(f"sep=;\n\n{semicolons}")
    assert load_candidates(tmp_path / "excel.csv") == [first, second]
    assert (first.parameters_b, first.open_weights, first.context_tokens) == (7, True, 128_000)
    assert (second.parameters_b, second.licence, second.scores) == (None, None, {})
    rows = [
        {"model": "A", "parameters_b": 7, "open_weights": True, "context_tokens": 128_000}
        | {"licence": "MIT", "biology": 0.5},
        {"model": "B", "licence": None},
    ]
    (tmp_path / "m.json").write_text(json.dumps(rows))
    assert load_candidates(tmp_path / "m.json") == [first, second]
    (tmp_path / "twins.json").write_text('[{"model": "A", "health": 0.5, "health": 0.9}]')
    with pytest.raises(InputError, match=r"twins\.json.*'health' stands twice"):
        load_candidates(tmp_path / "twins.json")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("", "no models in it"),
        (",7,,,,\n", "m.csv line 3: column 'model' is missing"),
        ("A,7,,,,\n\nA,8,,,,\n", "m.csv line 5: the model 'A' stands twice"),
        ("A,-7,,,,\n", "parameters_b: '-7' is no number above 0"),
        ("A,nan,,,,\n", "parameters_b: 'nan'"),
        ("A,inf,,,,\n", "parameters_b: 'inf'"),
        ("A,7,maybe,,,\n", "open_weights: 'maybe' is neither"),
        ("A,7,,long,,\n", "context_tokens: 'long' is no number of tokens"),
        ("A,7,,0,,\n", "context_tokens: '0'"),
        ("A,7,,,,50.3\n", "biology: '50.3' is no share from 0 to 1"),
        ("A,7,,,,0.5,1\n", "not as many cells as columns"),
        ('A,"7,,,,\n', "not valid CSV"),
        ("A,7\n", "m.csv line 3: not as many cells as columns"),
        ("A,7,,,,0_1\n", "biology: '0_1' is no share"),
    ],
)
def test_bad_tables_are_refused_by_file_row_and_column(tmp_path, rows, told):
    (tmp_path / "m.csv").write_text("# a note\n" + CSV + rows)
    with pytest.raises(InputError) as error:
        load_candidates(tmp_path / "m.csv")
    assert told in str(error.value)
    assert "m.csv" in str(error.value)


def test_a_column_that_stands_twice_is_refused(tmp_path):
    (tmp_path / "m.csv").write_text("model,health,health\nA,0.1,0.2\n")
    with pytest.raises(InputError, match=r"m\.csv: the column 'health' stands 2 times"):
        load_candidates(tmp_path / "m.csv")


def test_a_column_of_predictions_that_is_not_there_is_refused(tmp_path):
    path = write_predictions(tmp_path / "p.csv", [("1", "x", "C", " C", "D")])
    scores = load_predictions(path, ["x"])
    assert scores.accuracy("A") == {"x": 1.0}
    one = Candidate(model="A", scores={"x": 0.5})
    steps = SelectionSteps(disciplines=("x",))
    assert shortlist([one], steps, scores).scores.models == ("A",)
    with pytest.raises(InputError, match="model 'A': the predictions have no column 'a'"):
        shortlist([replace(one, predictions="a")], steps, scores)


def test_hostile_names_break_neither_markdown_nor_spreadsheets():
    odd = "=x | <b>"
    found = shortlist([Candidate(model=odd, scores={odd: 0.5})], SelectionSteps(disciplines=(odd,)))
    text = markdown(found)
    assert "=x | <b>" not in text
    assert csv_text(found).splitlines()[0].endswith(",'=x | <b>,mean,unknown,source")


def test_a_line_break_in_a_name_stays_in_its_cell():
    found = shortlist([Candidate(model="a\rb\nc", scores=SCORES)], SelectionSteps())
    rows = list(csv.reader(io.StringIO(csv_text(found), newline="")))
    assert [row[0] for row in rows] == ["model", "a\rb\nc"]


def test_tables_that_are_none(tmp_path):
    (tmp_path / "m.json").write_text('{"model": "A"}')
    with pytest.raises(InputError, match="a list of objects"):
        load_candidates(tmp_path / "m.json")
    (tmp_path / "m.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        load_candidates(tmp_path / "m.csv")
    with pytest.raises(InputError, match="cannot be read"):
        load_candidates(tmp_path / "absent.csv")


def test_steps_from_a_file(tmp_path):
    path = tmp_path / "steps.toml"
    path.write_text('max_parameters_b = 9\nqualifiers = []\nlicences = "any"\nunknown = "remove"\n')
    steps = load_steps(path)
    assert steps == SelectionSteps(
        max_parameters_b=9, qualifiers=(), licences=None, unknown="remove"
    )
    names = [step.name for step in shortlist([ONE], steps).taken]
    assert names == ["size", "weights", "disciplines", "window"]
    for text, told in {
        "colour = 1": "'colour'",
        "max_parameters_b = -1": "'max_parameters_b'",
        "max_parameters_b = inf": "'max_parameters_b'",
        'licences = "free"': "'licences'",
        "disciplines = []": "'disciplines'",
        "__dataclass_self__ = 1": "'__dataclass_self__' is no step; known are",
        "min_context_tokens = " + "9" * 5000: "steps.toml: ",
        "min_context_tokens = " + "9" * 30: "'min_context_tokens'",
        "open_weights = 1": "'open_weights'",
        "a = ": "not valid TOML",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError, match=told):
            load_steps(path)
    with pytest.raises(InputError, match=r"nosuch.toml: cannot be read \(No such file"):
        load_steps(tmp_path / "nosuch.toml")


def test_a_licence_that_no_family_has_goes():
    given = [replace(ONE, licence="GPL-3.0"), replace(ONE, model="blank")]
    found = shortlist(given, SelectionSteps())
    assert [row.candidate.model for row in found.rows] == ["blank"]
    assert found.taken[-1].removed == (("one model", "licence GPL-3.0"),)


def test_a_discipline_that_stands_twice_is_refused():
    with pytest.raises(InputError, match="would weigh double"):
        shortlist([ONE], SelectionSteps(disciplines=("health", "health")))


def test_names_cannot_forge_lines_or_markup(tmp_path, capsys):
    rows = [{"model": "a\nsize  9 →  9  forged [/x] :smile:", "[/y]": 0.5}]
    (tmp_path / "m.json").write_text(json.dumps(rows))
    (tmp_path / "s.toml").write_text('disciplines = ["[/y]"]')
    given = ["--models", str(tmp_path / "m.json"), "--steps", str(tmp_path / "s.toml")]
    assert call(["shortlist", *given]) == 0
    told = capsys.readouterr().out
    assert "\nsize  9" not in told
    assert "[/y]" in told
    assert ":smile:" in told
    rows = [{"model": {"a": 1}, "health": 0.5}]
    (tmp_path / "m.json").write_text(json.dumps(rows))
    assert call(["shortlist", *given]) == 3


def test_a_discipline_that_nobody_has_is_refused():
    with pytest.raises(InputError, match="nobody has a score in 'law'; the table has biology"):
        shortlist([ONE], SelectionSteps(disciplines=("law",)))


PREDICTIONS = "question_id,category,answer,A,B\n"


def write_predictions(path, rows):
    path.write_text(PREDICTIONS + "".join(f"{','.join(row)}\n" for row in rows))
    return path


def test_differences_that_are_noise_are_told(tmp_path):
    rows = [
        (f"q{i}", name, "C", "C" if i % 2 else "D", "C" if i % 20 else "")
        for name in "xy"
        for i in range(40)
    ]
    rows = [(f"{q}{c}", c, *rest) for q, c, *rest in rows]
    scores = load_predictions(write_predictions(tmp_path / "p.csv", rows), ["x", "y"])
    assert scores.accuracy("A") == {"x": 0.5, "y": 0.5}
    assert scores.blank == {"A": 0, "B": 4}
    candidates = [Candidate(model="A", scores={"x": 0.5, "y": 0.75}), Candidate(model="B")]
    found = scores.recomputed({one.model: one for one in candidates})
    assert [row.model for row in found.models] == ["B", "A"]
    assert found.models[1].other_scores == [
        OtherScore(discipline="y", n=40, right=20, score=0.5, table_right=30, table_score=0.75)
    ]
    assert all(row.lo < row.mean < row.hi for row in found.models)
    [pair] = found.pairs
    assert (abs(pair.difference), pair.noise) == (pytest.approx(0.45), False)
    same = replace(scores, right={n: part[[0, 0]] for n, part in scores.right.items()})
    assert same.recomputed({one.model: one for one in candidates}).pairs[0].noise


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("question_id,category,A\n1,x,C\n", "expected columns question_id, category, answer"),
        ("question_id,category,answer\n1,x,C\n", "and one for each model"),
        (PREDICTIONS + "1,x,C,C,C\n1,x,C,C,C\n", "question 1 stands twice"),
        (PREDICTIONS + "1,x,C,C\n", "line 2: not as many cells"),
        (PREDICTIONS + "1,x,C,C,C,C\n", "line 2: not as many cells"),
        (PREDICTIONS + "1,y,C,C,C\n", "no question of the discipline 'x'"),
        (PREDICTIONS + "1,x,,C,\n", "line 2: 'answer' is blank"),
        (f"sep=,\n\n{PREDICTIONS}1,x,C,C,C\n\n2,x,,C,\n", "line 6: 'answer' is blank"),
        (PREDICTIONS + "1,x,C,C,C\n1 ,x,C,C,C\n", "question 1 stands twice"),
        (PREDICTIONS + "1,X,C,C,C\n", "line 2: category 'X'; expected 'x', as the table"),
        ("question_id,category,answer,A,A\n1,x,C,C,C\n", "the column 'A' stands 2 times"),
    ],
)
def test_bad_predictions_are_refused(tmp_path, text, told):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError) as error:
        load_predictions(tmp_path / "p.csv", ["x"])
    assert told in str(error.value)


def test_blanks_and_capitals_of_predictions_mean_nothing(tmp_path):
    (tmp_path / "p.csv").write_text("question_id,category,answer,A \n1,x ,C,c\n2,x, b,B\n3,x,D,A\n")
    scores = load_predictions(tmp_path / "p.csv", ["x"])
    assert scores.models == ("A",)
    assert scores.right["x"].tolist() == [[1.0, 1.0, 0.0]]


@pytest.mark.real_data
def test_real_predictions_give_the_published_accuracies(data):
    scores = load_predictions(data / "mmlu_pro" / "predictions_4_disciplines.csv", DISCIPLINES)
    assert len(scores.models) == 29
    off = []
    with (data / "mmlu_pro" / "per_discipline_scores.csv").open() as file:
        for row in csv.DictReader(file):
            if row["n"] == "12032":  # the others were not asked every question
                for name, value in scores.accuracy(row["model"]).items():
                    off.append(abs(value - float(row[name])) * scores.right[name].shape[1])
    # Keys of five questions were corrected between the models' runs.
    assert max(off) < 5
    assert sum(one < 0.1 for one in off) > 0.8 * len(off)
    llama = "Meta-Llama-3_1-8B-Instruct_5shots"
    # Printed as 0.5037 (412 of 818); one key was corrected since.
    assert scores.accuracy(llama)["health"] == 411 / 818
    candidates = [Candidate(model=name, scores=scores.accuracy(name)) for name in scores.models]
    found = shortlist(candidates, SelectionSteps(), scores).document()["recomputed"]
    assert len(found["models"]) == 29
    assert len(found["pairs"]) == 29 * 28 / 2
    assert 0 < sum(pair["noise"] for pair in found["pairs"]) < len(found["pairs"])
    for row in found["models"]:
        assert row["mean"] == pytest.approx(sum(row["disciplines"].values()) / 4)


def test_the_command_line(tmp_path, capsys):
    assert call(["shortlist", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["shortlist"]) == 7
    assert call(["shortlist", "--to", str(tmp_path)]) == 0
    assert "licence       14 →   7" in capsys.readouterr().out
    folder = tmp_path / document["id"]
    assert sorted(file.name for file in folder.iterdir()) == [
        "index.html",
        "shortlist.csv",
        "shortlist.json",
        "shortlist.md",
        "style.css",
    ]
    written = json.loads((folder / "shortlist.json").read_text())
    assert next(iter(written)) == "id"  # its bytes follow from its order
    assert written["id"] == document["id"]
    rows = "".join(f"q{i},{name},C,C,D\n" for i, name in enumerate(DISCIPLINES * 20))
    (tmp_path / "p.csv").write_text(PREDICTIONS + rows)
    (tmp_path / "m.csv").write_text(
        "model,biology,chemistry,health,psychology\nA,1,1,1,1\nB,0,0,0,0\n=C,1,1,1,1\n"
    )
    given = ["--models", str(tmp_path / "m.csv"), "--predictions", str(tmp_path / "p.csv")]
    assert call(["shortlist", *given, "--to", str(tmp_path / "two")]) == 0
    told = capsys.readouterr().out
    assert "no difference is shown for 0 of 1 pair " in told
    [folder] = (tmp_path / "two").iterdir()
    assert "\n'=C," in (folder / "shortlist.csv").read_text()
    (tmp_path / "steps.toml").write_text("max_parameters_b = 1")
    assert call(["shortlist", "--steps", str(tmp_path / "steps.toml")]) == 0
    assert "no model passes every step" in capsys.readouterr().out
    assert call(["shortlist", "--to", str(tmp_path / "p.csv")]) == 2
    assert call(["shortlist", "--steps", "absent.toml"]) == 3


def test_written_files_name_sources_and_scores_that_no_step_asks_for(tmp_path):
    found = shortlist(our_candidates(), SelectionSteps())
    heads, *rows = csv.reader(io.StringIO(csv_text(found), newline=""))
    assert heads[-3:] == ["unknown", "overall", "source"]
    assert rows[0][-2:] == ["0.4801", "TIGER-Lab MMLU-Pro"]
    text = markdown(found)
    assert "| overall | source |" in text
    page = files_of(found, found.document())["index.html"].decode()
    assert page.count("TIGER-Lab MMLU-Pro") == len(found.rows)
    assert "0.4801" in page


def test_corrected_keys_stand_beside_the_published_scores(data, tmp_path):
    steps = tmp_path / "steps.toml"
    steps.write_text('licences = "commercial_ok"')
    scores = load_predictions(data / "mmlu_pro/predictions_4_disciplines.csv", DISCIPLINES)
    found = shortlist(our_candidates(), load_steps(steps), scores)
    document = found.document()
    told = {
        (row["model"], one["discipline"]): (one["right"], one["table_right"], one["n"])
        for row in document["recomputed"]["models"]
        for one in row["other_scores"]
    }
    assert told["Llama-3.1-8B-Instruct", "health"] == (411, 415, 818)
    assert told["Llama-3.1-8B-Instruct", "chemistry"] == (425, 426, 1132)
    line = (
        "Llama-3.1-8B-Instruct, health: 0.5024 (411 of 818 right), the table has 0.5073 (415 of"
        " 818)"
    )
    files = files_of(found, document)
    assert line in files["index.html"].decode()
    assert line in files["shortlist.md"].decode()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("8192", 8192), ("128k", 128_000), ("1M", 1_000_000), ("1m", 1_000_000)],
)
def test_a_window_may_be_written_short(tmp_path, text, wanted):
    path = tmp_path / "models.csv"
    path.write_text(f"model,context_tokens,biology\na,{text},0.5\n")
    assert load_candidates(path)[0].context_tokens == wanted


@pytest.mark.parametrize(
    "licence",
    [
        "Apache License 2.0",
        "Apache License, Version 2.0",
        "apache-2.0",
        "MIT License",
        "the MIT licence",
    ],
)
def test_a_permissive_licence_is_known_however_it_is_written(licence):
    assert admits("permissive", licence)
    assert not admits("permissive", f"not {licence}")
