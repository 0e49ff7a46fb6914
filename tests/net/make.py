"""Makes the packs of fixtures that have none: `python -m tests.net.make [NAME…]`.

What is packed is never made again.
"""

import contextlib
import inspect
import io
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.conftest import weights as tiny_weights
from tests.net.fixtures import FIXTURES
from tests.net.verifying import dumped, places, told
from tests.packs import PACKS


def main(names):
    for name in names or FIXTURES:
        pack = PACKS / f"{name}.tar.xz"
        if pack.exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder, work = Path(temporary) / "sealed", Path(temporary) / "work"
            folder.mkdir()
            work.mkdir()
            keys = {}
            if "weights" in inspect.signature(FIXTURES[name]).parameters:
                keys["weights"] = tiny(work).name
            # From where they are made: a run keeps the path of weights as it is given.
            with contextlib.chdir(work):
                FIXTURES[name](folder, work, **keys)
            found = {place.name: told(place) for place in places(folder)}
            with tarfile.open(pack, "w:xz", preset=9) as into:
                for path in sorted(folder.rglob("*")):
                    if path.is_file():
                        # Neither owner nor hour: the bytes of the files are what is kept.
                        info = tarfile.TarInfo(str(path.relative_to(folder)))
                        data = path.read_bytes()
                        info.size = len(data)
                        into.addfile(info, io.BytesIO(data))
            (PACKS / f"{name}.json").write_text(dumped(found))
        sys.stdout.write(f"{name}: {pack.stat().st_size} bytes, {len(found)} places\n")


def tiny(work):
    """Return the folder of the tiny random model that tests use."""

    class Folders:
        def mktemp(self, name):
            (work / name).mkdir()
            return work / name

    return Path(tiny_weights.__wrapped__(Folders()))


if __name__ == "__main__":
    main(sys.argv[1:])
