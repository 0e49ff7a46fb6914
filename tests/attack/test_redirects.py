"""No key and no question reaches another host than the one that the entry names: redirects,
proxies, names that change.
"""

import asyncio

import pytest

from medassay.errors import Permanent
from medassay.model.catalog import PROVIDERS
from medassay.model.embeddings import EndpointEmbedder
from tests import makers
from tests.attack.redirects import KEY, PROMPT, SAMPLING, WAYS, entry
from tests.attack.servers import says


def ask(way, spec):
    """Ask once in one of the ways; return the error."""

    async def once():
        if way == "embeddings":
            asked = EndpointEmbedder(spec, {"KEY": KEY})
            work = asked.embed(["Q00001"])
        else:
            asked = PROVIDERS[spec.provider](spec, {"KEY": KEY})
            work = asked.complete(PROMPT, SAMPLING, repeat=0)
        try:
            return await work
        finally:
            await asked.close()

    with pytest.raises(Permanent) as caught:
        asyncio.run(once())
    return str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("way", WAYS)
def test_no_redirect_is_followed(way, status, hostile, canary):
    elsewhere = f"http://localhost:{canary.port}/v1/take?key=abc"
    server = hostile(lambda path, headers, body: (status, {"Location": elsewhere}, ""))
    said = ask(way, entry(way, server.url))
    assert (canary.connections, canary.heard) == (0, b"")
    assert len(server.requests) == 1
    assert f"HTTP {status}" in said
    assert server.url in said
    assert f"http://localhost:{canary.port}/v1/take" in said
    assert KEY not in said


@pytest.mark.parametrize("way", WAYS)
def test_a_redirect_to_the_same_host_or_to_nowhere_is_refused_too(way, hostile):
    for location in (
        {"Location": "/v2"},
        {},
        {"Location": "http://[::bad"},
        {"Location": f"/?k={KEY}"},
    ):
        server = hostile(lambda path, headers, body, to=location: (307, to, ""))
        said = ask(way, entry(way, server.url))
        assert len(server.requests) == 1
        assert "redirects are not followed" in said
        assert KEY not in said


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("way", WAYS)
def test_no_proxy_of_the_environment_is_used(way, variable, hostile, canary, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, f"http://localhost:{canary.port}")
    server = hostile(lambda path, headers, body: (404, {}, {"error": {"message": "no"}}))
    assert "404" in ask(way, entry(way, server.url))
    assert (canary.connections, canary.heard) == (0, b"")
    # The model, and the list of models that a 404 is explained by.
    assert len([path for path, *_ in server.requests if not path.endswith("/models")]) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("host", ["93.184.216.34", "[2606:2800:220:1::1]", "169.254.169.254"])
def test_a_local_entry_at_an_address_elsewhere_is_not_connected_to(way, host):
    said = ask(way, entry(way, f"http://{host}:9", location="local"))
    assert "no loopback or private address" in said
    assert "trusted_hosts" in said


def run_of(tmp_path, url, may_leave, **models):
    makers.write_bank(tmp_path / "bank", makers.law_items(), may_leave=may_leave)
    makers.write_models(tmp_path, makers.endpoint(url, timeout=2), **models)
    return makers.write_plan(tmp_path)


def test_a_bank_that_may_not_leave_is_not_sent_to_a_local_entry_that_is_elsewhere(cli, tmp_path):
    for host in ("93.184.216.34", "no-such-host.invalid"):
        plan = run_of(tmp_path, f"http://{host}:9/v1", may_leave=False)
        code, _, errors = cli("run", plan)
        assert code == 3
        assert "may not leave" in errors
        assert host in errors
        assert "trusted_hosts" in errors
        assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("vendor", ["anthropic", "google", "mistral"])
def test_a_vendors_own_address_is_not_of_this_place(cli, tmp_path, vendor, monkeypatch):
    monkeypatch.setenv("KEY", KEY)
    plan = run_of(tmp_path, "", may_leave=False)
    given = {"id": "m", "provider": vendor, "location": "local", "api_key_env": "KEY"}
    makers.write_models(tmp_path, given)
    code, _, errors = cli("run", plan)
    assert code == 3
    assert "names no 'url'" in errors


def test_a_trusted_host_is_one_of_this_place(cli, tmp_path, hostile):
    server = hostile(lambda path, headers, body: (200, {}, says("A")))
    plan = run_of(tmp_path, f"{server.url}/v1", may_leave=False)
    assert cli("run", plan)[0] == 0
    plan = run_of(
        tmp_path, "http://93.184.216.34:9/v1", may_leave=False, trusted_hosts=["93.184.216.34"]
    )
    code, out, _ = cli("run", plan, "--plan")
    assert code == 0, out


def test_proxies_are_named_by_doctor_and_in_the_manifest(cli, tmp_path, hostile, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hidden-password@proxy.example:3128")
    server = hostile(lambda path, headers, body: (200, {}, says("A")))
    plan = run_of(tmp_path, f"{server.url}/v1", may_leave=True)
    code, out, _ = cli("doctor")
    assert code == 0
    assert "HTTPS_PROXY" in out
    assert "hidden-password" not in out
    assert cli("run", plan)[0] == 0
    manifest = next((tmp_path / "runs").glob("*/manifest.json")).read_text()
    assert '"proxies":["HTTPS_PROXY"]' in manifest
    assert "hidden-password" not in manifest
