"""Reading of model replies: what every parser does first.

Replies are hostile: tags are found by one linear scan, since the obvious pattern
`<think>.*?</think>` is quadratic on a long run of opening tags.
"""

import re
import unicodedata

THOUGHTS_REVISION = 1

_TAG = re.compile(r"<(/?)(think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
# Thoughts under other marks: those of Magistral and Kimi; gpt-oss writes them into a channel of its
# own.
_OTHER_TAGS = (
    ("[THINK]", "<think>"),
    ("[/THINK]", "</think>"),
    ("◁think▷", "<think>"),
    ("◁/think▷", "</think>"),
)
_CHANNEL, _ANALYSIS = "<|channel|>", "<|channel|>analysis"
_FINAL = re.compile(r"<\|channel\|>\s*final\b[^<]{0,80}<\|message\|>")
_CONTROL = re.compile(r"<\|(?:end|return|start|im_end)\|>")
_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|[{}]")


def strip_thoughts(text: str) -> tuple[str, bool]:
    """Return `text` without its thoughts, and whether a thought was left unfinished.

    Closed blocks are deleted; then text up to the last orphan closing tag; then everything from an
    opening tag that is never closed. Linear in the length of `text`.

    Examples
    --------
    >>> strip_thoughts("<think>A?</think> C")
    (' C', False)
    >>> strip_thoughts("so A.</think>B")
    ('B', False)
    >>> strip_thoughts("<think>still")
    ('', True)
    """
    if "<" not in text and "[" not in text and "◁" not in text:
        return text, False
    for other, plain_tag in _OTHER_TAGS:
        text = text.replace(other, plain_tag)
    if _CHANNEL in text:
        text, unfinished = _last_channel(text)
        if unfinished:
            return "", True
    text = _without_closed_blocks(text)
    opening: int | None = None
    start = 0
    for tag in _TAG.finditer(text):
        if tag[1]:
            start, opening = tag.end(), None
        elif opening is None:
            opening = tag.start()
    return text[start:opening], opening is not None


def _last_channel(text: str) -> tuple[str, bool]:
    """Return what stands in the last channel that is meant for the reader, and whether there is
    none.
    """
    finals = list(_FINAL.finditer(text))
    if not finals:
        return text, _ANALYSIS in text
    return _CONTROL.split(text[finals[-1].end() :], maxsplit=1)[0], False


def _without_closed_blocks(text: str) -> str:
    tags = list(_TAG.finditer(text))
    partner: dict[int, int] = {}  # opening tag -> the next closing tag of its name
    latest: dict[str, int] = {}
    for at in range(len(tags) - 1, -1, -1):
        name = tags[at][2].lower()
        if tags[at][1]:
            latest[name] = at
        elif name in latest:
            partner[at] = latest[name]
    pieces: list[str] = []
    position = at = 0
    while at < len(tags):
        if at in partner:
            pieces.append(text[position : tags[at].start()])
            at = partner[at]
            position = tags[at].end()
        at += 1
    pieces.append(text[position:])
    return "".join(pieces)


def boxed(text: str) -> tuple[str | None, str]:
    r"""Return the content of the last `\boxed{}` or `\fbox{}`, and the text without its boxes.

    Braces may nest; a box that is never closed is none. Linear in the length of `text`.

    Examples
    --------
    >>> boxed("so \\boxed{\\text{D}} it is")
    ('\\text{D}', 'so  it is')
    """
    if "box" not in text:
        return None, text
    spans: list[tuple[int, int, int]] = []  # start of the box, start and end of its content
    stack: list[tuple[int, int] | None] = []
    for token in _BRACE.finditer(text):
        if token[0] != "}":
            stack.append((token.start(), token.end()) if len(token[0]) > 1 else None)
        elif stack and (box := stack.pop()) is not None:
            while spans and spans[-1][0] > box[0]:
                spans.pop()
            spans.append((*box, token.start()))
    if not spans:
        return None, text
    pieces: list[str] = []
    position = 0
    for start, _, end in spans:
        pieces.append(text[position:start])
        position = end + 1
    pieces.append(text[position:])
    return text[spans[-1][1] : spans[-1][2]], "".join(pieces)


def plain(text: str) -> str:
    """Return text by which quotes are compared: NFKC, runs of blanks as one space, no format marks.

    Examples
    --------
    >>> plain("5\u202fmg  once\u200b daily")
    '5 mg once daily'
    """
    visible = "".join(
        c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf"
    )
    return " ".join(visible.split())
