"""Functions that users bring along: found without being executed, and called in a process of their
own, which may fail or hang without harming anything else.
"""
