"""A bank by its folder, or by its name if it is shipped."""

from pathlib import Path

from medassay.bank.catalog import BANKS
from medassay.bank.folder import load_bank
from medassay.bank.loaders.demo import SHIPPED
from medassay.core.records.item import Bank
from medassay.errors import InputError


def is_shipped(name: str) -> bool:
    """Return whether a bank of this name comes with medassay."""
    return name in BANKS and BANKS[name].checked == "shipped"


def find_bank(name: str, base: Path, lock: Path | None) -> Bank:
    """Return a bank by folder (relative to `base`), or by name if it is shipped."""
    folder = base / name
    if (folder / "bank.toml").is_file():
        return load_bank(folder, lock=lock)
    if is_shipped(name):
        return BANKS[name].load(SHIPPED / BANKS[name].folder)
    raise InputError(
        f"bank '{name}': no folder {folder} with a bank.toml, and not shipped; "
        "`medassay bank list` shows the catalogue, `medassay bank import` makes a folder"
    )
