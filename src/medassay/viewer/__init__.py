"""What the viewer of runs shows: an index of trials in the user's cache, searches in it, and one
trial whole. It reads runs, sealed or under way, and writes nothing into them.
"""
