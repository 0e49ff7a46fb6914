"""Finding what a plan names of its user's files; nothing is imported or executed here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from medassay.core.canonical import sha256_hex
from medassay.core.entry_point import entry_points, load, package_hash, package_of
from medassay.core.records.document_schema import DocumentSchema, read_schema
from medassay.core.records.own_code import ROLES, CodePart, OwnCode, OwnTask, Role
from medassay.core.records.plan import Plan, plan_from_dict
from medassay.core.small_file import read_small
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
    points = entry_points("tasks") if plan.own is None and plan.task else {}
    if plan.task not in points:
        return plan, None
    name = f"task '{plan.task}' of package {package_of(points[plan.task])}"
    if trust_code is not True:
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
    task = plan.own
    paths = [name for name in plan.templates if is_file(name)]
    if task is None and not paths and not plan.schema:
        return None
    code = OwnCode(templates=_templates(paths, base))
    code = code if task is None else own_code(task, base, paths)
    return replace(code, schema=_schema(plan.schema, base)) if plan.schema else code


def own_code(task: OwnTask, base: Path, templates: Sequence[str] = ()) -> OwnCode:
    """Return what a table `[task]` takes from its user's files.

    Parameters
    ----------
    base : the folder that names in it are relative to
    templates : files of prompts that the plan names besides

    Raises
    ------
    InputError
        When a file is not there, no entry point has the name, or a template cannot be used.
    """
    paths = [*templates, *([task.template] if is_file(task.template) else [])]
    judged = [task.grader_template] if task.grader_template else []
    parts: dict[Role, CodePart] = {
        role: _part(getattr(task, role), role, base) for role in ROLES if getattr(task, role)
    }
    return OwnCode(
        parts=parts,
        templates=_templates(paths, base),
        grader_templates=_templates(judged, base),
        metric=task.metric or _metric(parts),
        scale=task.scale,
        columns=task.columns,
        seconds=task.seconds,
    )


def described(code: OwnCode | None) -> list[str]:
    """Return a line for each part of own code, for whoever must agree to execute it, and for each
    prompt of the user's.
    """
    if code is None:
        return []
    prompts = [
        f"own prompt: {name} ({_languages(texts)})" for name, texts in code.templates.items()
    ]
    prompts += [
        f"own prompt of judges: {name} ({_languages(texts)})"
        for name, texts in code.grader_templates.items()
    ]
    return prompts + [
        f"own code: {role} {part.shown}"
        + (
            f" of package {part.package}"
            if part.package
            else f", {counted(len(part.text.splitlines()), 'line')}"
        )
        for role, part in code.parts.items()
    ]


def _languages(texts: Mapping[str, str]) -> str:
    return ", ".join(language or "any language" for language in sorted(texts))


def _schema(name: str, base: Path) -> DocumentSchema:
    """Return a schema by its file, or by the name of one that comes with medassay."""
    shipped = files("medassay") / "schemas" / "records"
    names = sorted(path.name.partition(".")[0] for path in shipped.iterdir())
    if not name.endswith(".json"):
        if name not in names:
            raise InputError(
                f"plan: 'schema' is '{name}'; expected a file that ends in .json, or one of"
                f" {', '.join(names)}"
            )
        return read_schema((shipped / f"{name}.schema.json").read_bytes(), f"schema {name}")
    data = read_small(base / name, _LONGEST, f"plan: 'schema': {base / name}")
    return read_schema(data, f"schema {name}")


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
    text = read_small(path, _LONGEST, f"plan: 'task.{role}': {path}")
    try:
        text.decode("utf-8")
    except ValueError as error:
        raise InputError(f"plan: 'task.{role}': {path}: no text in UTF-8 ({error})") from None
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
        sha256=package_hash(point),
        package=package_of(point) or "unknown",
    )
