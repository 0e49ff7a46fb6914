"""Files of others, changed at random: imported, or refused in one line.

Never a traceback, a hang or half a run.

Sixteen changes of each of seven forms; `ATTACK_TIMES=72` tries 504, as the first attack did.
"""

import json
import os
import random
import shutil
import time

import pytest

from tests.exchange import ddx_tables, harness_logs, healthbench_rows, prediction_tables

TIMES = int(os.environ.get("ATTACK_TIMES", "16"))
LONGEST = 20  # seconds of one import on a loaded machine
ODD = [
    None,
    True,
    -1,
    1e308,
    float("nan"),
    2**70,
    "",
    "\x00",
    "\ud800",
    "../../etc/passwd",
    "=cmd|' /C calc'!A0",
    "x" * 100_000,
    [],
    {},
    [[[[]]]],
    {"a": {"b": {}}},
]


def csv_of(folder):
    path = prediction_tables.table(folder, prediction_tables.rows())
    columns = ",".join(f"{k}={v}" for k, v in prediction_tables.COLUMNS.items())
    return path, ["csv", path, "--columns", columns], path


def labels_of(folder):
    path = ddx_tables.labels(folder, *ddx_tables.GOOD)
    return path, ["ddx", path], path


def rubrics_of(folder):
    path = folder / "r.jsonl"
    path.write_text("".join(json.dumps(healthbench_rows.GIVEN) + "\n" for _ in range(1)))
    return path, ["healthbench", path, "--model", "m"], path


def copied(name, changed="*"):
    def made(folder):
        source = harness_logs.ONE[name]
        place = folder / source.name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place)
        files = (
            sorted(p for p in place.rglob(changed) if p.is_file()) if place.is_dir() else [place]
        )
        return place, [name, place], files[0]

    return made


def inspect_json(folder):
    place = shutil.copy(harness_logs.INSPECT / "doses-m1.json", folder)
    return place, ["inspect", place], folder / "doses-m1.json"


SEEDS = {
    "csv": csv_of,
    "labels of diagnoses": labels_of,
    "answers with criteria": rubrics_of,
    "Inspect, packed": copied("inspect"),
    "Inspect, JSON": inspect_json,
    "lm-eval": copied("lm-eval", "samples_*.jsonl"),
    "HELM": copied("helm", "per_instance_stats.json"),
}


def places(value, at=()):
    """Yield every place in JSON values."""
    if at:
        yield at
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        yield from places(inner, (*at, key))


def with_odd_value(text, chance):
    """Return a JSON document, or lines of some, with one value replaced or removed."""
    lines = text.splitlines() if text.lstrip()[:1] == "{" and "\n{" in text else [text]
    at = chance.randrange(len(lines))
    document = json.loads(lines[at])
    *before, last = chance.choice(list(places(document)))
    holder = document
    for key in before:
        holder = holder[key]
    if chance.random() < 0.3:
        del holder[last]
    else:
        holder[last] = chance.choice(ODD)
    lines[at] = json.dumps(document)
    return "\n".join(lines) + "\n"


def damaged(data, chance):
    """Return bytes with a bit flipped, a part gone, doubled, or put elsewhere."""
    made = bytearray(data)
    start, end = sorted(chance.randrange(len(made)) for _ in range(2))
    kind = chance.randrange(5)
    if kind == 0:
        made[start] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del made[start:end]
    elif kind == 2:
        made[start:start] = made[start:end]
    elif kind == 3:
        made[start:start] = chance.choice(
            [b"\x00", b"\xff\xfe", b'"', b"\r", b"\n\n", b",,,,", b"{" * 5000]
        )
    else:
        made = made[:start]
    return bytes(made)


@pytest.mark.parametrize("form", SEEDS)
def test_a_changed_file_is_imported_or_refused_in_one_line(form, tmp_path, cli):
    chance = random.Random(form)
    imported = 0
    for number in range(TIMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, arguments, path = SEEDS[form](folder)
        data = path.read_bytes()
        if number:  # the first is as it was, and must be imported
            packed = data[:2] == b"PK"
            structured = path.suffix in (".json", ".jsonl") and chance.random() < 0.6 and not packed
            changed = (
                with_odd_value(data.decode(), chance).encode("utf-8", "surrogatepass")
                if structured
                else damaged(data, chance)
            )
            path.write_bytes(changed)
        began = time.monotonic()
        code, out, errors = cli("import", *arguments, "--to", folder / "run")
        assert time.monotonic() - began < LONGEST, number
        assert code in (0, 3), (number, code, errors)
        assert "Traceback" not in out + errors
        imported += code == 0
        if code:
            assert len(errors.strip().splitlines()) == 1, (number, errors)
        assert (folder / "run" / "seal.json").exists() == (code == 0), number
        assert (folder / "run").exists() == (code == 0), number
        assert number or code == 0, errors
    assert imported >= 1
