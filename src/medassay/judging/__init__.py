"""Judging: graders, judge panels, what judges are shown, and how far they agree."""
