"""Models: entries of models.json and the providers that answer for them."""

from medassay.model.catalog import PROVIDERS
from medassay.model.spec import load_models

__all__ = ["PROVIDERS", "load_models"]
