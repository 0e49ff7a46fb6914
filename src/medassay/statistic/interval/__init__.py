"""Intervals of one number."""
