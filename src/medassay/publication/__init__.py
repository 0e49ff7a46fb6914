"""Estimates → tables, figures, pages. Computes nothing."""
