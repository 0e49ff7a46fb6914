"""What asking uses: calls, tokens and money."""

import msgspec


class Amount(msgspec.Struct, frozen=True):
    """Calls, tokens and money, spent or to be spent.

    Of entries without a price, `unpriced` tokens have no money.
    """

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    unpriced: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        """Return both together."""
        return Amount(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.money + other.money,
            self.unpriced + other.unpriced,
        )

    def __sub__(self, other: "Amount") -> "Amount":
        """Return what is left of this without the other."""
        return Amount(
            self.calls - other.calls,
            self.tokens - other.tokens,
            self.money - other.money,
            self.unpriced - other.unpriced,
        )


NOTHING = Amount()
