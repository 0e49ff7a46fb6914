"""Attacks: what the product was tried with from outside, each line again; see docs/method/threats.md."""
