import asyncio
import atexit
import gc
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Tests write a hundred thousand small files, some 0.2 GB of them at a time. Making one on a disk
# takes up to fifty times the computing that it takes in memory.
if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
# Tests make many objects and few circles, collecting them makes none: looking for circles after
# every 700 objects, as Python does unless told otherwise, costs more than what is found.
gc.set_threshold(20_000)
if "PYTEST_XDIST_WORKER" in os.environ:
    # Tests beside each other: threads of each for every core would wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example is timed, nor how fast examples are made: machines are loaded.
settings.register_profile("medassay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("medassay")

# Files that a test lays over a copy of the package.
collect_ignore_glob = ["contributing/additions/*"]

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"


def pytest_configure(config):
    # A key of the developer's must never reach a test.
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            del os.environ[name]


def pytest_collection_modifyitems(items):
    # Files with slow tests come first: at the end one worker would do them while the others wait.
    slow = Counter(
        item.path for item in items if any(map(item.get_closest_marker, ("slow", "local_model")))
    )
    items.sort(key=lambda item: -slow[item.path])


# Where files of tests start → what they share: one worker takes them all, for the rest would load
# torch, or start PostgreSQL, an object store and servers, once more.
TOGETHER = {
    "tests/docs/test_commands.py": "torch",
    "tests/model/": "torch",
    "tests/runner/engine/test_coordinator.py": "torch",
    "tests/runner/engine/test_inquiry.py": "store",
    "tests/runner/engine/test_object_store.py": "store",
    "tests/runner/test_likelihood_run.py": "torch",
    "tests/runner/test_text_run.py": "torch",
    "tests/score/test_legacy_real.py": "torch",
    "tests/score/test_metrics.py": "torch",
    "tests/storage/": "store",
    "tests/study/test_contexts.py": "torch",
    "tests/study/test_extraction.py": "torch",
    "tests/suite/": "torch",
    "tests/viewer/test_place.py": "store",
    "tests/web/review/": "review",
    "tests/web/viewer/": "viewer",
}


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            names = (name for start, name in TOGETHER.items() if nodeid.startswith(start))
            return next(names, None) or super()._split_scope(nodeid)

    return Together(config, log)


def pytest_collection_finish():
    # Modules and tests stay: the collector would walk over all of them, a third of a second each
    # time.
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    # What a last look for circles finds is told; pytest then looks five times more, through all that
    # a whole suite has loaded. At the very end DuckDB would take what is not freed for a leak.
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)


def absent(reason):
    """Skip, or fail where everything must be there (MEDASSAY_STRICT=1, as in CI)."""
    if os.environ.get("MEDASSAY_STRICT") == "1":
        pytest.fail(f"MEDASSAY_STRICT: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def golden():
    return lambda name: json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def data():
    folder = Path(os.environ.get("MEDASSAY_DATA", "../shared/data"))
    folder = folder if folder.is_absolute() else ROOT / folder
    if not folder.is_dir():
        absent("the public data sets of MEDASSAY_DATA are not here")
    return folder


@pytest.fixture
def mock_server(tmp_path):
    """Start mock servers; returns a function of options that gives the base url."""
    started = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "benchmarks" / "mock_server.py"), *map(str, options)],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        port = re.search(r"\d+", process.stdout.readline())[0]
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def object_store():
    """Start a real S3 server on loopback."""
    try:
        import moto  # noqa: F401
        import s3fs  # noqa: F401
    except ImportError:
        absent("no object store: install requirements/scale.txt")
    from tests.object_store import Store

    store = Store()
    yield store
    store.end()


@pytest.fixture
def machine(object_store, tmp_path, monkeypatch):
    """Be a machine with a cache of its own, and a new bucket.

    Returns a function that changes to another machine.
    """
    from tests.object_store import forget_clients

    object_store.shut = False
    bucket = object_store.bucket(f"bucket-{abs(hash(str(tmp_path))) % 10**12}")

    def become(name):
        for key, value in object_store.environment(tmp_path / f"cache-{name}").items():
            monkeypatch.setenv(key, value)
        forget_clients()

    become("one")
    become.bucket = bucket
    become.store = object_store
    yield become
    object_store.shut = False
    forget_clients()


@pytest.fixture(scope="session")
def chromium():
    path = Path("/usr/bin/chromium-headless-shell")
    if not path.exists():
        absent("no browser: install Debian's chromium-headless-shell")
    return str(path)


@pytest.fixture(scope="session")
def open_browser(chromium):
    """Start a browser; returns it with the event loop that its library keeps running."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield opened, loop
        asyncio._set_running_loop(loop)
        opened.close()


@pytest.fixture(scope="module")
def browser(open_browser):
    """Return the browser of all files: starting one takes eight seconds of computing on a slow
    machine.

    Only a file that uses it sees a running loop, which would forbid `asyncio.run` to all others.
    """
    opened, loop = open_browser
    asyncio._set_running_loop(loop)
    try:
        yield opened
        for context in opened.contexts:
            context.close()
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """Make a tiny random Llama with a byte-level tokenizer: real code, no download."""
    try:
        import tokenizers
        import torch
        import transformers
    except ImportError:
        absent("the extra [local] is not installed")
    folder = tmp_path_factory.mktemp("tiny")
    base = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            # Sorted: the alphabet comes in another order each time, and some orders end a reply
            # early.
            {c: i for i, c in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))},
            [],
        )
    )
    base.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=base, eos_token="<e>", pad_token="<p>"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """Run commands in a folder of their own; returns code, output and errors."""
    from medassay.cli.main import call

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = call([str(a) for a in arguments])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


WORDS = (
    "the patient has pain in chest no acute finding lungs are clear stop start aspirin mg 5 , . ##s"
    " ##ing"
)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """Make a tiny random DistilBERT with WordPiece tokens, for metrics that read texts."""
    try:
        import tokenizers
        import torch
        import transformers
    except ImportError:
        absent("the extra [metrics] is not installed")
    folder = tmp_path_factory.mktemp("encoder")
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*WORDS.split(), *letters, *(f"##{c}" for c in letters)]
    vocabulary = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])
    numbers = {piece: number for number, piece in enumerate(vocabulary)}
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    base = tokenizers.BertWordPieceTokenizer(vocab=numbers, lowercase=True)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=base._tokenizer,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_max_length=64,
    ).save_pretrained(folder)
    # As real checkpoints have it, so that older libraries read it too.
    told = folder / "tokenizer_config.json"
    kept = json.loads(told.read_text()) | {
        "tokenizer_class": "DistilBertTokenizer",
        "do_lower_case": True,
    }
    told.write_text(json.dumps(kept))
    torch.manual_seed(11)
    config = transformers.DistilBertConfig(
        vocab_size=len(numbers),
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=2,
        max_position_embeddings=64,
    )
    transformers.DistilBertModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def bge(encoder, tmp_path_factory):
    """Return the tiny encoder with random heads of BGE-M3."""
    import shutil

    import torch

    folder = tmp_path_factory.mktemp("bge") / "tiny-bge"
    shutil.copytree(encoder, folder)
    torch.manual_seed(12)
    for name, width in (("sparse_linear.pt", 1), ("colbert_linear.pt", 32)):
        head = torch.nn.Linear(32, width)
        torch.save(head.state_dict(), folder / name)
    return str(folder)
