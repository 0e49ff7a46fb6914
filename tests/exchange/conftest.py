"""What tests of reviews share: an open database."""

import pytest

from medassay.review.store.database import open_database


@pytest.fixture
def database(tmp_path):
    made = open_database(str(tmp_path / "review.sqlite"))
    yield made
    made.close()
