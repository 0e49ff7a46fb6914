"""How far several raters agree."""
