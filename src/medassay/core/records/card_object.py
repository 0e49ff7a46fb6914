"""`CardObject`: bank.toml as the object that stands in the file; see `item_object.py` for why it is
a dictionary. Whoever reads a card to work with it reads the record `BankCard`.
"""

from typing import TypedDict


class CardObject(TypedDict, total=False):
    """The keys of a card; `BankCard` says what they are."""

    name: str
    question_bank_version: str
    licence: str
    domains: list[str]
    title: str
    limits: str
    created: str
    may_leave: bool
    contradiction_penalty: float
    content_sha256: str
    kept: int
    dropped: dict[str, int]
