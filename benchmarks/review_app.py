"""The review app under load: twenty reviewers at once, kill -9 in between, and a coordinator's
pages over 3,000 reviews.

    PYTHONPATH=. python benchmarks/review_app.py [--seconds 60] [--postgresql postgresql://…]

Every reviewer opens an item, saves a draft and submits, through the same pages as a browser and at
once after each other unless --pause says otherwise; half-way the server is killed and started
again. What was acknowledged is compared with what is in the database.
"""

import argparse
import json
import os
import platform
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from sqlalchemy import select
from tests.web.review.desk import GOOD, Server, entry, furnish, signed_in

from medassay.review.store.database import open_database
from medassay.review.store.schema import Assignment, Review, Study

_PAGES = (
    *("progress", "agreement", "items", "items?show=all", "trends", "trends?by=category"),
    *("adjudicate/", "log", "close", "export.json", "export.csv"),
)
_SIGNED_IN_AS = {"adjudicate/": "judy"}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--reviewers", type=int, default=20)
    arguments.add_argument(
        "--pause", type=float, default=0, help="Seconds between a page and its draft."
    )
    arguments.add_argument("--postgresql", default="")
    given = arguments.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        places = {"SQLite": str(Path(folder) / "review.sqlite")}
        if given.postgresql:
            places["PostgreSQL"] = given.postgresql
        for kind, address in places.items():
            database = open_database(address)
            print(
                kind,
                json.dumps(load(database, address, given.reviewers, given.seconds, given.pause)),
            )
            print(kind, json.dumps(pages(database, address)))
            database.close()


def load(database, address, reviewers, seconds, pause=0.0, kills=1):
    """Return what so many reviewers at once meet; raise if a review is lost or doubled."""
    people = {f"r{at}": "reviewer" for at in range(reviewers)} | {"coco": "coordinator"}
    n = int(12 * seconds * reviewers / 20) * 3 + reviewers  # more than can be done in the time
    name = f"load{time.time_ns() % 10**9}"
    entries = [entry(at) for at in range(1, n + 1)]
    furnish(database, name=name, entries=entries, overlap=3, people=people)
    server = Server(address, folder=Path(tempfile.mkdtemp(prefix="medassay-")))
    until = time.monotonic() + seconds
    acknowledged, times, refused = [], [], []
    lock = threading.Lock()

    def review(who):
        chance = random.Random(who)
        client = signed_in(server.url, database, who)
        page = ""
        while time.monotonic() < until:
            try:
                page = page or _next(client, name)
                if not page:
                    return
                shown = client.get(page)
                time.sleep(pause * chance.uniform(0.5, 1.5))
                fields = {**GOOD, "comment": f"{who} {chance.random()}"}
                draft = client.ask(
                    "PUT",
                    f"/api{page}/draft",
                    {"fields": fields, "version": int(shown.version)},
                )
                start = time.perf_counter()
                sent = client.post(page, version=str(draft.json["version"]), do="submit", **fields)
                took = time.perf_counter() - start
                with lock:
                    if sent.status == 303:
                        times.append(took)
                        acknowledged.append((who, page, fields["comment"]))
                    else:
                        refused.append((sent.status, page))
                page = sent.goes_to if sent.status == 303 and "/i/" in sent.goes_to else ""
            except (
                OSError,
                ValueError,
                TypeError,
            ):  # the server is away: ask again, as a browser does
                client.connection, page = None, ""
                time.sleep(0.1)

    threads = [threading.Thread(target=review, args=(f"r{at}",)) for at in range(reviewers)]
    for one in threads:
        one.start()
    for _ in range(kills):
        time.sleep(seconds / (kills + 1))
        server.kill()
        server.start()
    for one in threads:
        one.join()
    server.stop()
    kept = _kept(database, name)
    lost = [one for one in acknowledged if one[2] not in kept]
    doubled = [comment for comment, count in kept.items() if count > 1]
    assert not lost and not doubled, (len(lost), len(doubled), lost[:3])
    cuts = statistics.quantiles(times, n=20)
    return {
        "reviewers": reviewers,
        "seconds": seconds,
        "pause_s": pause,
        "kills": kills,
        "submitted": len(times),
        "in_database": len(kept),
        "lost": len(lost),
        "doubled": len(doubled),
        "refused": len(refused),
        "median_ms": round(1000 * statistics.median(times), 1),
        "p95_ms": round(1000 * cuts[18], 1),
        "max_ms": round(1000 * max(times), 1),
    }


def _next(client, study):
    rows = [row for row in client.get("/api/studies").json if row["name"] == study]
    if not rows or rows[0]["done"] == rows[0]["total"]:
        return ""
    page = client.get(f"/s/{study}/done").text
    start = page.find(f"/s/{study}/i/")
    return page[start : page.index('"', start)] if start >= 0 else ""


def _kept(database, study):
    wanted = (
        select(Review.content)
        .join(Assignment, Assignment.id == Review.assignment_id)
        .where(Assignment.study_id == study)
    )
    counts = {}
    with database.read() as db:
        for content in db.scalars(wanted):
            counts[content["comment"]] = counts.get(content["comment"], 0) + 1
    return counts


def pages(database, address, *, items=1000):
    """Return how long a coordinator's pages take with three reviews of each of so many items:
    first, and median of five after.
    """
    name = f"pages{time.time_ns() % 10**9}"
    people = {"ada": "reviewer", "ben": "reviewer", "cleo": "reviewer"}
    people |= {"judy": "adjudicator", "coco": "coordinator"}
    chance = random.Random(1)
    furnish(
        database,
        name=name,
        entries=[entry(at) for at in range(1, items + 1)],
        overlap=3,
        people=people,
    )
    with database.write() as db:
        for assignment in db.scalars(select(Assignment).where(Assignment.study_id == name)):
            scores = {aspect: chance.choice((2, 3, 4, 4, 5, 5, 5)) for aspect in GOOD}
            content = {
                "scores": scores,
                "cannot": {},
                "comment": "",
                "harm": None,
                "correction": {},
            }
            db.add(
                Review(
                    assignment_id=assignment.id,
                    revision=1,
                    complete=True,
                    content=content,
                    fields={},
                    reason={},
                    submitted_at=f"2026-{chance.randint(1, 11):02}-10T10:00:00Z",
                )
            )
            assignment.revision = 1
    server = Server(address, folder=Path(tempfile.mkdtemp(prefix="medassay-")))
    found = {}
    for page in _PAGES:
        if page.startswith("export"):
            with database.read() as db:
                open_ = db.get(Study, name).closed_at is None
            if open_:
                signed_in(server.url, database, "coco").post(f"/s/{name}/close", confirm=name)
        client = signed_in(server.url, database, _SIGNED_IN_AS.get(page, "coco"))
        times = []
        for _ in range(6):
            start = time.perf_counter()
            reply = client.get(f"/s/{name}/{page}")
            times.append(1000 * (time.perf_counter() - start))
            assert reply.status == 200, (page, reply.status)
        found[page] = {
            "first_ms": round(times[0]),
            "median_ms": round(statistics.median(times[1:])),
        }
    server.stop()
    return found


if __name__ == "__main__":
    main()
