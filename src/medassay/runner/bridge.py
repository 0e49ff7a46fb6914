"""The one bridge from sync to async: runs a coroutine's loop in a thread of its own.

So it works where a loop is already running (notebooks), and the main thread stays free to hear
Ctrl-C.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(
    make: Callable[[], Coroutine[Any, Any, T]], on_interrupt: Callable[[], None] = lambda: None
) -> T:
    """Return the coroutine's result.

    The first Ctrl-C calls `on_interrupt`, which should let it end soon; the second cancels it.
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

    thread = threading.Thread(target=work, name="medassay-runner", daemon=True)
    thread.start()
    interrupts = 0
    while not done.is_set():
        try:
            while not done.wait(0.2):
                pass
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts == 1:
                loop.call_soon_threadsafe(on_interrupt)
            elif task:
                loop.call_soon_threadsafe(task[0].cancel)
    if errors:
        if interrupts and isinstance(errors[0], asyncio.CancelledError):
            raise KeyboardInterrupt from None
        raise errors[0]
    return result[0]
