"""Calling functions of a user in a process of their own."""

import asyncio
import atexit
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, TypeVar

from medassay.core.canonical import sha256_hex
from medassay.core.json import storable, storable_value
from medassay.core.records.own_code import OWN_CODE, CodePart, OwnCode, Role
from medassay.core.secret import secrets
from medassay.errors import InputError
from medassay.own_code.worker import with_length

_LONGEST_LOAD = 120.0  # seconds at most for loading a file: it may import large libraries
_LARGEST = 64 * 2**20  # bytes of a reply
_LONGEST_REASON = 200
_BLOCK = 1 << 16
T = TypeVar("T")


class OwnCodeError(Exception):
    """Own code did not do what it is there for; the text says which code and why."""


class CodeProcess:
    """A process that holds one part of own code; one call at a time.

    The process gets no more of the environment than what finds programs and files, and no open
    file. It is ended, and another one started, where it does not answer in time.
    """

    def __init__(self, role: Role, part: CodePart, seconds: float) -> None:
        self._role, self._part, self._seconds = role, part, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._unloadable = ""  # why the file cannot be loaded: it is not tried again

    def load(self) -> None:
        """Start the process and load the code.

        Raises
        ------
        OwnCodeError
            When it cannot be loaded, or its signature is not that of its role.
        """
        with self._lock:
            self._started()

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a function gives, as plain JSON values.

        Raises
        ------
        OwnCodeError
            When it raises, ends the process, or does not return in time.
        """
        with self._lock:
            process = self._started()
            return self._exchange(process, (name, arguments), self._seconds)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._unloadable:
            raise OwnCodeError(self._unloadable)
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "medassay.own_code.worker"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=tempfile.gettempdir(),
                env=_environment(),
                start_new_session=True,
            )
            part = self._part
            setup = {"role": self._role, "function": part.function, "file": part.file}
            longest = max(_LONGEST_LOAD, self._seconds)
            try:
                self._exchange(self._process, ({**setup, "text": part.text},), longest)
            except OwnCodeError as error:
                self.close()
                self._unloadable = str(error)
                raise
        return self._process

    def _exchange(
        self, process: "subprocess.Popen[bytes]", request: tuple[Any, ...], seconds: float
    ) -> Any:
        """Send a request and return the value of its reply.

        A reply bears the number of its request, which nobody can foresee: one that the code wrote
        itself, or left behind, cannot be taken for the reply to a later request.
        """
        until = time.monotonic() + seconds
        number = uuid.uuid4().hex
        try:
            _send(process, with_length(pickle.dumps((number, *request))), until)
            reply = json.loads(self._read(process, until))
        except TimeoutError:
            self.close()
            raise self._error(f"did not return within {seconds:g} s") from None
        except (OSError, ValueError, RecursionError):
            self.close()
            raise self._error("ended its process, or wrote into its answers") from None
        is_reply = isinstance(reply, dict) and reply.keys() in (
            {"number", "value"},
            {"number", "error"},
        )
        if not is_reply or reply["number"] != number:
            self.close()
            raise self._error("wrote into its answers")
        if "error" in reply:
            raise self._error(str(reply["error"]))
        return storable_value(reply["value"])

    def _read(self, process: "subprocess.Popen[bytes]", until: float) -> bytes:
        """Return the next message.

        Raises
        ------
        TimeoutError
            When it does not come in time.
        OSError
            When the process ended, or says that more than `_LARGEST` bytes come.
        """
        data = bytearray()
        while True:
            size = int.from_bytes(data[:8], "big") if len(data) >= 8 else 0
            if size > _LARGEST:
                raise OSError
            if len(data) >= 8 and len(data) >= 8 + size:
                return bytes(data[8 : 8 + size])
            remaining = until - time.monotonic()
            assert process.stdout is not None
            if remaining <= 0 or not select.select([process.stdout], [], [], remaining)[0]:
                raise TimeoutError
            block = os.read(process.stdout.fileno(), _BLOCK)
            if not block:
                raise OSError
            data += block

    def _error(self, why: str) -> OwnCodeError:
        line = " ".join(storable(secrets.redact(why)).split())
        return OwnCodeError(f"{OWN_CODE} {self._part.name}: {line[:_LONGEST_REASON]}")


_PASSED_ON = (
    *("PATH", "HOME", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "XDG_CACHE_HOME", "XDG_DATA_HOME", "MEDASSAY_DATA"),
)
_FAMILIES = ("LC_", "PYTHON", "CUDA_")


def _environment() -> dict[str, str]:
    """Return what of the environment finds programs, files and devices; keys are none of it.

    Modules are found where this process finds them, medassay among them.
    """
    passed_on = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith(_FAMILIES)
    }
    # Absolute: the process has another working folder, into which anybody may write.
    places = [os.path.abspath(place) for place in sys.path if place]
    return passed_on | {"PYTHONPATH": os.pathsep.join(places)}


def _send(process: "subprocess.Popen[bytes]", message: bytes, until: float) -> None:
    """Write a message.

    Raises
    ------
    TimeoutError
        When it is not taken in time.
    """
    assert process.stdin is not None
    handle = process.stdin.fileno()
    os.set_blocking(handle, False)
    rest = memoryview(message)
    while rest:
        remaining = until - time.monotonic()
        if remaining <= 0 or not select.select([], [handle], [], remaining)[1]:
            raise TimeoutError
        rest = rest[os.write(handle, rest[:_BLOCK]) :]


_processes: dict[tuple[Role, CodePart, float], CodeProcess] = {}
_making = threading.Lock()


def process_of(code: OwnCode, role: Role) -> CodeProcess:
    """Return the process of a part; one for each part in each process of medassay.

    Raises
    ------
    OwnCodeError
        When the code may not run here, or is not at hand.
    """
    part = code.parts[role]
    if not code.runs:
        raise OwnCodeError(f"{OWN_CODE} {part.name}: is not executed here")
    if not part.package and sha256_hex(part.text) != part.sha256:
        raise OwnCodeError(f"{OWN_CODE} {part.name}: its text is not at hand")
    with _making:
        key = (role, part, code.seconds)
        if key not in _processes:
            _processes[key] = CodeProcess(role, part, code.seconds)
        return _processes[key]


def load_all(code: OwnCode) -> None:
    """Load every part, so that what cannot work is told before anything is asked.

    Raises
    ------
    InputError
        Naming the first part that cannot be loaded, or has another signature than its role.
    """
    for role in code.parts:
        try:
            process_of(code, role).load()
        except OwnCodeError as error:
            raise InputError(f"plan: 'task.{role}': {error}") from None


async def run_beside(thread: Executor, work: Callable[[], T]) -> T:
    """Return what `work` gives, while the loop of events goes on."""
    return await asyncio.get_running_loop().run_in_executor(thread, work)


def close_all() -> None:
    """End all processes; the next call starts them again."""
    with _making:
        processes = list(_processes.values())
    for process in processes:
        process.close()


atexit.register(close_all)
