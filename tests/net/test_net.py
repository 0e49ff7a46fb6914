"""Everything that was sealed by an earlier day's code verifies as it did then."""

import json

import pytest

from tests.net.fixtures import FIXTURES
from tests.net.verifying import places, told
from tests.packs import PACKS, unpack


@pytest.mark.parametrize("name", FIXTURES)
def test_what_was_sealed_verifies_as_before(name, tmp_path):
    unpack(name, tmp_path)
    wanted = json.loads((PACKS / f"{name}.json").read_text())
    found = {place.name: json.loads(json.dumps(told(place))) for place in places(tmp_path)}
    assert found == wanted


def test_every_fixture_has_its_pack_and_every_pack_its_fixture():
    packs = {path.name.removesuffix(".tar.xz") for path in PACKS.glob("*.tar.xz")}
    assert packs == {*FIXTURES, "earlier_ranks"}
    assert {path.stem for path in PACKS.glob("*.json")} == {*FIXTURES}


@pytest.mark.parametrize("name", ["closed", "facts", "signed_site", "review", "workshop"])
def test_one_flipped_byte_is_found(name, tmp_path):
    unpack(name, tmp_path)
    [largest] = sorted(
        (
            p
            for p in tmp_path.rglob("*.json*")
            if p.is_file() and "seal" not in p.name and p.name != "plan.json"
        ),
        key=lambda path: path.stat().st_size,
    )[-1:]
    data = bytearray(largest.read_bytes())
    at = data.index(b"e", len(data) // 2)
    data[at] = ord("f")
    largest.chmod(0o644)
    largest.write_bytes(bytes(data))
    wanted = json.loads((PACKS / f"{name}.json").read_text())
    try:
        found = {place.name: json.loads(json.dumps(told(place))) for place in places(tmp_path)}
    except Exception:  # noqa: BLE001 -- refused in whichever way
        return
    assert found != wanted
