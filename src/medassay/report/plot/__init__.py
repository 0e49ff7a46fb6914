"""Scientific figures: one file each; every number arrives computed, jitter among it."""
