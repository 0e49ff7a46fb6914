"""Names before judges: whether a predicted name is one of the golden diagnosis, by rule alone."""

from collections.abc import Mapping, Sequence

from medassay.core.records.diagnosis import plain_name


class NameMatcher:
    """Compares names with the golden diagnosis of an item.

    `synonyms` come from the user's mappings.

    Parameters
    ----------
    synonyms : golden diagnosis (its plain name) → names that mean the same disease
    """

    def __init__(self, synonyms: Mapping[str, Sequence[str]]) -> None:
        self._synonyms = {
            golden: frozenset(map(plain_name, names)) for golden, names in synonyms.items()
        }

    def rule(self, name: str, golden: Sequence[str]) -> str:
        """Return how a name was found to be the golden diagnosis; empty if it was not.

        `golden` is the golden diagnosis and its other names in the bank.

        Examples
        --------
        >>> NameMatcher({"gout": ["Podagra"]}).rule("podagra", ["Gout", "Gouty arthritis"])
        'synonym'
        """
        plain = plain_name(name)
        if not plain:
            return ""
        if plain == plain_name(golden[0]):
            return "same name"
        if plain in map(plain_name, golden[1:]):
            return "other name in the bank"
        return "synonym" if plain in self._synonyms.get(plain_name(golden[0]), ()) else ""
