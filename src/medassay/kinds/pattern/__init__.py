"""Closed questions decided by a pattern, a number or a key."""
