"""The entry of the command line: `medassay`, and `python -m medassay`."""

import gc


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Imports and records come by the hundred thousand and hold no reference cycles: looking for
    # some takes 8 % of the start of a command, and 4 % of a run.
    gc.set_threshold(50_000, 20, 20)
    from medassay.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
