"""Tasks as values, and what follows from them: scores and standings."""
