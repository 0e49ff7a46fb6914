"""The five tools of the mode `tools`, and the conversation in which a model calls them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medassay.context.tools.fetch import url_fetch

__all__ = ["url_fetch"]


def __getattr__(name: str) -> Any:
    """Return what is exported, loaded when it is asked for: the client is slow to import."""
    if name == "url_fetch":
        from medassay.context.tools.fetch import url_fetch

        return url_fetch
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
