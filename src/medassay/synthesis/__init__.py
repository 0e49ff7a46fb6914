"""New items from guidelines, pathways, cases and exams, with provenance.

Enumerating decision pathways is `paths`.
"""

from medassay.synthesis.pathway import Path, paths

__all__ = ["Path", "paths"]
