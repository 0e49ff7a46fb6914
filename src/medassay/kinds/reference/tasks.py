"""Open answers compared with a reference text by many metrics at once, and the suite's tasks of
that kind.

Each ranks by chrF; every other metric stands beside it with its own interval. In the tasks of the
suite an answer ends at the first blank line, as published; `text`, the one for items of one's own,
takes whole replies. Greedy, no form of a conversation; `_chat` puts prompts into the model's own
form of a conversation.

Source: specification of tasks and prompts, 14.1 and 14.3; text metrics.
"""

from msgspec.structs import replace

from medassay.core.records.task import BLANK_LINE, CHAT_SUFFIX, Task
from medassay.core.scale import Scale

WORDS = ("rouge1", "rouge2", "rougeL", "bleu", "bleu_smoothed", "chrf")
MEANING = ("bertscore", "bleurt", "moverscore")
EXTRA = ("rouge1_unicode", "rouge2_unicode", "rougeL_unicode")


def text_task(
    name: str,
    *,
    template: str = "",
    least: int = 1,
    metrics: tuple[str, ...] = (*WORDS, *MEANING),
) -> Task:
    """Return a task that compares answers with references.

    An answer of fewer than `least` characters is none.
    """
    parser = "paragraph" if least == 1 else f"paragraph_{least}"
    return Task(
        name=name,
        metric="chrf",
        split="test",
        template=template or name,
        readers={form: (parser, "chrf") for form in ("open", "text")},
        plain=True,
        stop=(BLANK_LINE,),
        metrics=metrics,
        likelihood="perplexity",
    )


def in_conversation(task: Task) -> Task:
    """Return the same task with prompts in the model's own form of a conversation."""
    return replace(task, name=task.name + CHAT_SUFFIX, plain=False, chat_template=True)


# Answers to items of one's own may have several paragraphs: these tasks read whole replies.
_OWN_TEXT = replace(
    text_task("text", metrics=(*WORDS, *EXTRA, *MEANING)),
    readers={form: ("text", "chrf") for form in ("open", "text")},
    stop=(),
    parser_before="paragraph",
)
_PLAIN = (
    _OWN_TEXT,
    text_task("aci_bench", template="clinical_note"),
    text_task("careqa_open"),
    text_task("healthbranches_open", metrics=(*WORDS, *MEANING, "bge_m3")),
    text_task("meddialog_qsumm", template="question_summary"),
    text_task("meddialog_raw", template="as_a_doctor"),
    text_task("mediqa_qa2019", template="as_a_doctor"),
    text_task("medtext"),
    text_task("meqsum", template="question_summary"),
    text_task(
        "mimic_repsum", template="impression", least=5, metrics=(*WORDS, *MEANING, "f1_radgraph")
    ),
    text_task("mts_dialog", template="clinical_note", least=5),
    text_task("olaph", least=10),
    text_task("openi", template="impression", least=5, metrics=(*WORDS, *MEANING, "f1_radgraph")),
)
TEXT_TASKS = tuple(task for plain in _PLAIN for task in (plain, in_conversation(plain)))
# HealthBranches by its own protocol: a conversation, no end at a blank line. It asks as a judged
# task with this template does, so that one answer gets both a grade and a likeness.
HEALTHBRANCHES_SIMILARITY = Task(
    name="healthbranches_similarity",
    metric="chrf",
    split="test",
    template="healthbranches_open",
    readers={form: ("text", "chrf") for form in ("open", "text")},
    metrics=(*WORDS, *MEANING, "bge_m3"),
)
# Grades answers by one judge, 1 to 5; those of a finished run as that run read them.
PROMETHEUS_TEXT = Task(
    name="prometheus_text",
    metric="prometheus",
    split="test",
    template="text",
    readers={form: ("text", None) for form in ("open", "text")},
    parser_before="paragraph",
    graders={form: "prometheus" for form in ("open", "text")},
    n_judges=1,
    scale=Scale(),
)
