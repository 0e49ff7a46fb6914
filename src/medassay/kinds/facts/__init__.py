"""Open questions with target facts."""
