"""(item, answer) → score on a declared scale."""
