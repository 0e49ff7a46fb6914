"""How the time of a call grows with the length of its input."""

import gc
import time


def growth(call, piece, n):
    """Return the ratio of CPU seconds for 8·n and n repetitions of `piece`.

    Linear growth gives about 8, quadratic about 64; a floor of 2 ms keeps noise out.
    """

    def seconds(times):
        gc.disable()  # its passes grow with the objects alive, which is not what is measured
        start = time.process_time()
        call(piece * times)
        spent = time.process_time() - start
        gc.enable()
        return spent

    return seconds(8 * n) / max(seconds(n), 0.002)
