"""What is expected of each place of a fixture: the words of `verify --json`, or the hashes of a
workshop or a study.
"""

import json
import re
from pathlib import Path

import medassay
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import parse_json

# Whether scores and pages are made again depends on the code that verifies; all else must stay.
_REMADE = re.compile(
    r"(?:not )?(?:recomputed|read again|made anew)(?:: other code)?|[0-9]+ of [0-9]+ files made"
    r" anew"
)


def places(folder: Path) -> list[Path]:
    """Return what can be verified in an unpacked fixture, by name."""
    return sorted(one for one in folder.iterdir() if one.name[0] != ".")


def told(place: Path) -> object:
    """Return what is said of one place, without what only depends on which code verifies it."""
    if (place / "journal.jsonl").is_file():
        return _workshop(place)
    if (place / "suites").is_dir():
        return _suite(place)
    if place.suffix == ".json":
        document = parse_json(place.read_bytes(), place.name)
        assert sha256_hex(canonical(document["frozen"])) == document["sha256"]
        return document["sha256"]
    report = medassay.verify(place)
    assert report.ok, report.first_mismatch
    # All were made at the first revision of every part: whatever is raised later must be said here.
    unread = [check["detail"] for check in report.checks if "not re" in check["detail"]]
    assert not unread, unread
    return [
        [check["name"], check["ok"], " ".join(_REMADE.sub("…", check["detail"]).split())]
        for check in report.checks
    ]


def _suite(place: Path) -> object:
    from medassay.suite.results import results_of
    from medassay.suite.run import open_suite

    [folder] = (place / "suites").iterdir()
    suite = open_suite(folder)
    numbers = [
        [one.benchmark, one.metric, one.model, one.value, one.lo, one.hi, one.n]
        for one in results_of(suite)
    ]
    runs = {run.name: told(run) for run in sorted((place / "runs").iterdir())}
    return {"numbers": numbers, "runs": runs}


def _workshop(place: Path) -> object:
    from medassay.bank.folder import load_bank
    from medassay.synthesis.project import read_workshop

    shop = read_workshop(place)
    bank = load_bank(place / "bank", lock=None)
    steps = [f"{event.record['step']} {event.record['subject']}" for event in shop.events]
    return {"steps": steps, "last": shop.events[-1].hash, "bank": bank.content_hash}


def dumped(found: object) -> str:
    """Return an expectation as it is stored."""
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"
