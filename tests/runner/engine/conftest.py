import pytest
from tests.runner.engine.in_process import InProcess

from medassay.runner.engine import catalog, coordinator, lease, worker


@pytest.fixture
def quick_leases(monkeypatch):
    """Let a silent worker count as dead after half a second."""
    for module in (lease, worker, coordinator):
        monkeypatch.setattr(module, "DEAD_AFTER", 0.5)
    monkeypatch.setattr(lease, "_RENEW_EVERY", 0.1)
    monkeypatch.setattr(worker, "BEAT", 0.05)


@pytest.fixture
def in_process(quick_leases, patient_workers):
    """Make `engine="in_process"` the engine of workers in this process, which soon count as dead.

    Returns a function of its options.
    """
    return patient_workers


@pytest.fixture
def patient_workers(monkeypatch):
    """Make `engine="in_process"` the engine of workers in this process: on a loaded machine, too,
    none counts as dead.

    Returns a function of its options.
    """
    engines = []

    def use(**options):
        def make(rules, responses, secrets):
            engines.append(InProcess(rules, responses, secrets, **options))
            return engines[-1]

        monkeypatch.setitem(catalog.ENGINES, "in_process", make)
        return engines

    return use
