"""Ways through large decision graphs: reading, counting all ways, walking those kept.

Networkx's all_simple_paths beside it.

    python benchmarks/pathways.py

CPU seconds, the median of five; networkx is stopped after 20 s or a million ways.
"""

import json
import random
import statistics
import time
from itertools import islice

FIVE = 5
MOST, SECONDS = 1_000_000, 20


def complete(n):
    """Return a graph in which every node leads to all later ones."""
    return {str(at): [str(to) for to in range(at + 1, n)] for at in range(n - 1)}


def sparse(n, degree, seed=1):
    """Return a random graph of n nodes, each but the first reached from an earlier one."""
    rng = random.Random(seed)
    edges = {str(at): [] for at in range(n)}
    for at in range(1, n):
        for before in {rng.randrange(at) for _ in range(degree)}:
            edges[str(before)].append(str(at))
    return {name: ends for name, ends in edges.items() if ends}


def many_leaves(levels, wide, leaves):
    """Return levels of nodes, each leading to all of the next, with leaves below the last."""
    edges = {
        f"{level}-{at}": [f"{level + 1}-{to}" for to in range(wide)]
        for level in range(levels)
        for at in range(wide)
    }
    edges["root"] = [f"0-{at}" for at in range(wide)]
    for at in range(wide):
        edges[f"{levels}-{at}"] = [f"leaf-{at}-{to}" for to in range(leaves // wide)]
    return edges


def tree(wide, leaves):
    """Return a tree of JSON objects with so many leaves."""
    ends = [{"node": f"leaf {at}", "content": ""} for at in range(leaves)]
    inner = [
        {"node": f"node {at}", "content": "", "children": ends[at : at + wide]}
        for at in range(0, leaves, wide)
    ]
    return {"node": "root", "content": "", "children": inner}


def median_of(work):
    """Return the median of CPU seconds, and what was made."""
    taken, made = [], None
    for _ in range(FIVE):
        started = time.process_time()
        made = work()
        taken.append(time.process_time() - started)
    return statistics.median(taken), made


def peer(edges, root):
    """Return how many ways networkx walks until it ends or is stopped."""
    import networkx

    graph = networkx.DiGraph([(a, b) for a, ends in edges.items() for b in ends])
    leaves = [node for node in graph if not graph.out_degree(node)]
    started, walked = time.process_time(), 0
    ways = networkx.all_simple_paths(graph, root, leaves)
    while time.process_time() - started < SECONDS and walked < MOST:
        some = len(list(islice(ways, 10_000)))
        walked += some
        if some < 10_000:
            return f"{walked} ways, {time.process_time() - started:.2f} s"
    return f"stopped at {walked} ways, {time.process_time() - started:.1f} s"


def main():
    """Print a line for each graph."""
    from medassay.core.records.decision_graph import read_decision_graph
    from medassay.synthesis.pathway import count_paths, paths

    graphs = {
        "2,000 nodes, all 1,999,000 edges": ({"edges": complete(2000), "root": "0"}, "0"),
        "2,000 nodes, 10 edges each": ({"edges": sparse(2000, 10), "root": "0"}, "0"),
        "10,000 leaves behind 200 levels of 50": (
            {"edges": many_leaves(200, 50, 10_000), "root": "root"},
            "root",
        ),
        "a tree with 10,000 leaves": (tree(100, 10_000), None),
    }
    for name, (given, root) in graphs.items():
        read, graph = median_of(lambda given=given: read_decision_graph(given))
        walked, kept = median_of(lambda graph=graph: paths(graph))
        counted, counts = median_of(lambda graph=graph: count_paths(graph))
        line = {
            "graph": name,
            "read": round(read, 3),
            "paths": round(walked, 3),
            "read, counted and walked": round(read + counted, 3),
            "kept": len(kept),
            "ways": (
                f"{counts.ways:.3g}" if counts.ways < 10**300 else f"10^{len(str(counts.ways)) - 1}"
            ),
        }
        if root is not None:
            line["networkx"] = peer(given["edges"], root)
        print(json.dumps(line))


if __name__ == "__main__":
    main()
