"""Pages of the static site: one file and one template each."""
