"""`medassay prompt …`: the prompts that come with medassay, to read and to start one's own from."""

from pathlib import Path

import typer

from medassay.cli.options import group
from medassay.cli.output import out
from medassay.errors import InputError

app = group("Prompts that come with medassay: list them, copy them out to change them.")


@app.command("list")
def list_prompts() -> None:
    """Print every prompt of models and judges, with its languages."""
    from medassay.judging.grader_text import shipped_grader_texts
    from medassay.prompt.catalog import TEMPLATES

    rows = [{"name": n, "of": "models", "languages": [*langs]} for n, langs in TEMPLATES.items()]
    rows += [
        {"name": name, "of": "judges", "languages": [*texts]}
        for name, texts in shipped_grader_texts().items()
    ]
    out.tell(
        {"prompts": rows},
        *(f"{row['name']:<24} {row['of']:<8} {', '.join(row['languages'])}" for row in rows),
    )


@app.command()
def copy(
    name: str = typer.Argument(..., help="A prompt of `medassay prompt list`."),
    to: Path = typer.Option(Path("prompts"), help="The folder to write to."),
) -> None:
    """Write a prompt into files of your own, one for each language, and say how a plan takes it."""
    from medassay.judging.grader_text import shipped_grader_texts
    from medassay.prompt.catalog import TEMPLATES
    from medassay.prompt.render import template_texts
    from medassay.storage.run import write_new

    judged = shipped_grader_texts()
    if name in TEMPLATES:
        key, texts = "template", template_texts(name, TEMPLATES[name])
    elif name in judged:
        key, texts = "grader_template", judged[name]
    else:
        raise InputError(
            f"prompt '{name}' is unknown; known are {', '.join(sorted({*TEMPLATES, *judged}))}"
        )
    files = {to / f"{name}.{language}.txt": text for language, text in texts.items()}
    for path in files:
        if path.exists():
            raise InputError(
                f"{path}: exists; nothing was written. Choose another folder with --to"
            )
    to.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        write_new(path, text.encode())
    first = next(iter(files)).as_posix()
    out.tell(
        {"files": [str(path) for path in files], "key": key},
        *map(str, files),
        f'in the plan: [task] {key} = "{first}" (the other languages beside it are taken, too)',
    )
