"""Every template: one line each; the texts lie in `templates/<name>.<language>.txt`."""

TEMPLATES: dict[str, tuple[str, ...]] = {
    "closed": ("en", "de", "es"),
    "healthbranches_quiz": ("en",),
    "leaderboard": ("en", "de", "es"),
    "open": ("en", "de", "es"),
}
