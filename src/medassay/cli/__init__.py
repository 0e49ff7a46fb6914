"""The command line: one file a command; the only reader of argv."""
