"""Rows → tables, figures and pages; computes nothing."""
