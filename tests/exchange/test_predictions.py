import os

import pytest
from tests import makers
from tests.exchange.prediction_tables import COLUMNS, HEAD, rows, table

import medassay
from medassay.errors import InputError
from medassay.exchange.predictions import import_predictions, unlike_keys_lines


def test_a_table_becomes_a_sealed_run_that_verifies(tmp_path):
    run = import_predictions(table(tmp_path, rows()), COLUMNS, runs=tmp_path / "runs")
    assert run.sealed
    assert run.manifest_document["banks"][0]["version"].startswith("import-")
    assert medassay.verify(run.path).ok
    board = medassay.leaderboard(run)
    assert {row["model"] for row in board.domains["overall"]} == {"a", "b"}
    assert medassay.publish(run, tmp_path / "site").exists()


def test_a_table_names_no_parser_since_nothing_is_read_of_replies(tmp_path):
    run = import_predictions(table(tmp_path, rows()), COLUMNS, runs=tmp_path)
    named = run.manifest_document["revisions"]
    assert ("parser" in named, named["scorer"]) == (False, ["given/1", "key/1"])


def test_the_same_table_gives_the_same_trials(tmp_path):
    path = table(tmp_path, rows())
    one, two = (import_predictions(path, COLUMNS, runs=tmp_path / "runs") for _ in range(2))
    assert (one.id, two.id) == (one.id[:-1] + "1", one.id[:-1] + "2")
    assert (one.path / "trials.jsonl").read_bytes() == (two.path / "trials.jsonl").read_bytes()


def test_given_scores_are_taken_and_empty_ones_are_null(tmp_path):
    text = "i,m,d,s\n" + "".join(f"q{i:02},a,d,{'' if i == 0 else i / 20}\n" for i in range(20))
    run = import_predictions(
        table(tmp_path, text),
        {"item": "i", "model": "m", "domain": "d", "score": "s"},
        runs=tmp_path,
    )
    [row] = medassay.leaderboard(run).domains["d"]
    assert (row["n"], row["coverage"]) == (19, 0.95)
    assert row["score"] == pytest.approx(0.5)
    assert (row["interval"], row["second"]["method"]) == ("score_effective", "percentile")
    assert medassay.verify(run.path).ok


def test_blank_predictions_stay_in_the_denominator(tmp_path):
    text = HEAD + "".join(f"q{i:02},a,d,{'A' if i % 2 else ''},A\n" for i in range(20))
    [row] = medassay.leaderboard(
        import_predictions(table(tmp_path, text), COLUMNS, runs=tmp_path)
    ).domains["d"]
    assert (row["score"], row["n"], row["unparsed_rate"]) == (0.5, 20, 0.5)
    assert "unparsed" in row["flags"]


@pytest.mark.parametrize(
    ("text", "columns", "says"),
    [
        (HEAD + "q1,a,d,A,A\nq1,a,d,B,A\n", COLUMNS, "row 3: a second row for item 'q1'"),
        (
            HEAD + "q1,a,d,A,A\nq1,b,d,B,C\n",
            COLUMNS,
            "row 3: item 'q1' has key 'C' here and 'A'",
        ),
        (
            f"{HEAD.strip()},c\nq1,a,d,A,A,c1\nq1,b,d,A,A,k1\n",
            {**COLUMNS, "cluster": "c"},
            "row 3: item 'q1' is in cluster 'k1' here and in 'c1' in an earlier row",
        ),
        (HEAD + "q1,,d,A,A\n", COLUMNS, "row 2: 'model' is empty"),
        (HEAD + "q1,a,d,A,\n", COLUMNS, "row 2: 'key' is empty"),
        (HEAD + "q1,a,overall,A,A\n", COLUMNS, "row 2: 'domain' is 'overall'"),
        (HEAD, COLUMNS, "no rows below the header"),
        (HEAD + "q1,a,d,A,A\n", {**COLUMNS, "key": "x"}, "no column 'x'"),
        (HEAD + "q1,a,d,A,A\n", {"item": "i", "model": "m"}, "'domain' is missing"),
        (HEAD + "q1,a,d,A,A\n", {**COLUMNS, "x": "y"}, "'x' is unknown"),
        (HEAD + "q1,a,d,A,A\n", {"item": "i", "model": "m", "domain": "d"}, "give prediction"),
        (HEAD + "q1,a,d,A,A\n", {**COLUMNS, "score": "k"}, "by its key=… or by its score=…"),
        (
            HEAD + "q1,a,d,A,A\n",
            {**COLUMNS, "key": COLUMNS["prediction"]},
            f"'{COLUMNS['prediction']}' stands for both prediction and key",
        ),
        (
            "i,m,d,s\nq1,a,d,1.5\n",
            {"item": "i", "model": "m", "domain": "d", "score": "s"},
            "expected a number from 0 to 1",
        ),
        (
            "i,m,d,s\nq1,a,d,nan\n",
            {"item": "i", "model": "m", "domain": "d", "score": "s"},
            "row 2: 'score' is 'nan'",
        ),
        (HEAD + "q1,a,d,A,A\nq1,a\u200b,d,A,A\n", COLUMNS, "two models are called 'a"),
        (HEAD + "q1,a,é,A,A\nq2,a,e\u0301,A,A\n", COLUMNS, "two domains are called"),
    ],
)
def test_bad_tables_name_row_and_column_and_leave_nothing(tmp_path, text, columns, says):
    path = table(tmp_path, text)
    with pytest.raises(InputError) as caught:
        import_predictions(path, columns, runs=tmp_path / "runs")
    assert says in str(caught.value)
    assert not any((tmp_path / "runs").glob("*")) if (tmp_path / "runs").exists() else True


def test_a_pipe_is_refused_before_anything_is_taken_from_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: a pipe can be read once only; write it to a file"):
        import_predictions(tmp_path / "pipe", COLUMNS, runs=tmp_path / "runs")


def test_empty_rows_of_a_table_are_passed_over(tmp_path):
    path = table(tmp_path, HEAD + "q1,a,d,A,A\n,,,,\nq2,a,d,A,B\n,,,,\n")
    run = import_predictions(path, COLUMNS, runs=tmp_path / "runs")
    assert medassay.leaderboard(run).domains["d"][0]["n"] == 2


def test_a_decimal_comma_or_a_repeated_column_is_refused_not_cut(tmp_path):
    columns = {"item": "i", "model": "m", "domain": "d", "score": "s"}
    with pytest.raises(InputError, match="row 2: 5 cells for 4 columns"):
        import_predictions(table(tmp_path, "i,m,d,s\n1,a,x,0,5\n"), columns, runs=tmp_path)
    with pytest.raises(InputError, match="row 2: 2 cells for 4 columns"):
        import_predictions(table(tmp_path, "i,m,d,s\n1,a\n"), columns, runs=tmp_path)
    with pytest.raises(InputError, match="'i' occurs twice"):
        import_predictions(table(tmp_path, "i,i,m,d,s\n1,1,a,x,1\n"), columns, runs=tmp_path)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_read(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + "ä,a,d,A,A\n").encode(encoding))
    run = import_predictions(path, COLUMNS, runs=tmp_path)
    assert '"id":"ä"' in (run.path / "items.jsonl").read_text(encoding="utf-8")


def test_what_is_no_text_is_one_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(HEAD.encode() + b"\x81\x8d,a,d,A,A\n")
    with pytest.raises(InputError, match="neither UTF-8 nor Windows-1252"):
        import_predictions(path, COLUMNS, runs=tmp_path)


@pytest.mark.parametrize("repeat", ["9" * 40, "-1", "1.5", "١"])
def test_odd_repeats_are_refused(tmp_path, repeat):
    text = "i,m,d,p,k,r\n" + f"q,a,d,A,A,{repeat}\n"
    with pytest.raises(InputError, match="row 2: 'repeat'"):
        import_predictions(table(tmp_path, text), {**COLUMNS, "repeat": "r"}, runs=tmp_path)


def test_a_folder_of_the_user_beside_the_run_is_left_alone(tmp_path):
    (tmp_path / "rx.part").mkdir()
    (tmp_path / "rx.part" / "precious").write_text("mine")
    import_predictions(table(tmp_path, rows()), COLUMNS, to=tmp_path / "rx")
    assert (tmp_path / "rx.part" / "precious").read_text() == "mine"


def test_names_that_meet_in_an_address_get_pages_of_their_own(tmp_path):
    names = ["x", "x!", "x-4038e65d", "index.html", "X"]
    text = "i,m,d,p,k,s,o\n" + "".join(
        f"q{i:02},{n},d,A,A,{s},{o}\n"
        for i in range(10)
        for n in names
        for s, o in (("a-b", "c"), ("a", "b-c"), ("z", "index.html"))
    )
    run = import_predictions(
        table(tmp_path, text), {**COLUMNS, "setting": "s", "mode": "o"}, runs=tmp_path
    )
    site = medassay.publish(run, tmp_path / "site").parent
    assert len(list(site.glob("model/*/index.html"))) == len(names)
    assert len(list(site.glob("cell/*/d/*/index.html"))) == 3 * len(names)
    assert medassay.verify(site).ok


def test_predictions_that_are_none_of_a_few_keys_are_told(tmp_path, cli):
    text = HEAD + "".join(
        f"q{n:02},{model},d,{answer},{'AB'[n % 2]}\n"
        for n in range(12)
        for model, answer in (("bare", "AB"[n % 2]), ("dotted", "AB"[n % 2] + ")"))
    )
    names = ",".join(f"{key}={name}" for key, name in COLUMNS.items())
    options = ("--columns", names, "--to", tmp_path / "run")
    code, shown, _ = cli("import", "csv", table(tmp_path, text), *options)
    assert code == 0
    assert "dotted: 12 of 12 predictions are none of the keys (A, B) and count as wrong" in shown
    assert "the first is 'A)'; write them as the keys, or name the bank" in shown
    assert "bare:" not in shown


def test_texts_of_their_own_are_no_labels(tmp_path):
    text = HEAD + "".join(f"q{n:02},m,d,reply {n},answer {n}\n" for n in range(12))
    run = import_predictions(table(tmp_path, text), COLUMNS, runs=tmp_path / "runs")
    assert list(unlike_keys_lines(run)) == []


@pytest.mark.parametrize(
    ("rows_written", "says"),
    [
        ("\n\nq1,m,d,A,A\nq2,m,d,,\n", "row 5: 'key' is empty"),
        ('"q\n1",m,d,A,A\nq2,m,d,,\n', "row 3: 'key' is empty"),
        ("\nq1,m,d\n", "row 3: 3 cells for 5 columns"),
    ],
)
def test_rows_are_counted_as_a_spreadsheet_counts_them(tmp_path, rows_written, says):
    with pytest.raises(InputError) as error:
        import_predictions(table(tmp_path, HEAD + rows_written), COLUMNS, runs=tmp_path)
    assert says in str(error.value)


@pytest.mark.parametrize(("right", "is_graded"), [("0.25", True), ("1", False)])
def test_a_mean_of_grades_is_said_to_be_one(tmp_path, cli, right, is_graded):
    path = table(tmp_path, f"i,m,d,s\nq1,a,d,{right}\nq2,a,d,0\nq3,a,d,\n")
    columns = "item=i,model=m,domain=d,score=s"
    code, shown, errors = cli("import", "csv", path, "--columns", columns)
    assert (code, "some between 0 and 1" in shown) == (0, is_graded), errors


def test_grades_and_shares_of_one_bank_join(tmp_path, cli):
    items = makers.law_items()
    bank = makers.write_bank(tmp_path / "bank", items)
    for model, right in (("graded", "0.25"), ("whole", "1")):
        lines = [f"{item['id']},{model},{right if n % 2 else '0'}" for n, item in enumerate(items)]
        path = table(tmp_path, "\n".join(["i,m,s", *lines, ""]))
        options = ("--columns", "item=i,model=m,score=s", "--bank", bank, "--to", model)
        assert cli("import", "csv", path, *options)[0] == 0
    assert cli("publish", "graded", "whole", "--to", "site")[0] == 0
    page = next((tmp_path / "site" / "p").glob("*/index.html")).read_text()
    assert "what is called accuracy is their mean" in page
    assert medassay.verify(tmp_path / "site").ok


def test_two_models_that_look_the_same_are_refused(tmp_path):
    text = HEAD + "".join(
        f"q{n},{model},d,A,A\n" for n in range(3) for model in ("Mod\u00e8le", "Mode\u0300le")
    )
    with pytest.raises(InputError, match=r"two models are called 'Mod.*le', written"):
        import_predictions(table(tmp_path, text), COLUMNS, runs=tmp_path)
    assert not list(tmp_path.glob("import-*"))


@pytest.mark.parametrize("column", ["setting", "mode"])
def test_two_settings_or_modes_that_look_the_same_are_refused(tmp_path, column):
    rows = [f"q{n},m,d,A,A,{name}\n" for n in range(3) for name in ("caf\u00e9", "cafe\u0301")]
    path = table(tmp_path, HEAD.replace("\n", ",other\n") + "".join(rows))
    with pytest.raises(InputError, match=f"two {column}s are called 'caf.*', written"):
        import_predictions(path, {**COLUMNS, column: "other"}, runs=tmp_path)
    assert not list(tmp_path.glob("import-*"))
