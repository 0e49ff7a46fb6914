"""Scores → rows of a leaderboard and what stands beside them."""
