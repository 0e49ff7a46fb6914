"""Kinds of task, a folder each: what is asked, how it is read, scored and shown."""
