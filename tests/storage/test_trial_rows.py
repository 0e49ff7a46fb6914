"""Trials as rows: what DuckDB writes of a run's files is what Python reads in them."""

import errno
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.core.canonical import canonical
from medassay.core.records.target import LETTERS
from medassay.errors import IntegrityError
from medassay.storage.parquet import write_parquet
from medassay.storage.run import Run
from medassay.storage.trial_rows import COLUMNS, trial_rows, write_trials

TABLE = (*COLUMNS, "sha256")
texts = st.text(max_size=8)
trials = st.fixed_dictionaries(
    {
        **dict.fromkeys(("domain", "model", "setting", "mode", "item", "outcome"), texts),
        "repeat": st.integers(0, 10**9),
    },
    optional={
        **dict.fromkeys(("value", "reason"), st.none() | texts),
        "text": texts,
        "order": st.lists(st.integers(0, len(LETTERS) - 1), min_size=1, max_size=6),
        # what no column is made of
        "likelihoods": st.lists(st.dictionaries(texts, st.floats(-9, 9), max_size=2), max_size=2),
        "tool_use": st.dictionaries(texts, st.integers(0, 9), max_size=2),
    },
)
scores = st.fixed_dictionaries(
    {"score": st.none() | st.floats(0, 1) | st.integers(-9, 9)},
    optional={"because": texts, "scorer": texts, "parts": st.dictionaries(texts, texts)},
)
timings = st.fixed_dictionaries({}, optional={"seconds": st.floats(0, 1e6)})


LINE = (
    dict.fromkeys(("domain", "model", "setting", "mode", "item", "outcome"), "x") | {"repeat": 0},
    {"score": 1},
    {"seconds": 2},
)


def run_of(folder, lines):
    """Write the files of a run; `lines` has a trial, a score and a timing for each."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_bytes(canonical({"run": "r-1"}))
    for name, records in zip(
        ("trials", "scores", "timings"), zip(*lines, strict=True), strict=True
    ):
        data = b"".join(canonical(record) + b"\n" for record in records)
        (folder / f"{name}.jsonl").write_bytes(data)
    return Run(folder)


def rows_of(path):
    """Return the rows of a table of trials."""
    with duckdb.connect() as base:
        rows = base.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    return [dict(zip(TABLE, row, strict=True)) for row in rows]


def with_second_line(folder, file, line):
    """Return a run of two trials, the second line of one file as it is given."""
    run = run_of(folder, [LINE, LINE])
    first = (folder / f"{file}.jsonl").read_bytes().splitlines(keepends=True)[0]
    (folder / f"{file}.jsonl").write_bytes(first + line)
    return run


@settings(max_examples=30)
@given(st.lists(st.tuples(trials, scores, timings), min_size=1, max_size=4))
def test_duckdb_writes_the_rows_that_python_reads(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("it's a run")
    run = run_of(folder, lines)
    write_trials(run, TABLE, folder / "x.parquet", asked_by="a test")
    assert rows_of(folder / "x.parquet") == list(trial_rows(run))


@pytest.mark.parametrize("folder", ["a[1]b", "a*b?", "model=zz", "it's"])
def test_a_folder_is_no_pattern_and_no_column(tmp_path, folder):
    for name, domain in ((folder, "here"), ("a1b", "elsewhere"), ("azbq", "elsewhere")):
        run = run_of(tmp_path / name, [({**LINE[0], "domain": domain}, *LINE[1:])])
    run = Run(tmp_path / folder)
    write_trials(run, TABLE, tmp_path / "x.parquet", asked_by="a test")
    assert rows_of(tmp_path / "x.parquet") == list(trial_rows(run))


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("trials", b'{"domain":\n', "trials.jsonl line 2: not a JSON object"),
        ("trials", b'{"domain":}\n', "trials.jsonl line 2: not valid JSON"),
        ("scores", b"[1]\n", "scores.jsonl line 2: not a JSON object"),
        ("scores", b"\n", "scores.jsonl line 2: not a JSON object"),
        ("scores", b"null\n", "scores.jsonl line 2: not a JSON object"),
        ("scores", b' {"score":1}\n', "scores.jsonl line 2: not a JSON object"),
        ("timings", b'{"seconds":"\xff"}\n', "timings.jsonl line 2: not valid JSON"),
        ("timings", b"", "timings.jsonl: 1 lines, and trials.jsonl has 2"),
    ],
)
def test_a_line_that_is_no_record_is_named_and_no_row_is_made_of_it(tmp_path, file, line, said):
    run = with_second_line(tmp_path, file, line)
    with pytest.raises(IntegrityError, match=said):
        write_trials(run, TABLE, tmp_path / "x.parquet", asked_by="a test")
    with pytest.raises(IntegrityError, match=said):
        list(trial_rows(run))


def test_a_score_that_is_no_number_fits_no_column(tmp_path):
    run = with_second_line(tmp_path, "scores", b'{"score":"x"}\n')
    with pytest.raises(IntegrityError, match=r'scores\.jsonl.*"x"'):
        write_trials(run, TABLE, tmp_path / "x.parquet", asked_by="a test")


def test_a_disk_that_takes_no_more_is_named_as_such(tmp_path):
    run = run_of(tmp_path, [LINE])
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_trials(run, TABLE, Path("/dev/full"), asked_by="a test")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")


def test_a_place_where_no_table_can_be_is_told_with_the_reason(tmp_path):
    run = run_of(tmp_path, [LINE])
    with pytest.raises(OSError, match="nowhere") as caught:
        write_trials(run, TABLE, tmp_path / "nowhere" / "x.parquet", asked_by="a test")
    assert "No such file" in str(caught.value) or "annot open" in str(caught.value)


def test_a_table_of_rows_leaves_nothing_else_behind_and_takes_nothing_away(tmp_path):
    (tmp_path / "x.rows").write_text("mine")
    write_parquet([{"a": 1}], {"a": "BIGINT"}, tmp_path / "x.parquet", asked_by="a test")
    with pytest.raises(duckdb.Error):
        write_parquet([{"a": 1}], {"a": "NOTHING"}, tmp_path / "y.parquet", asked_by="a test")
    assert {path.name for path in tmp_path.iterdir()} == {"x.rows", "x.parquet"}
    assert (tmp_path / "x.rows").read_text() == "mine"
