"""The name of a disease at the beginning of an entry, without label, reason, code and percentage.

An entry is what stands behind a mark ("1."), in a cell or in a JSON text: "**Diagnosis:** Marfan
syndrome (ICD-10: Q87.4), 50 % – fits the age". The name is "Marfan syndrome", its codes are
["ICD-10:Q87.4"].
"""

import re
import unicodedata
from typing import Any

import msgspec

LONGEST_NAME = 160  # characters; a longer one is a sentence
_EDGE = " \t\r\n.,:;*_+'\"`|–—-…。，、；：→"


class ListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One name of a list with its codes; `rank` is None where only its place says it.

    `whole` is false where the reply may have ended inside the name.
    """

    name: str
    rank: int | None = None
    codes: tuple[str, ...] = ()
    whole: bool = True


def is_picture(character: str) -> bool:
    """Return whether a character is an emoji, a star or another sign that no name has."""
    return character >= "\u2600" and unicodedata.category(character) == "So"


def clean_name(name: str) -> str:
    """Return a name without marks and control characters around and in it, at most 160
    characters.
    """
    name = name[: 4 * LONGEST_NAME]
    if not (name.isascii() and name.isprintable()):
        name = "".join(" " if not c.isprintable() or is_picture(c) else c for c in name)
    bare = " ".join(name.split()).strip(_EDGE)
    return bare[:LONGEST_NAME].encode("utf-8", "replace").decode()


_KIND = (
    r"diagnos[ei]s?|diagn[oó]stic[oa]?|differential(?:\s+diagnosis)?|differentialdiagnose|"
    r"verdachtsdiagnose|"
    r"disease|condition|disorder|illness|name|entity|krankheit|erkrankung|enfermedad|nombre|"
    r"maladie|nom|"
    r"疾病(?:名称)?|诊断(?:名称)?|病名|名称|鉴别诊断|d?dx"
)
_DEGREE = (
    r"most\s+(?:likely|probable)|likely|primary|leading|main|principal|top|possible|probable|"
    r"suspected|working|final|"
    r"secondary|alternative|other|second|third|first|fourth|fifth|next|"
    r"wahrscheinlichste|más\s+probable|plus\s+probable|最可能的?|可能的?|首要|主要"
)
_LABEL = re.compile(
    rf"[\s*_'\"`(]{{0,6}}(?:(?:{_DEGREE})\s*)?(?:(?:{_KIND})|(?<=likely)|(?<=probable))"
    r"(?:\s+(?:name|más\s+probable|la\s+plus\s+probable|principal|"
    r"principale))?\s{0,2}(?:[#№]?\s?\d{1,2})?"
    r"\s{0,2}[*_]{0,3}\s{0,2}(?:[:：=]|\s[-–]\s)[\s*_]{0,6}",
    re.IGNORECASE,
)
# "rank: 1" in an entry: the name stands behind another label.
_OTHER_LABEL = re.compile(
    r"[\s*_'\"`]{0,6}(?:rank|rang|rango|position|probability|likelihood|confidence|score|"
    r"wahrscheinlichkeit|probabilidad|"
    r"probabilité|icd\S{0,4}|code|id|排名|概率)\s*[*_]{0,3}\s*[:：=]",
    re.IGNORECASE,
)
_OPENING_WORDS = re.compile(
    r"(?:the\s+)?(?:most\s+likely|leading|primary|main)\s+(?:diagnosis|cause)\s+is\s+(?:an?\s+)?",
    re.IGNORECASE,
)
_NUMBER_BEFORE = re.compile(r"[*_\s]{0,3}\(?\d{1,2}[.)]\s+(?=[^\W\d])")
_BOLD = re.compile(r"(\*\*\*|\*\*|__)(?P<name>.{1,200}?)\1")
_GOES_ON = re.compile(r"\s?[^\W\d_]|,\s")  # behind bold: the name goes on
# What ends a name: a colon before a blank, a mark or the end; a dash between blanks; a clause that
# gives the reason.
_END = re.compile(
    r"\s*:(?=[\s*_'\"`]|$)|\s*：|\s+[-–—−]+\s+|(?<=[\w)）\]】])—+(?=\w)|['\"`]:|\s*\||\t|"
    r";\s+(?=[a-zà-ü])|；|。"
    r"|\s+(?:→|->|=>|⇒)\s+"
    r"|(?<=[^\W\d_]{3})\.\s+(?=[A-ZÄÖÜÀÉÈ¿¡])|(?<=[)\]])\.\s+(?=[A-ZÄÖÜÀÉÈ])"
    r"|,?\s+(?:because|weil|porque|ya\s+que|parce\s+qu|puisqu)|,\s+(?:which|given|since|"
    r"as\s+(?:the|it|they)|considering|characteri[sz]ed\s+by|suggested\s+by|based\s+on|"
    r"due\s+to\s+the\s+presence|da\s|wegen|car\s|dado)\b"
)
# A cheap look before the dear one: no end is without one of these.
_MAY_END = re.compile(r"[:：\-–—−'\"`|\t;；。→=⇒.,]|\s(?:because|weil|porque|ya\s|parce\s|puisqu)")
_BRACKETED = re.compile(r"\s*(?P<o>[(\[（【])(?P<body>[^()\[\]（）【】]{0,200})[)\]）】]")
_CODES = (
    (
        "ORPHA",
        re.compile(
            r"\bORPHA(?:NET|CODE)?(?:[ -]?(?:code|number|nr\.?|no\.?|id))?[\s:#_]*(\d{1,7})\b",
            re.IGNORECASE,
        ),
    ),
    (
        "OMIM",
        re.compile(
            r"(?<![A-Za-z])#?\s?O?MIM(?:\s?(?:number|no\.?|id))?[\s:#]*(\d{6})\b", re.IGNORECASE
        ),
    ),
    ("MONDO", re.compile(r"\bMONDO[\s:_]*(\d{7})\b", re.IGNORECASE)),
    ("SNOMED", re.compile(r"\bSNOMED(?:[ -]?CT)?[\s:#]*(\d{6,18})\b", re.IGNORECASE)),
    (
        "ICD-11",
        re.compile(
            r"\b(?:ICD|CIE|CIM)[ -]?11[\s:#=]*(?:code)?[\s:#]*([0-9A-Z]{4}(?:\.[0-9A-Z]{1,3})?)\b"
        ),
    ),
    (
        "ICD-10",
        re.compile(
            r"\b(?:ICD|CIE|CIM)[ -]?(?:10)?(?:[ -](?:CM|GM|WHO))?(?:["
            r" -]?codes?)?[\s:#=]*([A-Z]\d[0-9A-Z](?:\.[0-9A-Z-]{1,4})?)(?![\w])",
            re.IGNORECASE,
        ),
    ),
)
_BARE_ICD = re.compile(r"\s*([A-TV-Z]\d[0-9AB]\.[0-9A-Z]{1,4})\s*")
_DEGREES = (
    r"(?:very\s+)?(?:high|low|medium|moderate|intermediate|strong|weak)|(?:sehr\s+)?(?:hoch|hohe|"
    r"niedrig|niedrige|gering|geringe|mittel|mittlere)|"
    r"(?:muy\s+)?(?:alta|baja|media|moderada)|(?:très\s+)?(?:élevée?|faible|moyenne|modérée?)|"
    r"(?:极|很|较)?[高中低]"
)
_CHANCE = (
    r"(?:pre-?test\s+)?probability|likelihood|likely|probable|confidence|chance|odds|score|"
    r"certainty|wahrscheinlichkeit|wahrscheinlich|sicherheit|"
    r"probabilidad|probabilité|confiance|confianza|vraisemblance|p|概率|可能性|置信度"
)
_AMOUNT = (
    r"(?:ca\.?|about|approx\.?|around|etwa|circa|aprox\.?|environ|"
    r"[~≈<>≤≥约])?\s*\d{1,3}(?:[.,]\d+)?(?:\s*[-–]\s*\d{1,3})?\s*[%％]"
)
_LIKELIHOOD = re.compile(
    rf"\s*(?:{_AMOUNT}.{{0,40}}|(?:{_CHANCE})\s*[:：=≈~]?\s*(?:{_AMOUNT}|0?[.,]\d+|"
    rf"\d(?:[.,]\d+)?(?:\s?/\s?\d+)?|{_DEGREES})"
    rf"|(?:{_DEGREES})[\s-]*(?:{_CHANCE})|(?:{_DEGREES})|(?:the\s+)?(?:most|more|less|least|very|"
    rf"highly|quite|un)?[\s-]*(?:likely|probable|plausible|possible)"
    r"|(?:am\s+)?(?:sehr\s+)?(?:wahrscheinlich(?:st|ste|sten|er)?|möglich|unwahrscheinlich)|"
    r"(?:más|menos|muy|poco)\s+probable|(?:la\s+)?(?:plus|moins|peu|très)\s+probable"
    r"|0?[.,]\d{1,3}|最可能|可能|(?:可能性|概率)[^,，"
    r"]{0,8}|(?:极|很|较|比较|最|不太)?(?:可能|低|高)(?:性)?(?:极|很|较|最)?[大小高低]?)\s*",
    re.IGNORECASE,
)
_TAIL_AMOUNT = re.compile(
    rf"[\s,:–-]*(?:{_AMOUNT}|(?:{_CHANCE})\s*[:=]\s*(?:{_AMOUNT}|{_DEGREES}|0?[.,]\d+))\s*$",
    re.IGNORECASE,
)


def split_entry(text: str) -> ListEntry | None:
    """Return the name at the beginning of an entry's text, None where none begins there.

    `whole` says that the name was ended by something: a colon, a dash, a reason, the end of bold
    print.

    Examples
    --------
    >>> split_entry("**Name**: Marfan syndrome [ORPHA:558]: fits the age")
    ListEntry(name='Marfan syndrome', rank=None, codes=('ORPHA:558',), whole=True)
    >>> split_entry("Lupus (SLE), 20 %")
    ListEntry(name='Lupus (SLE)', rank=None, codes=(), whole=False)
    """
    rest = text.strip()
    if number := _NUMBER_BEFORE.match(rest):
        rest = rest[number.end() :]
    rest = _without_label(rest)
    if not rest or _OTHER_LABEL.match(rest):
        return None
    if (bold := _BOLD.match(rest)) and not _GOES_ON.match(rest, bold.end()):
        inner = _without_label(bold["name"])
        head, _ = _up_to_end(inner)
        name, codes = without_codes(head)
        if name := clean_name(name):
            tail = _BRACKETED.match(rest, bold.end())
            more = codes_in(tail["body"]) if tail else ()
            return ListEntry(name=name, codes=(*codes, *(c for c in more if c not in codes)))
    head, ended = _up_to_end(rest.strip(" \t*_+'\"`"))
    name, codes = without_codes(head)
    if len(name) > LONGEST_NAME:  # no mark: the name is what stands before the sentence ends
        name, _, behind = name.partition(". ")
        ended = ended or bool(behind)
    name = clean_name(_OPENING_WORDS.sub("", name, count=1) if _OPENING_WORDS.match(name) else name)
    return ListEntry(name=name, codes=codes, whole=ended) if name else None


def _without_label(text: str) -> str:
    for _ in range(2):
        label = _LABEL.match(text)
        if label is None:
            break
        rest = text[label.end() :]
        # "**Name:** X" leaves nothing of the bold, "**Name: X**" its end.
        text = rest.lstrip("*_ ") if not rest.startswith(("**", "__")) else rest
    return text.strip()


def name_label(text: str) -> str:
    """Return the label before a name ("Disease:"), without number and marks; "" where there is
    none.

    Examples
    --------
    >>> name_label("**Disease:** Gout"), name_label("Reason: fits")
    ('disease', '')
    """
    label = _LABEL.match(text)
    return re.sub(r"[^\w ]|\d", "", label[0]).strip().casefold() if label else ""


def _up_to_end(text: str) -> tuple[str, bool]:
    """Return what stands before the first end of a name that is in no bracket, and whether there is
    one.
    """
    sign = _MAY_END.search(text)
    if sign is None:
        return text, False
    for end in _END.finditer(text, len(text[: sign.start()].rstrip())):
        before = text[: end.start()]
        opened = before.count("(") + before.count("[") > before.count(")") + before.count("]")
        behind = text[end.end() :][:LONGEST_NAME]
        if opened and end.start() < LONGEST_NAME and re.search(r"[)\]]", behind):
            continue
        if clean_name(before):
            return before, True
    return text, False


_CITATION = re.compile(r"\s*(?:\[\^?\d{1,3}(?:\s?[,–-]\s?\d{1,3})*\])+")
_LEADING_ICD = re.compile(r"\s*\(?([A-TV-Z]\d[0-9AB]\.[0-9A-Z]{1,4})\)?\s*[:–-]?\s+(?=[^\W\d])")
_DIGIT = re.compile(r"\d")
_MAY_HOLD_CODES = re.compile(r"[(\[（【%％0-9]")


def codes_in(text: str) -> tuple[str, ...]:
    """Return the codes of classifications in a text, as "ICD-10:Q87.4", "ORPHA:558",
    "OMIM:154700".
    """
    if not _DIGIT.search(text):
        return ()
    codes = [
        f"{system}:{match[1].upper()}"
        for system, pattern in _CODES
        for match in pattern.finditer(text)
    ]
    if not codes and (bare := _BARE_ICD.fullmatch(text)):
        return (f"ICD-10:{bare[1].upper()}",)
    return tuple(dict.fromkeys(codes))


def without_codes(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a name without its codes and percentages, and the codes."""
    if not _MAY_HOLD_CODES.search(text):
        return text, ()
    codes: list[str] = []
    if "[" in text:
        text = _CITATION.sub("", text)
    if leading := _LEADING_ICD.match(text):
        codes.append(f"ICD-10:{leading[1]}")
        text = text[leading.end() :]

    def bracket(match: re.Match[str]) -> str:
        parts = []
        for part in re.split(r"[,;，；]", match["body"]):
            if part_codes := codes_in(part):
                codes.extend(part_codes)
            elif not _LIKELIHOOD.fullmatch(part) and not _REASON.match(match["body"]):
                parts.append(part.strip())
        remainder = ", ".join(part for part in parts if part)
        if remainder == match["body"].strip():
            return match[0]
        return f" ({remainder})" if remainder else ""

    text = _BRACKETED.sub(bracket, text)
    if text_codes := codes_in(text):  # "Marfan syndrome ICD-10 Q87.4", without brackets
        codes.extend(text_codes)
        for _, pattern in _CODES:
            text = pattern.sub("", text)
    if _DIGIT.search(text) or ":" in text or "=" in text:
        text = _TAIL_AMOUNT.sub("", text)
    return text, tuple(dict.fromkeys(codes))


_REASON = re.compile(
    r"\s*(?:because|given|since|would|could|can\b|may\b|might|fits?\b|explain\w*|support\w*|"
    r"suggest\w*|consistent|mimics?|due\s+to\s+the|considering|"
    r"although|but\b|if\b|based|matche?s|accounts?|presents?|causes?|usually|typically|often|"
    r"less\b|more\b|most\b|weil|passt|erklärt|wegen|da\s|"
    r"porque|explica\w*|por\s|car\b|explique|évoqu\w*|compatible|因为|符合|由于)(?:.*\s){2}",
    re.IGNORECASE,
)


def entry_of(value: Any) -> tuple[str, tuple[str, ...]]:
    """Return name and codes of a JSON text."""
    entry = split_entry(value) if isinstance(value, str) else None
    return ("", ()) if entry is None else (entry.name, entry.codes)
