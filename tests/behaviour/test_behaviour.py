"""What each part of the method makes of the inputs in its corpus.

Another output is another revision.
"""

import pytest

from tests.behaviour.make import CORPORA, read_corpus
from tests.behaviour.parts import applied, parts, same

PARTS = parts()


@pytest.mark.parametrize("name", PARTS)
def test_outputs_change_with_the_revision_only(name):
    head, pairs = read_corpus(name)
    kind, _, part = name.partition("_")
    assert head["revision"] == PARTS[name].revision, (
        f"{kind} {part}: revision {PARTS[name].revision}, its corpus is of {head['revision']};"
        f" write it anew with `python -m tests.behaviour.make {name}` and tell of the change under"
        " Numbers change"
    )
    for number, pair in enumerate(pairs, 2):
        output = applied(PARTS[name], {**head["shared"], **pair["in"]})
        assert same(output, pair["out"]), (
            f"{kind} {part}/{head['revision']}: an output changed at line {number} of {name}.jsonl"
            f" and the revision did not; raise it if that is meant: {pair['in']!r:.300}:"
            f" {pair['out']!r:.200} became {output!r:.200}"
        )


def test_every_part_has_its_corpus_and_every_corpus_its_part():
    assert {path.stem for path in CORPORA.glob("*.jsonl")} == PARTS.keys()


@pytest.mark.parametrize("name", PARTS)
def test_a_corpus_has_outputs_of_more_than_one_kind(name):
    _, pairs = read_corpus(name)
    outputs = [pair["out"] for pair in pairs]
    assert any(not same(outputs[0], output) for output in outputs)
    refused = sum(isinstance(output, dict) and "refused" in output for output in outputs)
    assert refused < len(outputs) / 2
