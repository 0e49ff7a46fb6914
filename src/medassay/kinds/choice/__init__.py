"""Closed questions with options."""
