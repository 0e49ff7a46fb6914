import pytest

from medassay.core.secret import secrets
from tests.attack.servers import Canary, Hostile


@pytest.fixture
def hostile():
    """Start servers that reply what a function returns."""
    started = []

    def start(respond, host="127.0.0.1"):
        started.append(Hostile(respond, host))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def canary():
    made = Canary()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_keys_of_other_tests():
    secrets.forget()
    yield
    secrets.forget()
