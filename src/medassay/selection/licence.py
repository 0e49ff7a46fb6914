"""Families of model licences, and which of them a policy admits.

Stated by those who publish the models; nobody here has had them checked by a lawyer.
"""

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec

from medassay.core.keyed import KeyedRecord

Policy = Literal["permissive", "commercial_ok", "as_published"]
POLICIES: dict[Policy, str] = {
    "permissive": "MIT or Apache 2.0",
    "commercial_ok": "a licence that allows commercial use",
    "as_published": "MIT, Apache 2.0, and what the published list kept too (Llama 3, DeepSeek)",
}
STATED = "2026-11-21"  # the day to which this table speaks


class Family(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """What the licences of a family allow.

    `licences` are their names, compared without case, blanks, hyphens and words such as "licence";
    `needs_api` says whether use needs an interface of the maker.
    """

    KEYS: ClassVar = ("name", "licences", "open_source", "commercial", "needs_api", "notes")

    name: str
    licences: tuple[str, ...]
    open_source: bool
    commercial: Literal["free", "allowed", "allowed with limit", "restricted", "forbidden"]
    needs_api: Literal["no", "optional"]
    notes: str


FAMILIES = (
    Family(
        name="permissive",
        licences=("mit", "apache 2.0"),
        open_source=True,
        commercial="free",
        needs_api="no",
        notes="no duties downstream beyond the notice",
    ),
    Family(
        name="Gemma",
        licences=("gemma", "gemma terms"),
        open_source=False,
        commercial="allowed",
        needs_api="no",
        notes="use policy, among it no unlicensed professional advice",
    ),
    Family(
        name="Llama 3.x",
        licences=("llama 3", "llama 3.1", "llama 3.2", "llama 3.3"),
        open_source=False,
        commercial="allowed with limit",
        needs_api="no",
        notes="a special licence above 700 million monthly users",
    ),
    Family(
        name="DeepSeek",
        licences=("deepseek",),
        open_source=False,
        commercial="allowed",
        needs_api="no",
        notes="derivatives and distillation allowed, uses restricted",
    ),
    Family(
        name="EXAONE",
        licences=("exaone nc",),
        open_source=False,
        commercial="forbidden",
        needs_api="no",
        notes="research only",
    ),
    Family(
        name="Mistral",
        licences=("mistral", "mistral research"),
        open_source=False,
        commercial="restricted",
        needs_api="optional",
        notes="research and commercial tiers; small models are often under Apache 2.0",
    ),
)
# The published list kept these two although its own licence table calls neither open source.
_PUBLISHED_TOO = ("llama 3", "deepseek")


def family_of(licence: str) -> Family | None:
    """Return the family of a licence; None when it is not in the table.

    Examples
    --------
    >>> family_of("Apache License, Version 2.0").name, family_of("llama3.1").name
    ('permissive', 'Llama 3.x')
    """
    key = _key(licence)
    return next((f for f in FAMILIES if key in map(_key, f.licences)), None)


def admits(policy: Policy, licence: str) -> bool:
    """Return whether a policy admits a licence; one that is in no family is admitted by none."""
    family = family_of(licence)
    if family is None:
        return False
    allowed: Mapping[Policy, bool] = {
        "permissive": family.open_source,
        "commercial_ok": family.commercial in ("free", "allowed", "allowed with limit"),
        "as_published": family.open_source or _key(licence) in _PUBLISHED_TOO,
    }
    return allowed[policy]


def _key(licence: str) -> str:
    """Return what the ways of writing a licence have in common: "Apache License, Version 2.0" and
    "apache-2.0" are one.
    """
    words = re.sub(r"[\s_,-]+", " ", licence.casefold())
    plain = re.sub(r"\b(?:the|licen[cs]e|version|community|v(?=\d))\b ?|\bv(?=\d)", "", words)
    return re.sub(r"(?<=[a-z])(?=\d)", " ", plain).strip()
