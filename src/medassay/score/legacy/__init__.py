"""Metrics whose libraries cannot live in our environment: a worker process in one of their own."""
