"""Figures that a learner can steer, and that readers without a kernel still see.

The figure is an ordinary picture in the cell's output: it is saved with the
notebook and shown by GitHub and in a PDF. Where there is a kernel, controls stand
above it and replace the picture in place.
"""

from __future__ import annotations

import inspect
import itertools
import math
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from course_utils.plots import as_output, drawn

_WITHOUT_A_KERNEL = "Controls of this figure: run the cell to use them."
_WIDGET = "application/vnd.jupyter.widget-view+json"

FRAMES = "application/vnd.course-utils.frames+json"
"""Type of the output that carries a figure's frames: what the course's site shows
where no kernel is. Made only where COURSE_UTILS_FRAMES is set."""
MOST_FRAMES = 25


def explore(figure_function: Callable[..., Figure], **controls: Any) -> None:
    """Shows a figure with one control for each named argument of its function.

    A control is given by what the argument can be:

    - `(low, high)` or `(low, high, step)`: a slider;
    - a `range`: a slider of integers;
    - a list of numbers: a slider that stops at each; of anything else: a menu;
    - `True` or `False`: a checkbox, with this at the beginning.

    It begins with the default value that the function's signature gives, else
    with the lowest or first. Without ipywidgets the figure stands alone, as it
    is at the beginning; in a plain script it is drawn and its title printed.

    Args:
        figure_function: called with every control as a keyword; returns the
            Figure.
        controls: what each argument can be.

    Raises:
        ValueError: a control that is none of these, or a default value that it
            cannot take.
    """
    starts = {
        name: _start(figure_function, name, allowed)
        for name, allowed in controls.items()
    }
    picture, title = _draw(figure_function, starts)
    if not _in_kernel():
        print(f"Figure: {title}")
        return
    if os.environ.get("COURSE_UTILS_FRAMES"):
        frames = _frames(figure_function, controls, starts)
        data, metadata = as_output(picture, title)
        _display({FRAMES: frames, **data}, metadata)
        return
    try:
        import ipywidgets
    except ImportError:
        _display(*as_output(picture, title))
        return

    made = {
        name: _control(ipywidgets, name, allowed, starts[name])
        for name, allowed in controls.items()
    }
    message = ipywidgets.Label()
    rows = [*made.values(), message]
    if "google.colab" in sys.modules:
        update = _show_as_one_output(ipywidgets, rows, picture, title)
    else:
        update = _show_as_two_outputs(ipywidgets, rows, picture, title)

    def redraw(_change: object) -> None:
        now = {name: widget.value for name, widget in made.items()}
        try:
            update(*_draw(figure_function, now))
            message.value = ""
        except Exception as error:
            # Raised in a callback it would end in a log that nobody reads.
            message.value = f"Not drawn: {type(error).__name__}: {error}"

    for widget in made.values():
        widget.observe(redraw, names="value")


def _start(
    figure_function: Callable[..., Figure], name: str, allowed: Any
) -> Any:
    """The value at which a control begins."""
    parameters = inspect.signature(figure_function).parameters
    default = parameters[name].default if name in parameters else inspect._empty
    given = default is not inspect.Parameter.empty
    if isinstance(allowed, bool):
        return allowed
    if isinstance(allowed, tuple) and len(allowed) in (2, 3):
        start = default if given else allowed[0]
        fits = allowed[0] <= start <= allowed[1]
    elif isinstance(allowed, range | list) and len(allowed) > 0:
        start = default if given else allowed[0]
        fits = start in allowed
    else:
        raise ValueError(
            f"The control {name} is (low, high), (low, high, step), a range, "
            f"a list, True or False, not {allowed!r}."
        )
    if not fits:
        raise ValueError(
            f"The figure begins with {name}={start!r}, which its control "
            f"{allowed!r} cannot take."
        )
    return start


def _frames(
    figure_function: Callable[..., Figure],
    controls: dict[str, Any],
    starts: dict[str, Any],
) -> dict[str, Any]:
    """The figure at every combination of a few positions of its controls.

    Returns:
        `controls`: name, kind ("switch", "slider" or "menu"), positions as text,
        and which of them is the start; `frames`: PNG in base64 and titles, the
        last control varying fastest.
    """
    every = {
        name: _all_positions(allowed, starts[name])
        for name, allowed in controls.items()
    }
    shares = _shares([len(one) for one in every.values()])
    positions = {
        name: _some(values, starts[name], share)
        for (name, values), share in zip(every.items(), shares, strict=True)
    }
    frames = []
    for values in itertools.product(*positions.values()):
        png, title = _draw(
            figure_function, dict(zip(positions, values, strict=True))
        )
        data, metadata = as_output(png, title)
        alternative = metadata["image/png"]["alt"]
        frames.append({"png": data["image/png"], "alt": alternative})
    return {
        "controls": [
            {
                "name": name.replace("_", " "),
                "kind": _kind(controls[name]),
                "positions": [
                    f"{one:.4g}" if isinstance(one, float) else str(one)
                    for one in some
                ],
                "start": some.index(starts[name]),
            }
            for name, some in positions.items()
        ],
        "frames": frames,
    }


def _kind(allowed: Any) -> str:
    if isinstance(allowed, bool):
        return "switch"
    numbers = isinstance(allowed, range | tuple) or all(
        isinstance(one, int | float) for one in allowed
    )
    return "slider" if numbers else "menu"


def _shares(sizes: list[int]) -> list[int]:
    """How many positions each control keeps, at most MOST_FRAMES in all: the one
    with the fewest gets the next, as long as it has more."""
    shares = [min(2, size) for size in sizes]
    growing = set(range(len(sizes)))
    while growing:
        place = min(growing, key=lambda one: (shares[one], one))
        more = math.prod(shares) // shares[place] * (shares[place] + 1)
        if shares[place] < sizes[place] and more <= MOST_FRAMES:
            shares[place] += 1
        else:
            growing.remove(place)
    return shares


def _all_positions(allowed: Any, start: Any) -> list[Any]:
    """The values that a control can take, in its order, the start among them."""
    if isinstance(allowed, bool):
        return [False, True]
    if isinstance(allowed, tuple):
        low, high = allowed[:2]
        whole = all(isinstance(one, int) for one in (*allowed, start))
        step = allowed[2] if len(allowed) == 3 else None
        step = step or (1 if whole else (high - low) / 20)
        number = math.floor((high - low) / step + 1e-9) + 1
        every = [low + step * place for place in range(number)]
        # the start may lie between two steps, or differ by rounding
        apart = [one for one in every if not math.isclose(one, start)]
        return sorted([*apart, start])
    return list(allowed)


def _some(every: list[Any], start: Any, most: int) -> list[Any]:
    """At most so many of the values, in their order, the start among them."""
    if len(every) <= most:
        return every
    last, begin = len(every) - 1, every.index(start)
    places = [round(i * last / (most - 1)) for i in range(most)]
    nearest = min(range(most), key=lambda i: abs(places[i] - begin))
    places[nearest] = begin
    return [every[place] for place in places]


def _control(ipywidgets: Any, name: str, allowed: Any, start: Any) -> Any:
    usual = {
        "value": start,
        "description": name.replace("_", " "),
        "style": {"description_width": "initial"},
        "layout": {"width": "auto", "max_width": "30em"},
    }
    # Redrawing takes a while: once per move, not at every pixel of it.
    slider = {**usual, "continuous_update": False}
    if isinstance(allowed, bool):
        return ipywidgets.Checkbox(indent=False, **usual)
    if isinstance(allowed, range):
        return ipywidgets.IntSlider(
            min=allowed[0], max=allowed[-1], step=allowed.step, **slider
        )
    if isinstance(allowed, tuple):
        low, high = allowed[:2]
        if all(isinstance(one, int) for one in (*allowed, start)):
            step = allowed[2] if len(allowed) == 3 else 1
            return ipywidgets.IntSlider(min=low, max=high, step=step, **slider)
        step = allowed[2] if len(allowed) == 3 else (high - low) / 20
        return ipywidgets.FloatSlider(
            min=low, max=high, step=step, readout_format=".3g", **slider
        )
    if all(isinstance(one, int | float) for one in allowed):
        options = [(f"{one:g}", one) for one in allowed]
        return ipywidgets.SelectionSlider(options=options, **slider)
    return ipywidgets.Dropdown(
        options=[(str(one), one) for one in allowed], **usual
    )


def _draw(
    figure_function: Callable[..., Figure], values: dict[str, Any]
) -> tuple[bytes, str]:
    """The figure as PNG, and its titles."""
    figure = figure_function(**values)
    # Else the inline backend shows it a second time at the end of the cell.
    plt.close(figure)
    return drawn(figure)


def _in_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _display(
    data: dict[str, Any], metadata: dict[str, Any], **how: Any
) -> None:
    from IPython.display import display

    display(data, metadata=metadata, raw=True, **how)


def _view(ipywidgets: Any, rows: list[Any]) -> dict[str, Any]:
    box = ipywidgets.VBox(rows)
    return {"version_major": 2, "version_minor": 0, "model_id": box.model_id}


def _show_as_two_outputs(
    ipywidgets: Any, rows: list[Any], png: bytes, title: str
) -> Callable[[bytes, str], None]:
    """Controls, and below them the picture as an output of its own: a notebook
    opened without its kernel loses the controls and keeps the picture."""
    view = _view(ipywidgets, rows)
    _display({_WIDGET: view, "text/plain": _WITHOUT_A_KERNEL}, {})
    display_id = uuid.uuid4().hex
    _display(*as_output(png, title), display_id=display_id)

    def update(png: bytes, title: str) -> None:
        output = as_output(png, title)
        _display(*output, display_id=display_id, update=True)

    return update


def _show_as_one_output(
    ipywidgets: Any, rows: list[Any], png: bytes, title: str
) -> Callable[[bytes, str], None]:
    """Controls and picture in one output, for Colab, where an output cannot be
    counted on to change once its cell has ended, while a widget can. What cannot
    show widgets shows the picture that the same output carries."""
    picture = ipywidgets.Image(value=png, format="png")
    view = _view(ipywidgets, [*rows, picture])
    data, metadata = as_output(png, title)
    _display({_WIDGET: view, **data}, metadata)

    def update(png: bytes, title: str) -> None:
        picture.value = png

    return update
