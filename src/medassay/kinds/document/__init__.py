"""Records by a schema of the user's: read, checked, compared field by field."""
