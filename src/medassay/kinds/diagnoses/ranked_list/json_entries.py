"""One element of JSON as an entry: which key names its disease, which its rank and codes.

And what a key says of what stands under it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from medassay.kinds.diagnoses.ranked_list.entry import (
    ListEntry,
    clean_name,
    codes_in,
    entry_of,
    without_codes,
)
from medassay.kinds.diagnoses.ranked_list.subject import Subject

NAMES = (
    *(
        "name",
        "diagnosis",
        "disease",
        "condition",
        "disorder",
        "dx",
        "illness",
        "pathology",
        "diagnosis_name",
        "disease_name",
        "condition_name",
        "label",
        "title",
        "term",
    ),
    *(
        "entity",
        "diagnose",
        "name_der_erkrankung",
        "krankheit",
        "erkrankung",
        "nombre",
        "diagnostico",
        "enfermedad",
        "nom",
        "diagnostic",
        "maladie",
    ),
    *("诊断", "疾病", "名称", "疾病名称", "诊断名称", "病名", "value", "text"),
)
OF_DISEASE = frozenset(NAMES) - {
    "name",
    "label",
    "title",
    "term",
    "value",
    "text",
    "entity",
    "nombre",
    "nom",
    "名称",
}
NOT_A_NAME = re.compile(
    r"reason|why|evidence|support|against|explan|justif|rational|symptom|finding|test|step|"
    r"probab|likeli|confid|score|rank|severity|icd|orpha|omim|code|descr|note|comment|criteri|"
    r"treat|question|patient|history|age|sex|gender|begründ|grund|razon|raison|理由|依据|症状|概率|检查"
)
_RANK_KEYS = (
    "rank",
    "position",
    "number",
    "order",
    "no",
    "nr",
    "rang",
    "rango",
    "排名",
    "序号",
)
_CODE_KEY = re.compile(r"icd|cie|cim|orpha|omim|mim|mondo|snomed|^codes?$|^id$")
_FURTHER = re.compile(
    r"alternativ|other|differential|secondary|further|additional|ddx|weitere|andere|otr[ao]s|"
    r"autres|其他|鉴别"
)
_LIKE_A_NAME = re.compile("diagnos|disease|诊断|疾病")
_PAIR = 4  # elements of an array that holds a name with its score
_HIGHEST_RANK = 1000
_UNACCENTED = str.maketrans("áéíóúàèìòùâêîôû", "aeiouaeiouaeiou")


def plain_key(name: Any) -> str:
    """Return a key in small letters without accents, words joined by "_"."""
    return re.sub(r"[\s-]+", "_", str(name).strip().casefold().translate(_UNACCENTED))


def subject_of_key(key: str) -> Subject:
    """Return what a plain key says that stands under it."""
    if re.search(
        r"rul\w*_out|exclud|unlikely|reject|discard|dismiss|ausgeschlossen|descartad|excluid|"
        r"exclus|排除|not_",
        key,
    ):
        return Subject.EXCLUDED
    if NOT_A_NAME.search(re.sub(r"rank\w*", "", key)):
        return Subject.OTHER
    if re.search(
        r"diagnos|differential|ddx|diseases|conditions|disorders|hypothes|candidates|"
        r"enfermedades|maladies|krankheiten|erkrankungen|诊断|鉴别|疾病",
        key,
    ):
        if re.search(
            r"initial|preliminary|provisional|first_|vorläufig|inicial|preliminar|初步", key
        ):
            return Subject.INITIAL
        return Subject.DIAGNOSES
    if re.search(
        r"^(?:final(?:_list|_answer|_ranking)?|answer|answers|ranking|ranked(?:_list)?|top_?\d*|"
        r"top_?five|dx|predictions?|most_likely|possible_causes|causes)$",
        key,
    ):
        return Subject.DIAGNOSES
    return Subject.FURTHER if _FURTHER.search(key) else Subject.UNKNOWN


def is_of_disease(value: Mapping[str, Any]) -> bool:
    """Return whether an object names its disease by a key that says so."""
    return any(
        plain_key(name) in OF_DISEASE and isinstance(part, str | dict)
        for name, part in value.items()
    )


def entries_of(listed: list[Any]) -> tuple[ListEntry, ...]:
    """Return the entries of an array: ranks as given where all are distinct whole numbers from 1,
    else places.
    """
    entries = [entry for part in listed if (entry := entry_in(part)) is not None]
    ranks = [entry.rank for entry in entries]
    if all(rank is not None for rank in ranks) and len(set(ranks)) == len(ranks):
        return tuple(sorted(entries, key=lambda entry: entry.rank or 0))
    return tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in entries)


def entry_in(part: Any) -> ListEntry | None:
    """Return the entry in one element of an array: a text, a pair of name and score, or an object
    with a key that names it.
    """
    if isinstance(part, str):
        name, codes = entry_of(part)
        return ListEntry(name=name, codes=codes) if name else None
    if isinstance(part, list):
        pair = 1 < len(part) <= _PAIR and isinstance(part[0], str) and not isinstance(part[1], str)
        return entry_in(part[0]) if pair else None
    if not isinstance(part, dict):
        return None
    keys = {plain_key(name): value for name, value in part.items()}
    text = _name_text(keys)
    if text is None:
        inner = (keys[key] for key in keys if key in OF_DISEASE and isinstance(keys[key], dict))
        return next((entry for value in inner if (entry := entry_in(value)) is not None), None)
    name, codes = _name_in_object(text)
    if not name:
        return None
    codes = tuple(dict.fromkeys((*codes, *_codes_in_object(keys))))
    return ListEntry(name=name, rank=_rank_in_object(keys), codes=codes)


def _name_text(keys: Mapping[str, Any]) -> str | None:
    """Return the text under the key that names the disease, None without one."""
    names = (keys[key] for key in NAMES if isinstance(keys.get(key), str))
    like = (
        value
        for key, value in keys.items()
        if isinstance(value, str) and _LIKE_A_NAME.search(key) and not NOT_A_NAME.search(key)
    )
    return next(names, None) or next(like, None)


def _rank_in_object(keys: Mapping[str, Any]) -> int | None:
    rank = next((keys[key] for key in _RANK_KEYS if key in keys), None)
    if isinstance(rank, str) and rank.strip().isdecimal():
        rank = int(rank)
    if isinstance(rank, bool) or not isinstance(rank, int):
        return None
    return rank if 1 <= rank <= _HIGHEST_RANK else None


def _codes_in_object(keys: Mapping[str, Any]) -> Iterator[str]:
    """Yield the codes under keys that name a classification."""
    for key, value in keys.items():
        if _CODE_KEY.search(key):
            for element in value if isinstance(value, list) else [value]:
                if isinstance(element, str | int):
                    yield from _codes_of_key(key, str(element))


def _name_in_object(value: str) -> tuple[str, tuple[str, ...]]:
    """Return the name under a key that names it: all of the text but codes and percentages.

    What stands behind is no reason.
    """
    name, codes = without_codes(re.sub(r"^\s*(?:\d{1,2}[.)]\s+)?", "", value))
    return clean_name(name), codes


def _codes_of_key(key: str, value: str) -> tuple[str, ...]:
    codes = codes_in(value)
    if codes or key in ("code", "codes", "id"):
        return codes
    system = {"icd11": "ICD-11", "icd_11": "ICD-11"}.get(key, "")
    if system or re.search("icd|cie|cim", key):
        bare = re.fullmatch(r"\s*([0-9A-Z]{2,4}(?:\.[0-9A-Z]{1,4})?)\s*", value.upper())
        return (f"{system or 'ICD-10'}:{bare[1]}",) if bare else ()
    name = next((n for n in ("orpha", "omim", "mim", "mondo", "snomed") if n in key), "")
    digits = re.search(r"\d{1,18}", value)
    return (f"{'OMIM' if name == 'mim' else name.upper()}:{digits[0]}",) if name and digits else ()
