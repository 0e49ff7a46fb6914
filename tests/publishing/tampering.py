"""Copies of runs and sites that are changed and sealed again."""

import shutil


def copy(path, to):
    shutil.copytree(path, to)
    for file in to.rglob("*"):
        file.chmod(0o755 if file.is_dir() else 0o644)
    return to


def reseal(run):
    """Make sums and seal fit changed files: a forger who knows the format."""
    from medassay.storage.run import Run, seal_run

    for name in ("seal.json", "MANIFEST.sha256"):
        (run / name).unlink()
    seal_run(Run(run), sealed_at="2026-01-01T00:00:00Z")
    for file in run.iterdir():
        file.chmod(0o644)
