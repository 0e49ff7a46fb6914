"""No key is shown, whole or in part, however it is written."""

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from medassay.core.secret import Secrets

KEY = "sk-SECRETKEY-9f8e7d6c5b4a3"
ODD = 'pa+ss/w&rd "9Xq=="?zz7Kp'
keys = st.text("abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNP0123456789-_+/&", min_size=16, max_size=60)


def knowing(*keys):
    found = Secrets()
    found.learn(keys)
    return found


def longest_common(text, key):
    """Return the longest part of a key in a text."""
    best = ""
    for start in range(len(key)):
        while key[start : start + len(best) + 1] in text and start + len(best) < len(key):
            best = key[start : start + len(best) + 1]
    return best


def writings(key):
    """Yield each way to write a key, and what of it is the key's own."""
    for plain in (key, quote(key, safe=""), json.dumps(key)[1:-1]):
        yield plain, plain
    for before in ("", "a", "ab", "user:", "Bearer "):
        coded = base64.b64encode((before + key + "\n").encode()).decode()
        own = coded[-(-8 * len(before) // 6) : 8 * len(before + key) // 6]
        yield coded, own
        yield tuple(text.replace("+", "-").replace("/", "_") for text in (coded, own))


@pytest.mark.parametrize("key", [KEY, ODD])
def test_no_way_to_write_a_key_gets_through(key):
    secrets = knowing(key)
    for written, own in writings(key):
        told = secrets.redact(f"before {written} behind")
        assert told == f"before {written.replace(own, '***')} behind"


@pytest.mark.parametrize("cut", range(12, len(KEY)))
def test_a_key_cut_at_either_end_is_still_one(cut):
    secrets = knowing(KEY)
    for part in (KEY[:cut], KEY[-cut:]):
        assert len(longest_common(secrets.redact(f"x{part}y"), KEY)) < 8


@given(keys, st.data())
def test_no_eight_characters_of_a_random_key_are_left(key, data):
    assume(any(c.isdigit() for c in key))
    start = data.draw(st.integers(0, len(key) - 12))
    end = data.draw(st.integers(start + 12, len(key)))
    text = data.draw(st.text(max_size=30)) + key[start:end] + data.draw(st.text(max_size=30))
    told = knowing(key).redact(text)
    for at in range(start, end - 7):
        assert key[at : at + 8] not in told


def test_of_two_keys_with_a_part_in_common_no_rest_is_left():
    first, second = "acme-gw-9f8e7d6c5b4a3f2e-judge", "acme-gw-9f8e7d6c5b4a3f2e-q7Zx1"
    for known in ((first, second), (second, first)):
        assert knowing(*known).redact(f"x {second} y {first} z") == "x *** y *** z"
        assert knowing(*known).redact_reply(f"x {second}") == "x ***"


@given(st.text())
def test_a_text_without_a_key_is_as_it_was(text):
    assert knowing(KEY).redact(text) == text


def test_words_are_no_keys():
    secrets = knowing("ollama", "password", "local-server-key", "Metoprolol-Key-2026x")
    answer = "Metoprolol lowers the password of ollama; see the local server. 2026"
    assert secrets.redact_reply(answer) == answer
    assert "ollama" not in secrets.redact("ollama is the key")
    assert secrets.redact_reply("it is local-server-key, yes") == "it is ***, yes"


def test_a_long_text_costs_little():
    secrets = knowing(KEY, ODD)
    text = "The patient was given 5 mg of a drug and 12 sk-proj of another. " * 20
    began = time.process_time()
    for _ in range(1000):
        secrets.redact_reply(text)
    assert (
        time.process_time() - began < 2.0
    )  # measured: 0.06 s; a bound against a scan of each character


def test_a_message_is_redacted_before_it_is_cut():
    secrets = knowing(KEY)
    for most in range(5, 60):
        assert len(longest_common(secrets.quote("x" * 20 + KEY + "y" * 20, most), KEY)) < 8
