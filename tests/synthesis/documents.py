"""Documents in several formats."""

from medassay.synthesis.synthesize import synthesize


def make(folder):
    return synthesize(folder / "plan.toml", folder / "shop", secrets={}, workspace=folder)
