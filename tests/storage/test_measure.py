from medassay.storage.measure import MeasureStore


def keys_in(folder):
    [path] = folder.glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines)
    return [line.split(b'"')[3].decode() for line in lines]


def test_who_opened_earlier_cuts_off_nothing_that_others_wrote_since(tmp_path):
    MeasureStore(tmp_path, "m@1").put({"a": [1.0]})
    [path] = tmp_path.glob("*.jsonl")
    path.write_bytes(path.read_bytes() + b'{"key":"tor')  # as a kill leaves it
    one, two = MeasureStore(tmp_path, "m@1"), MeasureStore(tmp_path, "m@1")
    one.put({"b": [2.0]})
    one.put({"c": [3.0]})
    two.put({"d": [4.0]})
    assert keys_in(tmp_path) == ["a", "b", "c", "d"]
    assert MeasureStore(tmp_path, "m@1").get("c") == (3.0,)


def test_a_file_that_holds_nothing_but_a_torn_line_begins_anew(tmp_path):
    MeasureStore(tmp_path, "m@1").put({"a": [1.0]})
    [path] = tmp_path.glob("*.jsonl")
    path.write_bytes(b'{"key":"' + b"x" * 200_000)
    MeasureStore(tmp_path, "m@1").put({"b": [2.0]})
    assert keys_in(tmp_path) == ["b"]
