"""The net: runs, sites and workshops of every kind, sealed by the code of an earlier day, which
every later day must verify as before.
"""
