"""Graders that serve more than one kind of task."""
