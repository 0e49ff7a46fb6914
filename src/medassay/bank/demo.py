"""The demo bank: written for this project, CC0, not clinically validated."""

from pathlib import Path

from medassay.bank.folder import load_bank
from medassay.core.item import Bank

FOLDER = Path(__file__).with_name("demo_bank")


def load(root: Path = FOLDER) -> Bank:
    """Return the demo bank that is shipped with the package."""
    return load_bank(root, lock=None)
