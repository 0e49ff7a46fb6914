"""Workshops that make items from decision pathways."""

from tests.bank.dates import TODAY

from medassay.synthesis.decide import decide
from medassay.synthesis.project import open_workshop
from medassay.synthesis.release import release_items
from medassay.synthesis.synthesize import synthesize


def make(folder, plan=None):
    return synthesize(plan or folder / "plan.toml", folder / "shop", secrets={}, workspace=folder)


def released(folder, *, reason="first"):
    with open_workshop(folder / "shop") as shop:
        return release_items(shop, reason=reason, lock=folder / "banks.lock", today=TODAY)


def decided(folder, verb, *names, **more):
    with open_workshop(folder / "shop") as shop:
        return decide(shop, verb, names, who="A. Reviewer", **more)
