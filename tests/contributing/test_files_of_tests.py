"""Files of tests stay short and apart from each other."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
LONGEST = 600  # lines
IMPORT = re.compile(r"^(?:from|import) tests\.(?:\w+\.)*test_\w+", re.MULTILINE)


def test_no_file_of_tests_is_long_or_read_by_another():
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    assert len(texts) > 300
    long = {path.name: n for path, text in texts.items() if (n := text.count("\n")) > LONGEST}
    assert long == {}
    assert [path.name for path, text in texts.items() if IMPORT.search(text)] == []
