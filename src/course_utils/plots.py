"""The one look of all figures of the course, and the figures chapters repeat.

Every function returns a Figure that pyplot has forgotten again: as the last
value of a cell it is shown once, not a second time by the inline backend.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermillion
    "#009E73",  # green
    "#CC79A7",  # purple
    "#E69F00",  # orange
    "#56B4E9",  # light blue
    "#000000",  # black
)
"""Colours that stay apart for colour-blind readers. Source: M. Okabe and K. Ito,
Color Universal Design, 2008; their yellow is left out, too pale for a line."""

_STYLE: dict[str, Any] = {
    "figure.figsize": (5.0, 3.0),
    "figure.dpi": 120,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "legend.frameon": False,
    "image.cmap": "cividis",
    "image.interpolation": "nearest",
}


def use_course_style() -> None:
    """Sets the look of all figures made from now on, those of pyplot included."""
    plt.style.use(_STYLE)


class CourseFigure(Figure):
    """A figure that a notebook shows with its titles as the text alternative."""

    def _repr_mimebundle_(
        self, **_: Any
    ) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        return as_output(*drawn(self))


def drawn(figure: Figure) -> tuple[bytes, str]:
    """The figure as PNG, and its titles in words."""
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight", pad_inches=0.1)
    titles = [
        axes.get_title(loc=place)
        for axes in figure.axes
        for place in ("left", "center", "right")
    ]
    return png.getvalue(), "; ".join(filter(None, titles)) or "without a title"


def as_output(
    png: bytes, titles: str
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """A picture as an output's data and metadata. nbconvert and screen readers
    take the text from the metadata, what shows no pictures takes the plain one."""
    words = f"Figure: {titles}"
    return (
        {"image/png": base64.b64encode(png).decode(), "text/plain": words},
        {"image/png": {"alt": words}},
    )


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    figsize: tuple[float, float] | None = None,
) -> tuple[Figure, Any]:
    """An empty figure in the course's style.

    Args:
        rows: of axes.
        columns: of axes.
        figsize: width and height in inches; by default (5, 3) for one column of
            axes and (7, 3) for more, times the rows in height.

    Returns:
        The figure, and its Axes: one, or an array of shape (rows,), (columns,)
        or (rows, columns) as from `plt.subplots`.
    """
    use_course_style()
    size = figsize or (5.0 if columns == 1 else 7.0, 3.0 * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, FigureClass=CourseFigure
    )
    plt.close(figure)
    return figure, axes


def line_chart(
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    x: Sequence[float] | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """One line for each series, named in a legend if there are several.

    Args:
        series: the heights of each line, by its name.
        title: what the figure shows: the finding.
        xlabel: with its unit.
        ylabel: with its unit.
        x: where the points stand; by default 0, 1, 2, ...
        log_x: a logarithmic horizontal axis.
        log_y: a logarithmic vertical axis.
    """
    figure, axes = new_figure()
    dashes = ("-", "--", "-.", ":")
    for index, (name, heights) in enumerate(series.items()):
        places = range(len(heights)) if x is None else x
        style = dashes[index % len(dashes)]
        axes.plot(places, heights, label=name, linestyle=style)
    if len(series) > 1:
        axes.legend()
    axes.grid(color="0.9")
    if log_x:
        axes.set_xscale("log")
    elif x is None:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if log_y:
        axes.set_yscale("log")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return figure


def bar_chart(
    values: Mapping[str, float],
    *,
    title: str,
    xlabel: str,
    number_format: str = ".3g",
) -> Figure:
    """One horizontal bar for each value, with its number written beside it.

    Args:
        values: the length of each bar, by its name; the first is on top.
        title: what the figure shows: the finding.
        xlabel: what the lengths are, with their unit.
        number_format: how the numbers are written, as in `format`.
    """
    figure, axes = new_figure(figsize=(5.0, 1.0 + 0.35 * len(values)))
    bars = axes.barh(list(values), list(values.values()), color=PALETTE[0])
    numbers = [format(value, number_format) for value in values.values()]
    axes.bar_label(bars, labels=numbers, padding=3)
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set(title=title, xlabel=xlabel)
    return figure


def annotated_matrix(
    numbers: Any,
    *,
    title: str,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    number_format: str = ".3g",
) -> Figure:
    """A matrix with its numbers written into coloured cells.

    Args:
        numbers: a tensor, an array or nested lists of shape (rows, columns).
        title: what the figure shows: the finding.
        row_labels: by default 0, 1, 2, ...
        column_labels: by default 0, 1, 2, ...
        xlabel: what the columns are.
        ylabel: what the rows are.
        number_format: how the numbers are written, as in `format`.

    Raises:
        ValueError: `numbers` is not a matrix.
    """
    detached = numbers.detach().cpu() if hasattr(numbers, "detach") else numbers
    matrix = np.asarray(detached)
    if matrix.ndim != 2:
        raise ValueError(
            f"A matrix has shape (rows, columns), not {matrix.shape}."
        )
    rows, columns = matrix.shape
    width = min(7.0, max(3.0, 1.2 + 0.55 * columns))
    figure, axes = new_figure(figsize=(width, 1.0 + 0.4 * rows))
    image = axes.imshow(matrix, aspect="auto")
    axes.set_xticks(range(columns), column_labels or range(columns))
    axes.set_yticks(range(rows), row_labels or range(rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for row in range(rows):
        for column in range(columns):
            red, green, blue, _ = image.to_rgba(matrix[row, column])
            # Luma as in ITU-R BT.601.
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            axes.text(
                column,
                row,
                format(matrix[row, column].item(), number_format),
                ha="center",
                va="center",
                color="white" if dark else "black",
            )
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return figure
