"""Large libraries, imported where a test first uses them: collecting tests needs none of them, and
each worker would take two seconds for PyTorch, and one for SciPy's statistics.
"""

from importlib import import_module

from tests.conftest import absent


class Optional:
    """A library that is imported at its first use; the test is skipped where it is absent."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):  # what pytest asks of every value of a module
            raise AttributeError(attribute)
        try:
            library = import_module(self._name)
        except ImportError:
            absent(f"{self._name} is not installed")
        return getattr(library, attribute)


torch = Optional("torch")
transformers = Optional("transformers")
scipy_stats = Optional("scipy.stats")
rouge_scorer = Optional("rouge_score.rouge_scorer")
