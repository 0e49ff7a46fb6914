"""Measure exact search over a million vectors and the cutting of texts, beside peers.

    python benchmarks/retrieval.py [--peers PYTHON] [--rounds 5] [--vectors 1000000]

Every program is a process of its own: it opens the vectors (random, length 1, 384 numbers), answers
a batch of 100 queries once to warm up and three times for the clock, and says wall and CPU seconds
of the middle one and its peak resident memory. `--peers` names a Python that has faiss-cpu and
langchain-text-splitters. Prints Markdown.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH, QUERIES, K = 384, 100, 3
COMMON = f"""
import json, resource, sys, time
import numpy as np
path, n = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(7)
q = rng.normal(size=({QUERIES}, {WIDTH})).astype(np.float32)
q /= np.linalg.norm(q, axis=1, keepdims=True)
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def clock(search):
    search()
    found = []
    for _ in range(3):
        t, c = time.perf_counter(), time.process_time()
        ids = search()
        found.append((time.perf_counter() - t, time.process_time() - c))
    found.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([*found[1], peak / 1024, base / 1024, np.asarray(ids).tolist()]))
"""
OURS = f"""
from pathlib import Path
from medassay.context.retrieval.search import VectorFile, nearest
vectors = VectorFile(Path(path), {WIDTH}, n)
clock(lambda: nearest(vectors, q, {K})[0])
"""
NUMPY = f"""
v = np.fromfile(path, dtype="<f4").reshape(n, {WIDTH})
lengths = np.einsum("ij,ij->i", v, v)
def search():
    d = lengths - 2 * (q @ v.T)
    ids = np.argpartition(d, {K}, axis=1)[:, :{K}]
    order = np.argsort(np.take_along_axis(d, ids, axis=1), axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1)
clock(search)
"""
FAISS = f"""
import faiss
v = np.fromfile(path, dtype="<f4").reshape(n, {WIDTH})
index = faiss.IndexFlatL2({WIDTH})
index.add(v)
del v
clock(lambda: index.search(q, {K})[1])
"""
CUT = """
import json, sys, time
texts = json.load(open(sys.argv[1]))
cut(texts[0])
c = time.process_time()
for text in texts:
    cut(text)
print(json.dumps(time.process_time() - c))
"""
CUT_OURS = "from medassay.context.retrieval.chunk import split as cut" + CUT
CUT_PEER = (
    "from langchain_text_splitters import RecursiveCharacterTextSplitter as R\n"
    "r = R(chunk_size=500, chunk_overlap=150, add_start_index=True)\n"
    "cut = lambda text: r.create_documents([text])" + CUT
)


def run(python, code, *arguments):
    done = subprocess.run(
        [python, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def write_vectors(path, n):
    import numpy as np

    rng = np.random.default_rng(1)
    with path.open("wb") as file:
        for first in range(0, n, 50_000):
            block = rng.normal(size=(min(50_000, n - first), WIDTH)).astype("<f4")
            block /= np.linalg.norm(block, axis=1, keepdims=True)
            file.write(block.tobytes())


def write_texts(path):
    import random

    rng = random.Random(3)
    words = ["fever", "cough", "patient", "the", "of", "shows", "pressure", "mmHg", "treatment"]
    texts = []
    for _ in range(2000):
        paragraphs = [
            " ".join(rng.choices(words, k=rng.randint(20, 160))) for _ in range(rng.randint(2, 9))
        ]
        texts.append("\n\n".join(paragraphs))
    path.write_text(json.dumps(texts))
    return sum(map(len, texts))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--peers", default="")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--vectors", type=int, default=1_000_000)
    given = options.parse_args()
    programs = [
        ("medassay", sys.executable, OURS),
        ("numpy, all in memory", sys.executable, NUMPY),
    ]
    if given.peers:
        programs.append(("faiss IndexFlatL2", given.peers, FAISS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.f32"
        write_vectors(path, given.vectors)
        found = {name: [] for name, _, _ in programs}
        for _ in range(given.rounds):
            for name, python, code in programs:
                found[name].append(run(python, COMMON + code, path, given.vectors))
        print(f"{given.vectors:,} vectors × {WIDTH}, {QUERIES} queries, k = {K}\n")
        print(
            "| program | wall s | CPU s | peak MiB above start | same neighbours"
            " |\n|---|---|---|---|---|"
        )
        for name, rows in found.items():
            wall, cpu, peak, base = (statistics.median(r[i] for r in rows) for i in range(4))
            same = rows[0][4] == found["medassay"][0][4]
            print(f"| {name} | {wall:.2f} | {cpu:.2f} | {peak - base:.0f} | {same} |")
        texts = Path(folder) / "texts.json"
        characters = write_texts(texts)
        pairs = [("medassay", sys.executable, CUT_OURS)]
        pairs += [("langchain", given.peers, CUT_PEER)] if given.peers else []
        print(f"\n2,000 texts, {characters:,} characters\n\n| program | CPU s |\n|---|---|")
        for name, python, code in pairs:
            seconds = statistics.median(run(python, code, texts) for _ in range(given.rounds))
            print(f"| {name} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
