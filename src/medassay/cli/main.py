"""The door: reads argv, prints results, turns errors into one line and an exit code."""

import errno
import io
import os
import signal
import sys
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from medassay.cli.output import out
from medassay.core.files import DISK_FULL
from medassay.core.log import log
from medassay.core.private import access
from medassay.core.secret import secrets
from medassay.core.wording import visible
from medassay.errors import (
    IncompleteError,
    IntegrityError,
    Interrupted,
    MedassayError,
    UsageError,
)

# Modules of this folder: `command` of a command, `app` of a group. Each is imported when it is
# called, or where help lists all: building sixty commands for one takes a tenth of a start.
COMMANDS = (
    "clean",
    "compare",
    "demo",
    "doctor",
    "export",
    "forget",
    "init",
    "judge",
    "publish",
    "report",
    "run",
    "runs",
    "schema",
    "score",
    "shortlist",
    "show",
    "spend",
    "status",
    "verify",
    "view",
)
GROUPS = {
    "audit": "audit",
    "bank": "bank",
    "dispute": "dispute",
    "import": "imports",
    "index": "index",
    "keys": "keys",
    "metrics": "metrics",
    "prompt": "prompt",
    "review": "review",
    "study": "study",
    "suite": "suite",
}
_MAKE_ROOM = "free some space and give the same command again"
_READER_LEFT = 128 + signal.SIGPIPE  # as shells say it of other programs; 1 is a check's no
_FLAGS = {"--json": "json", "--quiet": "quiet", "--debug": "debug"}

# typer brings its own click, whose names are private; every usage error descends from this class.
_ClickError: type[Exception] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)

_HELP = (
    "medassay evaluates language models for medicine: banks, runs, honest intervals, ranges "
    "of ranks, boards that anyone can check."
)
_EPILOG = (
    "Everywhere: --json (one JSON document), --quiet, --no-color, --debug (tracebacks), --log"
    " FILE (events as JSON lines; - for standard error), --shared (runs, replies, logs and"
    " databases for one's group, not for their owner alone). Exit codes: 0 done, 1 a check"
    " failed, 2 usage, 3 invalid input, 4 unfinished (resumable), 5 provider, 6 integrity, 130"
    " interrupted (resumable)."
)


def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        from importlib.metadata import version as installed

        out.tell({"version": installed("medassay")}, f"medassay {installed('medassay')}")
        raise typer.Exit


def take_global_flags(arguments: list[str]) -> list[str]:
    """Return the arguments without the flags that every command takes, which set `out`."""
    remaining: list[str] = []
    place = os.environ.get("MEDASSAY_LOG", "")
    out.json = out.quiet = out.debug = access.shared = False
    out.color = "NO_COLOR" not in os.environ
    words = iter(arguments)
    for argument in words:
        if argument == "--":
            remaining += [argument, *words]
        elif argument == "--log" or argument.startswith("--log="):
            place = argument.partition("=")[2] or next(words, "")
            if not place:
                raise UsageError("--log needs a file, or - for standard error")
        elif argument in _FLAGS:
            setattr(out, _FLAGS[argument], True)
        elif argument == "--no-color":
            out.color = False
        elif argument == "--shared":
            access.shared = True
        else:
            remaining.append(argument)
    _refuse_empty(remaining)
    log.close()
    log.listener = out.say
    if place:
        log.open(place)
    return remaining


def _refuse_empty(arguments: list[str]) -> None:
    """Refuse an argument or an option's value that is empty, as of a variable that nobody set: no
    model would stand for all of them, no folder for the one here.
    """
    before, may_be_option = "medassay", True
    for argument in arguments:
        name, equals, value = argument.partition("=")
        is_option = may_be_option and name.startswith("--")
        if not argument or (is_option and equals and not value):
            where = name if equals else f"after '{before}'"
            raise UsageError(f"{where}: empty; expected a value, or nothing at all")
        before, may_be_option = argument, may_be_option and argument != "--"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    # Where a stream was closed (`>&-`), Python has None.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 -- to the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # any text, whatever the terminal takes
    # As Ctrl-C: what was done is kept. Whoever started this with `nohup` wants no end when the
    # terminal closes.
    for stopping in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(stopping) is not signal.SIG_IGN:
            signal.signal(stopping, signal.default_int_handler)
    sys.exit(call(sys.argv[1:] if arguments is None else arguments))


def call(arguments: list[str]) -> int:
    """Return the exit code of one call of the command line."""
    try:
        remaining = take_global_flags(arguments)
        tree = command_line(remaining[0] if remaining else "")
        result = tree(args=remaining, prog_name="medassay", standalone_mode=False)
        sys.stdout.flush()  # a full disk or a closed pipe is heard here, not at exit
        return _stopped() if result == Interrupted.exit_code else int(result or 0)
    except typer.Exit as error:
        return error.exit_code
    except _ClickError as error:
        return _usage(error)
    except KeyboardInterrupt:
        return _stopped()
    except typer.Abort:
        return _failed("Interrupted", "declined; nothing was changed", Interrupted.exit_code)
    except BaseException as error:  # noqa: BLE001 -- of each one line, of a panic in Rust, too
        if out.debug:
            sys.stderr.write(visible(secrets.redact(traceback.format_exc())))
        return _report_error(error)


def command_line(word: str = "") -> TyperGroup:
    """Return the tree of commands: with the one that a word names, or with all."""
    return _built(word if word in COMMANDS or word in GROUPS else "")


@cache  # notebooks and tests call many in one process
def _built(name: str) -> TyperGroup:
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help=_HELP,
        epilog=_EPILOG,
    )
    app.callback(invoke_without_command=True)(_options)
    for command in COMMANDS:
        if name in ("", command):
            app.command(command)(import_module(f"medassay.cli.{command}").command)
    for group, module in GROUPS.items():
        if name in ("", group):
            app.add_typer(import_module(f"medassay.cli.{module}").app, name=group)
    tree = get_command(app)
    assert isinstance(tree, TyperGroup)
    return tree


def _stopped() -> int:
    """Say that the user stopped a command, which typer only tells by its exit code."""
    message = "stopped; everything answered is kept, the same command resumes"
    return _failed("Interrupted", message, Interrupted.exit_code)


def _report_error(error: BaseException) -> int:
    """Print one line for an error, and return its exit code."""
    # Typer and rich make an exit of it where they hear that the reader of our output has left.
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(cause, BrokenPipeError):
        sys.stderr.close()
        return _READER_LEFT
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, MedassayError):
        return _failed(type(error).__name__, str(error), error.exit_code)
    if isinstance(error, OSError):
        name = error.filename2 or error.filename  # of a copy, where it goes
        problem = f"{name}: " if name else ""
        problem += error.strerror or str(error)
        if error.errno in DISK_FULL:
            return _failed("OSError", f"{problem}; {_MAKE_ROOM}", IncompleteError.exit_code)
        if (file := _file_for_folder(error)) is not None:
            problem = f"{file}: is a file, expected a folder; choose another place"
        return _failed("OSError", f"{problem}; nothing was finished", 3)
    if type(error).__module__ == "sqlite3":  # the index of replies, on a full or broken disk
        message = f"responses/index.sqlite: {error}; {_MAKE_ROOM}"
        return _failed("OSError", message, IncompleteError.exit_code)
    # Every expected error is one of ours; what is left is a damaged file or our own mistake.
    message = (
        f"unexpected {type(error).__name__}: {error}; `medassay verify` checks a run, --debug shows"
        " where"
    )
    return _failed("Unexpected", message, IntegrityError.exit_code)


def _file_for_folder(error: OSError) -> Path | None:
    """Return the file that stands where a folder was to be made or found, None where that is not
    what is wrong.
    """
    if error.errno not in (errno.EEXIST, errno.ENOTDIR) or not isinstance(error.filename, str):
        return None
    path = Path(error.filename)
    return next((place for place in (path, *path.parents) if place.is_file()), None)


def _usage(error: Any) -> int:
    message = error.format_message().rstrip(".")
    if (
        message.startswith("Usage:") and not out.json
    ):  # a group without a command: its help is the message
        sys.stderr.write(message + "\n")
        return 2
    return _failed("UsageError", f"{message}; see --help", 2)


def _failed(kind: str, message: str, code: int) -> int:
    if (object_store := sys.modules.get("medassay.storage.object_store")) is not None:
        message = object_store.with_addresses(message)
    message = secrets.redact(message)
    if out.json:
        with suppress(OSError):  # what reads our output is full or gone: the line says why
            out.document({"error": {"kind": kind, "message": message, "exit": code}})
            sys.stdout.flush()
            return code
    with suppress(OSError):  # the exit code says it, too
        sys.stderr.write(visible(f"error: {' '.join(message.split())}") + "\n")
        sys.stderr.flush()
    return code


if __name__ == "__main__":
    main()
