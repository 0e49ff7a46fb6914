"""The mark at the beginning of a line: "1.", "a)", "II.", "（3）", "①", "Diagnosis 2:", "-",
"**4.**", "+5." and their like.
"""

import re
from typing import Literal

import msgspec

Family = Literal["plus", "number", "word", "letter", "roman", "bullet", "bare plus"]
_ROMAN = {
    n: at
    for at, n in enumerate(
        [
            "i",
            "ii",
            "iii",
            "iv",
            "v",
            "vi",
            "vii",
            "viii",
            "ix",
            "x",
            "xi",
            "xii",
            "xiii",
            "xiv",
            "xv",
        ],
        1,
    )
}
_CHINESE = {n: at for at, n in enumerate("一二三四五六七八九十", 1)}
_CIRCLED = (0x2460, 0x2474, 0x2488, 0x2776, 0x24F5)  # ① ⑴ ⒈ ❶ ⓵: first of each row of numbers
_ORDINALS = {
    word: at
    for at, words in enumerate(
        (
            "first firstly 1st erstens erste primero primera primer premier première premièrement",
            "second secondly 2nd zweitens zweite segundo segunda deuxième deuxièmement",
            "third thirdly 3rd drittens dritte tercero tercera tercer troisième troisièmement",
            "fourth fourthly 4th viertens vierte cuarto cuarta quatrième quatrièmement",
            "fifth fifthly 5th fünftens fünfte quinto quinta cinquième cinquièmement",
            "sixth 6th sechste sexto sixième",
            "seventh 7th siebte séptimo septième",
        ),
        1,
    )
    for word in words.split()
}
_BULLETS = "-–—•*▪◦●■‣∙·→➤➢►○□✓❖⁃◆♦➔▶"
_WORDS = (
    r"(?:(?:possible|probable|potential|likely|posibles?|mögliche|hypothèse)\s+)?(?:"
    r"(?:differential\s+)?diagnos(?:is|e|en)|diagnóstico|diagnostic|d?dx|rank|rang|rango|platz|"
    r"no\.?|nr\.?|n[º°o]\.?|option|hypothes[ei]s|"
    r"hypothèse|hipótesis|candidate|possibility|condition|disease|number|nummer|número|numéro|"
    r"choice|differential|verdachtsdiagnose|"
    r"krankheit|enfermedad|maladie|cause|top|pick|(?:可能|鉴别)?诊断|排名|第|疾病|可能性)"
)
_MARK = re.compile(
    rf"""
    (?P<indent>[ \t\u3000]*+)
    (?:>[ \t]?)*+[ \t]*+
    (?P<hash>\#{{1,6}}+(?=[ \t*_]|\d{{1,2}}[.):]))?[ \t]*+
    (?P<bullet>[{_BULLETS}](?=[ \t])[ \t]+(?:\[[ xX]\][ \t]+)?)?
    (?P<open>[*_'"`(\[（【〔〖\#]{{0,5}})[ \t]?
    (?:
      (?P<plus>\+)[ \t*_]{{0,4}}(?P<pn>\d{{1,2}})(?!\d)['"`*_]{{0,3}}[.):]?
    | (?P<n>\d{{1,2}})(?:\ufe0f?\u20e3|(?P<ord>[ºª°]|er|ère|re|st|nd|rd|th|e)(?=[.):\s]))?
      (?P<close>[*_'"`]{{0,3}}(?:[.．)\]）】〕〗]{{1,2}}[ºª°]?[-:]?(?!\d)|[ \t]?[:：](?!\d)
      |、|/(?=[ \t])|\t|[ \t]{{1,2}}[-–—](?=[ \t])|[ \t]\|(?=[ \t]))
      |(?<=\u20e3)|(?<=[ºª°])(?=\s))
    | (?P<circled>[\u2460-\u2473\u2474-\u2487\u2488-\u249b\u2776-\u277f\u24f5-\u24fe])[.、:]?
    | (?P<chinese>[一二三四五六七八九十])(?:[、.．)）:：】])
    | (?P<word>{_WORDS})[ \t]{{0,2}}(?:[\#№][ \t]?|n[º°o]\.?[ \t]?)?
      (?P<wn>\d{{1,2}}|[一二三四五]|[a-j]\b|[ivx]{{1,4}}\b)[位名]?[ \t]?[)\]]?
      (?P<wclose>[*_]{{0,3}}[ \t]?[:.)：、]|[ \t]+[-–—](?=[ \t])|[*_]{{2}}|[ \t]*$)
    | (?P<roman>[ivx]{{1,4}})(?P<rclose>[*_]{{0,3}}[.)\]:]{{1,2}})(?=[ \t*_]|$)
    | (?P<ordinal>[^\W\d_]{{3,16}}|\d[a-z]{{2}})
      (?P<oclose>[*_]{{0,3}}(?:\s+(?:diagnos\w+|choice))?[:,)])(?=[ \t*_])
    | (?P<letter>[a-z])(?P<lclose>[*_]{{0,3}}[.)\]:]{{1,2}})(?=[ \t*_]|$)
    | (?P<bareplus>\+)[ \t*_'"`]{{0,5}}(?=[^\W\d])
    )
    (?P<late>[*_]{{0,3}}[ \t]{{0,3}}\+(?!\d))?
    """,
    re.VERBOSE,
)
_BULLET = re.compile(
    rf"[ \t\u3000]*+(?:>[ \t]?)*+[ \t]*+[{_BULLETS}](?:[ \t]+(?:\[[ xX]\]["
    r" \t]+)?|(?<=[•▪●◦■➤►])(?=\S))(?P<bare>\S)"
)
_BARE_NUMBER = re.compile(r"[ \t]*(?P<n>\d{1,2})[ \t]{1,3}(?=[^\W\d_])")
_HASHED = re.compile(r"[ \t]*(?:[-*•][ \t]+)?[*_]{0,3}#(?P<n>\d{1,2})(?!\d)[ \t:.)*_-]+")


class Mark(msgspec.Struct, frozen=True):
    """A mark: its family and value (0 for bullets), how far it is indented, where the text behind
    it begins.

    `roman` is the value as a roman number where a letter may be one ("I.", "c)"); `style` tells
    apart marks of one family that belong to different lists ("1." and "(1)").
    """

    family: Family
    value: int
    indent: int
    end: int
    roman: int = 0
    style: str = ""


def mark_of(line: str) -> Mark | None:
    """Return the mark at the beginning of a line, None for a line without one."""
    # In small letters, which `re` tells apart many times faster than with IGNORECASE.
    match = _MARK.match(_small(line))
    if match is not None and (mark := _numbered(line, match)) is not None:
        return mark
    if line.lstrip()[:1].isalpha():  # a plain line; what follows begins with a sign or a digit
        return None
    indent = _indent(line)
    if hashed := _HASHED.match(line):
        return Mark("number", int(hashed["n"]), indent, hashed.end(), style="#")
    if bullet := _BULLET.match(line):
        return Mark("bullet", 0, indent, bullet.start("bare"), style=line.lstrip(" \t\u3000>")[:1])
    if bare := _BARE_NUMBER.match(line):
        return Mark("number", int(bare["n"]), indent, bare.end(), style="bare")
    return None


def _small(line: str) -> str:
    """Return a line in small letters, of the same length."""
    small = line.lower()
    return small if len(small) == len(line) else "".join(c.lower()[:1] for c in line)


def _numbered(line: str, match: re.Match[str]) -> Mark | None:
    """Return the mark that was matched, None where it is none after all: a word that is no ordinal,
    a letter group that is no number.
    """
    indent, end = _indent(match[0]), match.end()
    hashes = "#" * len(match["hash"] or "")
    if match["plus"] or match["n"]:
        plus = bool(match["plus"] or match["late"])
        value = int(match["pn"] or match["n"])
        return Mark("plus" if plus else "number", value, indent, end, style="" if plus else hashes)
    if match["circled"]:
        code = ord(match["circled"])
        first = max(start for start in _CIRCLED if start <= code)
        return Mark("number", code - first + 1, indent, end, style="circled")
    if match["chinese"]:
        return Mark("number", _CHINESE[match["chinese"]], indent, end, style="chinese")
    if match["word"] or match["ordinal"]:
        return _worded(match, indent)
    if match["bareplus"]:
        return Mark("bare plus", 0, indent, end)
    group = "roman" if match["roman"] else "letter"
    return _lettered(line[match.start(group) : match.end(group)], indent, end)


def _worded(match: re.Match[str], indent: int) -> Mark | None:
    if match["word"]:
        if match["word"] == "top" and not match.string[match.end() :].strip(" *_:#"):
            return None  # "Top 5" is a heading
        value = _word_value(match["wn"])
        return Mark("word", value, indent, match.end(), style=match["word"])
    value = _ORDINALS.get(match["ordinal"], 0)
    return Mark("word", value, indent, match.end(), style="ordinal") if value else None


def _lettered(text: str, indent: int, end: int) -> Mark | None:
    """Return the mark of a letter or a roman number; one letter may be either."""
    letter = ord(text.casefold()) - 96 if len(text) == 1 else 0
    roman = _ROMAN.get(text.casefold(), 0) if text in (text.upper(), text.lower()) else 0
    if not roman and not letter:
        return None
    family: Family = "letter" if letter else "roman"
    return Mark(family, letter or roman, indent, end, roman=roman, style=_case(text))


def _case(text: str) -> str:
    return "upper" if text.isupper() else "lower"


def _word_value(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if text in _CHINESE:
        return _CHINESE[text]
    roman = _ROMAN.get(text.casefold(), 0)
    return roman or (ord(text.casefold()) - 96 if len(text) == 1 else 0)


def _indent(line: str) -> int:
    """Return how far a line is indented, in blanks; a tab counts as four."""
    width = 0
    for character in line:
        if character in " \u3000":
            width += 1
        elif character == "\t":
            width += 4
        else:
            break
    return width
