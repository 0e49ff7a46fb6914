"""Strategies from item to answer: what a model is shown besides the question, and what it may look up."""
