"""Engines: how the units of a stage are spread over processes and machines."""
