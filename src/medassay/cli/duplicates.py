"""`medassay bank duplicates`: items that ask the same."""

import typer

from medassay.cli.output import out
from medassay.core.wording import counted


def duplicates(
    banks: list[str] = typer.Argument(
        ..., metavar="BANK…", help="Folders of banks, or names of shipped ones."
    ),
    across: bool = typer.Option(False, "--across", help="Only pairs of different banks."),
) -> None:
    """Find items that ask the same, in one bank or in several; exit 1 if there are any.

    Quiz and open form of one question are none.
    """
    from medassay.bank.near_duplicates import NearIndex, compared_text
    from medassay.cli.options import load_bank_argument

    names: list[tuple[int, str, str]] = []  # place of the bank, its name, the item
    texts: list[str] = []
    for place, name in enumerate(banks):
        bank = load_bank_argument(name)
        for item in bank.items:
            names.append((place, bank.name, item.id))
            texts.append(compared_text(item))
    index = NearIndex(texts)
    pairs = {  # equal texts stand for each other: what one is near to, all are
        (min(a, b), max(a, b)): near
        for near in index.pairs()
        for a in index.equal_to(near.first)
        for b in index.equal_to(near.second) or [near.second]
        if a != b and _are_two(names[a], names[b], across=across)
    }
    pairs_found = sorted(
        (-near.similarity, names[a], names[b], near.by) for (a, b), near in pairs.items()
    )
    rows = [
        {"first": list(a[1:]), "second": list(b[1:]), "similarity": round(-s, 4), "by": by}
        for s, a, b, by in pairs_found
    ]
    out.tell(
        {"items": len(texts), "pairs": rows},
        *(
            f"{-similarity:.3f} {' '.join(first[1:])}  {' '.join(second[1:])} ({by})"
            for similarity, first, second, by in pairs_found
        ),
    )
    out.say(f"{counted(len(pairs_found), 'pair')} among {counted(len(texts), 'item')}")
    if pairs_found:
        raise typer.Exit(1)


def _are_two(first: tuple[int, str, str], second: tuple[int, str, str], *, across: bool) -> bool:
    """Return whether two items may be duplicates: quiz and open form of one question of a bank are
    one question.
    """
    if first[0] != second[0]:
        return True
    bases = {name.removesuffix("-quiz").removesuffix("-open") for *_, name in (first, second)}
    return not across and len(bases) == 2
