"""Exercise `gather_messages`: the mean of what arrives at each node of a directed graph."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _mean(total, reads):
    count = reads.sum(axis=1, keepdims=True)
    return total / np.where(count == 0, 1, count)


def gather_messages(values, adjacency, *, read=lambda adjacency: adjacency.T, finish=_mean):
    """Return for every node the mean of the values of those from which an edge leads to it."""
    reads = read(adjacency).astype(float)
    return finish(reads @ values, reads)


def _with_itself(adjacency):
    return adjacency.T | np.eye(len(adjacency), dtype=bool)


MISTAKES = [
    Mistake(
        "the graph is the wrong way round: each node reads those that it points at",
        "Row m of adjacency says where the edges of node m lead. Whose row says who points at node n?",
        read=lambda adjacency: adjacency,
    ),
    Mistake(
        "edges count in both directions",
        "An edge leads from one node to another. Which of the two hears of the other?",
        read=lambda adjacency: adjacency | adjacency.T,
    ),
    Mistake(
        "every node hears itself as well",
        "Is there an edge from a node to itself, unless adjacency says so?",
        read=_with_itself,
    ),
    Mistake(
        "you add up, where you should take the mean",
        "What should a node get if all its neighbours have the value 1?",
        finish=lambda total, reads: total,
    ),
    Mistake(
        "you divide by the number of all nodes",
        "What should a node get if all its neighbours have the value 1?",
        finish=lambda total, reads: total / len(reads),
    ),
    Mistake(
        "you divide by the number of edges that leave a node, where you should count those that arrive",
        "Over which axis of adjacency do you count?",
        finish=lambda total, reads: total / np.where(reads.sum(axis=0) == 0, 1, reads.sum(axis=0))[:, None],
    ),
]


def _case(name, nodes, width, edges, is_edge=False):
    adjacency = np.zeros((nodes, nodes), bool)
    for sender, receiver in edges:
        adjacency[sender, receiver] = True
    values = np.random.default_rng(nodes).integers(1, 40, (nodes, width)) / 4
    return Case(name, {"values": values, "adjacency": adjacency}, is_edge)


EXERCISE = Exercise(
    gather_messages,
    MISTAKES,
    cases=[
        _case("a directed graph", 5, 3, [(0, 1), (0, 2), (2, 1), (3, 2), (4, 3), (1, 4), (0, 3), (3, 1), (1, 0)]),
        _case("another one", 4, 2, [(1, 0), (2, 0), (3, 0), (0, 2), (3, 2), (3, 3), (2, 1)]),
        _case("a node that no edge leads to", 4, 3, [(0, 1), (0, 2), (1, 2), (2, 3)], is_edge=True),
        _case("no edges", 3, 2, [], is_edge=True),
    ],
    examples=[
        {
            "values": np.array([[1.0], [2.0], [6.0]]),
            "adjacency": np.array([[False, True, True], [False, False, True], [True, False, False]]),
        }
    ],
    result="(nodes, d)",
    tried_on="values {values}, a graph {adjacency}",
)
