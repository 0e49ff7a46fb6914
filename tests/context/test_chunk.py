import json
import random
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import ROOT, absent

from medassay.context.retrieval.chunk import split
from medassay.errors import InputError

REFERENCE = """
import json, sys
from langchain_text_splitters import RecursiveCharacterTextSplitter
splitter = RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=150, add_start_index=True)
for line in sys.stdin:
    found = splitter.create_documents([json.loads(line)])
    print(json.dumps([[one.metadata["start_index"], one.page_content] for one in found]))
"""


def test_it_gives_the_golden_chunks(golden):
    known = golden("rag_splitter")
    for case in known["cases"]:
        found = split(known["text"], size=case["size"], overlap=case["overlap"], merging="whole")
        assert [one.start for one in found] == case["starts"]
        assert [len(one.text) for one in found] == case["lengths"]


@pytest.mark.parametrize("merging", ["levels", "whole"])
def test_at_the_published_size_both_ways_of_merging_give_the_golden_chunks(golden, merging):
    known = golden("rag_splitter")
    found = split(known["text"], merging=merging)
    assert [one.start for one in found] == known["cases"][0]["starts"]
    without = known["no_separator"]
    found = split("x" * 1200, merging=merging)
    assert [one.start for one in found] == without["starts"]
    assert [len(one.text) for one in found] == without["lengths"]


@pytest.mark.real_data
def test_on_real_texts_it_cuts_where_langchain_cuts(data):
    python = ROOT / ".venv-interop/bin/python"
    if not python.exists():
        absent("langchain-text-splitters is not installed: make interop")
    texts = real_texts(data)
    assert len(texts) == 500
    done = subprocess.run(
        [python, "-c", REFERENCE],
        input="".join(json.dumps(text) + "\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
        env={"LANGSMITH_TRACING": "false"},
    )
    for text, line in zip(texts, done.stdout.splitlines(), strict=True):
        assert [[one.start, one.text] for one in split(text)] == json.loads(line)


def real_texts(data):
    """Return 500 notes, abstracts and texts of conditions."""
    import csv

    csv.field_size_limit(10**7)
    found = [p.read_text(encoding="utf-8", errors="replace") for p in sorted(data.rglob("*.txt"))]
    for path in sorted(data.rglob("*.csv")):
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            for number, row in enumerate(csv.reader(file)):
                if number > 300:
                    break
                found += [cell for cell in row if len(cell) > 900]
    found = [text for text in found if len(text) > 600]
    random.Random(1).shuffle(found)
    return found[:500]


TEXTS = st.text(st.sampled_from("ab \n\t."), max_size=400)
SIZES = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1)))


@given(TEXTS, SIZES, st.sampled_from(["levels", "whole"]))
def test_chunks_are_parts_of_the_text_no_longer_than_asked_and_hold_all_of_it(text, sizes, merging):
    size, overlap = sizes
    found = split(text, size=size, overlap=overlap, merging=merging)
    covered = set()
    for one in found:
        assert 0 < len(one.text) <= size
        assert text[one.start : one.start + len(one.text)] == one.text == one.text.strip()
        covered |= set(range(one.start, one.start + len(one.text)))
    assert covered >= {at for at, c in enumerate(text) if not c.isspace()}
    assert [one.start for one in found] == sorted(one.start for one in found)


def test_an_overlap_as_long_as_a_chunk_is_refused():
    with pytest.raises(InputError, match="0 ≤ overlap < size"):
        split("text", size=10, overlap=10)
