"""The parts of a score on likelihoods."""

import msgspec


class LikelihoodParts(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to a score on likelihoods besides its value; each task tells some of it.

    Attributes
    ----------
    nats : negative log-likelihood of a text; None where the text is impossible
    words, bytes, tokens : size of the text
    impossible : targets that the model holds for impossible
    kept, distinct : completions that were drawn
    log_p : must or nice to have → mean log-probability at each position of the completions
    """

    nats: float | msgspec.UnsetType | None = msgspec.UNSET
    words: int = 0
    bytes: int = 0
    tokens: int = 0
    impossible: int = 0
    kept: int = 0
    distinct: int | msgspec.UnsetType = msgspec.UNSET
    log_p: dict[str, list[float | None]] = {}

    @property
    def has_text(self) -> bool:
        """Return whether a text was scored, be it impossible."""
        return self.nats is not msgspec.UNSET

    @property
    def sizes(self) -> dict[str, float | None]:
        """Return what perplexities are summed from; nothing of texts that count for nothing."""
        if not isinstance(self.nats, float) or self.bytes == 0:
            return {}
        sizes = {"words": self.words, "bytes": self.bytes, "tokens": self.tokens}
        return {"nats": self.nats, **sizes}
