"""Words of differential diagnosis: how a name stands to the golden diagnosis, how severe a disease
is.

Source: specification of differential-diagnosis scoring, "Algorithm", 2 and 3.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal

import msgspec

from medassay.core.wording import counted

EXACT = "Exact Synonym"
# Distance to the golden diagnosis; what nobody judged counts as far as can be.
RELATIONS: dict[str, int] = {
    EXACT: 1,
    "Broad Synonym": 2,
    "Exact Disease Group": 3,
    "Broad Disease Group": 4,
    "Not Related": 5,
}
FARTHEST = 5
LEVELS: dict[str, int] = {"mild": 1, "moderate": 2, "severe": 3, "critical": 4}
RARE = "rare"
# Of several diseases recorded for a case: the first alone is the golden diagnosis, or any of them
# is.
Golden = Literal["one", "any"]


def golden_sentence(golden: Golden, several: int) -> str:
    """Return the sentence that says which names are golden, "" where no case has several diseases.

    Examples
    --------
    >>> golden_sentence("one", 1)
    'In 1 case several diseases are recorded; the first is the golden diagnosis (golden = one).'
    """
    if not several:
        return ""
    which = (
        "the first is the golden diagnosis"
        if golden == "one"
        else "any of them counts as the golden diagnosis, and a judge is shown the first"
    )
    return (
        f"In {counted(several, 'case')} several diseases are recorded; {which} (golden = {golden})."
    )


class SeverityMap(msgspec.Struct, frozen=True):
    """Which severity labels there are, and how far two of them lie apart.

    `levels` gives the value of each label, `rare` the labels that say a disease is rare. Where
    rarity is `apart`, it is no level: a mismatch of it costs one step beside the difference of the
    levels.
    """

    levels: Mapping[str, int]
    rare: frozenset[str]
    apart: bool = False

    def distance(self, golden: str, predicted: str) -> int:
        """Return the distance of two labels, 1 to 5.

        Raises
        ------
        KeyError
            When a label is none of this map.
        """
        mismatch = self.apart and (golden in self.rare) != (predicted in self.rare)
        return 1 + abs(self.shift(golden, predicted)) + mismatch

    def shift(self, golden: str, predicted: str) -> int:
        """Return the signed difference of the levels, predicted − golden."""
        return self.levels[predicted] - self.levels[golden]


# `published` is the Kernel29 method: rare overrides the four others and ranks above critical,
# though it is a frequency. `separate` holds rarity apart: "rare mild" and "mild" share a level.
SEVERITY_MAPS: dict[str, SeverityMap] = {
    "published": SeverityMap({**LEVELS, RARE: 5}, frozenset({RARE})),
    "separate": SeverityMap(
        {**LEVELS, **{f"{RARE} {name}": value for name, value in LEVELS.items()}},
        frozenset(f"{RARE} {name}" for name in LEVELS),
        apart=True,
    ),
}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a ranked list; labels are None until somebody gave them, or where nobody could.

    `relation_by` and `severity_by` say how a label was found: a rule of names, the bank, or a
    judge.
    """

    rank: int
    name: str
    relation: str | None = None
    relation_by: str = ""
    severity: str | None = None
    severity_by: str = ""

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the entry as plain JSON values."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


# British → American, in the endings that disease names have.
_SPELLINGS = (
    ("haem", "hem"),
    ("aemia", "emia"),
    ("oedema", "edema"),
    ("oesoph", "esoph"),
    ("coeliac", "celiac"),
    ("tumour", "tumor"),
)
_SPELLING = re.compile("|".join(british for british, _ in _SPELLINGS))
_AMERICAN = dict(_SPELLINGS)
_POSSESSIVE = re.compile(r"['’`´]s\b")
_NO_WORD = re.compile(r"[^\w+]|_")
_SHORT = re.compile(r"\(([A-Z][A-Za-z0-9./-]{1,9})\)")
_TYPE = re.compile(r"\btype (viii|vii|vi|iv|ix|iii|ii|i|v|x)\b")
_ROMAN = {
    n: str(at)
    for at, n in enumerate(["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"], 1)
}


def plain_name(name: str) -> str:
    """Return the form of a disease name in which two names are compared.

    Two names of equal form name the same disease.

    Case, accents, marks, possessive s, an abbreviation in brackets of all the name's initials,
    roman numbers behind "type" and British spellings make no difference; every other word does.

    Examples
    --------
    >>> plain_name("Wilson's Disease"), plain_name("Paroxysmal Nocturnal Haemoglobinuria (PNH)")
    ('wilson disease', 'paroxysmal nocturnal hemoglobinuria')
    >>> plain_name("Amyotrophic lateral sclerosis (ALS4)") == plain_name(
    ...     "Amyotrophic lateral sclerosis")
    False
    """
    bare = name
    if "(" in name:
        bare = _SHORT.sub(
            lambda m: " " if _abbreviates(m[1], name[: m.start()]) else m[0], name, count=3
        )
    text = bare.lower() if bare.isascii() else _without_accents(bare)
    if not text.replace(" ", "").isalnum():
        text = _POSSESSIVE.sub("", text).replace("&", " and ")
        text = _NO_WORD.sub(" ", text.replace("'", "").replace("’", ""))
    text = " ".join(text.split())
    text = _SPELLING.sub(lambda m: _AMERICAN[m[0]], text)
    return _TYPE.sub(lambda m: f"type {_ROMAN[m[1]]}", text) if "type " in text else text


def _without_accents(name: str) -> str:
    """Return a name in small letters without accents, and with letters for their wide and joined
    forms.
    """
    folded = unicodedata.normalize("NFKD", name).casefold()
    split = unicodedata.normalize("NFKD", folded)
    return "".join(c for c in split if not unicodedata.combining(c))


_SMALL = frozenset(["a", "and", "due", "in", "of", "or", "the", "to", "type", "with"])


def _abbreviates(short: str, name: str) -> bool:
    """Return whether an abbreviation has the initials of a name's words, all of them and no other
    letter.

    So "MSA-P" is no abbreviation of multiple system atrophy, and "AL" none of amyloidosis: they
    name a subtype. A number stands for itself.
    """
    letters = [c for c in short.casefold() if c.isalnum()]
    words = re.findall(r"[^\W_]+", name.casefold())
    needed = [word[0] for word in words if word not in _SMALL]
    possible = iter([word if word.isdecimal() else word[0] for word in words])
    if len(needed) < 2 or not all(letter in possible for letter in letters):
        return False
    rest = iter(letters)
    return all(initial in rest for initial in needed)
