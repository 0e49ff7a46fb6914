"""Every bank that medassay can load: one line each."""

from collections.abc import Callable
from typing import Literal

import msgspec

from medassay.bank import reports
from medassay.bank.loaders import (
    aci_bench,
    biored,
    careqa,
    careqa_open,
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


class BankEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A loader, and whether it was checked on the real files or written from their documentation.

    `golden` says that its cases may have several recorded diseases: the loader then takes which of
    them are golden.
    """

    load: Callable[..., Bank]
    checked: Literal["verified on data", "from documentation", "shipped"]
    says: str
    folder: str = ""  # beside the loaders, of banks that are shipped
    golden: bool = False


BANKS: dict[str, BankEntry] = {
    "aci_bench": BankEntry(
        load=aci_bench.load,
        checked="verified on data",
        says="ACI-Bench, dialogue to clinical note",
    ),
    "biored": BankEntry(
        load=biored.load,
        checked="verified on data",
        says="BioRED, type of relation, own definition",
    ),
    "careqa_en": BankEntry(
        load=careqa.load_en, checked="from documentation", says="CareQA closed, English"
    ),
    "careqa_es": BankEntry(
        load=careqa.load_es, checked="from documentation", says="CareQA closed, Spanish"
    ),
    "careqa_open": BankEntry(
        load=careqa_open.load, checked="from documentation", says="CareQA-Open, short answers"
    ),
    "demo": BankEntry(
        load=demo.load,
        checked="shipped",
        says="demo bank, CC0, not clinically validated",
        folder="demo_bank",
    ),
    "demo_ddx": BankEntry(
        load=demo.load,
        checked="shipped",
        says="12 cases for differential diagnosis, CC0, not clinically validated",
        folder="demo_ddx",
    ),
    "demo_paths": BankEntry(
        load=demo.load,
        checked="shipped",
        says=(
            "20 questions with decision paths and source texts, as quiz and open, CC0, not"
            " clinically validated"
        ),
        folder="demo_paths",
    ),
    "grascco": BankEntry(
        load=reports.load_grascco,
        checked="verified on data",
        says="GraSCCo, German clinical letters without references",
    ),
    "headqa_en": BankEntry(
        load=headqa.load_en, checked="verified on data", says="HEAD-QA, English"
    ),
    "headqa_es": BankEntry(
        load=headqa.load_es, checked="verified on data", says="HEAD-QA, Spanish"
    ),
    "health_record_de": BankEntry(
        load=demo.load,
        checked="shipped",
        says=(
            "15 German reports with health records, 5 also in English, CC0, not clinically"
            " validated"
        ),
        folder="health_record_de",
    ),
    "healthbench": BankEntry(
        load=healthbench.load,
        checked="verified on data",
        says="HealthBench, open, criteria with points",
    ),
    "healthbranches": BankEntry(
        load=healthbranches.load, checked="verified on data", says="HealthBranches quiz"
    ),
    "healthbranches_open": BankEntry(
        load=healthbranches.load_open,
        checked="verified on data",
        says="HealthBranches, open answers",
    ),
    "med_prescriptions_easy": BankEntry(
        load=prescriptions.load_easy,
        checked="from documentation",
        says="prescriptions, distractors of other patients",
    ),
    "med_prescriptions_hard": BankEntry(
        load=prescriptions.load_hard,
        checked="from documentation",
        says="prescriptions, same medicines taken otherwise",
    ),
    "medcalc": BankEntry(
        load=medcalc.load, checked="verified on data", says="MedCalc-Bench, numbers in a range"
    ),
    "meddialog_qsumm": BankEntry(
        load=meddialog.load_qsumm,
        checked="from documentation",
        says="MedDialog, summary of the question",
    ),
    "meddialog_raw": BankEntry(
        load=meddialog.load_raw,
        checked="from documentation",
        says="MedDialog, first reply of the doctor",
    ),
    "medical_abstracts": BankEntry(
        load=medical_abstracts.load,
        checked="verified on data",
        says="Medical Abstracts, five classes",
    ),
    "mediqa_qa2019": BankEntry(
        load=mediqa.load,
        checked="verified on data",
        says="MEDIQA 2019, reference ranked first by the system",
    ),
    "mediqa_qa2019_best": BankEntry(
        load=mediqa.load_best,
        checked="verified on data",
        says="MEDIQA 2019, reference ranked first by people",
    ),
    "medmcqa": BankEntry(load=medmcqa.load, checked="verified on data", says="MedMCQA"),
    "medqa": BankEntry(
        load=medqa.load, checked="verified on data", says="MedQA, USMLE, four options"
    ),
    "medtext": BankEntry(
        load=medtext.load, checked="from documentation", says="MedText, diagnosis and treatment"
    ),
    "meqsum": BankEntry(
        load=meqsum.load, checked="verified on data", says="MeQSum, summary of the question"
    ),
    "mimic_repsum": BankEntry(
        load=radiology.load_mimic,
        checked="from documentation",
        says="MIMIC-III, findings to impression; needs credentials",
    ),
    "mmlu_medical": BankEntry(
        load=mmlu.load, checked="verified on data", says="MMLU, six medical subjects"
    ),
    "mts_dialog": BankEntry(
        load=mts_dialog.load,
        checked="verified on data",
        says="MTS-Dialog, dialogue to note section",
    ),
    "mtsamples": BankEntry(
        load=mtsamples.load, checked="verified on data", says="MTSamples, forty specialties"
    ),
    "olaph": BankEntry(
        load=olaph.load,
        checked="verified on data",
        says="OLAPH (MedLFQA), must-have and nice-to-have statements",
    ),
    "openi": BankEntry(
        load=radiology.load_openi,
        checked="verified on data",
        says="Open-i, findings to impression",
    ),
    "pubmedqa": BankEntry(
        load=pubmedqa.load, checked="verified on data", says="PubMedQA, expert-labelled"
    ),
    "rarebench_hms": BankEntry(
        load=rarebench.load_hms,
        golden=True,
        checked="verified on data",
        says="RareBench HMS, differential diagnosis",
    ),
    "rarebench_lirical": BankEntry(
        load=rarebench.load_lirical,
        golden=True,
        checked="from documentation",
        says="RareBench LIRICAL, differential diagnosis",
    ),
    "rarebench_mme": BankEntry(
        load=rarebench.load_mme,
        golden=True,
        checked="from documentation",
        says="RareBench MME, differential diagnosis",
    ),
    "rarebench_pumch_adm": BankEntry(
        load=rarebench.load_pumch_adm,
        golden=True,
        checked="verified on data",
        says="RareBench PUMCH_ADM, differential diagnosis",
    ),
    "rarebench_ramedis": BankEntry(
        load=rarebench.load_ramedis,
        golden=True,
        checked="verified on data",
        says="RareBench RAMEDIS, differential diagnosis",
    ),
    "slm_extraction": BankEntry(
        load=reports.load_example,
        checked="verified on data",
        says="SLM extraction study, its one example, record converted",
    ),
}
