"""One file for every version of the tables, oldest first."""
