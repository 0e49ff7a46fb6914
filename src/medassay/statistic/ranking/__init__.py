"""Ranks that never assert more than the evidence."""
