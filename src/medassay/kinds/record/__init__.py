"""Structured health records from reports."""
