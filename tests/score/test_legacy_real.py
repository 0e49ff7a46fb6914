"""The real environment of legacy metrics: tiny random checkpoints through the real worker, the
original MoverScore and bert-score as oracles.
"""

import json
import os
import random
import signal
import subprocess
import threading
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import pytest
from tests.conftest import absent

from medassay.errors import IncompleteError
from medassay.score.catalog import TEXT_MEASURES
from medassay.score.contextual import Encoder
from medassay.score.measure import Pair
from medassay.score.moverscore import Rarity, mover_score

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-legacy/bin/python"
NAMES = {"bleurt": "bleurt", "chexbert": "chexbert", "f1_radgraph": "radgraph"}
WORDS = [
    "the",
    "patient",
    "has",
    "pain",
    "no",
    "acute",
    "finding",
    "lungs",
    "are",
    "clear",
    "effusion",
    "left",
    "right",
    "stop",
    "start",
    "aspirin",
    "mg",
    "5",
    "s",
]
PAIRS: list[Pair] = [
    ("no acute finding. the lungs are clear", "lungs are clear, no effusion"),
    ("left effusion, pneumonia right", "left effusion"),
    ("normal heart size", "normal heart size"),
]
pytestmark = [pytest.mark.slow, pytest.mark.local_model]


@pytest.fixture(scope="module")
def legacy():
    if not PYTHON.exists():
        absent("the environment of legacy metrics is not here (make legacy)")
    return str(PYTHON)


@pytest.fixture(scope="module")
def checkpoints(legacy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    script = Path(__file__).with_name("make_legacy.py")
    done = subprocess.run(
        [legacy, str(script), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def made(legacy, checkpoints, tmp_path_factory):
    """Return what makes a metric by its name, once: its worker loads torch, ten seconds of work."""
    data = tmp_path_factory.mktemp("data")
    (data / "medassay").mkdir()
    (data / "medassay/legacy-metrics").symlink_to(ROOT / ".venv-legacy")

    @cache
    def make(name):
        return metrics.enter_context(closing(TEXT_MEASURES[name](str(checkpoints / NAMES[name]))))

    with pytest.MonkeyPatch.context() as patched, ExitStack() as metrics:
        patched.setenv("XDG_DATA_HOME", str(data))
        yield make


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_scores_by_its_real_library(made, name):
    metric = made(name)
    values = metric.score(PAIRS)
    [scale] = metric.columns.values()
    assert all(scale.lo <= value <= scale.hi for (value,) in values)
    assert values == metric.score(PAIRS)
    if name != "bleurt":
        assert values[2] == (1.0,)


def test_a_checkpoint_that_is_damaged_ends_the_work_and_says_why(made, checkpoints, tmp_path):
    broken = tmp_path / "bleurt"
    broken.mkdir()
    for file in (checkpoints / "bleurt").iterdir():
        (broken / file.name).write_bytes(
            file.read_bytes()[: 10 if file.suffix == ".safetensors" else None]
        )
    metric = TEXT_MEASURES["bleurt"](str(broken))
    with pytest.raises(IncompleteError, match="its model cannot be loaded"):
        metric.score(PAIRS[:1])
    metric.close()


@pytest.mark.slow
def test_killing_the_real_worker_at_random_loses_and_doubles_nothing(made):
    metric = made("bleurt")
    rng = random.Random(2)
    pairs = [
        (" ".join(rng.choices(WORDS, k=8)), " ".join(rng.choices(WORDS, k=8))) for _ in range(64)
    ]
    whole = metric.score(pairs)
    found: list = []
    over = threading.Event()

    def work():
        found.extend(metric.score(pairs))
        over.set()

    thread = threading.Thread(target=work)
    thread.start()
    kills = 0
    while not over.wait(rng.uniform(2.0, 6.0)) and kills < 2:
        if metric._worker.pid:
            os.kill(metric._worker.pid, signal.SIGKILL)
            kills += 1
    if not kills:  # done before the first moment came: kill what waits, and ask once more
        os.kill(metric._worker.pid, signal.SIGKILL)
    thread.join()
    assert kills or metric._worker.pid
    assert [v for (v,) in found] == pytest.approx([v for (v,) in whole], abs=1e-6)
    again = metric.score(pairs[:4])
    assert [v for (v,) in again] == pytest.approx([v for (v,) in whole[:4]], abs=1e-6)


@pytest.fixture(scope="module")
def oracle(legacy, encoder):
    rng = random.Random(7)
    pairs = [
        (
            " ".join(rng.choices(WORDS, k=rng.randint(2, 14))),
            " ".join(rng.choices(WORDS, k=rng.randint(2, 14))),
        )
        for _ in range(24)
    ]
    asked = {"folder": encoder, "layers": 2, "pairs": pairs}
    script = Path(__file__).with_name("legacy_oracle.py")
    done = subprocess.run(
        [legacy, str(script)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return pairs, json.loads(done.stdout)


@pytest.mark.slow
def test_bertscore_is_that_of_bert_score(oracle, encoder):
    pairs, found = oracle
    ours = [value for (value,) in TEXT_MEASURES["bertscore"](encoder).score(pairs)]
    assert ours == pytest.approx(found["bertscore"], abs=1e-6)


def test_moverscore_is_the_originals(oracle, encoder):
    """The package returns 1 − cost, the repository's later version and published tables 1 / (1 +
    cost).
    """
    pairs, found = oracle
    reader = Encoder(Path(encoder))
    of_said, of_wanted = (Rarity(reader.ids(pair[side]) for pair in pairs) for side in (0, 1))
    encoded = reader.encode([text for pair in pairs for text in pair])
    for (said, wanted), original in zip(pairs, found["moverscore"], strict=True):
        ours = mover_score(encoded[said], encoded[wanted], of_said, of_wanted)
        assert 1 - (1 / ours - 1) == pytest.approx(original, abs=1e-6)
