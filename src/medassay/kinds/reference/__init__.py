"""Answers compared with reference texts."""
