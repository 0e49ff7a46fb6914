"""Suites: many tasks asked of the same models in one go, and reported as one table."""
