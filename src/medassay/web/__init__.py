"""The review app: server-rendered pages in which people check items, answers and judges."""

from medassay.web.settings import AppSettings

__all__ = ["AppSettings"]
