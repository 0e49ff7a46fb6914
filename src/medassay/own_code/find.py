"""Finding what a plan names of its user's files; nothing is imported or executed here."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from medassay.core.canonical import sha256_hex
from medassay.core.entry_point import entry_points, load, package_of
from medassay.core.records.own_code import ROLES, CodePart, OwnCode, OwnTask, Role
from medassay.core.records.plan import Plan, plan_from_dict
from medassay.core.wording import counted
from medassay.errors import InputError
from medassay.prompt.own_template import is_file, read_template

_LONGEST = 2**20  # bytes of a file of code


def with_own_task(plan: Plan, *, trust_code: bool) -> tuple[Plan, Path | None]:
    """Return a plan whose task is that of an installed package with the table that it stands for,
    and the folder of that package; any other plan as it is.

    Raises
    ------
    InputError
        When the package's code may not be executed, or what it gives is no such table.
    """
    points = entry_points("tasks")
    if plan.own is not None or plan.task not in points:
        return plan, None
    name = f"task '{plan.task}' of package {package_of(points[plan.task])}"
    if not trust_code:
        raise InputError(f"plan: {name} is code that would be executed; say --trust-code")
    table = load("tasks", plan.task)
    if not isinstance(table, Mapping):
        raise InputError(f"plan: {name} is no mapping with the keys of [task]")
    read = plan_from_dict({"banks": ["x"], "models": ["x"], "task": dict(table)}, f"plan: {name}")
    module = find_spec(points[plan.task].module)
    folder = Path(module.origin).parent if module is not None and module.origin else None
    return replace(plan, task=read.task, own=read.own), folder


def own_code_of(plan: Plan, base: Path) -> OwnCode | None:
    """Return what a plan takes from its user's files, None where nothing.

    Parameters
    ----------
    base : the folder that names in the plan are relative to

    Raises
    ------
    InputError
        When a file is not there, no entry point has the name, or a template cannot be used.
    """
    own = plan.own
    paths = [name for name in plan.templates if is_file(name)]
    if own is None and not paths:
        return None
    own = own or OwnTask(template=paths[0])
    paths += [own.template] if is_file(own.template) else []
    judged = [own.grader_template] if own.grader_template else []
    parts: dict[Role, CodePart] = {
        role: _part(getattr(own, role), role, base) for role in ROLES if getattr(own, role)
    }
    return OwnCode(
        parts=parts,
        templates=_templates(paths, base),
        grader_templates=_templates(judged, base),
        metric=own.metric or _metric(parts),
        scale=own.scale,
        columns=own.columns,
        seconds=own.seconds,
    )


def described(own: OwnCode | None) -> list[str]:
    """Return a line for each part of own code, for whoever must agree to execute it."""
    if own is None:
        return []
    return [
        f"own code: {role} {part.shown}"
        + (
            f" of package {part.package}"
            if part.package
            else f", {counted(len(part.text.splitlines()), 'line')}"
        )
        for role, part in own.parts.items()
    ]


def _metric(parts: Mapping[Role, CodePart]) -> str:
    """Return how the score of own code is called where the plan does not say: as its function."""
    part = parts.get("scorer") or parts.get("grader")
    return "" if part is None else part.function.casefold()


def _templates(paths: list[str], base: Path) -> dict[str, dict[str, str]]:
    templates: dict[str, dict[str, str]] = {}
    for path in dict.fromkeys(paths):
        name = Path(path).name
        if name in templates:
            raise InputError(f"plan: two templates are called '{name}'; give one another name")
        templates[name] = read_template(base / path)
    return templates


def _part(name: str, role: Role, base: Path) -> CodePart:
    place, colon, function = name.rpartition(":")
    if not colon and not name.endswith(".py"):
        return _entry_point(name, role)
    if not place.endswith(".py") or not function.isidentifier():
        what = "MyGrader" if role == "grader" else role
        raise InputError(
            f"plan: 'task.{role}' is '{name}'; expected a file and a name in it, as my.py:{what},"
            " or the name of an entry point"
        )
    path = base / place
    try:
        text = path.read_bytes()
        text.decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"plan: 'task.{role}': {path}: cannot be read ({error})") from None
    if len(text) > _LONGEST:
        raise InputError(
            f"plan: 'task.{role}': {path}: {len(text)} bytes; expected one file of code, at most"
            f" {_LONGEST} bytes. Larger code belongs in a package with an entry point"
        )
    return CodePart(name=f"{path.name}:{function}", sha256=sha256_hex(text), text=text)


def _entry_point(name: str, role: Role) -> CodePart:
    group = f"medassay.{role}s"
    points = entry_points(f"{role}s")
    if name not in points:
        known = ", ".join(points) or "none"
        raise InputError(
            f"plan: 'task.{role}' is '{name}', and no installed package has an entry point of that"
            f" name in the group '{group}' (known: {known}); a function in a file is named as"
            f" my.py:{role}"
        )
    point = points[name]
    return CodePart(
        name=f"{point.module}:{point.attr}",
        sha256=_package_hash(point),
        package=package_of(point) or "unknown",
    )


def _package_hash(point: EntryPoint) -> str:
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
