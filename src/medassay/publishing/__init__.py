"""Publishing runs, and verifying, withholding and deleting what was published."""
