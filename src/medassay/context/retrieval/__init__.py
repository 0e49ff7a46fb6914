"""Retrieval: a corpus cut into chunks, embedded, searched exactly, kept on disk."""
