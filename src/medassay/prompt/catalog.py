"""Every template: one line each; the texts lie in `templates/<name>.<language>.txt`."""

from medassay.core.json_schema import JsonSchema
from medassay.core.records.health_record import DIRECT, THINKING, reply_schema

TEMPLATES: dict[str, tuple[str, ...]] = {
    "as_a_doctor": ("en",),
    "careqa_open": ("en",),
    "choice_letters": ("en", "de", "es"),
    "choice_texts": ("en", "de", "es"),
    "clinical_note": ("en",),
    "closed": ("en", "de", "es"),
    "ddx": ("en", "de", "es"),
    "ddx_described": ("en",),
    "ddx_few_shot": ("en",),
    "ddx_steps": ("en", "de", "es"),
    "health_record": ("en", "de"),
    "health_record_direct": ("en", "de"),
    "document": ("en", "de", "es"),
    "healthbranches_quiz": ("en",),
    "healthbranches_open": ("en",),
    "impression": ("en",),
    "leaderboard": ("en", "de", "es"),
    "medqa": ("en",),
    "medtext": ("en",),
    "mmlu": ("en",),
    "olaph": ("en",),
    "open": ("en", "de", "es"),
    "pubmedqa": ("en",),
    "question_summary": ("en",),
    "rephrase": ("en",),
    "text": ("en", "de", "es"),
}

# Texts that stand beside a template: what is given besides the question, and that there are tools.
PARTS: dict[str, tuple[str, ...]] = {
    "evidence": ("en", "de", "es"),
    "tools": ("en", "de", "es"),
}

# What models that make and review items are asked; each says in which language the item shall be.
MAKING: dict[str, tuple[str, ...]] = {
    "make_choice": ("en",),
    "make_correction": ("en",),
    "make_graph": ("en",),
    "make_mandate": ("en",),
    "make_only_answer": ("en",),
    "make_open_answer_first": ("en",),
    "make_open_direct": ("en",),
    "make_path": ("en",),
    "make_question": ("en",),
    "make_text": ("en",),
    "make_translation": ("en",),
    "make_verdict": ("en",),
}

# JSON Schemas of the replies that templates ask for, for models that can be held to one.
SCHEMAS: dict[str, JsonSchema] = {
    THINKING: reply_schema(monologue=True),
    DIRECT: reply_schema(monologue=False),
}

# Templates that show no options: an answer to them is the text of an option, not its letter.
OPTIONS_AS_TEXTS = frozenset(["choice_texts", "pubmedqa"])
