"""One loader for each bank that medassay can read."""
