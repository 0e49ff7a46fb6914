"""How a drug is taken: "1-0-1", "morgens und abends", "2× täglich" and "twice daily" are one
schedule; and by which route.

Source: notation of German and English prescriptions (1-0-1-0 is morning, noon, evening, night);
what cannot be read is compared as text.
"""

import re
import unicodedata

import msgspec

_SLOT = r"\d(?:[.,]\d+)?"
_SLOTS = re.compile(rf"(?<![\d.,])({_SLOT}(?:\s*[-–—]\s*{_SLOT}){{2,3}})(?![\d-])")
_WHEN = (
    r"\b(?:morgens|früh|zum frühstück|in the mornings?|every morning|am)\b",
    r"\b(?:mittags|at noon|midday)\b",
    r"\b(?:abends|in the evenings?|every evening|pm)\b",
    r"\b(?:nachts|zur nacht|at night|nightly|at bedtime|nocte|hs)\b",
)
_COUNTS = {
    word: n
    for n, words in {
        1: "1 ein einmal einmalig once one",
        2: "2 zwei zweimal twice two",
        3: "3 drei dreimal thrice three",
        4: "4 vier viermal four",
        5: "5 fünf fünfmal five",
        6: "6 sechs sechsmal six",
    }.items()
    for word in words.split()
}
_LATIN = {
    "bid": 2.0,
    "bd": 2.0,
    "tid": 3.0,
    "tds": 3.0,
    "qid": 4.0,
    "qds": 4.0,
    "qd": 1.0,
    "od": 1.0,
}
_COUNT = "|".join(sorted(_COUNTS, key=len, reverse=True))
_DAILY = (
    r"täglich|tgl|tägl|pro tag|am tag|/ ?d\b|/ ?tag|daily|per day|a day|/ ?day|each day|every day"
)
_WEEKLY = r"wöchentlich|pro woche|in der woche|/ ?woche|weekly|per week|a week|/ ?week"
_MONTHLY = r"monatlich|pro monat|monthly|a month"
_TIMES = r"(?:\s*(?:x|×|mal|times))?\s*"
_PRN = re.compile(
    r"bei bedarf|\bb\.? ?b(?:ed)?\b|\bprn\b|\bp\.r\.n|as needed|as required|if needed|if required"
)
_ROUTES = {
    "oral": r"p\.? ?o|oral|peroral|per os|by mouth|orally",
    "subcutaneous": r"s\.? ?c|subkutan|subcutan|subcutaneous|subcutaneously",
    "intravenous": r"i\.? ?v|intravenös|intravenous|intravenously",
    "intramuscular": r"i\.? ?m|intramuskulär|intramuscular|intramuscularly",
    "inhaled": r"inhalativ|per inhalationem|p\.? ?i|inhaled|by inhalation",
    "topical": r"topisch|lokal|topical|topically|locally|auf die haut",
    "eye": r"augentropfen|in beide augen|bds|in both eyes|ophthalmic",
    "rectal": r"rektal|rectal|rectally",
    "nasal": r"nasal|nasally",
    "sublingual": r"s\.? ?l|sublingual|sublingually",
    "transdermal": r"transdermal|transdermally",
}
_ROUTE = {
    route: re.compile(rf"(?<![\w.])(?:{words})(?![\w])\.?") for route, words in _ROUTES.items()
}


class DosingSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """How often a drug is taken: `slots` are morning, noon, evening and night where they are told,
    `daily` how many times a day.
    """

    slots: tuple[float, ...] | None = None
    daily: float | None = None
    as_needed: bool = False


def read_schedule(text: str) -> DosingSchedule | None:
    """Return how often a drug is taken; None where that cannot be read.

    Examples
    --------
    >>> read_schedule("1-0-1").daily, read_schedule("twice daily").daily, read_schedule(
    ...     "alle 8 Stunden").daily
    (2.0, 2.0, 3.0)
    """
    plain = _plain(text)
    as_needed = _PRN.search(plain) is not None
    slots = _slots(plain)
    daily = sum(slots) if slots is not None else _daily(plain)
    if daily is None and not as_needed:
        return None
    return DosingSchedule(slots=slots, daily=daily, as_needed=as_needed)


def schedules_agree(expected: str, actual: str) -> bool:
    """Return whether two schedules say the same.

    Where one of them cannot be read, whether their words are the same.

    Times of day count where both tell them, else how often a day.

    Examples
    --------
    >>> schedules_agree("1-0-1", "morgens und abends"), schedules_agree("1-0-1",
    ...     "2x täglich"), schedules_agree("1-0-0", "0-0-1")
    (True, True, False)
    """
    expected_schedule, other = read_schedule(expected), read_schedule(actual)
    if expected_schedule is None or other is None:
        return _plain(expected) == _plain(actual)
    if expected_schedule.as_needed != other.as_needed:
        return False
    if expected_schedule.slots is not None and other.slots is not None:
        return expected_schedule.slots == other.slots
    if expected_schedule.daily is None or other.daily is None:
        return expected_schedule.daily == other.daily
    return abs(expected_schedule.daily - other.daily) < 1e-9


def read_route(text: str) -> str | None:
    """Return by which route a drug is given, None where nothing says so.

    Examples
    --------
    >>> read_route("s.c. einmal wöchentlich"), read_route("by mouth"), read_route("1-0-1")
    ('subcutaneous', 'oral', None)
    """
    plain = _plain(text)
    return next((route for route, words in _ROUTE.items() if words.search(plain)), None)


def _plain(text: str) -> str:
    for half, number in (("½", "5"), ("¼", "25")):  # NFKC would make two numbers of them
        text = re.sub(rf"(\d){half}", rf"\1,{number}", text).replace(half, f"0,{number}")
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _slots(plain: str) -> tuple[float, ...] | None:
    if match := _SLOTS.search(plain):
        parts = [_share(part) for part in re.split(r"\s*[-–—]\s*", match[1])]
        return tuple([*parts, 0.0][:4])
    slots = tuple(float(re.search(words, plain) is not None) for words in _WHEN)
    return slots if any(slots) and not re.search(_WEEKLY, plain) else None


def _share(text: str) -> float:
    return float(text.replace(",", "."))


def _daily(plain: str) -> float | None:
    """Return how many times a day, where words say so."""
    if match := re.search(r"(?:alle|every|q) ?(\d+) ?(?:h|std|stunden|hours?)\b", plain):
        return 24 / int(match[1]) if int(match[1]) else None
    if match := re.search(r"(?:alle|every) (\d+) (?:tage|days)", plain):
        return 1 / int(match[1]) if int(match[1]) else None
    if re.search(r"jeden (?:zweiten|2\.) tag|every other day|alternate days", plain):
        return 0.5
    for words, days in ((_DAILY, 1.0), (_WEEKLY, 7.0), (_MONTHLY, 30.0)):
        if match := re.search(rf"\b({_COUNT}){_TIMES}(?:{words})", plain):
            return _COUNTS[match[1]] / days
        if re.search(rf"(?<![a-zäöü])(?:{words})", plain):
            return 1 / days
    bare = re.sub(r"[^a-z ]", "", plain.replace(".", "")).split()
    return next((_LATIN[word] for word in bare if word in _LATIN), None)
