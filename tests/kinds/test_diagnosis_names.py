import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.records.diagnosis import plain_name
from medassay.kinds.diagnoses.names import NameMatcher

SAME = [
    ("Wilson disease", "Wilson's Disease"),
    ("Wilson disease", "Wilson’s disease"),
    ("Sjögren syndrome", "Sjogren Syndrome"),
    ("Niemann-Pick disease, type C", "Niemann–Pick disease type C"),
    ("Tyrosinemia, type I", "Tyrosinaemia type 1"),
    ("Paroxysmal nocturnal hemoglobinuria", "Paroxysmal Nocturnal Haemoglobinuria (PNH)"),
    ("Multiple endocrine neoplasia type 1", "Multiple Endocrine Neoplasia Type 1 (MEN1)"),
    ("Charcot-Marie-Tooth disease", "**Charcot Marie Tooth disease**"),
]
OTHER = [
    ("Wilson disease", "Menkes disease"),
    ("Tyrosinemia type I", "Tyrosinemia type II"),
    ("Amyotrophic lateral sclerosis", "Amyotrophic lateral sclerosis type 4"),
    ("Amyotrophic lateral sclerosis", "Amyotrophic lateral sclerosis (ALS4)"),
    ("Syncope", "Syncope (Fainting)"),
    ("Multiple system atrophy", "Multiple system atrophy (MSA-P)"),
    ("Amyloidosis", "Amyloidosis (AL)"),
    ("Thalassemia", "Thalassemia (TM)"),
    ("Marfan syndrome", "Neonatal Marfan syndrome"),
    ("Diabetes mellitus", "Diabetes insipidus"),
    ("C", "C+"),
]


@pytest.mark.parametrize(("golden", "name"), SAME)
def test_the_same_name_in_another_dress(golden, name):
    assert NameMatcher({}).rule(name, [golden]) == "same name"


@pytest.mark.parametrize(("golden", "name"), OTHER)
def test_another_disease_is_never_the_same(golden, name):
    assert NameMatcher({}).rule(name, [golden]) == ""


def test_each_label_says_how_it_was_found():
    matching = NameMatcher({"gout": ["Podagra", "Urate arthritis"]})
    assert matching.rule("GOUT", ["Gout", "Gouty arthritis"]) == "same name"
    assert matching.rule("Gouty Arthritis", ["Gout", "Gouty arthritis"]) == "other name in the bank"
    assert matching.rule("podagra", ["Gout"]) == "synonym"
    assert matching.rule("podagra", ["Lupus"]) == ""


def test_nothing_left_of_a_name_is_no_name():
    assert NameMatcher({}).rule("…", ["…"]) == ""


@given(st.text(max_size=40))
def test_the_plain_form_is_stable(name):
    assert plain_name(plain_name(name)) == plain_name(name)
