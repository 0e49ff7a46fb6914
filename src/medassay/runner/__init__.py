"""plan → cells → trials: concurrency, resume, budget."""
