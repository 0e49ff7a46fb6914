"""What earlier code sealed, as archives of our own."""

import tarfile
from pathlib import Path

PACKS = Path(__file__).parent / "golden" / "sealed"


def unpack(name, folder):
    """Unpack a pack into a folder, and return the folder."""
    with tarfile.open(PACKS / f"{name}.tar.xz") as pack:
        # Pythons before 3.11.4 have no filter, and no argument of that name.
        pack.extraction_filter = getattr(tarfile, "data_filter", None)
        pack.extractall(folder)
    return folder
