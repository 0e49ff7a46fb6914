"""Scores of a cell → one number."""
