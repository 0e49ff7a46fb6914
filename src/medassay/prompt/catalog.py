"""Every template: one line each; the texts lie in `templates/<name>.<language>.txt`."""

TEMPLATES: dict[str, tuple[str, ...]] = {
    "closed": ("en", "de", "es"),
    "ddx": ("en", "de", "es"),
    "ddx_described": ("en",),
    "ddx_few_shot": ("en",),
    "ddx_steps": ("en", "de", "es"),
    "healthbranches_quiz": ("en",),
    "leaderboard": ("en", "de", "es"),
    "open": ("en", "de", "es"),
}
