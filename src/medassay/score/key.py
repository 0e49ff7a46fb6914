"""1 when a finished prediction equals the key that came with it (imports)."""

from medassay.core.item import Item
from medassay.core.trial import Answer


def key(item: Item, answer: Answer) -> tuple[float, str]:
    """Return 1 when prediction and key are equal, ignoring case and outer blanks."""
    same = (answer.value or "").strip().casefold() == (item.expected or "").strip().casefold()
    return float(same), "right" if same else "wrong"
