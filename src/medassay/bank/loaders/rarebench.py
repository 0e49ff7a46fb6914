"""RareBench: cases as lists of phenotype codes with the codes of a rare disease.

PUMCH_ADM, RAMEDIS and HMS verified on data; LIRICAL and MME, of the same form, from documentation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medassay.bank.builder import BankBuilder, find_file, read_json, read_records
from medassay.bank.disease_names import DiseaseNames, load_disease_names
from medassay.core.records.diagnosis import RARE, Golden, golden_sentence, plain_name
from medassay.core.records.item import Bank
from medassay.errors import InputError

_MAPPINGS = ("phenotype_mapping.json", "disease_mapping.json")


def load(root: Path, name: str, golden: Golden = "one") -> Bank:
    """Return one set; codes become names by the mapping files that come with it.

    `mapping/` is looked for in the folder and beside it. A phenotype without a name is left out, a
    case without any named phenotype or disease is counted; an exact repeat is dropped. Every golden
    severity is `rare`: the sets hold rare diseases. Of several codes the first is the golden
    diagnosis; other diseases among them stand in the rationale. With `golden` "any" the names of
    all of them are golden. The card says which.
    """
    path = find_file(root, f"{name}.jsonl", f"{name}*.jsonl", f"data/{name}.jsonl", f"{name}.json")
    phenotypes, diseases = _mappings(path)
    slug = name.lower().replace("_", "-")
    draft = BankBuilder(
        f"rarebench_{name.lower()}",
        licence="Apache-2.0",
        source=f"RareBench {name}",
        title=f"RareBench {name}",
        limits="Phenotype lists, no texts; rare diseases only.",
    )
    seen_cases: set[tuple[Any, ...]] = set()
    several = 0
    for number, row in enumerate(read_records(path)):
        codes = _codes(row, "Phenotype", path, number)
        golden_names = _codes(row, "RareDisease", path, number)
        if (key := (*codes, None, *golden_names)) in seen_cases:
            draft.drop("exact repeat")
            continue
        seen_cases.add(key)
        names = [phenotypes[code] for code in codes if code in phenotypes]
        names_of, others = _golden(golden_names, diseases, golden)
        if not names:
            draft.drop("no phenotype with a name")
        elif not names_of:
            draft.drop("no disease with a name")
        else:
            several += bool(others)
            draft.add(
                {
                    "id": f"{slug}-{number:03}",
                    "domain": draft.name,
                    "answer_type": "open",
                    "question": f"Phenotypes of the patient: {', '.join(names)}.",
                    "diagnoses": names_of,
                    "severity": RARE,
                    "category": row.get("Department") or "",
                    "rationale": f"Also recorded: {'; '.join(others)}." if others else "",
                }
            )
    draft.limits = " ".join(filter(None, [draft.limits, golden_sentence(golden, several)]))
    return draft.bank()


def _mappings(path: Path) -> tuple[Mapping[str, str], DiseaseNames]:
    places = [path.parent / "mapping", path.parent.parent / "mapping", path.parent]
    for place in places:
        if all((place / name).is_file() for name in _MAPPINGS):
            phenotypes = read_json(place / _MAPPINGS[0])
            if not isinstance(phenotypes, dict):
                raise InputError(f"{_MAPPINGS[0]}: expected an object of codes and names")
            names = {str(code): str(name) for code, name in phenotypes.items()}
            return names, load_disease_names(place / _MAPPINGS[1])
    raise InputError(
        f"{path.parent}: no folder mapping with {' and '.join(_MAPPINGS)}; copy RareBench's own"
        " there"
    )


def _codes(row: Mapping[str, Any], key: str, path: Path, number: int) -> list[str]:
    value = row.get(key)
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise InputError(f"{path.name} record {number + 1}: '{key}': expected a list of codes")
    return value


def _golden(
    codes: list[str], diseases: DiseaseNames, golden: Golden
) -> tuple[list[str], list[str]]:
    """Return the names that are golden, the usual one of the first disease first, and the usual
    names of the other diseases.

    A further code is the same disease where it has one of its names; the others are recorded beside
    the golden diagnosis, and are golden themselves where any is.
    """
    names_by_code = [names for code in codes if (names := diseases.names.get(code))]
    if not names_by_code:
        return [], []
    same = {plain_name(name) for name in names_by_code[0]}
    golden_names, others = list(names_by_code[0]), []
    for names in names_by_code[1:]:
        alike = bool(same & {plain_name(name) for name in names})
        if alike or golden == "any":
            golden_names += names
        if not alike:
            others.append(names[0])
    return list(dict.fromkeys(golden_names)), list(dict.fromkeys(others))
