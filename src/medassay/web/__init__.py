"""The review app: server-rendered pages in which people check items, answers and judges."""
