"""The one bridge from sync to async: runs a coroutine's loop in a thread of its own.

So it works where a loop is already running (notebooks), and the main thread stays free to hear
Ctrl-C, the signal by which systems end a process, and the one that comes when its terminal is
closed.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

T = TypeVar("T")
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_async(
    make: Callable[[], Coroutine[None, None, T]],
    on_interrupt: Callable[[], None] | None = None,
) -> T:
    """Return the coroutine's result.

    The first Ctrl-C, SIGTERM or SIGHUP calls `on_interrupt`, which should let it end soon; the
    second cancels it, and so does the first where there is no `on_interrupt`.

    Raises
    ------
    KeyboardInterrupt
        When it was cancelled.
    """
    result: list[T] = []
    errors: list[BaseException] = []
    loop = asyncio.new_event_loop()
    # Not thread.join: before Python 3.13 an interrupted join takes the thread for ended.
    done = threading.Event()
    task: list[asyncio.Task[T]] = []

    def work() -> None:
        asyncio.set_event_loop(loop)
        try:
            task.append(loop.create_task(make()))
            result.append(loop.run_until_complete(task[0]))
        except BaseException as error:  # noqa: BLE001 -- carried to the caller's thread
            errors.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            done.set()

    interrupts = 0

    def cancel() -> None:
        task[0].cancel()  # made in the other thread

    def hear() -> None:
        nonlocal interrupts
        interrupts += 1
        with suppress(RuntimeError):  # the loop is closed: there is nothing left to stop
            if interrupts == 1 and on_interrupt is not None:
                loop.call_soon_threadsafe(on_interrupt)
            else:
                loop.call_soon_threadsafe(cancel)

    with _hearing(hear):
        threading.Thread(target=work, name="medassay-runner", daemon=True).start()
        done.wait()
    if errors:
        if interrupts and isinstance(errors[0], asyncio.CancelledError):
            raise KeyboardInterrupt from None
        raise errors[0]
    return result[0]


@contextmanager
def _hearing(hear: Callable[[], None]) -> Iterator[None]:
    """Call a function at each signal to stop, instead of an exception at any place: in a lock's own
    code, say.

    Only the main thread hears signals; what was told to be ignored stays ignored.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {sig: signal.getsignal(sig) for sig in _STOPPING}
    heard = [sig for sig, handler in before.items() if handler not in {signal.SIG_IGN, None}]
    for sig in heard:
        signal.signal(sig, lambda number, frame: hear())
    try:
        yield
    finally:
        for sig in heard:
            signal.signal(sig, before[sig])
