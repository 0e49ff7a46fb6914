"""Names of drugs as one: without dose, salt, case and punctuation, and by the synonyms that an item
carries.

"ASS 100 mg", "ASS." and, where the item says so, "Acetylsalicylsäure" are one drug; "Sacubitril /
Valsartan" is written like "Valsartan/Sacubitril". Whether a longer name means the same is no more
than "perhaps".
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from medassay.kinds.record.dose import without_amounts

Synonyms = Mapping[str, Sequence[str]]
_SALTS = (
    *("hydrochlorid", "hydrochloride", "hcl", "succinat", "succinate", "tartrat", "tartrate"),
    *(
        "besilat",
        "besilate",
        "besylate",
        "mesilat",
        "mesilate",
        "mesylate",
        "maleat",
        "maleate",
    ),
    *("hydrobromid", "hydrobromide", "natrium", "sodium", "kalium", "potassium", "calcium"),
    *(
        "citrat",
        "citrate",
        "phosphat",
        "phosphate",
        "acetat",
        "acetate",
        "medoxomil",
        "cilexetil",
    ),
)
_FORMS = frozenset(
    [
        "tablette",
        "tabletten",
        "tbl",
        "tabl",
        "tab",
        "tablet",
        "tablets",
        "filmtablette",
        "filmtabletten",
        "kapsel",
        "kapseln",
        "kps",
        "capsule",
        "capsules",
        "tropfen",
        "drops",
        "retard",
        "ret",
        "ratiopharm",
        "hexal",
        "stada",
    ]
)
_SHORTEST = 5  # letters that must be left of a name without its salt


def drug_key(name: str, synonyms: Synonyms | None = None) -> str:
    """Return what all ways of writing a drug's name have in common; empty where nothing is left.

    Parameters
    ----------
    synonyms : name → its other names, as an item carries them

    Examples
    --------
    >>> drug_key("Metoprololsuccinat 47,5 mg"), drug_key("Sacubitril / Valsartan"), drug_key("ASS.")
    ('metoprolol', 'sacubitril/valsartan', 'ass')
    >>> drug_key("Aspirin", {"ASS": ["Aspirin"]})
    'ass'
    """
    key = _plain_key(name)
    for main_name, others in (synonyms or {}).items():
        if key in {_plain_key(other) for other in others}:
            return _plain_key(main_name)
    return key


def is_perhaps(key: str, other: str) -> bool:
    """Return whether one name is a part of the other, so that both may mean the same drug.

    Examples
    --------
    >>> is_perhaps("ramipril", "ramipril comp"), is_perhaps("ass", "assam")
    (True, False)
    """
    if key == other or not key or not other:
        return False
    words, two = (set(re.split(r"[ /]", each)) for each in (key, other))
    if words <= two or two <= words:
        return True
    short, long = sorted((key, other), key=len)
    return len(short) >= _SHORTEST and long.startswith(short)


def _plain_key(name: str) -> str:
    text = without_amounts(unicodedata.normalize("NFKC", name)).casefold()
    parts = re.split(r"\s*(?:/|\+| und | and | y )\s*", text)
    return "/".join(sorted(filter(None, map(_part, parts))))


def _part(text: str) -> str:
    """Return one substance of a name in plain words, without its salt."""
    words = [word for word in re.split(r"[^\w]+|_", text) if word]
    words_kept = [word for word in words if word not in _FORMS and not word.isdigit()] or words
    plain = [word for word in words_kept if word not in _SALTS] or words_kept
    return " ".join(map(_without_salt, plain))


def _without_salt(word: str) -> str:
    for salt in _SALTS:
        if word.endswith(salt) and len(word) - len(salt) >= _SHORTEST:
            return word.removesuffix(salt)
    return word
