"""HTML, LaTeX and links as lines, and the lists that only their tags tell."""

import re
from collections.abc import Iterator

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import split_entry
from medassay.kinds.diagnoses.ranked_list.subject import Subject, subject_of

_LIST_ITEM = re.compile(
    r"<li[^<>]{0,80}>(.{0,400}?)(?=</li>|<li|</[ou]l>|$)", re.IGNORECASE | re.DOTALL
)
_HTML_LIST = re.compile(
    r"(?P<head>(?:^|[>\n])[^<>\n]{0,200}\s*(?:</[^<>]{1,20}>\s*){0,3})<(?P<tag>ol|"
    r"ul)\b[^<>]{0,80}>(?P<body>.*?)(?P<end></(?P=tag)>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_NAME_TAG = re.compile(
    r"<(?P<tag>(?:diagnosis|disease|condition|name|diagnose|"
    r"diagnóstico)(?:_?\d{1,2})?)(?:\s[^<>]{0,80})?>(?P<body>[^<>]{2,200})</(?P=tag)>",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"<[^<>]{1,80}>")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\((?:https?:|www\.|#|/|mailto:)[^()\s]{0,300}\)")
_CONTROL = re.compile(
    r"<\|[a-zA-Z_0-9]{1,30}\|>|</?s>|<(?:start|end)_of_turn>"
)  # of chat templates, handed on
_ESCAPED = re.compile(r"\\([.\-*_#()\[\]+])")
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|br|h[1-6]|summary|details|section|article|ul|ol|table|thead|tbody|tr|span|em|i|"
    r"u)\b[^<>]{0,80}>",
    re.IGNORECASE,
)
_BOLD_TAG = re.compile(r"</?(?:b|strong)>", re.IGNORECASE)
_CELL_TAGS = re.compile(r"</t[dh]>[ \t]*<t[dh]\b[^<>]{0,80}>", re.IGNORECASE)
_ROW_TAGS = re.compile(r"\s*</?tr\b[^<>]{0,80}>(?:\s*</?tr\b[^<>]{0,80}>)*\s*", re.IGNORECASE)
_ROW_ENDS = re.compile(r"<t[dh]\b[^<>]{0,80}>|</t[dh]>", re.IGNORECASE)


def plain_lines(text: str) -> str:
    r"""Return a reply with other ways of writing lines as lines.

    HTML, LaTeX, links, "\\n" written out, marks with a backslash.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "|>" in text or "</s>" in text or "_of_turn>" in text:
        text = _CONTROL.sub("\n", text)
    if "\\" in text:
        text = text.replace("\\n", "\n")
        if "\\item" in text:
            text = re.sub(r"\\(?:begin|end)\{[^{}]{0,40}\}", "", text)
            text = re.sub(r"\\textbf\{([^{}]{0,200})\}", r"**\1**", text)
            text = re.sub(r"\\item\s*(?:\[[^\[\]]{0,40}\])?\s*", "- ", text)
        text = _ESCAPED.sub(r"\1", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "</" in text or "<br" in text:
        text = _BOLD_TAG.sub("**", text)
        text = _ROW_TAGS.sub("\n", text)
        text = _ROW_ENDS.sub("|", _CELL_TAGS.sub(" | ", text))
        text = _BLOCK_TAG.sub("\n", text)
    return text


def html_lists(text: str, *, cut: bool) -> Iterator[CandidateList]:
    """Yield the lists of HTML, each with the heading above it."""
    for part in _HTML_LIST.finditer(text):
        items = list(_LIST_ITEM.finditer(part["body"]))
        list_entries = [split_entry(_html_name(item[1])) for item in items]
        entries = [entry for entry in list_entries if entry is not None]
        cut_off = cut and not part["end"] and bool(entries) and not entries[-1].whole
        if cut_off:
            entries.pop()
        if entries:
            yield CandidateList(
                entries=tuple(entries),
                subject=subject_of(_ANY_TAG.sub(" ", part["head"]).strip(" >\n")),
                form="html",
                start=text.count("\n", 0, part.start()),
                strength=5,
                cut_off=cut_off,
            )


def _html_name(item: str) -> str:
    bold = re.match(r"\s*<(?:b|strong)>(.{1,200}?)</(?:b|strong)>", item, re.IGNORECASE | re.DOTALL)
    if bold:
        item = f"**{bold[1].strip()}**{item[bold.end() :]}"
    return _ANY_TAG.sub(" ", re.split(r"<br\s*/?>|<[ou]l", item, maxsplit=1)[0])


def tagged_names(text: str) -> Iterator[CandidateList]:
    """Yield the names that stand in tags of their own."""
    entries = [(tag.start(), split_entry(tag["body"].strip())) for tag in _NAME_TAG.finditer(text)]
    named = [(at, entry) for at, entry in entries if entry is not None]
    if len(named) > 1:
        start = text.count("\n", 0, named[0][0])
        yield CandidateList(
            entries=tuple(entry for _, entry in named),
            subject=Subject.DIAGNOSES,
            form="tags",
            start=start,
            strength=5,
        )
