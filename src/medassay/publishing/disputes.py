"""Numbers that somebody holds to be wrong: the claim, what was checked, and the decision become
lines of a site's ledger, and pages made of them. The publication itself does not change.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from medassay.core.ledger import LedgerEntry, LedgerObject, disputes_of
from medassay.core.records.dispute import DECISIONS, WHOLE_PUBLICATION, Dispute, DisputedThing
from medassay.errors import InputError
from medassay.publishing.board import board_of
from medassay.publishing.history import (
    enter_step,
    is_entered,
    ledger_to_change,
    refuse_unpublished,
)
from medassay.publishing.secret_text import refuse_secret
from medassay.report.board import Board, ShownAnswer, ShownCell
from medassay.storage.run import PUBLISHED_RUN, Run
from medassay.storage.signature import Signer

_LONGEST = 4_000  # characters of a text
_SHORTEST_HASH = 8  # digits of a hash that may stand for it


def open_dispute(
    site: Path,
    publication: str,
    claim: str,
    *,
    about: DisputedThing = WHOLE_PUBLICATION,
    by: str = "",
    signer: Signer | None = None,
) -> int:
    """Enter a claim that a number is wrong, and return the number of the dispute: of the one that
    is open, where the same claim is given once more.

    Parameters
    ----------
    about : what the claim is about: of the model its id; of an item its id, or domain and id,
        `cardiology/item-7`; of an answer the SHA-256 that its page shows, or its first 8 digits or
        more; the publication as a whole where nothing is named
    by : who claims it, as readers see it

    Raises
    ------
    InputError
        When the site has no such publication, or that one no such model, item or answer; when there
        is no claim.
    GateError
        When a text looks like a secret: it would become public.
    """
    _check_text("--claim", claim)
    _check_text("--by", by, needed=False)
    if sum(map(bool, (about.model, about.item, about.answer))) > 1:
        raise InputError("--model, --item, --answer: expected one of them; an answer names all")
    with ledger_to_change(site, signer) as entries:
        refuse_unpublished(site, entries, publication)
        about = _with_page(site, publication, about)
        step: LedgerObject = {
            "event": "dispute",
            "step": "opened",
            "publication": publication,
            "about": {name: getattr(about, name) for name in about.__struct_fields__},
            "claim": claim.strip(),
            "by": by.strip(),
        }
        disputes = disputes_of(entries)
        number = next(
            (
                dispute.number
                for dispute in disputes
                if dispute.closing is None
                and is_entered(entries, {**step, "dispute": dispute.number})
            ),
            len(disputes) + 1,
        )
        enter_step(site, {**step, "dispute": number}, signer)
    return number


def answer_dispute(site: Path, number: int, checked: str, *, signer: Signer | None = None) -> None:
    """Enter what was checked of an open dispute, and what came out.

    Raises
    ------
    InputError
        When there is no such dispute, it is closed, or nothing is said.
    """
    _check_text("--checked", checked)
    with ledger_to_change(site, signer) as entries:
        dispute = _dispute(site, entries, number)
        _refuse_closed(site, dispute)
        step: LedgerObject = {
            "event": "dispute",
            "step": "answered",
            "dispute": number,
            "publication": dispute.publication,
            "checked": checked.strip(),
        }
        enter_step(site, step, signer)


def close_dispute(
    site: Path,
    number: int,
    decision: str,
    *,
    reason: str,
    following: str | None = None,
    signer: Signer | None = None,
) -> None:
    """Enter how an open dispute was decided.

    Parameters
    ----------
    decision : `upheld` (the number is wrong), `rejected` or `withdrawn`
    following : the publication that holds the correction

    Raises
    ------
    InputError
        When there is no such dispute or publication, the dispute is closed, or no reason is given.
    """
    if decision not in DECISIONS:
        raise InputError(f"decision '{decision:.40}': expected one of {', '.join(DECISIONS)}")
    _check_text("--reason", reason)
    with ledger_to_change(site, signer) as entries:
        dispute = _dispute(site, entries, number)
        refuse_unpublished(site, entries, dispute.publication, following)
        step: LedgerObject = {
            "event": "dispute",
            "step": "closed",
            "dispute": number,
            "publication": dispute.publication,
            "decision": decision,
            "reason": reason.strip(),
            "next": following,
        }
        if not is_entered(entries, step):
            _refuse_closed(site, dispute)
        enter_step(site, step, signer)


def _check_text(option: str, text: str, *, needed: bool = True) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{option}: not UTF-8") from None
    if needed and not "".join(filter(str.isprintable, text)).strip():
        raise InputError(f"{option}: empty; readers must learn it")
    if len(text) > _LONGEST:
        raise InputError(
            f"{option}: {len(text):,} characters; expected at most {_LONGEST:,}: put the rest on a"
            " page, and name its address"
        )
    refuse_secret(text, option)


def _dispute(site: Path, entries: Sequence[LedgerEntry], number: int) -> Dispute:
    disputes = {dispute.number: dispute for dispute in disputes_of(entries)}
    if number not in disputes:
        listed = ", ".join(map(str, disputes)) or "none"
        raise InputError(f"{site}: no dispute {number}; there are {listed}")
    return disputes[number]


def _refuse_closed(site: Path, dispute: Dispute) -> None:
    if dispute.closing is not None:
        raise InputError(
            f"{site}: dispute {dispute.number} was closed on {dispute.closing.at[:10]}"
            f" ({dispute.state}); open another one"
        )


def _with_page(site: Path, publication: str, about: DisputedThing) -> DisputedThing:
    """Return what a claim names, with the page that shows it."""
    model, item, answer = about.model, about.item, about.answer
    place = site / "p" / publication
    board = board_of(Run(place / PUBLISHED_RUN), publication)
    if model:
        if model not in board.models:
            raise InputError(
                f"{publication}: no model '{model}'; there are {', '.join(board.models)}"
            )
        return DisputedThing(model=model, page=f"model/{board.slug(model)}/index.html")
    if not (item or answer):
        return DisputedThing(page="index.html")
    things = {}
    for page, key, answer_shown in _shown_answers(board):
        name = f"{key.domain}/{answer_shown.line.item}"
        if (
            answer
            and len(answer) >= _SHORTEST_HASH
            and answer_shown.sha256.startswith(answer.lower())
        ):
            things[answer_shown.sha256] = DisputedThing(
                model=key.model, item=name, answer=answer_shown.sha256, page=page
            )
        elif item and item in (name, answer_shown.line.item):
            things.setdefault(name, DisputedThing(item=name, page=page))
    what, advice = ("answer", "give more digits") if answer else ("item", "name its domain, too")
    if not things:
        expected = "its sha256 as its page shows it" if answer else "its id as pages show it"
        raise InputError(f"{publication}: no {what} '{answer or item}'; expected {expected}")
    if len(things) > 1:
        raise InputError(f"{publication}: '{answer or item}' are {len(things)} {what}s; {advice}")
    return next(iter(things.values()))


def _shown_answers(board: Board) -> Iterator[tuple[str, ShownCell, ShownAnswer]]:
    """Yield each answer with its cell and the address at which it is shown."""
    for key, answers in board.answers():
        for number, answer in enumerate(answers):
            line = answer.line
            yield board.answer_link(key, line.item, line.repeat, number), key, answer
