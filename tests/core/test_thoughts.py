import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import growth

from medassay.core.reply.thoughts import boxed, strip_thoughts

TAGS = ["<think>", "</think>", "<reasoning>", "</reasoning>", "<THOUGHT>", "</thought>"]


@pytest.mark.parametrize(
    ("text", "kept", "open_"),
    [
        ("<think>a</think>B", "B", False),
        ("a</think>b</think>C", "C", False),
        ("<think>a<think>b</think>c</think>D", "D", False),
        ("A<think>b", "A", True),
        ("<think>x <reasoning>y</reasoning> C", "", True),
        ("no tags at all < think >", "no tags at all < think >", False),
        ("<THINK>a</Think>B", "B", False),
    ],
)
def test_removes_thoughts(text, kept, open_):
    assert strip_thoughts(text) == (kept, open_)


@given(st.lists(st.sampled_from([*TAGS, "a", "b ", "<", "\n"])).map("".join))
def test_no_thought_tag_is_left_and_nothing_is_invented(text):
    kept, _ = strip_thoughts(text)
    assert not any(tag in kept.lower() for tag in ("</think>", "</thought>", "</reasoning>"))
    assert len(kept) <= len(text)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{A} then \boxed{B}", "B"),
        (r"\fbox{C}", "C"),
        (r"\boxed{\text{D}}", r"\text{D}"),
        (r"\boxed{A", None),
        (r"} \boxed{E} {", "E"),
        (r"\boxed{ \boxed{x}", "x"),
    ],
)
def test_finds_the_last_box(text, content):
    assert boxed(text)[0] == content


@pytest.mark.parametrize("piece", ["<think>", "</think>", r"\boxed{", "}", "<think></reasoning>"])
@pytest.mark.parametrize("reader", [strip_thoughts, boxed])
def test_time_grows_with_the_length_not_its_square(reader, piece):
    assert growth(reader, piece, 10_000) < 32
