"""Banks whose items people review, and what the reviewers say."""

from medassay.review.store import accounts, reviews, studies
from medassay.review.store.database import now
from medassay.review.store.schema import (
    Account,
)

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
