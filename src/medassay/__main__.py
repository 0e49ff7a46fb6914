"""The entry of the command line: `medassay`, and `python -m medassay`."""

import gc
import os
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Imports and records come by the hundred thousand and hold no reference cycles: looking for
    # some takes a tenth of the start of a command. At the end Python would look through everything
    # once more, a quarter of a second, to free what the system takes back anyway.
    gc.set_threshold(200_000, 20, 20)
    # Idle threads of OpenBLAS sleep at once. They would spin: 0.1 CPU s after the import of numpy,
    # when this is read, and as much after the first product of matrices.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # An installed plugin of pydantic would see every plan, and may send it elsewhere.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from medassay.cli.main import main as run

        run()
    except KeyboardInterrupt:  # while modules are loaded; afterwards the command line hears it
        sys.stderr.write("error: stopped; nothing was begun\n")
        sys.exit(130)
    finally:
        if "duckdb" not in sys.modules:  # it would take what is not freed for a leak, and say so
            gc.freeze()


if __name__ == "__main__":
    main()
