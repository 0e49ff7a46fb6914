import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.conftest import absent
from tests.contract.endpoint import Endpoint

from medassay.context.retrieval.build import Parameters, build_index
from medassay.context.retrieval.embed import FakeEmbedder
from medassay.context.retrieval.index import Index
from medassay.core.records.model import ModelSpec
from medassay.errors import InputError, IntegrityError, Permanent
from medassay.model.embeddings import EndpointEmbedder

TEXTS = {
    "Chest pain": (
        "Crushing retrosternal pain with sweating points to the heart.\n\nAn electrocardiogram"
        " comes first."
    ),
    "Headache": "Thunderclap headache needs imaging at once.\n\nMigraine comes with nausea.",
    "liver/Jaundice": "Yellow skin: bilirubin, transaminases, an ultrasound of the bile ducts.",
}


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    for name, text in TEXTS.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def needs_words():
    if importlib.util.find_spec("bm25s") is None:
        absent("the extra [rag] is not installed")


def test_build_and_query_tell_chunks_in_the_order_a_model_gets_them(cli, corpus):
    code, out, err = cli("index", "build", corpus, "--out", "ix", "--embedder", "fake", "--json")
    assert (code, err) == (0, "")
    built = json.loads(out)
    assert (built["documents"], built["chunks"], built["built"]) == (3, 3, True)
    code, out, _ = cli("index", "query", "ix", "headache with nausea", "-k", 2, "--json")
    found = json.loads(out)["chunks"]
    assert [one["rank"] for one in found] == [1, 2]
    assert found[0]["document"] == "Headache"
    assert found[0]["text"] == TEXTS["Headache"][found[0]["start"] :][: len(found[0]["text"])]
    assert found[0]["score"] <= found[1]["score"]
    assert cli("index", "query", "ix", "headache with nausea", "-k", 2, "--json")[1] == out


def test_it_is_built_anew_only_when_corpus_or_parameters_change(cli, corpus):
    build = ("index", "build", corpus, "--out", "ix", "--embedder", "fake", "--json")
    first = json.loads(cli(*build)[1])
    again = json.loads(cli(*build)[1])
    assert (again["built"], again["id"]) == (False, first["id"])
    other = json.loads(cli(*build, "--chunks", "40,5")[1])
    assert (other["built"], other["id"] != first["id"]) == (True, True)
    (corpus / "Headache.txt").write_text("Another text.")
    changed = json.loads(cli(*build)[1])
    assert (changed["built"], changed["id"] != first["id"]) == (True, True)


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
def test_words_find_what_they_are_in(cli, corpus, method):
    needs_words()
    options = ("--embedder", "fake", "--method", method)
    assert cli("index", "build", corpus, "--out", "ix", *options)[0] == 0
    found = json.loads(cli("index", "query", "ix", "bilirubin", "--json")[1])["chunks"]
    assert found[0]["document"] == "liver/Jaundice"
    assert found[0]["measure"] == {"bm25": "bm25", "hybrid": "rrf"}[method]
    if method == "bm25":
        code, out, _ = cli("index", "query", "ix", "zebra")
        assert (code, out.strip()) == (0, "nothing found")


def test_bm25_scores_are_those_of_the_formula(tmp_path):
    needs_words()
    corpus = tmp_path / "c.jsonl"
    texts = ["fever cough fever", "cough", "rash itch"]
    corpus.write_text(
        "".join(json.dumps({"id": f"d{n}", "text": t}) + "\n" for n, t in enumerate(texts))
    )
    wanted = Parameters(method="bm25")
    asyncio.run(build_index(corpus, tmp_path / "ix", wanted, None))
    [found] = asyncio.run(Index(tmp_path / "ix").search(["fever cough"], 3))

    def score(words, own, length):  # Lucene's BM25, k1 1.5, b 0.75
        total = 0.0
        for word in words:
            n = sum(word in text.split() for text in texts)
            idf = np.log(1 + (3 - n + 0.5) / (n + 0.5))
            tf = own.split().count(word)
            total += idf * tf / (tf + 1.5 * (0.25 + 0.75 * length / 2))
        return total

    assert [one.document for one in found] == ["d0", "d1"]
    wanted = [score(["fever", "cough"], texts[0], 3), score(["fever", "cough"], texts[1], 1)]
    assert [one.score for one in found] == pytest.approx(wanted, rel=1e-5)


def test_a_build_that_was_killed_goes_on_where_it_was(tmp_path, corpus):
    slow = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from medassay.context.retrieval import build\n"
        "from medassay.context.retrieval.embed import FakeEmbedder\n"
        "class Slow(FakeEmbedder):\n"
        "    async def embed(self, texts):\n"
        "        await asyncio.sleep(0.2)\n        return await super().embed(texts)\n"
        "build._BATCH = 4\n"
        "asyncio.run(build.build_index(Path(sys.argv[1]), Path(sys.argv[2]),"
        " build.Parameters(size=30, overlap=5), Slow()))\n"
    )
    out = tmp_path / "ix"
    process = subprocess.Popen([sys.executable, "-c", slow, str(corpus), str(out)])
    part = tmp_path / ".ix.building" / "vectors.f32"
    wait = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 4096) and time.monotonic() < wait:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    kept = part.stat().st_size
    seen = []
    wanted = Parameters(size=30, overlap=5)
    asyncio.run(
        build_index(corpus, out, wanted, FakeEmbedder(), lambda done, total: seen.append(done))
    )
    assert seen[0] == kept // (4 * 256) > 0
    whole = tmp_path / "whole"
    asyncio.run(build_index(corpus, whole, wanted, FakeEmbedder()))
    for name in ("index.json", "chunks.jsonl", "documents.jsonl", "vectors.f32"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert not (tmp_path / ".ix.building").exists()


def test_what_is_no_index_or_no_corpus_is_told_in_one_line(cli, corpus, tmp_path):
    assert "`medassay index build CORPUS" in cli("index", "query", "none", "x")[2]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    code, _, err = cli("index", "build", corpus, "--out", "full", "--embedder", "fake")
    assert (code, (tmp_path / "full" / "letter.txt").read_text()) == (3, "mine")
    assert "is no index; nothing is overwritten" in err
    bad = tmp_path / "bad.jsonl"
    for line, told in (
        ('{"id": 3, "text": "x"}', "row 1: expected"),
        ("{", "row 1: not valid JSON"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "two documents are named 'a'"),
        ('{"id": "a", "text": " "}', "its documents are blank"),
    ):
        bad.write_text(line + "\n")
        code, _, err = cli("index", "build", bad, "--out", "ix", "--embedder", "fake")
        assert (code, told in err, err.count("\n")) == (3, True, 1), err
    assert cli("index", "build", corpus, "--out", "ix", "--method", "magic")[0] == 2
    assert cli("index", "build", corpus, "--out", "ix", "--chunks", "500,500")[0] == 2
    assert "no such folder" in cli("index", "build", corpus, "--out", "ix", "--embedder", "x")[2]
    assert not (tmp_path / "ix").exists()


def test_an_index_of_another_embedder_and_a_cut_file_are_refused(corpus, tmp_path):
    class Other(FakeEmbedder):
        id = "another"

    parameters = Parameters(embedder="fake")
    asyncio.run(build_index(corpus, tmp_path / "ix", parameters, Other()))
    with pytest.raises(InputError, match="was built with embedder another, and 'fake' is now"):
        Index(tmp_path / "ix").use(None, {})
    lines = (tmp_path / "ix" / "chunks.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "ix" / "chunks.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(IntegrityError, match=r"chunks\.jsonl: 2 lines, index\.json says 3"):
        Index(tmp_path / "ix")


def test_documents_are_found_by_condition_whatever_its_case_and_marks(corpus, tmp_path):
    asyncio.run(build_index(corpus, tmp_path / "ix", Parameters(), FakeEmbedder()))
    index = Index(tmp_path / "ix")
    assert index.document("CHEST_PAIN").text == TEXTS["Chest pain"]
    assert index.document("jaundice").text == TEXTS["liver/Jaundice"]
    assert index.document("gout") is None


@pytest.fixture
def endpoint():
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def vectors_of(n, width=4):
    rows = [{"index": at, "embedding": [at + 1.0, *[0.5] * (width - 1)]} for at in range(n)]
    return {"data": rows[::-1]}  # endpoints need not keep the order


def test_an_endpoint_embeds_and_its_failures_are_told(cli, corpus, tmp_path, endpoint):
    entry = {"id": "e", "provider": "openai_compatible", "url": endpoint.url, "model": "mxbai"}
    (tmp_path / "models.json").write_text(json.dumps({"models": [entry]}))
    build = ("index", "build", corpus, "--out", "ix", "--embedder", "endpoint:e", "--json")
    endpoint.replies += [(429, {"Retry-After": "0"}, {})]
    endpoint.replies += [(200, {}, vectors_of(1)), (200, {}, vectors_of(3))]
    code, out, err = cli(*build)
    assert (code, err) == (0, "")
    assert json.loads(out)["embedder"] == "mxbai@unversioned"
    assert endpoint.asked[-1][0] == "/v1/embeddings"
    assert endpoint.asked[-1][1]["input"] == list(
        json.loads(line)["text"]
        for line in (tmp_path / "ix" / "chunks.jsonl").read_text().splitlines()
    )
    kept = np.fromfile(tmp_path / "ix" / "vectors.f32", dtype="<f4").reshape(3, 4)
    assert np.linalg.norm(kept, axis=1) == pytest.approx(1.0)
    assert kept[2, 0] > kept[0, 0]
    (corpus / "Headache.txt").write_text("New.")
    for reply in ({"data": []}, {"data": [{"index": 0, "embedding": ["x"]}]}, b"<html>"):
        endpoint.replies = [(200, {}, reply)]
        code, _, err = cli(*build)
        assert (code, "error" in json.loads(_)) == (Permanent.exit_code, True)
    assert "is no entry of provider openai_compatible" in cli(*build[:-2], "endpoint:q")[2]
    endpoint.replies = [(200, {}, vectors_of(1, width=3))]
    index = Index(tmp_path / "ix")
    index.use(tmp_path / "models.json", {})

    async def searched():
        try:
            await index.search(["fever"], 1)
        finally:
            await index.close()

    with pytest.raises(InputError, match="gives vectors of 3 numbers, those of the index have 4"):
        asyncio.run(searched())


def test_vectors_of_two_widths_are_refused(endpoint):
    spec = ModelSpec(id="e", provider="openai_compatible", url=endpoint.url, concurrency=1)
    narrow = {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}
    endpoint.replies += [(200, {}, vectors_of(64)), (200, {}, narrow)]

    async def embedded():
        embedder = EndpointEmbedder(spec, {})
        try:
            await embedder.embed([f"text {n}" for n in range(65)])
        finally:
            await embedder.close()

    with pytest.raises(Permanent, match=r"e: vectors of \[2, 4\] numbers; expected one width"):
        asyncio.run(embedded())


def test_what_lies_beside_an_index_is_never_touched(cli, corpus, tmp_path):
    build = ("index", "build", corpus, "--out", "ix", "--embedder", "fake")
    for name in ("ix.old", "ix.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    assert cli(*build)[0] == 0
    (tmp_path / ".ix.replaced").mkdir()
    (tmp_path / ".ix.replaced" / "mine").write_text("mine")
    (corpus / "Headache.txt").write_text("Another.")
    code, _, err = cli(*build)
    assert (code, ".ix.replaced" in err) == (3, True)
    (tmp_path / ".ix.replaced").rename(tmp_path / "kept")
    assert cli(*build)[0] == 0
    (tmp_path / ".ix.building").mkdir()
    (tmp_path / ".ix.building" / "mine").write_text("mine")
    (corpus / "Headache.txt").write_text("A third.")
    code, _, err = cli(*build)
    assert (code, "is in the way" in err) == (3, True)
    for name in ("ix.old", "ix.part", "kept", ".ix.building"):
        assert (tmp_path / name / "mine").read_text() == "mine"


def test_no_index_is_written_into_a_sealed_run(cli, corpus, tmp_path):
    from tests import makers

    import medassay

    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    build = ("index", "build", corpus, "--embedder", "fake", "--out")
    assert cli(*build, run.path / "ix")[0] == 3
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("vectors.f32", lambda data: b"\x00\x00\xc0\x7f" * (len(data) // 4)),
        ("chunks.jsonl", lambda data: data.replace(b'"start"', b'"begin"')),
        ("index.json", lambda data: data.replace(b'"width"', b'"wide"')),
        ("index.json", lambda data: data.replace(b'"fake"', b"3")),
        ("index.json", lambda data: data[:40]),
    ],
)
def test_a_damaged_index_says_so_and_is_built_again(cli, corpus, tmp_path, name, change):
    build = ("index", "build", corpus, "--out", "ix", "--embedder", "fake", "--json")
    assert cli(*build)[0] == 0
    path = tmp_path / "ix" / name
    path.write_bytes(change(path.read_bytes()))
    code, _, err = cli("index", "query", "ix", "pain")
    assert code in (3, 6)
    assert "unexpected" not in err
    assert err.count("\n") == 1
    if name == "index.json":
        assert json.loads(cli(*build)[1])["built"]
        assert cli("index", "query", "ix", "pain")[0] == 0


@pytest.mark.parametrize("left", ["", "[]", "{}", '{"identity":{},"counts":3}', "\x00"])
def test_what_a_build_left_half_written_is_begun_anew(cli, corpus, tmp_path, left):
    part = tmp_path / ".ix.building"
    part.mkdir()
    (part / "lock").touch()
    (part / "identity.json").write_text(left)
    assert cli("index", "build", corpus, "--out", "ix", "--embedder", "fake")[0] == 0


def test_damaged_word_counts_are_told(cli, corpus, tmp_path):
    needs_words()
    assert cli("index", "build", corpus, "--out", "ix", "--method", "bm25")[0] == 0
    for path in sorted((tmp_path / "ix" / "bm25").iterdir()):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        code, _, err = cli("index", "query", "ix", "pain")
        assert (code, "build the index again" in err, err.count("\n")) == (6, True, 1), path
        path.write_bytes(data)
    blank = tmp_path / "blank.jsonl"
    blank.write_text('{"id": "a", "text": "!!!"}\n')
    assert cli("index", "build", blank, "--out", "iy", "--method", "bm25")[0] == 3
    assert not any("iy" in path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    "rows",
    [
        [{"index": 0, "embedding": [1.0]}] * 3,
        [{"index": at, "embedding": [0.0, 0.0]} for at in range(3)],
        [{"index": at, "embedding": [1e308, 1e308]} for at in range(3)],
        [{"index": at, "embedding": [True]} for at in range(3)],
    ],
)
def test_vectors_that_cannot_be_are_refused(cli, corpus, tmp_path, endpoint, rows):
    entry = {"id": "e", "provider": "openai_compatible", "url": endpoint.url}
    (tmp_path / "models.json").write_text(json.dumps({"models": [entry]}))
    endpoint.replies += [
        (200, {}, vectors_of(1, len(rows[0]["embedding"]))),
        (200, {}, {"data": rows}),
    ]
    code, _, err = cli("index", "build", corpus, "--out", "ix", "--embedder", "endpoint:e")
    assert (code, err.count("\n")) == (5, 1)
    assert not (tmp_path / "ix").exists()


def test_what_an_index_asks_of_an_endpoint_is_booked_in_its_workspace(
    cli, corpus, tmp_path, endpoint
):
    entry = {"id": "e", "provider": "openai_compatible", "url": endpoint.url}
    entry["price"] = {"input": 1000.0, "output": 0.0}
    (tmp_path / "models.json").write_text(json.dumps({"models": [entry]}))
    build = ("index", "build", corpus, "--out", "ix", "--embedder", "endpoint:e")
    (tmp_path / "medassay.toml").write_text("[budget]\ntotal = 0.001\n")
    code, _, told = cli(*build)
    assert code == 4
    assert "budget in all has no room" in told
    assert "what is embedded is kept" in told
    assert endpoint.asked == []
    (tmp_path / "medassay.toml").write_text("[budget]\ntotal = 100.0\n")
    usage = {"usage": {"prompt_tokens": 7, "total_tokens": 7}}
    endpoint.replies += [(200, {}, vectors_of(1) | usage), (200, {}, vectors_of(3) | usage)]
    assert cli(*build)[0] == 0
    spent = json.loads(cli("spend", "--json")[1])
    [row] = spent["rows"]
    amount = row["amount"]
    assert (row["name"], amount["calls"], amount["tokens"]) == ("indexes/ix", 2, 14)
    assert amount["money"] == pytest.approx(0.014)


def page_of(path, *lines):
    """Write a PDF of one page; without lines it holds a drawing alone, as a scan does."""
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(path))
    canvas.rect(50, 50, 300, 300, fill=1)
    for n, line in enumerate(lines):
        canvas.drawString(60, 780 - 14 * n, line)
    canvas.showPage()
    canvas.save()


def test_documents_that_items_are_made_from_are_searched_and_what_is_no_document_is_named(
    cli, tmp_path
):
    needs_words()
    pytest.importorskip("pypdfium2")
    pytest.importorskip("trafilatura")
    folder = tmp_path / "guidelines"
    (folder / "heart").mkdir(parents=True)
    (folder / "gout.md").write_text("# Gout\n\nColchicine eases an acute attack.\n")
    (folder / "heart/angina.html").write_text(
        "<html><body><article><h1>Angina</h1><p>Nitroglycerin under the tongue eases chest pain on"
        " effort within minutes.</p></article></body></html>"
    )
    page_of(folder / "anaemia.pdf", "Ferritin is measured before iron is given.")
    page_of(folder / "scan.pdf")
    (folder / "old.docx").write_bytes(b"PK")
    (folder / ".hidden.docx").write_bytes(b"PK")
    build = ("index", "build", folder, "--out", "ix", "--method", "bm25")
    code, out, err = cli(*build)
    assert code == 0, err
    assert "4 documents" in out
    assert "left out, since they are no documents: old.docx\n" in err
    assert "without text, as scans are: scan.pdf;" in err
    for words, name in (
        ("ferritin iron", "anaemia"),
        ("nitroglycerin", "heart/angina"),
        ("colchicine", "gout"),
    ):
        found = json.loads(cli("index", "query", "ix", words, "-k", 1, "--json")[1])["chunks"]
        assert [one["document"] for one in found] == [name]
    told = json.loads(cli(*build, "--json")[1])
    assert (told["built"], told["left_out"], told["without_text"]) == (
        False,
        ["old.docx"],
        ["scan.pdf"],
    )


def test_a_folder_without_documents_says_which_it_could_read(cli, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c/a.docx").write_bytes(b"PK")
    code, _, err = cli("index", "build", tmp_path / "c", "--out", "ix", "--embedder", "fake")
    assert code == 3
    assert "holds none of .htm, .html, .md, .pdf and .txt" in err
