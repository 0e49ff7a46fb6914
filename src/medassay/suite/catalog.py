"""Every benchmark of a suite, and every suite: one line each, as data.

Source: specification of tasks and prompts, 14.1.
"""

from typing import Any

from medassay.suite.benchmark import Benchmark

QUESTIONS = "open-ended medical questions"
NOTES = "clinical note-taking"
CHOICE = "multiple choice questions"
CLASSES = "medical text classification"
SUMMARY = "summarization"
ENTAILMENT = "question entailment"


def _closed(
    title: str, bank: str, folder: str = "", *, group: str = CHOICE, **more: Any
) -> Benchmark:
    return Benchmark(title=title, group=group, bank=bank, folder=folder or bank, **more)


def _open(
    title: str, task: str, folder: str = "", *, group: str = QUESTIONS, **more: Any
) -> Benchmark:
    return _closed(title, task, folder, group=group, task=task, **more)


BENCHMARKS: dict[str, Benchmark] = {
    "aci_bench": _open("ACI-Bench", "aci_bench", group=NOTES),
    "biored": _closed("BioRED", "biored", group="relation extraction"),
    "careqa_en": _closed("CareQA (en)", "careqa_en"),
    "careqa_es": _closed("CareQA (es)", "careqa_es"),
    "careqa_open": _open("CareQA-Open", "careqa_open"),
    "headqa_en": _closed("HEAD-QA (en)", "headqa_en", "head_qa", stands_in_for="careqa_en"),
    "headqa_es": _closed("HEAD-QA (es)", "headqa_es", "head_qa", stands_in_for="careqa_es"),
    "healthbranches": _closed(
        "HealthBranches quiz",
        "healthbranches",
        template="healthbranches_quiz",
        reply_template="healthbranches_quiz",
    ),
    "healthbranches_open": _open("HealthBranches open", "healthbranches_open", "healthbranches"),
    "med_prescriptions_easy": _closed(
        "Prescriptions (easy)", "med_prescriptions_easy", "prescriptions", group=CLASSES
    ),
    "med_prescriptions_hard": _closed(
        "Prescriptions (hard)", "med_prescriptions_hard", "prescriptions", group=CLASSES
    ),
    "med_text_classification": _closed(
        "Med Text Classification", "medical_abstracts", group=CLASSES
    ),
    "med_transcriptions": _closed(
        "Med Transcriptions", "mtsamples", group=CLASSES, template="choice_texts"
    ),
    "meddialog_qsumm": _open("MedDialog Qsumm", "meddialog_qsumm", group=ENTAILMENT),
    "meddialog_raw": _open("MedDialog Raw", "meddialog_raw"),
    "mediqa_qa2019": _open("MEDIQA2019", "mediqa_qa2019", "mediqa2019_qa"),
    "medmcqa": _closed("MedMCQA", "medmcqa"),
    "medqa": _closed("MedQA", "medqa", template="medqa"),
    "medtext": _open("MedText", "medtext", group="diagnosis and treatment recommendations"),
    "meqsum": _open("MeQSum", "meqsum", group=ENTAILMENT, stands_in_for="meddialog_qsumm"),
    "mimic_repsum": _open("MIMIC-III", "mimic_repsum", group=SUMMARY),
    "mmlu_medical": _closed("MMLU", "mmlu_medical", template="mmlu"),
    "mts_dialog": _open("MTS-Dialog", "mts_dialog", group=NOTES),
    "olaph": _open("OLAPH", "olaph", "olaph_medlfqa", group="medical factuality", relaxed=True),
    "openi": _open(
        "Open-i", "openi", "openi_radiology", group=SUMMARY, stands_in_for="mimic_repsum"
    ),
    "pubmedqa": _closed("PubMedQA", "pubmedqa", template="pubmedqa"),
}

MULTIMEDQA = ("medmcqa", "medqa", "mmlu_medical", "pubmedqa")
SUITES: dict[str, tuple[str, ...]] = {
    "careqa_suite_closed": (
        *("careqa_en", "careqa_es", *MULTIMEDQA, "med_prescriptions_easy"),
        *("med_prescriptions_hard", "med_text_classification", "med_transcriptions", "biored"),
    ),
    "careqa_suite_open": (
        *("careqa_open", "meddialog_raw", "mediqa_qa2019", "mts_dialog", "aci_bench"),
        *("olaph", "medtext", "meddialog_qsumm", "mimic_repsum"),
    ),
    "healthbranches": ("healthbranches", "healthbranches_open"),
    "multimedqa": MULTIMEDQA,
}
# Suites whose accuracies are also told as one mean, each benchmark by its number of items.
WEIGHTED = ("multimedqa",)
# The same questions in two languages; the first minus the second is told over the items that both
# have.
LANGUAGES = (("careqa_en", "careqa_es"), ("headqa_en", "headqa_es"))
