"""What tests of the review app do again and again: invite, number, check, raise a ticket."""

import html
import re

from sqlalchemy import select
from tests.web.review.reviewing import review

from medassay.review.store import (
    accounts,
    links,
)
from medassay.review.store.schema import (
    Assignment,
    Entry,
)

BAD = {"question": "2", "answer": "1", "path": "4"}
PERSON = {
    "name": "New Person",
    "password": "a long password",
    "qualification": "specialist",
    "specialty": "cardiology",
    "years": "12",
    "agreed": "yes",
}


def numbers(desk, study, who):
    """Return a reviewer's numbers with the entries behind them."""
    with desk.database.read() as db:
        account = accounts.account_of(db, f"{who}@example.org")
        wanted = (
            select(Assignment.number, Entry)
            .join(Entry, Entry.id == Assignment.entry_id)
            .where(Assignment.study_id == study, Assignment.account_id == account.id)
            .order_by(Assignment.number)
        )
        return [(number, found) for number, found in db.execute(wanted)]


def check(client, path, do="confirm", **fields):
    """Read a decision and confirm it, or send it back."""
    found = re.search(r'name="decision" value="(\d+)"', client.get(path).text)
    return client.post(path, do=do, decision=found[1] if found else "0", **fields)


def problems(reply):
    found = re.findall(r'<p class="problem"[^>]*>(.*?)</p>', reply.text)
    return [html.unescape(one) for one in found]


def invitation(desk, study, email, role="reviewer"):
    with desk.database.write() as db:
        return links.invite(db, email, who="tests", study=study, role=role)


# Settling.


def raise_ticket(desk, study, who="ada"):
    """Let a reviewer give feedback on their first item; return the entry's number."""
    assert review(desk.client(who), study, 1, **BAD, option="B", comment="B is right").status == 303
    return numbers(desk, study, who)[0][1].number
