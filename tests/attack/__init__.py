"""Attacks: what the product was tried with from outside, each line again.

See docs/method/threats.md.
"""
