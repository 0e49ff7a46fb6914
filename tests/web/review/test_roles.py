"""The table of routes, cell by cell: each role × each route × each method."""

import re

import pytest
from tests.web.review.desk import Client, furnish

from medassay.review.store.schema import ROLES as STUDY_ROLES
from medassay.web.request_context import ACCOUNT, ANYONE
from medassay.web.routes import ROUTES

WHO = {
    "ada": "reviewer",
    "judy": "adjudicator",
    "coco": "coordinator",
    "max": "maintainer",
    "aud": "auditor",
    "root": "admin",
    "maker": "creator",
    "nobody": "account",
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# The table of the specification in words of its own, so that a slip in ROUTES is seen: who may read
# others' reviews while a study is open.
OTHERS_REVIEWS = {"auditor"}
# Rights do not depend on the kind of database, and these ask thousands of times.
ON_ONE_DATABASE = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def _filled(path, number="1"):
    known = {"study": "hearts", "n": number, "token": "no-such-token", "language": "de"}
    return re.sub(r"\{(\w+)\}", lambda found: known[found[1]], path)


def _roles(who):
    return {WHO[who], ACCOUNT, ANYONE}


def _refusable(route, who):
    """Whether somebody with the role may still be told no: maintainers and others while the study
    is open.
    """
    early = ("/items/{n}", "/export", "/adjudicate/")
    allowed_early = {"adjudicator"} if "/adjudicate/" in route.path else OTHERS_REVIEWS
    if route.path.endswith(("export.json", "export.csv", "/export")):
        allowed_early = set()
    return any(part in route.path for part in early) and WHO[who] not in allowed_early


@pytest.fixture(scope="module")
def office(desk):
    furnish(desk.database, name="hearts")
    furnish(desk.database, name="table")
    furnish(desk.database, name="others", people={"zoe": "reviewer"})
    return desk


@pytest.mark.slow
@ON_ONE_DATABASE
def test_who_has_no_role_in_a_study_has_none_by_another(office):
    for who in ("ada", "judy", "coco", "max", "aud", "root", "maker", "nobody"):
        client = office.client(who)
        for route in ROUTES:
            if "{study}" in route.path:
                path = _filled(route.path).replace("hearts", "others")
                sent = {"body": {}} if path.startswith("/api/") and route.method != "GET" else {}
                assert client.ask(route.method, path, **sent).status == 403, (who, route.name)


def test_a_study_that_is_not_there_tells_no_more_than_one_that_is_not_yours(office):
    client = office.client("ada")
    there, not_there = (client.get(f"/s/{name}/i/1") for name in ("others", "nothing"))
    assert there.status == not_there.status == 403
    without = [re.sub("others|nothing", "", reply.text) for reply in (there, not_there)]
    assert without[0] == without[1]


def test_who_is_not_signed_in_gets_to_the_sign_in_and_no_further(office):
    for route in ROUTES:
        client = Client(office.url)
        reply = client.ask(
            route.method,
            _filled(route.path),
            **({"body": {}} if "/api/" in route.path and route.method != "GET" else {}),
        )
        if ANYONE in route.may:
            assert reply.status not in (401,) or route.path == "/login", route.name
        elif route.path.startswith("/api/") or route.method == "POST":
            assert reply.status == 401, (route.name, reply.status)
        else:
            assert reply.status == 303 and reply.goes_to.startswith("/login?next="), route.name


def test_what_is_refused_is_logged_with_who_and_where(office):
    client = office.client("ben")
    assert client.get("/s/hearts/agreement").status == 403
    assert "coordinator" in client.get("/s/hearts/agreement").text  # names the role needed
    assert client.post("/s/hearts/close").status == 403
    log = office.client("coco").get("/s/hearts/log").text
    refused = re.findall(r'<tr class="refused">.*?</tr>', log)
    assert len([row for row in refused if "Ben" in row and "/s/hearts/agreement" in row]) == 2
    assert any("Ben" in row and "POST /s/hearts/close" in row for row in refused)


@pytest.mark.slow
@ON_ONE_DATABASE
def test_what_every_role_meets_on_every_route_by_every_method(office):
    paths = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = route
    counted = 0
    for who in sorted(
        WHO, key=lambda one: one == "coco"
    ):  # the coordinator last: it closes the study
        counted += _meet(office, who, paths)
    assert counted == len(WHO) * len(METHODS) * len(paths)


def _meet(office, who, paths):
    counted = 0
    closed = False
    for path, methods in paths.items():
        client = office.client(who)
        for method in METHODS:
            route = methods.get(method)
            sent = {"body": {}} if path.startswith("/api/") and method != "GET" else {}
            if (method, path) == ("POST", "/s/{study}/close"):
                sent = {"confirm": "table"}
            reply = client.ask(method, _filled(path).replace("hearts", "table"), **sent)
            counted += 1
            where = (who, method, path, reply.status)
            assert reply.status < 500, where
            if route is None:
                assert reply.status == 405, where
            elif ANYONE in route.may:
                assert reply.status != 403, where
            elif route.may & _roles(who):
                early = not closed and _refusable(route, who)
                assert (reply.status == 403) is early and reply.status != 401, where
                closed = closed or route.name.endswith("POST /s/{study}/close")
            else:
                assert reply.status == 403, where
    return counted


def test_every_role_of_a_study_is_in_the_table():
    used = {role for route in ROUTES for role in route.may}
    assert used == {*STUDY_ROLES, "admin", "creator", ACCOUNT, ANYONE}


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        # Rows of the specification's table (5, Roles), written out by hand.
        (
            "reviewer",
            {"/s/{study}/i/{n}"},
            {"/s/{study}/items/{n}", "/s/{study}/adjudicate/{n}", "/s/{study}/log"},
        ),
        (
            "adjudicator",
            {"/s/{study}/adjudicate/{n}"},
            {
                "/s/{study}/i/{n}",
                "/s/{study}/close",
                "/s/{study}/log",
                "/s/{study}/export.json",
            },
        ),
        (
            "coordinator",
            {
                "/s/{study}/progress",
                "/s/{study}/agreement",
                "/s/{study}/close",
                "/s/{study}/import",
                "/s/{study}/export.json",
                "/s/{study}/log",
            },
            {"/s/{study}/i/{n}", "/s/{study}/adjudicate/{n}", "/admin/users", "/audit"},
        ),
        (
            "maintainer",
            {"/s/{study}/import", "/s/{study}/export.json"},
            {"/s/{study}/i/{n}", "/s/{study}/close", "/s/{study}/log", "/s/{study}/agreement"},
        ),
        (
            "auditor",
            {"/s/{study}/items/{n}", "/s/{study}/export.json", "/audit", "/s/{study}/window"},
            {
                "/s/{study}/i/{n}",
                "/s/{study}/close",
                "/s/{study}/import",
                "/s/{study}/adjudicate/{n}",
            },
        ),
        (
            "admin",
            {"/admin/users", "/audit"},
            {route.path for route in ROUTES if "{study}" in route.path},
        ),
    ],
)
def test_the_rows_of_the_specification(role, may, may_not):
    granted = {route.path for route in ROUTES if role in route.may}
    assert may <= granted
    assert not may_not & granted
