"""Scores that came with an import."""
