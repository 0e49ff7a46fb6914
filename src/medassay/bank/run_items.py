"""The items of a run, read from its items.jsonl when they are needed."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Sized
from copy import copy
from pathlib import Path
from typing import TypeVar

from medassay.bank.folder import ChosenItems, StoredItems
from medassay.core.records.item import Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import Form, Withheld
from medassay.errors import IntegrityError

T = TypeVar("T")
# Items stay in memory while they are fewer than this, or their lines shorter in all: in memory they
# take two or three times as much.
_REMEMBERED_ITEMS, _REMEMBERED_BYTES = 4096, 32 << 20


class RunItems:
    """The items of a run, found by domain and id; read from its items.jsonl when asked for.

    The file is sorted by domain and id, so an item's place in its domain is its place in the file
    less that of the domain's first item. `domains` gives each domain's bank version: clusters of
    two banks that happen to share a name are two clusters. With `check` False the items are not
    checked: they were before, by this process or the one that started it.
    """

    def __init__(self, folder: Path, domains: Mapping[str, str], *, check: bool = True) -> None:
        self._items = StoredItems(folder / "items.jsonl", frozenset(domains), of_run=True)
        self._ids, self._heads = self._items.ids, self._items.heads
        self._places: array[int] | None = None  # in the file; None where all are there
        self._starts: dict[str, int] = {}
        self._read: dict[int, Item] = {}
        self._records: dict[int, ItemObject] = {}
        self._n_bytes = 0  # of the lines of these two
        self._domain = ""  # of the last that was remembered
        self._withheld: dict[int, Form] = {}  # position → form, of items that are not here
        self.clusters: dict[str, array[int]] = {}
        self.synthetic: dict[str, array[int]] = {}
        self.harm: dict[str, array[int]] = {}
        numbers: dict[tuple[str, str], int] = {}
        alone, last = 0, ("", "")
        for position, record in enumerate(self._items.scan(check=check)):
            domain, name, cluster = record["domain"], record["id"], record.get("cluster")
            if (domain, name) <= last:
                raise IntegrityError(f"items.jsonl row {position + 1}: not sorted by domain and id")
            last = (domain, name)
            self._starts.setdefault(domain, position)
            if "form" in record:
                self._withheld[position] = record["form"]
            if cluster is None:
                alone -= 1
                number = alone
            else:
                number = numbers.setdefault((domains[domain], cluster), len(numbers))
            self.clusters.setdefault(domain, array("q")).append(number)
            self.harm.setdefault(domain, array("b")).append(record.get("harm", False))
            is_synthetic = record.get("kind") == "synthetic"
            self.synthetic.setdefault(domain, array("b")).append(is_synthetic)

    @property
    def domains(self) -> list[str]:
        """Return the domains, sorted."""
        return sorted(self.clusters)

    def place(self, domain: str, name: str) -> int:
        """Return the place of an item in its domain, counted from 0."""
        place = self._find(domain, name)
        if place is None:
            raise IntegrityError(f"items.jsonl: no item '{name}' in domain '{domain}'")
        return place

    def holds(self, domain: str, name: str) -> bool:
        """Return whether there is such an item."""
        return self._find(domain, name) is not None

    def _find(self, domain: str, name: str) -> int | None:
        if domain in self._starts:
            start = self._starts[domain]
            end = start + len(self.clusters[domain])
            at = bisect_left(self._ids, name, start, end)
            if at < end and self._ids[at] == name:
                return at - start
        return None

    def names(self, domain: str) -> list[str]:
        """Return the ids of a domain's items, sorted; none for a domain that is not there."""
        start = self._starts.get(domain, 0)
        return self._ids[start : start + len(self.clusters.get(domain, ()))]

    @property
    def cluster_of(self) -> dict[tuple[str, str], int]:
        """Return (domain, id) → the number of the item's cluster."""
        return {
            (domain, name): number
            for domain, numbers in self.clusters.items()
            for name, number in zip(self.names(domain), numbers, strict=True)
        }

    def position(self, domain: str, name: str) -> int:
        """Return the place of an item in the whole run, counted from 0."""
        return self._starts.get(domain, 0) + self.place(domain, name)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items if self._places is None else ChosenItems(self._items, self._places))

    def own_form(self, domain: str, name: str) -> Form:
        """Return the form of one item, also where it is withheld and only its form is known."""
        at = self.position(domain, name)
        return self._withheld.get(at, self._heads[at][2])

    def of_forms(self, forms: Container[Form]) -> "RunItems":
        """Return those of some forms, as a run that asked no others would have them."""
        part = copy(self)
        part._starts, part._read, part._records, part._withheld = {}, {}, {}, {}
        part._n_bytes = 0
        part.clusters, part.synthetic, part.harm = {}, {}, {}
        part._ids, part._heads, part._places = [], [], array("Q")
        for at, (name, head) in enumerate(zip(self._ids, self._heads, strict=True)):
            domain, _, form = head
            if self._withheld.get(at, form) not in forms:
                continue
            part._starts.setdefault(domain, len(part._ids))
            if at in self._withheld:
                part._withheld[len(part._ids)] = self._withheld[at]
            part._ids.append(name)
            part._heads.append(head)
            part._places.append(at if self._places is None else self._places[at])
            for values_here, values in (
                (part.clusters, self.clusters),
                (part.harm, self.harm),
                (part.synthetic, self.synthetic),
            ):
                all_values = values[domain]
                values_here.setdefault(domain, all_values[:0]).append(
                    all_values[at - self._starts[domain]]
                )
        return part

    def record(self, domain: str, name: str) -> ItemObject:
        """Return the file object of one item; lately used ones are not read again."""
        return self._lately(self._records, self._items.record, domain, name)

    def of(self, domains: Container[str], *, public: bool) -> Sequence[Item]:
        """Return the items of some domains, each read when it is asked for.

        With `public` none that is withheld.
        """
        return ChosenItems(
            self._items,
            array(
                "Q",
                (
                    at if self._places is None else self._places[at]
                    for at, (domain, _, form) in enumerate(self._heads)
                    if domain in domains and not (public and form == Withheld.form)
                ),
            ),
        )

    @property
    def withholding(self) -> bool:
        """Return whether any item is synthetic, so that its text must stay private."""
        return any(any(flags) for flags in self.synthetic.values())

    @property
    def forms(self) -> set[Form]:
        """Return the forms that occur."""
        return {form for _, _, form in set(self._heads)}

    def form(self, domain: str, name: str) -> Form:
        """Return the form of one item, without reading it."""
        return self._heads[self.position(domain, name)][2]

    def get(self, domain: str, name: str) -> Item:
        """Return one item; lately used ones are not read again, since every model answers them
        all.
        """
        return self._lately(self._read, self._items.__getitem__, domain, name)

    def _lately(self, cache: dict[int, T], read: Callable[[int], T], domain: str, name: str) -> T:
        at = self.position(domain, name)
        if (cached := cache.get(at)) is not None:
            return cached
        place = at if self._places is None else self._places[at]
        entry = read(place)
        if self._is_full(cache) and domain != self._domain:
            self._read.clear()
            self._records.clear()
            self._n_bytes = 0
        # Trials stand model by model: of a domain that does not fit, the first items stay, so that
        # each model finds these; the newest would be gone whenever they are asked for.
        if not self._is_full(cache):
            self._domain = domain
            self._n_bytes += self._items.length(place)
            cache[at] = entry
        return entry

    def _is_full(self, cache: Sized) -> bool:
        return len(cache) >= _REMEMBERED_ITEMS and self._n_bytes > _REMEMBERED_BYTES
