"""Every run that earlier code sealed, of every kind, and every published copy, has its pages."""

from collections import Counter
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from tests.net.fixtures import FIXTURES
from tests.packs import unpack

from medassay.core.records.trial import TRIAL_KEY
from medassay.storage.run import SEAL
from medassay.viewer.place import ViewedPlace
from medassay.viewer.trial import trial_detail
from medassay.web.viewer.app import build_viewer


@pytest.mark.parametrize("name", FIXTURES)
def test_all_pages_of_a_sealed_run_are_shown(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    unpack(name, tmp_path / "pack")
    runs = sorted(seal.parent for seal in (tmp_path / "pack").rglob(SEAL))
    if not runs:
        assert name in ("review", "workshop")
    for run in runs:
        check_pages(ViewedPlace(str(run)), published="site" in run.parts)


def check_pages(place, *, published):
    client = TestClient(build_viewer(place), raise_server_exceptions=True)
    base = f"/run/{place.only}"
    viewed = place.open(place.only)
    viewed.index.catch_up()
    n = viewed.index.n_trials
    assert n == viewed.run.statistics.n_trials == len(viewed.run.trials())
    for page in ("/", "/trials", "/failures", "/compare", "/trials?sort=spread&down=yes"):
        reply = client.get(f"{base}{page}")
        assert reply.status_code == 200, (page, reply.text[-500:])
    exact = Counter()
    for number in range(0, n, max(1, n // 6)):
        detail = trial_detail(viewed.index, number)
        query = urlencode(dict(zip(TRIAL_KEY, detail.trial.place, strict=True)))
        reply = client.get(f"{base}/trial?{query}")
        assert reply.status_code == 200, reply.text[-500:]
        assert detail.sha256 in reply.text
        sent = viewed.prompts.of_trial(detail.trial, detail.document.get("prompt_sha256", ""))
        exact["exact" if sent.exact else sent.reason] += 1
        record = client.get(f"{base}/record?{query}").json()
        assert record["trial"] == detail.document
    assert published or not any("another hash" in reason for reason in exact), exact
    place.stop()
