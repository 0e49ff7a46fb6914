"""A multiple-choice reply to one letter, or None and why.

`standard` is right on real replies; `paper` reproduces the published HealthBranches rules for
comparison with published accuracies. The patterns are normative; golden strings in `tests/golden`.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Literal

from medassay.core.reply.thoughts import boxed, strip_thoughts

_OPTION_WORD = "option|choice|letter|opción|opcion|alternativa|letra|inciso|buchstabe"
_LINKS = (
    r"(?:\s+(?:is|are|would\s+be|should\s+be|must\s+be|ist|lautet|wäre|es|sería|seria|correcta|"
    r"correct"
    r"|richtige?))*\s*(?:[:=\-–—]|->|→)?\s*[\"'“„]?(?:the\s+|la\s+|die\s+)?"
    rf"(?:(?:{_OPTION_WORD})|answer|respuesta|antwort)?\s*(?:correcta\s*)?(?:[:=])?\s*[\"'“„]?)"
)
_CHOSEN = (
    r"(?:[\(\[]\s*([{both}])\s*[\)\]]|([{upper}])(?![\w'’])"
    r"|([{lower}])(?!\w)(?=[\s]*(?:[)\].,;:!\"”]|$)))"
)
_STRONG = (
    r"(?i:\b(?:answers?|antwort(?:option|möglichkeit)?|lösung|richtig\s+ist|korrekt\s+ist|respuesta"
    r"|solución|solution|(?:correct|right|best|final|most\s+appropriate|richtige|korrekte|beste|"
    r"correcta)"
    rf"\s+(?:{_OPTION_WORD})|(?:{_OPTION_WORD})\s+correcta)\b" + _LINKS + _CHOSEN
)
_WEAK = (
    rf"(?i:\b(?:(?:{_OPTION_WORD})|choose|select|pick|wähle|elijo|elegiría)\b" + _LINKS + _CHOSEN
)
_STATEMENT = (
    r"(?i:\b(?:answer|antwort|respuesta|réponse)(?:\s+(?:is|ist|es|lautet|est))?\s*[:=]\s*)"
)
_CHINESE = (
    r"(?:答案|(?<![不别勿])应?选择?|正确选项)(?:应该?)?(?:是|为|选)?\s*[::]?\s*[\(\[]?([{upper}])(?![A-Za-z0-9])"
    r"(?![\)\]]?\s*(?:项)?(?:不|错|有误))"
)
_IS_CORRECT = (
    r"(?:^|(?<=[\s(\[]))[\(\[]?([{upper}])[\)\]]?\s+(?i:is\s+(?:the\s+)?(?:correct|right|best)"
    r"|ist\s+(?:die\s+)?(?:richtig|korrekt)|es\s+(?:la\s+)?(?:correcta|respuesta))"
)
_ANOTHER = r"^[\)\].]?\s*(?:,|/|&|\+|and|or|und|oder|y|o|e|u)\s*[\(\[]?[{upper}](?!\w)"
_NEGATED_AFTER = re.compile(
    r"^[)\]]?\s*(?:is|are|was|ist|es|would\s+be)?\s*(?:not\b|n[o']t\b|incorrect|wrong|false"
    r"|contraindicated|falsch|nicht\b|incorrecta|no\s+es\b)",
    re.IGNORECASE,
)
_NEGATED_BEFORE = re.compile(
    r"(?:\bnot|\bisn't|\brather\s+than|\bnicht|\bkeine|\bno\s+es|\bexcept)\s+(?:the\s+|die\s+|"
    r"la\s+)?$",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|mathit)\s*\{([^{}]*)\}")
_MARKS = re.compile(r"\\[()\[\]]|\$|\*\*|__|`")
_EMPHASIS = re.compile(r"(?<!\w)([*_])(?=\S)([^*_\n]+?)(?<=\S)\1(?!\w)")
_LINE_START = re.compile(r"^(?:[#>\-•*]\s*)+", re.MULTILINE)
_SPACES = re.compile(r"\s+")
# A letter that the reply goes on behind without a blank: "CThe context …", "eExplanation: …",
# "E(Note: …". The word behind it is whole and capitalised, so that abbreviations and cell types are
# none ("CT", "EECG", "A1c", "cTnI"); those that are written like it are named.
_GLUED_WORD = (
    r"(?!(?:Fib|Flutter|Diff|Dimers?|Cells?|Peptides?|Section|Coli|Strep|Line|Reactive|Max|Min|"
    r"Type|Vitamin|Pap|Wave|Waves|Scan|Fast|"
    r"Mycin|Hep|Phos)(?![a-z]))"
    r"(?:[A-Z][a-z]{2,}|To|In|It|As|An|By|If|No|Or|We|He|At|On|Is|Of|So|My|La|El|Es|Le|Il|De|Da|"
    r"Im)(?![A-Za-z0-9])"
)
_GLUED_BRACKET = r"[\(\[]\s*[A-Za-z][a-z'’]+(?![A-Za-z0-9])"
# "d The patient …": behind a small letter, which may be an article, only words that no article
# precedes.
_REASON_WORD = (
    r"(?:The|This|These|Explanation|Reason(?:ing)?|Rationale|Because|Note|Given|Here|"
    r"Based|Since|Justification)(?![a-z])"
)
_QUOTES = " \t\r\n\"'“”„‘’«»‚"

_LONGEST = 200_000  # characters of a reply that are read

Found = tuple[str | None, str | None]


class _Rules:
    """The compiled rules for one set of letters."""

    def __init__(self, letters: str) -> None:
        upper, lower = re.escape(letters), re.escape(letters.lower())
        letters_both = upper + lower

        def rule(pattern: str) -> re.Pattern[str]:
            filled = pattern.replace("{both}", letters_both).replace("{upper}", upper)
            return re.compile(filled.replace("{lower}", lower))

        not_a = upper.replace("A", "") or upper
        self.s1 = rule(r"^[\(\[]?\s*([{both}])\s*[\)\].:,;]*$")
        self.strong, self.weak = rule(_STRONG), rule(_WEAK)
        self.is_correct, self.another = rule(_IS_CORRECT), rule(_ANOTHER)
        self.s3 = rule(r"^(?:[\(\[]([{both}])[\)\]]|([{both}])[\).:](?=\s|$)|([{upper}]),(?=\s))")
        self.s4 = rule(r"^([{upper}])\s*(?:\n|[-–—])")
        self.s5 = rule(rf"^(?:([{not_a}])\s+(?=\S)|(A)\s+(?=[A-Z]))")
        self.one_of_two = rule(
            r"^([{upper}])(?=\s)"
        )  # "A and C": S5 without the article's exception
        self.glued = rule(
            rf"^([{{both}}])(?:[.):]?(?={_GLUED_WORD})|(?={_GLUED_BRACKET}))|^([{{lower}}])["
            rf" \t]+(?={_REASON_WORD})"
        )
        self.glued_statement = rule(rf"{_STATEMENT}([{{both}}])(?={_GLUED_WORD})")
        self.chinese = rule(_CHINESE)
        self.s6 = rule(r"(?<!\w)\(([{both}])\)(?!\w)|(?<![\w(])([{upper}])\)(?!\w)")
        self.s7 = rule(r"(?:^|[\s:.,(\[])([{upper}])[\)\].]*$")
        self.paper = (
            ("R1", rule(r"^([{both}])$")),
            ("R2", rule(r"^([{both}])\s")),
            ("R3", rule(r"^([{both}])\.")),
            ("R4", rule(r"\(([{both}])\)|\s([{both}])\)")),
            ("R5", rule(r"^([{upper}])[A-Z]")),
            ("R6", rule(r"^([{both}])[^A-Za-z]")),
            ("R7a", rule(r"(?i:the correct answer is[:\s]*\(?([{upper}])\)?)")),
            ("R7b", rule(r"(?i:the answer is[:\s]*\(?([{upper}])\)?)")),
            ("R7c", rule(r"(?i:option *\(?([{upper}])\)?)")),
            ("R7d", rule(r"(?i:answer: *\(?([{upper}])\)?)")),
            ("R8", rule(r"[:.,]\s*([{both}])$")),
        )


_rules = lru_cache(maxsize=32)(_Rules)


def extract_option(
    answer: str | None,
    letters: str = "ABCDE",
    mode: Literal["standard", "paper"] = "standard",
    options: list[str] | tuple[str, ...] | None = None,
) -> Found:
    """Return the chosen letter and the rule that found it.

    Parameters
    ----------
    answer : the model's reply; anything but text is converted, None and blank give None
    letters : the letters offered, "ABCD" for four options
    mode : "standard", or "paper" for the published rules
    options : option texts; a reply equal to exactly one of them counts as its letter (rule S8)

    Returns
    -------
    (letter, rule)
        letter is None when nothing or more than one thing was said; then `rule` is None or ends
        with ":ambiguous".

    Examples
    --------
    >>> from medassay import extract_option
    >>> extract_option("The answer is not A but C."), extract_option("The answer is A or B")
    (('C', 'S7'), (None, 'S2:ambiguous'))
    """
    if answer is None:
        return None, None
    text = str(answer)
    if len(text) == 1 and text in letters:  # the reply that was asked for
        return text, "S1" if mode == "standard" else "R1"
    if not text.strip():
        return None, None
    rules = _rules(letters)
    if mode == "paper":
        return _paper(text, rules)
    text, _ = strip_thoughts(unicodedata.normalize("NFKC", text))
    if len(text) > _LONGEST:  # a letter is said at the beginning or at the end
        text = f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"
    content, rest = boxed(text)
    if content is not None:
        letter, rule = _standard(_clean(content), rules, letters, options)
        if letter is not None:
            return letter, f"BOX:{rule}"
    return _standard(_clean(rest), rules, letters, options)


def _first(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).upper()


def _paper(text: str, rules: _Rules) -> Found:
    trimmed = text.strip()
    for name, pattern in rules.paper:
        if match := pattern.search(trimmed):
            return _first(match), name
    return None, None


def _clean(text: str) -> str:
    # Runs of blanks are collapsed first: the patterns have many optional blanks in a row, which is
    # polynomial on a long run.
    text = _SPACES.sub(lambda spaces: "\n" if "\n" in spaces[0] else " ", text)
    text = _WRAPPED.sub(r"\1", text)
    text = _MARKS.sub("", text)
    text = _EMPHASIS.sub(r"\2", text)
    return _LINE_START.sub("", text.strip()).strip(_QUOTES)


def _standard(
    text: str, rules: _Rules, letters: str, options: list[str] | tuple[str, ...] | None
) -> Found:
    if not text:
        return None, None
    if match := rules.s1.match(text):
        return _first(match), "S1"
    stated = _stated(text, rules) or _at_start(text, rules)
    if stated is not None:
        return stated
    bracketed = {_first(match) for match in rules.s6.finditer(text)}
    if bracketed:
        return (bracketed.pop(), "S6") if len(bracketed) == 1 else (None, "S6:ambiguous")
    if match := rules.s7.search(text):
        return match[1], "S7"
    return _same_text(text, letters, options)


def _stated(text: str, rules: _Rules) -> Found | None:
    """Apply S2: explicit statements, strong before weak, negated ones dropped.

    Between them S9, a letter glued to what follows.
    """
    strong = [*_unnegated(text, rules.strong), *_unnegated(text, rules.is_correct)]
    strong += _unnegated(text, rules.glued_statement)
    strong += rules.chinese.finditer(text)
    if strong:
        last = max(strong, key=lambda match: match.end())
        tail = text[_letter_end(last) :][:40]
        return (None, "S2:ambiguous") if rules.another.match(tail) else (_first(last), "S2")
    if glued := rules.glued.match(text):
        return _first(glued), "S9"
    weak = {_first(match) for match in _unnegated(text, rules.weak)}
    if weak:
        return (weak.pop(), "S2w") if len(weak) == 1 else (None, "S2w:ambiguous")
    return None


def _letter_end(match: re.Match[str]) -> int:
    return match.end(match.lastindex or 0)


def _unnegated(text: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    return [
        match
        for match in pattern.finditer(text)
        if not _NEGATED_AFTER.match(text[match.end() :][:40])
        and not _NEGATED_BEFORE.search(text[max(0, match.start() - 30) : match.start()])
    ]


def _at_start(text: str, rules: _Rules) -> Found | None:
    for name, pattern in (("S3", rules.s3), ("S4", rules.s4), ("S5", rules.s5)):
        if match := pattern.match(text):
            letter = _first(match)
            if name != "S4" and rules.another.match(text[_letter_end(match) :][:40]):
                return None, f"{name}:ambiguous"
            return letter, name
    if (match := rules.one_of_two.match(text)) and rules.another.match(text[match.end() :][:40]):
        return None, "S5:ambiguous"
    return None


def _same_text(text: str, letters: str, options: list[str] | tuple[str, ...] | None) -> Found:
    def plain(value: str) -> str:
        return _SPACES.sub(" ", value).strip().rstrip(".,;:!?").casefold()

    same = [i for i, option in enumerate(options or ()) if plain(option) == plain(text)]
    return (letters[same[0]], "S8") if len(same) == 1 else (None, None)
