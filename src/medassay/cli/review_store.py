"""What the commands of `medassay review` share: the database, and the study that a name means."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from medassay.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from medassay.review.store.database import Database
    from medassay.review.store.schema import Study

WHO = "the command line"  # who did it, in the trail
DATABASE = typer.Option(
    "",
    "--database",
    envvar="MEDASSAY_REVIEW_DATABASE",
    help="postgresql://…, or the path of an SQLite file; default: review.sqlite here.",
)


@contextmanager
def opened_database(address: str, *, make: bool = False) -> "Iterator[Database]":
    """Give the database at an address; SQLite files are made only where `make` says so."""
    try:
        from medassay.review.store.database import open_database
    except ImportError as error:
        raise UnavailableError(
            f"the review app needs the extra [web] ({error.name} is missing): pip install"
            " 'medassay[web]'"
        ) from None
    opened = open_database(address, make=make)
    try:
        yield opened
    finally:
        opened.close()


def named_study(db: "Session", name: str) -> "Study":
    """Return a study by its name, or say that there is none."""
    from medassay.review.store.schema import Study

    study = db.get(Study, name)
    if study is None:
        raise InputError(f"no study '{name}'; `medassay review study list` names them")
    return study
