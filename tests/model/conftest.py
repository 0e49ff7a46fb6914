"""Tiny models: real code, one thread."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny models are slower on several threads, and tests run side by side."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
