"""`medassay hello`: say hello."""

from medassay.cli.output import out


def command() -> None:
    """Say hello."""
    out.tell({"greeting": "hello"}, "hello")
