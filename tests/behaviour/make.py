"""Write the corpora: `python -m tests.behaviour.make [NAME …]`.

An output that changed is written only where the revision was raised: that is the rule by which ids
are honest.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.behaviour.parts import applied, as_line, parts, same

CORPORA = Path(__file__).parents[1] / "golden" / "behaviour"


def read_corpus(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the first line of a corpus and its pairs of input and output."""
    text = (CORPORA / f"{name}.jsonl").read_text(encoding="utf-8")
    head, *pairs = [json.loads(line) for line in text.split("\n") if line]
    return head, pairs


def refuse_changed(name: str, outputs: list[tuple[dict[str, Any], Any]], revision: int) -> None:
    """Refuse to write a changed output of a part whose revision was not raised."""
    if not (CORPORA / f"{name}.jsonl").exists():
        return
    head, pairs = read_corpus(name)
    before = {json.dumps(pair["in"], sort_keys=True): pair["out"] for pair in pairs}
    for line, output in outputs:
        was = before.get(json.dumps(line, sort_keys=True), output)
        if head["revision"] == revision and not same(was, output):
            raise SystemExit(f"{name}: an output changed; raise its revision ({revision}) first")


def shared_by(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what all inputs of a corpus have in common, which its first line holds for all."""
    first = lines[0]
    return {k: v for k, v in first.items() if all(line.get(k) == v for line in lines)}


def make(names: list[str]) -> None:
    """Write corpora, all without names."""
    from tests.behaviour.inputs import inputs

    every, lines = parts(), inputs()
    assert every.keys() == lines.keys(), every.keys() ^ lines.keys()
    for name in names or every:
        part = every[name]
        shared = shared_by(lines[name])
        outputs = [
            ({k: v for k, v in line.items() if k not in shared}, applied(part, line))
            for line in lines[name]
        ]
        refuse_changed(name, outputs, part.revision)
        head = json.dumps(
            {"part": name, "revision": part.revision, "shared": shared}, ensure_ascii=False
        )
        text = "\n".join([head, *(as_line(*pair) for pair in outputs)])
        (CORPORA / f"{name}.jsonl").write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}: {len(outputs)} lines\n")


if __name__ == "__main__":
    make(sys.argv[1:])
