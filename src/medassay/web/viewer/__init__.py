"""The pages of the viewer of runs: read-only, for whoever has the link that was printed."""
