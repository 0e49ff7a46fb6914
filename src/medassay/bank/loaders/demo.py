"""The demo banks: written for this project, CC0, not clinically validated."""

from pathlib import Path

from medassay.bank.folder import load_bank
from medassay.core.records.item import Bank

SHIPPED = Path(__file__).parents[1] / "shipped"
FOLDER = SHIPPED / "demo_bank"


def load(root: Path = FOLDER) -> Bank:
    """Return a bank that is shipped with the package, the closed and open items by default."""
    return load_bank(root, lock=None)
