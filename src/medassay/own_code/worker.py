"""The process in which functions of a user run: a request on its standard input, a reply on its
standard output.

Whatever they print goes nowhere, and what they do wrong ends up in a reply.
"""

import importlib
import inspect
import json
import os
import pickle
import sys
import threading
import time
import types
from collections.abc import Mapping
from typing import Any, BinaryIO

from medassay.core.records.answer import Answer

_HEAD = 8  # bytes that say how long a message is
_ARGUMENTS = {"scorer": 2, "parser": 2}  # of a function, by role
_METHODS = {"prompt": 2, "verdict": 3}  # of a grader, with their arguments


def read_message(stream: BinaryIO) -> bytes | None:
    """Return the next message, None at the end."""
    head = stream.read(_HEAD)
    if len(head) < _HEAD:
        return None
    return stream.read(int.from_bytes(head, "big"))


def with_length(message: bytes) -> bytes:
    """Return a message behind its length."""
    return len(message).to_bytes(_HEAD, "big") + message


def main() -> None:
    """Load the code that the first message names, then answer every further one."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    here = os.getpid()
    # Only ever what the process wrote that started this one.
    number, setup = pickle.loads(read_message(requests) or b"")
    functions: dict[str, Any] = {}
    _reply(replies, number, here, lambda: functions.update(_load(setup)))
    while (message := read_message(requests)) is not None:
        number, call, arguments = pickle.loads(message)
        function = functions[call]
        _reply(replies, number, here, lambda f=function, a=arguments: _plain(f(*a)))


def _end_with(parent: int) -> None:
    """End this process once the one that started it is gone, even in the middle of a call."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


class UnfitError(TypeError):
    """Say what of a part is not as its role wants it."""


def _reply(replies: BinaryIO, number: str, here: int, work: Any) -> None:
    """Do some work and answer with what came of it; a process that it split off answers nothing."""
    try:
        reply = json.dumps({"number": number, "value": work()})
    except BaseException as error:  # noqa: BLE001 -- also SystemExit: it ends the call, not the run
        name = "" if isinstance(error, UnfitError) else f"{type(error).__name__}: "
        reply = json.dumps({"number": number, "error": f"{name}{error}".strip(": ")[:300]})
    if os.getpid() != here:
        os._exit(0)
    replies.write(with_length(reply.encode()))
    replies.flush()


def _load(setup: dict[str, Any]) -> dict[str, Any]:
    """Return the functions of a part by the name of the call.

    Raises
    ------
    UnfitError
        When the part is no function or class of the signature that its role has.
    """
    role, name = setup["role"], setup["function"]
    if setup["text"]:
        module = types.ModuleType("own_code")
        module.__file__ = setup["file"]
        sys.modules["own_code"] = module
        exec(compile(setup["text"], setup["file"], "exec"), module.__dict__)
    else:
        module = importlib.import_module(setup["file"])
    if not hasattr(module, name):
        raise UnfitError(f"has no '{name}'")
    part = getattr(module, name)
    if role in _ARGUMENTS:
        _check(part, name, _ARGUMENTS[role])
        return {role: part}
    grader = part()
    for method, n in _METHODS.items():
        _check(getattr(grader, method, None), f"{name}.{method}", n)
    return {method: getattr(grader, method) for method in _METHODS}


def _check(function: Any, name: str, n_arguments: int) -> None:
    if not callable(function):
        raise UnfitError(f"'{name}' is {type(function).__name__}; expected a function")
    if inspect.iscoroutinefunction(function):
        raise UnfitError(f"'{name}' is asynchronous; expected a plain function")
    try:
        inspect.signature(function).bind(*[None] * n_arguments)
    except (TypeError, ValueError) as error:
        raise UnfitError(
            f"'{name}' is called with {n_arguments} arguments and does not take them ({error})"
        ) from None


def _plain(value: Any) -> Any:
    """Return what a function gave as JSON holds it; what JSON cannot hold by its type alone."""
    if isinstance(value, Answer):
        return {"outcome": value.outcome, "value": value.value, "reason": value.reason}
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _plain(inner) for key, inner in value.items()}}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str | int | float | None):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of NumPy
        return _plain(value.item())
    return {"type": type(value).__name__}


if __name__ == "__main__":
    main()
