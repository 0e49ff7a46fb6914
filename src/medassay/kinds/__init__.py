"""Kinds of items, a folder each: how they are read, scored and reported."""
