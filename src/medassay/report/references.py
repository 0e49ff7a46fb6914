"""How a publication, and one number in it, are referred to."""

from medassay.core.records.identity import BoardIdentity
from medassay.report.board import Board


def reference(board: Board) -> str:
    """Return what every citation of a publication, or of something in it, begins with."""
    day = board.texts.day(board.date)
    root = f"data root {board.seal.root[:16]}…"
    if board.identity is None:
        return board.texts.said(f"medassay publication {board.publication}, {day}, {root}")
    identity = board.identity
    return board.texts.said(
        f"{identity.publisher} ({board.date[:4]}): {identity.title}, publication"
        f" {board.publication} of {day}, {root}"
    )


def number_text(board: Board, what: str, path: str) -> str:
    """Return how one number of a publication is cited.

    Parameters
    ----------
    what : the number in words, with its interval
    path : the page on which it stands, relative to the publication
    """
    return f"{reference(board)}: {what}. {page_address(board, path)}"


def page_address(board: Board, path: str) -> str:
    """Return the address of a page, from `p/` on where the publisher tells none."""
    start = "" if board.identity is None else address_of(board, board.identity)
    return f"{start or f'p/{board.publication}/'}{path}"


def address_of(board: Board, identity: BoardIdentity) -> str:
    """Return where a publication is served, "" where its publisher tells no address."""
    return f"{identity.address}p/{board.publication}/" if identity.address else ""
