"""What installed packages add to medassay: objects by entry points of the groups `medassay.…`.

Their names are known without importing anything; an object is imported when it is used.
"""

from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from medassay.core.canonical import sha256_hex
from medassay.core.catch import caught
from medassay.errors import InputError


@cache
def all_entry_points() -> dict[str, dict[str, metadata.EntryPoint]]:
    """Return the entry points by group and name; reading those of all packages takes a while."""
    points = metadata.entry_points()
    return {
        group: {
            point.name: point
            for point in sorted(points.select(group=group), key=lambda point: point.value)
        }
        for group in points.groups
        if group.startswith("medassay.")
    }


def entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group by name.

    Parameters
    ----------
    group : as "providers", for the group `medassay.providers`
    """
    return all_entry_points().get(f"medassay.{group}", {})


def package_of(point: metadata.EntryPoint) -> str:
    """Return distribution and version of an entry point, "" where they are not known."""
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def package_hash(point: metadata.EntryPoint) -> str:
    """Return a hash of all code of a package; of one whose files nobody lists, of its name and
    version.
    """
    package = point.dist
    digests = [point.value, package_of(point)]
    for file in sorted(map(str, (package.files if package else None) or ())):
        if file.endswith(".py") and package is not None:
            path = Path(str(package.locate_file(file)))
            digests += [file, sha256_hex(path.read_bytes())] if path.is_file() else []
    return sha256_hex("\x1f".join(digests).encode())


def load(group: str, name: str) -> Any:
    """Return the object of an entry point.

    Raises
    ------
    InputError
        When there is none of that name, or its package cannot be imported.
    """
    points = entry_points(group)
    if name not in points:
        known = ", ".join(points) or "none"
        raise InputError(f"entry point '{name}' of medassay.{group}: unknown; known are {known}")
    with caught() as errors:
        return points[name].load()
    raise InputError(
        f"entry point '{name}' of medassay.{group} ({package_of(points[name])}): cannot be imported"
        f" ({type(errors[0]).__name__}: {errors[0]})"
    )
