"""Loading from a hub: one explicit command (`medassay bank fetch`), never anything implicit."""

from pathlib import Path

from medassay.core.catch import caught
from medassay.errors import InputError, Transient

# name -> (data set on the hub, files of it that the loader reads)
HUB: dict[str, tuple[str, list[str]]] = {
    "careqa_en": ("HPAI-BSC/CareQA", ["CareQA_en.json*"]),
    "careqa_es": ("HPAI-BSC/CareQA", ["CareQA_es.json*"]),
    "careqa_open": ("HPAI-BSC/CareQA", ["CareQA_en_open.json*"]),
    "med_prescriptions_easy": ("devlocalhost/prescription-full", ["data/train*.parquet"]),
    "med_prescriptions_hard": ("devlocalhost/prescription-full", ["data/train*.parquet"]),
    "meddialog_qsumm": ("lighteval/med_dialog", ["icliniq/test*.parquet"]),
    "meddialog_raw": ("bigbio/meddialog", ["*train*.parquet", "*train*.json*"]),
    "medmcqa": ("openlifescienceai/medmcqa", ["data/validation*.parquet"]),
    "medqa": ("GBaker/MedQA-USMLE-4-options-hf", ["test.json*", "data/test*.parquet"]),
    "medtext": ("BI55/MedText", ["*.csv", "data/*.parquet"]),
    "olaph": ("dmis-lab/MedLFQA", ["*test*.json*", "data/test*.parquet"]),
}


def fetch(name: str, folder: Path) -> list[Path]:
    """Download a catalogued set into `folder` and return its files; Parquet becomes JSON Lines."""
    if name not in HUB:
        raise InputError(
            f"bank fetch: '{name}' is not on the hub list; known are {', '.join(sorted(HUB))}"
        )
    try:
        import duckdb
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(
            "bank fetch needs the extra [data]: pip install 'medassay[data]'"
        ) from None
    repository, patterns = HUB[name]
    with caught() as errors:  # the client raises many kinds; all mean no data
        snapshot_download(
            repository, repo_type="dataset", allow_patterns=patterns, local_dir=folder
        )
    if errors:
        raise Transient(f"bank fetch: {repository} could not be downloaded: {errors[0]}")
    for parquet in sorted(folder.rglob("*.parquet")):
        target = folder / f"{parquet.stem}.jsonl"
        duckdb.read_parquet(str(parquet)).write_json(str(target))
    return sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".jsonl"))
