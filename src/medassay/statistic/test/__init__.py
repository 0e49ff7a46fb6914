"""Tests of one pair and of families of pairs."""
