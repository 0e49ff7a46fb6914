"""Every bank that medassay can load: one line each."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal

import msgspec

from medassay.bank import reports
from medassay.bank.loaders import (
    aci_bench,
    biored,
    careqa,
    demo,
    headqa,
    healthbench,
    healthbranches,
    medcalc,
    meddialog,
    medical_abstracts,
    mediqa,
    medmcqa,
    medqa,
    medtext,
    meqsum,
    mmlu,
    mts_dialog,
    mtsamples,
    olaph,
    prescriptions,
    pubmedqa,
    radiology,
    rarebench,
)
from medassay.core.records.item import Bank

Checked = Literal["verified on data", "from documentation", "shipped"]
DATA: Final = "verified on data"
DOCS: Final = "from documentation"
SHIPPED: Final = "shipped"


class BankEntry(msgspec.Struct, frozen=True):
    """A loader, and whether it was checked on the real files or written from their documentation.

    `golden` says that its cases may have several recorded diseases: the loader then takes which of
    them are golden.
    """

    load: Callable[..., Bank]
    checked: Checked
    says: str
    folder: str = ""  # beside the loaders, of banks that are shipped
    golden: bool = False


def _rarebench(name: str, checked: Checked) -> BankEntry:
    load = partial(rarebench.load, name=name)
    return BankEntry(load, checked, f"RareBench {name}, differential diagnosis", golden=True)


BANKS: dict[str, BankEntry] = {
    "aci_bench": BankEntry(aci_bench.load, DATA, "ACI-Bench, dialogue to clinical note"),
    "biored": BankEntry(biored.load, DATA, "BioRED, type of relation, own definition"),
    "careqa_en": BankEntry(careqa.load_en, DOCS, "CareQA closed, English"),
    "careqa_es": BankEntry(careqa.load_es, DOCS, "CareQA closed, Spanish"),
    "careqa_open": BankEntry(careqa.load_open, DOCS, "CareQA-Open, short answers"),
    "demo": BankEntry(demo.load, SHIPPED, "demo bank, CC0, not clinically validated", "demo_bank"),
    "demo_ddx": BankEntry(
        demo.load,
        SHIPPED,
        "12 cases for differential diagnosis, CC0, not clinically validated",
        "demo_ddx",
    ),
    "demo_paths": BankEntry(
        demo.load,
        SHIPPED,
        "20 questions with decision paths and source texts, as quiz and open, CC0, not"
        " clinically validated",
        "demo_paths",
    ),
    "grascco": BankEntry(
        reports.load_grascco, DATA, "GraSCCo, German clinical letters without references"
    ),
    "headqa_en": BankEntry(headqa.load_en, DATA, "HEAD-QA, English"),
    "headqa_es": BankEntry(headqa.load_es, DATA, "HEAD-QA, Spanish"),
    "health_record_de": BankEntry(
        demo.load,
        SHIPPED,
        "15 German reports with health records, 5 also in English, CC0, not clinically validated",
        "health_record_de",
    ),
    "healthbench": BankEntry(healthbench.load, DATA, "HealthBench, open, criteria with points"),
    "healthbranches": BankEntry(healthbranches.load, DATA, "HealthBranches quiz"),
    "healthbranches_open": BankEntry(
        healthbranches.load_open, DATA, "HealthBranches, open answers"
    ),
    "med_prescriptions_easy": BankEntry(
        prescriptions.load_easy, DOCS, "prescriptions, distractors of other patients"
    ),
    "med_prescriptions_hard": BankEntry(
        prescriptions.load_hard, DOCS, "prescriptions, same medicines taken otherwise"
    ),
    "medcalc": BankEntry(medcalc.load, DATA, "MedCalc-Bench, numbers in a range"),
    "meddialog_qsumm": BankEntry(meddialog.load_qsumm, DOCS, "MedDialog, summary of the question"),
    "meddialog_raw": BankEntry(meddialog.load_raw, DOCS, "MedDialog, first reply of the doctor"),
    "medical_abstracts": BankEntry(medical_abstracts.load, DATA, "Medical Abstracts, five classes"),
    "mediqa_qa2019": BankEntry(
        mediqa.load, DATA, "MEDIQA 2019, reference ranked first by the system"
    ),
    "mediqa_qa2019_best": BankEntry(
        mediqa.load_best, DATA, "MEDIQA 2019, reference ranked first by people"
    ),
    "medmcqa": BankEntry(medmcqa.load, DATA, "MedMCQA"),
    "medqa": BankEntry(medqa.load, DATA, "MedQA, USMLE, four options"),
    "medtext": BankEntry(medtext.load, DOCS, "MedText, diagnosis and treatment"),
    "meqsum": BankEntry(meqsum.load, DATA, "MeQSum, summary of the question"),
    "mimic_repsum": BankEntry(
        radiology.load_mimic, DOCS, "MIMIC-III, findings to impression; needs credentials"
    ),
    "mmlu_medical": BankEntry(mmlu.load, DATA, "MMLU, six medical subjects"),
    "mts_dialog": BankEntry(mts_dialog.load, DATA, "MTS-Dialog, dialogue to note section"),
    "mtsamples": BankEntry(mtsamples.load, DATA, "MTSamples, forty specialties"),
    "olaph": BankEntry(olaph.load, DATA, "OLAPH (MedLFQA), must-have and nice-to-have statements"),
    "openi": BankEntry(radiology.load_openi, DATA, "Open-i, findings to impression"),
    "pubmedqa": BankEntry(pubmedqa.load, DATA, "PubMedQA, expert-labelled"),
    "rarebench_hms": _rarebench("HMS", DATA),
    "rarebench_lirical": _rarebench("LIRICAL", DOCS),
    "rarebench_mme": _rarebench("MME", DOCS),
    "rarebench_pumch_adm": _rarebench("PUMCH_ADM", DATA),
    "rarebench_ramedis": _rarebench("RAMEDIS", DATA),
    "slm_extraction": BankEntry(
        reports.load_example, DATA, "SLM extraction study, its one example, record converted"
    ),
}
