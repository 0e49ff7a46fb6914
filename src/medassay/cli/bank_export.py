"""`medassay bank export`: a bank for other tools."""

from pathlib import Path

import typer

from medassay.cli.output import out


def export(
    bank: str = typer.Argument(..., help="A bank's folder, or a shipped one's name."),
    form: str = typer.Option(
        ..., "--format", help="csv, parquet, hf (a Hugging Face data set) or lm-eval (tasks)."
    ),
    to: Path | None = typer.Option(
        None, help="New folder; default: by the bank's version and the format."
    ),
) -> None:
    """Write a bank for other tools, with card and licence; private items are refused."""
    from medassay.cli.options import load_bank_argument
    from medassay.exchange.bank_export import export_bank

    loaded = load_bank_argument(bank)
    exported = export_bank(loaded, form, to or Path(f"{loaded.version}-{form}"))
    files = sorted(
        str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()
    )
    out.tell({"path": str(exported), "files": files}, f"{exported}: {', '.join(files)}")
