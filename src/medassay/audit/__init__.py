"""Publish a sealed run as a site, and verify runs and sites."""
