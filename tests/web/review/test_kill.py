"""A database server that is killed -9 under writers: no review is lost that was acknowledged, and
the app goes on.
"""

import threading
import time

import pytest
from sqlalchemy import select
from tests.web.review.desk import GOOD, furnish, signed_in
from tests.web.review.reviewing import review

from medassay.review.store.database import open_database
from medassay.review.store.schema import Assignment, Review

PEOPLE = {"ada": "reviewer", "ben": "reviewer"}
N = 30


@pytest.mark.slow
def test_kill_nine_of_postgresql_loses_no_review_that_was_acknowledged(own_postgres, serve):
    address = own_postgres.database()
    database = open_database(address)
    study = furnish(database, name="killed", n=N, overlap=2, people=PEOPLE)
    server = serve(address)
    sent, ended = set(), []

    def work(who):
        client = signed_in(server.url, database, who)
        for number in range(1, N + 1):
            try:
                if review(client, study, number, **GOOD, comment=f"{who} {number}").status == 303:
                    sent.add(f"{who} {number}")
            except (OSError, TypeError, AttributeError):
                break
        ended.append(who)

    threads = [threading.Thread(target=work, args=(who,)) for who in PEOPLE]
    for thread in threads:
        thread.start()
    while len(sent) < 12:
        time.sleep(0.005)
    own_postgres.kill()
    for thread in threads:
        thread.join()
    before = set(sent)
    assert len(before) < 2 * N
    own_postgres.start()
    with database.read() as db:
        wanted = select(Review).join(Assignment).where(Assignment.study_id == study)
        found = [one.content["comment"] for one in db.scalars(wanted)]
    assert before <= set(found)
    assert len(found) == len(set(found)) <= len(before) + len(PEOPLE)
    # The app that served meanwhile goes on with the new server.
    for who in PEOPLE:
        work(who)
    assert sent >= {f"{who} {number}" for who in PEOPLE for number in range(1, N + 1)} - set(found)
    database.close()
