"""People's grading of items: what a review says, and what reviews say together."""
