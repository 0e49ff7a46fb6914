"""Typed dictionaries name the keys that records read and writers write, and no record that is
decoded and written again holds one: decoding would drop the keys that it does not name.
"""

import ast
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

import medassay
from medassay.bank.card import BankCard
from medassay.bank.check import ITEM_KEYS
from medassay.core.keyed import KeyedRecord
from medassay.core.records.card_object import CardObject
from medassay.core.records.estimate import Estimate, RowEstimate
from medassay.core.records.item_object import ItemObject
from medassay.core.records.manifest import Manifest
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.relations import Relations, RowPair
from medassay.core.records.score import TrialScore
from medassay.core.records.sealed_object import ScoreObject, TrialObject, VerdictObject
from medassay.core.records.statistics import Harm, HarmfulCriteria, ProvenanceGap, ToolsEffect
from medassay.core.records.statistics_object import (
    DifferenceObject,
    EstimateObject,
    FieldObject,
    HarmfulCriteriaObject,
    HarmObject,
    PairObject,
)
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import StoredVerdict, TrialVerdict

SOURCES = Path(medassay.__file__).parent


def keys_of(record):
    return set(record.__struct_encode_fields__)


@pytest.mark.parametrize(
    ("typed", "records"),
    [
        (TrialObject, [Trial]),
        (ScoreObject, [TrialScore]),
        (VerdictObject, [StoredVerdict, TrialVerdict]),
        (ManifestObject, [Manifest]),
        (CardObject, [BankCard]),
        (EstimateObject, [Estimate, RowEstimate]),
        (PairObject, [RowPair]),
        (HarmObject, [Harm]),
        (HarmfulCriteriaObject, [HarmfulCriteria]),
        (DifferenceObject, [ToolsEffect, ProvenanceGap]),
        (FieldObject, [Relations]),
    ],
)
def test_every_key_that_a_record_reads_has_a_type(typed, records):
    for record in records:
        assert keys_of(record) <= typed.__annotations__.keys()


def test_an_item_has_the_keys_that_the_check_lets_through():
    assert ItemObject.__annotations__.keys() == ITEM_KEYS


def subclasses(record):
    for derived in record.__subclasses__():
        yield derived
        yield from subclasses(derived)


def test_a_field_of_a_keyed_record_is_written():
    """Who adds a field decides here: it is named in `KEYS`, or this test names it."""
    import medassay.cli.main
    import medassay.publishing.opening
    import medassay.selection.shortlist
    import medassay.synthesis.synthesize  # noqa: F401

    records = list(subclasses(KeyedRecord))
    assert len(records) > 20
    for record in records:
        names = (
            record.__struct_fields__
            if issubclass(record, msgspec.Struct)
            else tuple(field.name for field in fields(record))
        )
        assert names == record.KEYS, record.__name__


def names_in(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def told_to_decoders(trees):
    """Return the names that stand in calls of msgspec's decoders, or of what takes a class for one."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    takers = {"Decoder", "RecordDecoder", "convert", "decode"} | {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and any("type[" in ast.unparse(a.annotation or ast.Constant("")) for a in node.args.args)
    }
    names = set()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        if ast.unparse(call.func).rpartition(".")[2] in takers:
            for value in (*call.args, *(keyword.value for keyword in call.keywords)):
                names |= names_in(value)
    return names


def test_no_record_that_is_decoded_holds_a_typed_dictionary_but_for_reading():
    typed, fields, holders = set(), {}, {}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES.rglob("*.py")]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(3):  # a typed dictionary may derive from one
        for node in classes:
            bases = {ast.unparse(base) for base in node.bases}
            if bases & {"TypedDict", *typed}:
                typed.add(node.name)
            if bases & {"msgspec.Struct", *fields}:
                lines = [line for line in node.body if isinstance(line, ast.AnnAssign)]
                fields[node.name] = {line.target.id: names_in(line.annotation) for line in lines}
    decoded = told_to_decoders(trees) & fields.keys()
    while further := set().union(*(s for n in decoded for s in fields[n].values())) & (
        fields.keys() - decoded
    ):
        decoded |= further
    assert {"Trial", "Manifest", "LedgerEvent", "SubjectRecord"} <= decoded
    for name in decoded:
        for field, names in fields[name].items():
            if names & typed:
                holders[name, field] = names & typed
    # Told on the terminal and by `--json`, and written nowhere.
    assert holders.keys() == {("Manifest", "fallback")}


def test_decoding_a_typed_dictionary_drops_what_it_does_not_name():
    """Why the test above is needed."""
    assert msgspec.convert({"id": "a", "new": 1}, ItemObject) == {"id": "a"}
