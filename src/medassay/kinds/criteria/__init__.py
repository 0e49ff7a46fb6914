"""Open questions with criteria of positive and negative points."""
