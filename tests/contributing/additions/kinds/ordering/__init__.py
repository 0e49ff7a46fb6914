"""Steps to be put into their order."""
