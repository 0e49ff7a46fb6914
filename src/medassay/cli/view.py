"""`medassay view [WORKSPACE|RUN]`."""

from pathlib import Path

import typer

from medassay.cli.output import out
from medassay.errors import UnavailableError

_PLACE = typer.Argument(
    ".",
    metavar="WORKSPACE|RUN",
    help="A workspace (a folder with runs/), a run, or the address of either as s3://bucket/work.",
)
_HOST = typer.Option("127.0.0.1", help="The address to listen on.")
_PORT = typer.Option(8766, min=0, max=65535, help="The port; 0 takes a free one.")
_URL = typer.Option("", help="The address that people use, where it is another one.")
_CERTIFICATE = typer.Option(None, help="A TLS certificate (PEM), to be reached from elsewhere.")
_KEY = typer.Option(None, help="Its private key (PEM).")


def command(
    place: str = _PLACE,
    host: str = _HOST,
    port: int = _PORT,
    url: str = _URL,
    certificate: Path | None = _CERTIFICATE,
    key: Path | None = _KEY,
) -> None:
    """Look at runs in a browser, also while they are under way: trials as a table, one trial whole,
    two models side by side, failures in groups.

    It prints a link that works once. Nothing in a run is changed; an index of its trials is made in
    the user's cache. To look from another machine, forward the port:
    ssh -L 8766:localhost:8766 HOST.
    """
    from medassay.viewer.index import remove_unused
    from medassay.viewer.place import ViewedPlace

    try:
        from medassay.web.serve import ListenAddress, checked_origin, serve_viewer
    except ImportError as error:
        raise UnavailableError(
            f"the viewer needs the extra [web] ({error.name} is missing): pip install"
            " 'medassay[web]'"
        ) from None

    where = ListenAddress(host=host, port=port, certificate=certificate, key=key)
    remove_unused()
    serve_viewer(
        ViewedPlace(place),
        where,
        origin=checked_origin(url),
        say=out.say,
        result=lambda link: out.tell({"link": link}, link),
    )
