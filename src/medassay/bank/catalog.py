"""Every bank that medassay can load: one line each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from medassay.bank import (
    careqa,
    demo,
    headqa,
    healthbench,
    healthbranches,
    medcalc,
    medmcqa,
    medqa,
    mmlu,
    pubmedqa,
    rarebench,
    reports,
)
from medassay.core.item import Bank


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A loader, and whether it was checked on the real files or written from their documentation."""

    load: Callable[[Path], Bank]
    checked: Literal["verified on data", "from documentation", "shipped"]
    says: str
    folder: str = ""  # beside the loaders, of banks that are shipped


BANKS: dict[str, Entry] = {
    "careqa_en": Entry(
        load=careqa.load_en, checked="from documentation", says="CareQA closed, English"
    ),
    "careqa_es": Entry(
        load=careqa.load_es, checked="from documentation", says="CareQA closed, Spanish"
    ),
    "demo": Entry(
        load=demo.load,
        checked="shipped",
        says="demo bank, CC0, not clinically validated",
        folder="demo_bank",
    ),
    "demo_ddx": Entry(
        load=demo.load,
        checked="shipped",
        says="12 cases for differential diagnosis, CC0, not clinically validated",
        folder="demo_ddx",
    ),
    "grascco": Entry(
        load=reports.load_grascco,
        checked="verified on data",
        says="GraSCCo, German clinical letters without references",
    ),
    "headqa_en": Entry(
        load=headqa.load_en, checked="verified on data", says="HEAD-QA, English"
    ),
    "headqa_es": Entry(
        load=headqa.load_es, checked="verified on data", says="HEAD-QA, Spanish"
    ),
    "health_record_de": Entry(
        load=demo.load,
        checked="shipped",
        says="15 German reports with health records, 5 also in English, CC0, not clinically validated",
        folder="health_record_de",
    ),
    "healthbench": Entry(
        load=healthbench.load,
        checked="verified on data",
        says="HealthBench, open, criteria with points",
    ),
    "healthbranches": Entry(
        load=healthbranches.load, checked="verified on data", says="HealthBranches quiz"
    ),
    "medcalc": Entry(
        load=medcalc.load, checked="verified on data", says="MedCalc-Bench, numbers in a range"
    ),
    "medmcqa": Entry(load=medmcqa.load, checked="verified on data", says="MedMCQA"),
    "medqa": Entry(
        load=medqa.load, checked="verified on data", says="MedQA, USMLE, four options"
    ),
    "mmlu_medical": Entry(
        load=mmlu.load, checked="verified on data", says="MMLU, six medical subjects"
    ),
    "pubmedqa": Entry(
        load=pubmedqa.load, checked="verified on data", says="PubMedQA, expert-labelled"
    ),
    "rarebench_hms": Entry(
        load=rarebench.load_hms,
        checked="verified on data",
        says="RareBench HMS, differential diagnosis",
    ),
    "rarebench_lirical": Entry(
        load=rarebench.load_lirical,
        checked="from documentation",
        says="RareBench LIRICAL, differential diagnosis",
    ),
    "rarebench_mme": Entry(
        load=rarebench.load_mme,
        checked="from documentation",
        says="RareBench MME, differential diagnosis",
    ),
    "rarebench_pumch_adm": Entry(
        load=rarebench.load_pumch_adm,
        checked="verified on data",
        says="RareBench PUMCH_ADM, differential diagnosis",
    ),
    "rarebench_ramedis": Entry(
        load=rarebench.load_ramedis,
        checked="verified on data",
        says="RareBench RAMEDIS, differential diagnosis",
    ),
    "slm_extraction": Entry(
        load=reports.load_example,
        checked="verified on data",
        says="SLM extraction study, its one example, record converted",
    ),
}
