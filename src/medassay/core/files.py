"""Write files of lines, and folders that come to be whole."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records to a file, a line each."""
    with path.open("wb") as file:
        file.writelines(canonical(record) + b"\n" for record in records)


@contextmanager
def whole_folder(to: Path) -> Iterator[Path]:
    """Yield a draft folder; it is renamed to `to` at the end, or removed if the block raises."""
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
    draft.chmod(0o755)
    try:
        yield draft
        draft.rename(to)
    finally:
        if draft.exists():
            shutil.rmtree(draft)
