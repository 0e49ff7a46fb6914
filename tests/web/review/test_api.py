"""The JSON endpoints: whatever is sent to them, they answer as their OpenAPI document says."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.web.review.desk import GOOD, cookie_of

from medassay.web.request_context import SESSION, token_of
from medassay.web.routes import ROUTES

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def headers(desk):
    """Return the headers of somebody's scripts: session, token, origin."""

    def of(who):
        cookie = cookie_of(desk.database, who)
        return {
            "cookie": f"{SESSION}={cookie}",
            "x-csrf-token": token_of(cookie),
            "origin": desk.url,
        }

    return of


def test_the_document_lists_every_json_endpoint(desk):
    desk.study()
    document = desk.client("nobody").get("/api/openapi.json").json
    paths = {route.path for route in ROUTES if route.path.startswith("/api/")} | {"/healthz"}
    assert set(document["paths"]) == paths


def test_no_request_breaks_an_endpoint(desk, headers):
    study = desk.study(n=3)
    schema = schemathesis.openapi.from_url(f"{desk.url}/api/openapi.json")
    checked = []
    for who in ("ada", "coco", "nobody"):
        for result in schema.get_all_operations():
            _check(desk, result.ok(), headers(who), study, checked)
    assert len(checked) > 100
    assert {200, 403, 422} <= set(checked)


def _check(desk, operation, sent, study, checked):
    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case):
        if "study" in (case.path_parameters or {}) and len(checked) % 3:  # else any name
            case.path_parameters |= {
                "study": study,
                **({"n": 1} if "n" in case.path_parameters else {}),
            }
        reply = case.call(base_url=desk.url, headers=sent)
        assert reply.status_code < 500, (case.method, case.path, reply.text[:300])
        case.validate_response(reply, checks=CHECKS)
        checked.append(reply.status_code)

    check()


def test_a_script_drafts_and_submits(desk):
    study = desk.study(n=2)
    ada = desk.client("ada")
    assert ada.get("/healthz").json["status"] == "ok"
    path = f"/api/s/{study}/i/1"
    item = ada.get(path).json
    assert [one["name"] for one in item["aspects"]] == ["question", "answer", "path"]
    saved = ada.ask(
        "PUT", f"{path}/draft", {"fields": {"comment": "x"}, "version": item["version"]}
    )
    missing = ada.ask(
        "POST", f"{path}/review", {"fields": {"answer": "1"}, "version": saved.json["version"]}
    )
    assert missing.status == 422
    assert {one["field"] for one in missing.json["error"]["problems"]} == {
        "question",
        "path",
        "option",
        "comment",
    }
    sent = {"fields": GOOD, "version": saved.json["version"]}
    replies = [ada.ask("POST", f"{path}/review", sent) for _ in range(2)]
    assert [one.status for one in replies] == [201, 201]
    assert replies[0].json == {**replies[1].json, "next": replies[0].json["next"]}
    assert replies[0].json["next"] == 2
    rows = ada.get("/api/studies").json
    assert [(one["done"], one["total"]) for one in rows if one["name"] == study] == [(1, 2)]
    coco = desk.client("coco")
    assert coco.get(f"/api/s/{study}/export").status == 403
    assert {one["done"] for one in coco.get(f"/api/s/{study}/progress").json} == {0, 1}
    assert coco.get(f"/api/s/{study}/agreement").json[0]["alpha"] is None
    coco.get(f"/s/{study}/close")
    coco.post(f"/s/{study}/close", confirm=study)
    assert coco.get(f"/api/s/{study}/export").json["frozen"]["study"]["name"] == study
    assert (
        ada.ask(
            "POST", f"{path}/review", {**sent, "fields": {**GOOD, "path": "5"}, "reason": "r"}
        ).status
        == 409
    )
    assert ada.ask("PUT", f"{path}/draft", {"fields": {"total": "3"}, "version": 0}).status in (
        409,
        422,
    )
