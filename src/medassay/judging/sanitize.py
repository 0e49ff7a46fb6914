"""What a judge is shown of an answer: without the model's name, without tricks, behind a fence.

An answer is data. It may plead for its own score, imitate the judge's format, close the fence or
hide text; so characters that cannot be seen are removed, what runs on is cut, and the fence bears a
mark made from the text itself, which no text can contain.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

import msgspec

MASK_REVISION = 1
FENCE_REVISION = 1

LONGEST = 24_000  # characters of an answer; padding beyond it would push the task out of sight

_MAKERS = (
    r"open\s?ai|anthropic|google(?:\s?deepmind|\s?ai)?|deepmind|mistral(?:\s?ai)?|meta(?:\s?ai)?|"
    r"alibaba(?:\s?cloud)?"
    r"|deepseek|x\.?ai|cohere|microsoft|amazon|nvidia|hugging\s?face|moonshot(?:\s?ai)?|"
    r"zhipu(?:\s?ai)?|01\.ai"
)
_VERSION = (
    r"(?:[-"
    r" ](?:v?\d[\w.]*|opus|sonnet|haiku|instant|pro|flash|ultra|nano|mini|lite|turbo|large|"
    r"medium|small|"
    r"thinking|preview|instruct|chat|maverick|scout|nemo|max|plus))*"
)
_MODELS = (
    rf"(?:(?:chat)?gpt(?:[-"
    rf" ]?\d[\w.]*)?|o[134]-(?:mini|preview|pro)|claude|gemini|bard|(?:med)?gemma|med-?palm"
    rf"|llama|mi[sx]tral|meditron|qwen[\d.]*|deepseek|grok|command[-"
    rf" ]r|phi-\d[\w.]*|smollm\d?|kimi|glm-\d[\w.]*"
    rf"|copilot|nemotron|nova[- ](?:pro|lite|micro)){_VERSION}"
)
_SPEAKS = (
    r"(?:as|i\s+am|i['’]m|my\s+name\s+is|this\s+is|speaking\s+as|signed|yours?|"
    r"als|ich\s+bin|mein\s+name\s+ist|hier\s+ist|como|soy|me\s+llamo|mi\s+nombre\s+es)"
    r"[\s,:]{1,5}(?:(?:the|an?|das|die|der|ein|el|la|un)\s+)?(?:(?:ai|ki|ia)[\s-]+)?(?:(?:model|"
    r"modell|modelo|assistant|"
    r"assistent|asistente)\s+)?"
)
_MADE = (
    r"(?:(?:developed|trained|made|created|built|designed|provided|powered)\s+by|"
    r"(?:entwickelt|trainiert|erstellt|gebaut)\s+von|(?:desarrollad|entrenad|cread)[oa]\s+por|"
    r"(?:model|\w*modell|modelo(?:\s+de\s+lenguaje)?|assistant|assistent|asistente|"
    r"chatbot)\s+(?:from|by|von|de))"
)
_INVISIBLE = ("Cf", "Cc", "Co", "Cn", "Cs")


class SanitizedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as a judge sees it: its text, how often a name was masked, how much was cut."""

    text: str
    masked: int
    cut: int


def speaker_pattern(names: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of a model or its maker named as the speaker.

    `names` are the ids and sent names of the models under test, added to the known ones.
    """
    ours = sorted((re.escape(n) for n in names if len(n) > 2), key=len, reverse=True)
    name = "|".join([*ours, _MODELS])
    speaks = rf"\b(?P<before>{_SPEAKS})(?P<name>{name})(?![\w-])"
    maker_phrase = rf"\b(?P<made>{_MADE}\s+)(?P<maker>{_MAKERS})(?![\w-])"
    label = rf"^(?P<indent>[ \t>*#_-]{{0,20}})(?P<label>{name})(?P<after>[*_]{{0,3}}[ \t]{{0,5}}:)"
    return re.compile(rf"{speaks}|{maker_phrase}|{label}", re.IGNORECASE | re.MULTILINE)


def sanitize_answer(answer: str, speaker: re.Pattern[str]) -> SanitizedAnswer:
    """Return what a judge may see of an answer."""
    text = "".join(map(_visible, answer))
    cut = max(0, len(text) - LONGEST)
    text, masked = speaker.subn(_masked, text[:LONGEST])
    return SanitizedAnswer(text=text.strip(), masked=masked, cut=cut)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    if character in "\u2028\u2029":
        return "\n"
    return "" if unicodedata.category(character) in _INVISIBLE else character


def _masked(match: re.Match[str]) -> str:
    if match["name"]:
        return match["before"] + "[model]"
    if match["maker"]:
        return match["made"] + "[model]"
    return match["indent"] + "[model]" + match["after"]


def delimit(text: str, what: str) -> str:
    """Return text between two marks that it cannot contain: they are made from its own hash.

    Examples
    --------
    >>> print(delimit("Rest.", "answer"))
    <<<answer a75893997ee9>>>
    Rest.
    <<<end of answer a75893997ee9>>>
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    inside = text.replace("<<<", "‹‹‹").replace(">>>", "›››")
    return f"<<<{what} {mark}>>>\n{inside}\n<<<end of {what} {mark}>>>"
