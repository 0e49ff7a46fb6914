"""The entry of the command line: `medassay`, and `python -m medassay`."""

import gc
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Imports and records come by the hundred thousand and hold no reference cycles: looking for
    # some takes a tenth of the start of a command. At the end Python would look through everything
    # once more, a quarter of a second, to free what the system takes back anyway.
    gc.set_threshold(200_000, 20, 20)
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
