"""The records that travel along the path."""
