"""Libraries of an extra, imported where a test first uses them: collecting tests needs none of
them, and each of five workers would take three seconds for PyTorch.
"""

import pytest


class Optional:
    """A library that is imported at its first use; the test is skipped where it is absent."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(pytest.importorskip(self._name), attribute)


torch = Optional("torch")
transformers = Optional("transformers")
