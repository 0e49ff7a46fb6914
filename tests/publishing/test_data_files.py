"""The data of a publication: tables, what their columns hold, Parquet, one archive, badges."""

import csv
import hashlib
import io
import json
import re
import zipfile
from xml.etree import ElementTree

import duckdb
import pytest
from tests import makers
from tests.makers import ddx_items, listed

import medassay
from medassay.publishing.data_files import _typed_rows
from medassay.report.dictionary import COLUMNS
from medassay.report.tables import csv_text

HOSTILE = '=1+1 "<b>&\u2028\u202e'
N = 24


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    made = makers.many_items(N)
    for i, item in enumerate(made):
        item["category"] = ["a", "=b"][i % 2]
    right = {item["id"]: item["expected"] for item in made}
    half = {name: key if n % 2 else "A" for n, (name, key) in enumerate(right.items())}
    plan = makers.workspace(
        folder / "w",
        made,
        makers.fake(HOSTILE, replies=right),
        makers.fake("n", replies=half),
        makers.fake("m", reply="B\u2028"),
        demonstration=True,
    )
    return medassay.run(plan, secrets={})


@pytest.fixture(scope="module")
def publication(run, tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    medassay.publish(run, site, publication="one")
    return site / "p/one"


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))


def parquet(path):
    return duckdb.sql(f"SELECT * FROM '{path}'").fetchall(), [
        column[0] for column in duckdb.sql(f"SELECT * FROM '{path}'").description
    ]


def test_every_column_of_every_table_is_described(publication):
    told = {(row["table"], row["column"]) for row in table(publication / "data/dictionary.csv")}
    for path in (publication / "data").glob("*.csv"):
        if path.name != "dictionary.csv":
            head = next(csv.reader([path.read_text().partition("\n")[0]]))
            assert {(path.stem, name) for name in head} <= told, path
    page = (publication / "data/index.html").read_text()
    for name, column in COLUMNS.items():
        assert f"<code>{name}</code>" in page
        assert column.meaning.replace("'", "&#39;") in page
    assert len({column.meaning for column in COLUMNS.values()}) > 0.8 * len(COLUMNS)


def test_tables_of_kinds_are_described_too(tmp_path):
    plan = makers.workspace(
        tmp_path / "w",
        ddx_items(12, domain="law"),
        makers.fake("m", reply=listed("Gout", "Flu", "Cold", "Burn", "Sprain")),
        task="ddx_names",
    )
    medassay.publish(medassay.run(plan, secrets={}), tmp_path / "site", publication="one")
    data = tmp_path / "site/p/one/data"
    head = next(csv.reader([(data / "diagnoses.csv").read_text().partition("\n")[0]]))
    assert set(head) <= COLUMNS.keys()
    assert (data / "diagnoses.parquet").exists()


def test_parquet_holds_what_the_table_does(publication):
    for path in (publication / "data").glob("*.csv"):
        if path.name == "dictionary.csv":
            continue
        rows, names = parquet(path.with_suffix(".parquet"))
        expected = table(path)
        assert len(rows) == len(expected), path
        for row, said in zip(rows, expected, strict=True):
            for name, cell in zip(names, row, strict=True):
                if COLUMNS[name].kind in ("number", "count") and said[name] != "":
                    assert cell == pytest.approx(float(said[name]), abs=1e-12)
                elif COLUMNS[name].kind == "text":
                    assert (cell or "") in (said[name], said[name][1:])


def test_names_are_plain_in_parquet_and_harmless_in_tables(publication):
    rows, names = parquet(publication / "data/leaderboard.parquet")
    assert HOSTILE in {row[names.index("model")] for row in rows}
    assert f"'{HOSTILE}" in {row["model"] for row in table(publication / "data/leaderboard.csv")}
    rows, names = parquet(publication / "data/categories.parquet")
    assert {row[names.index("category")] for row in rows} == {"a", "=b"}


def test_a_cell_with_any_end_of_line_is_one_cell():
    text = csv_text(["model", "n"], [{"model": "a\u2028b\x0b\x85c\nd", "n": 3}])
    assert list(_typed_rows(text)) == [{"model": "a\u2028b\x0b\x85c\nd", "n": 3}]


def test_answers_in_parquet_are_those_of_the_run_with_their_hashes(publication):
    rows, names = parquet(publication / "data/answers.parquet")
    lines = (publication / "data/run/trials.jsonl").read_bytes().splitlines()
    scores = (publication / "data/run/scores.jsonl").read_bytes().splitlines()
    assert len(rows) == len(lines) == 3 * N
    for row, line, score in zip(rows, lines, scores, strict=True):
        said = dict(zip(names, row, strict=True))
        trial = json.loads(line)
        assert said["sha256"] == hashlib.sha256(line).hexdigest()
        assert (said["model"], said["item"], said["text"]) == (
            trial["model"],
            trial["item"],
            trial["text"],
        )
        assert said["score"] == json.loads(score)["score"]


def test_the_archive_holds_all_data_with_sums_that_hold(publication):
    with zipfile.ZipFile(publication / "data/one.zip") as archive:
        names = set(archive.namelist())
        for entry in archive.infolist():  # equal data, equal bytes, and everybody may read them
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert entry.external_attr >> 16 == 0o644
        sums = archive.read("one/SHA256SUMS").decode().splitlines()
        for line in sums:
            digest, name = line.split("  ", 1)
            assert hashlib.sha256(archive.read(f"one/{name}")).hexdigest() == digest
        assert names == {f"one/{line.split('  ', 1)[1]}" for line in sums} | {"one/SHA256SUMS"}
    beside = {
        path.relative_to(publication / "data").as_posix()
        for path in (publication / "data").rglob("*")
        if path.is_file() and path.name not in ("one.zip", "index.html")
    } - {"MANIFEST.sha256"}
    assert {f"one/{name}" for name in beside} <= names
    assert "data/one.zip" in (publication / "data/MANIFEST.sha256").read_text()


def test_an_unpacked_archive_is_a_run_that_verifies(publication, tmp_path):
    with zipfile.ZipFile(publication / "data/one.zip") as archive:
        archive.extractall(tmp_path)
    assert medassay.verify(tmp_path / "one/run").ok


def test_the_same_run_gives_the_same_files_twice(run, publication, tmp_path):
    medassay.publish(run, tmp_path / "again", publication="one")
    for path in publication.rglob("*"):
        if path.is_file():
            other = tmp_path / "again/p/one" / path.relative_to(publication)
            assert path.read_bytes() == other.read_bytes(), path


def test_badges_name_the_range_and_are_harmless(publication):
    badges = sorted((publication / "badge").glob("*.svg"))
    assert len(badges) == 3
    for path in badges:
        root = ElementTree.fromstring(path.read_text())
        assert [child.tag.rpartition("}")[2] for child in root] == ["title", "rect", "rect", "g"]
        said = "".join(root.itertext())
        assert re.search(r"DEMONSTRATION: rank \d(–\d)? of 3 · one", said)
        assert "\u202e" not in said
    page = (publication / "model/n/index.html").read_text()
    link = re.search(r'<img src="([^"]*badge[^"]*)"', page)[1]
    assert (publication / "model/n" / link).resolve().is_file()


def test_without_the_extra_tables_are_csv_and_the_page_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    medassay.publish(run, tmp_path / "site", publication="one")
    data = tmp_path / "site/p/one/data"
    assert not list(data.glob("*.parquet"))
    assert "Parquet stands beside the tables where" in (data / "index.html").read_text()
