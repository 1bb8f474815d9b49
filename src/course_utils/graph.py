"""The autograd graph as a picture, with Graphviz or without."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from torch import Tensor

from .plots import new_figure

if TYPE_CHECKING:
    from graphviz import Digraph
    from matplotlib.figure import Figure

_HOW_TO_INSTALL = (
    "Graphviz draws this graph better: install it with `apt-get install "
    "graphviz`, `brew install graphviz` or `conda install graphviz`."
)


def show_graph(
    output: Tensor, params: Mapping[str, Tensor] | None = None
) -> Digraph | Figure:
    """Draws the operations that led to `output`, as autograd recorded them.

    Args:
        output: a tensor with a `grad_fn`.
        params: names for the leaves: `dict(model.named_parameters())`.

    Returns:
        The graph of `torchviz.make_dot`, which a notebook shows as SVG; where
        Graphviz' `dot` is missing, a matplotlib Figure of the same nodes and
        edges, after a sentence that says how to install it.

    Raises:
        ValueError: autograd recorded nothing for `output`.
    """
    if output.grad_fn is None:
        raise ValueError(
            "This tensor has no graph: nothing it was made from requires a "
            "gradient, or it was detached or made under no_grad."
        )
    import torchviz

    digraph = torchviz.make_dot(output, params=dict(params or {}))
    if shutil.which("dot") is not None:
        return digraph  # type: ignore[no-any-return]
    print(_HOW_TO_INSTALL)
    return _drawn(*_nodes_and_edges(digraph.body))


_X11_COLORS = {"darkolivegreen1": "#caff70", "darkolivegreen3": "#a2cd5a"}
"""Those colours of torchviz that Graphviz knows by a name and matplotlib not."""


@dataclass(frozen=True)
class _Node:
    label: str
    color: str


def _nodes_and_edges(
    body: Sequence[str],
) -> tuple[dict[str, _Node], list[tuple[str, str]]]:
    """Reads the statements of a graph in Graphviz' language."""
    nodes: dict[str, _Node] = {}
    edges: list[tuple[str, str]] = []
    for statement in body:
        edge = re.match(r"\s*(\S+) -> (\S+)", statement)
        if edge:
            edges.append((edge[1], edge[2]))
            continue
        node = re.match(r"\s*(\S+) \[(.*)\]", statement, re.DOTALL)
        if node:
            label = re.search(r'label="?(.*?)"?( fillcolor|$)', node[2], re.S)
            color = re.search(r"fillcolor=(\w+)", node[2])
            name = color[1] if color else "lightgrey"
            lines = label[1].split("\n") if label else []
            nodes[node[1]] = _Node(
                label="\n".join(line.strip() for line in lines if line.strip()),
                color=_X11_COLORS.get(name, name),
            )
    return nodes, edges


def _places(
    nodes: Mapping[str, _Node], edges: Sequence[tuple[str, str]]
) -> dict[str, tuple[float, int]]:
    """Where each node stands: (x, layer), the last layer being 0, neighbours of
    one layer at least 1 apart.

    A layer is the longest way to the output, so leaves stand right above their
    use. Within a layer nodes go where their neighbours are, in a few sweeps.

    Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for Visual Understanding of
    Hierarchical System Structures, 1981.
    """
    before: dict[str, list[str]] = {name: [] for name in nodes}
    after: dict[str, list[str]] = {name: [] for name in nodes}
    for start, end in edges:
        before[end].append(start)
        after[start].append(end)

    layer = dict.fromkeys(nodes, 0)
    waiting = {name: len(ends) for name, ends in after.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    while ready:
        end = ready.pop()
        for start in before[end]:
            layer[start] = max(layer[start], layer[end] + 1)
            waiting[start] -= 1
            if waiting[start] == 0:
                ready.append(start)

    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    x: dict[str, float] = {}
    for name in nodes:
        x[name] = float(len(rows[layer[name]]))
        rows[layer[name]].append(name)
    for _ in range(8):
        for neighbours, sweep in ((after, rows), (before, rows[::-1])):
            for row in sweep:
                _move_to_neighbours(row, neighbours, x)
    return {name: (x[name], layer[name]) for name in nodes}


def _move_to_neighbours(
    row: list[str], neighbours: Mapping[str, Sequence[str]], x: dict[str, float]
) -> None:
    """Moves the nodes of a layer above (or below) the middle of their neighbours
    and then as far apart as they need to be."""
    wanted = {
        name: fmean(x[one] for one in neighbours[name])
        if neighbours[name]
        else x[name]
        for name in row
    }
    row.sort(key=lambda name: wanted[name])
    right = -inf
    for name in row:
        right = max(wanted[name], right + 1)
        x[name] = right
    too_far = fmean(x[name] - wanted[name] for name in row)
    for name in row:
        x[name] -= too_far


def _drawn(
    nodes: Mapping[str, _Node], edges: Sequence[tuple[str, str]]
) -> Figure:
    place = _places(nodes, edges)
    across = [x for x, _ in place.values()]
    left, right = min(across) - 0.6, max(across) + 0.6
    top = max(layer for _, layer in place.values())
    figure, axes = new_figure(
        figsize=(max(5.0, 1.4 * (right - left)), max(2.0, 0.55 * (top + 1)))
    )
    for start, end in edges:
        (x, bottom), (end_x, end_layer) = place[start], place[end]
        axes.annotate(
            "",
            xy=(end_x, end_layer + 0.17),  # the top of a box
            xytext=(x, bottom),
            arrowprops={
                "arrowstyle": "-|>",
                "color": "0.4",
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )
    for name, node in nodes.items():
        axes.text(
            *place[name],
            node.label,
            ha="center",
            va="center",
            fontsize=7,
            bbox={"boxstyle": "round", "facecolor": node.color, "lw": 0.5},
        )
    axes.set_xlim(left, right)
    axes.set_ylim(-0.5, top + 0.5)
    axes.axis("off")
    return figure
