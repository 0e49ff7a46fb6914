"""Metrics about metrics: how far scores, judges and methods can be trusted."""
