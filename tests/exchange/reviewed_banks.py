"""Banks whose items people review, and what the reviewers say."""

import datetime as dt

from sqlalchemy import select
from tests.synthesis.shops import write_shop

from medassay.core.clock import now
from medassay.review.store import accounts, frozen, reviews, studies, tickets
from medassay.review.store.schema import (
    Account,
    Entry,
    Study,
)
from medassay.synthesis.decide import decide
from medassay.synthesis.project import open_workshop
from medassay.synthesis.release import release_items
from medassay.synthesis.synthesize import synthesize

TODAY = dt.date(2026, 11, 22)
GOOD = {"question": "5", "answer": "5"}


def people(db, study, **roles):
    """Give a study its people; return them by name."""
    made = {}
    for name, role in roles.items():
        account = Account(
            email=f"{name}@example.org",
            name=name.title(),
            password="-",
            qualification="physician",
            specialty="",
            years=3,
            agreement=accounts.AGREEMENT,
            made_at=now(),
        )
        db.add(account)
        db.flush()
        accounts.grant(db, account, study.id, role, who="tests")
        made[name] = account
    return made


def study_of(db, entries, form, overlap=3):
    study = studies.create_study(db, "s", form, who="tests", overlap=overlap)
    studies.add_entries(db, study, entries, who="tests")
    found = people(
        db,
        study,
        ada="reviewer",
        ben="reviewer",
        cleo="reviewer",
        judy="adjudicator",
        jon="adjudicator",
    )
    studies.assign_all(db, study, who="tests")
    return study, found


def review_all(db, study, account, fields_of):
    for number in reviews.queue_of(db, study.id, account.id).order:
        work = reviews.work_at(db, study, account.id, number)
        reviews.submit(db, study, work, fields_of(work), version=work.version)


def settle(db, study, item, found, **fields):
    entry = db.scalar(select(Entry).where(Entry.study_id == study.id, Entry.item == item))
    tickets.decide(db, study, entry, {"reason": "because", **fields}, found["judy"])
    step = tickets.last_decision(db, tickets.ticket_of(db, study, entry))
    tickets.check(db, study, entry, found["jon"], decision=step.id, confirmed=True)


def exported(database):
    with database.write() as db:
        study = db.get_one(Study, "s")
        frozen.close(db, study, who="tests")
        return frozen.export_document(db, study, who="tests")


def shop_bank(tmp_path):
    """Return the folder of a bank that a workshop made, accepted unread in one go, and the lock."""
    plan = write_shop(tmp_path)
    synthesize(plan, tmp_path / "shop", secrets={}, workspace=tmp_path)
    lock = tmp_path / "banks.lock"
    with open_workshop(tmp_path / "shop") as shop:
        decide(shop, "accept", ["all"], who="Owner")
        folder, _, _ = release_items(shop, reason="first", lock=lock, today=TODAY)
    return folder, lock
