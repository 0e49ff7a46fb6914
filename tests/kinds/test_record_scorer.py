"""A record against its reference: the golden example, and replies of any kind."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.core.records.answer import Answer
from medassay.core.records.health_record import FIELDS, RECORD, SECTIONS
from medassay.kinds.catalog import SCORERS
from medassay.kinds.record.scorer import record_parts

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/health_record.json").read_text())
ITEM = makers.item(
    id="r",
    domain="d",
    question=GOLDEN["report"],
    form="record",
    record=GOLDEN["gold"][RECORD],
)


def answered(value, outcome="answered"):
    return Answer(item_id="r", outcome=outcome, value=value, reason="")


@pytest.mark.parametrize("output", GOLDEN["outputs"], ids=lambda output: output["name"])
def test_the_golden_outputs(output):
    text = json.dumps(output["output"], ensure_ascii=False)
    parts = record_parts(ITEM, answered(text), text)
    wanted, state = output["json_similarity"], output["medication_state"]
    [score] = SCORERS["record"].score([ITEM], [answered(text)])
    assert score.value == pytest.approx(wanted["overall"], abs=1e-9)
    assert parts["similarity"] == score.value
    assert parts["sections"] == pytest.approx(wanted["sub_scores"], abs=1e-9)
    assert (parts["missing"], parts["extra"]) == (
        len(wanted["missing"]),
        len(wanted["extra"]),
    )
    assert (parts["correct"], parts["total"]) == (state["correct"], state["total"])
    assert parts["stopped_as_current"] == len(state["stopped_listed_as_current"])
    assert parts["characters"] == len(text)


def test_thoughts_are_no_part_of_the_likeness():
    text = json.dumps({"internal_monologue": {"x": "y"}, RECORD: ITEM.target.record})
    assert record_parts(ITEM, answered(text), text)["similarity"] == 1.0


def test_a_reply_without_json_has_nothing():
    parts = record_parts(ITEM, answered(None, "unparsed"), "Sorry.")
    assert (parts["read"], parts["similarity"], parts["correct"]) == (False, 0.0, 0)
    assert parts["sections"] == dict.fromkeys(parts["sections"], 0.0)
    assert set(parts["sections"]) == set(SECTIONS)
    assert (parts["total"], parts["lost"]) == (4, 4)


def test_no_name_of_a_drug_is_kept_in_a_score():
    text = json.dumps(GOLDEN["outputs"][1]["output"], ensure_ascii=False)
    kept = json.dumps(record_parts(ITEM, answered(text), text), ensure_ascii=False).casefold()
    assert "ramipril" not in kept


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(SECTIONS), inner),
)


@given(_JSON)
def test_any_record_gets_parts_on_their_scales(value):
    text = json.dumps({RECORD: value})
    parts = record_parts(ITEM, answered(text), text)
    assert all(0 <= share <= 1 for share in (parts["similarity"], *parts["sections"].values()))
    assert 0 <= parts["correct"] <= parts["total"] == 4


@given(st.text())
def test_any_text_gets_a_score(text):
    [score] = SCORERS["record"].score([ITEM], [answered(text or " ")])
    assert 0 <= score.value <= 1


def test_fields_tell_lists_of_drugs_and_parts_of_measurements_apart():
    text = json.dumps(GOLDEN["outputs"][1]["output"], ensure_ascii=False)
    fields = record_parts(ITEM, answered(text), text)["fields"]
    assert fields["medications.current"] == 1.0
    assert fields["medications.advised"] == fields["medications.discontinued"] == 0.0
    assert fields["relevant_metrics.value"] == fields["date_and_source.source"] == 1.0
    assert list(fields) == [field for field in FIELDS if field in fields]


def test_every_leaf_of_a_record_belongs_to_one_field():
    everything = json.dumps({RECORD: ITEM.target.record})
    parts = record_parts(ITEM, answered(everything), everything)
    assert set(parts["fields"]) == set(FIELDS)
    assert all(value == 1.0 for value in parts["fields"].values())
