"""Records that travel along the path, their hashes, and the reading of replies."""
