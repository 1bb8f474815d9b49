"""What a chapter would otherwise repeat.

    from course_utils import expect, pick_device, seed_everything, visible_check

Importing this package imports neither torch nor matplotlib: each name below is
fetched from its module when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .datasets import Split as Split
    from .datasets import digits as digits
    from .datasets import gaussian_clusters as gaussian_clusters
    from .devices import describe_machine as describe_machine
    from .devices import pick_device as pick_device
    from .graph import show_graph as show_graph
    from .memory import PeakMemory as PeakMemory
    from .memory import SavedTensors as SavedTensors
    from .memory import peak_memory as peak_memory
    from .memory import saved_tensor_bytes as saved_tensor_bytes
    from .models import digit_convnet as digit_convnet
    from .models import digit_mlp as digit_mlp
    from .plots import PALETTE as PALETTE
    from .plots import annotated_matrix as annotated_matrix
    from .plots import bar_chart as bar_chart
    from .plots import line_chart as line_chart
    from .plots import new_figure as new_figure
    from .plots import use_course_style as use_course_style
    from .recorded_results import Recorded as Recorded
    from .recorded_results import beside_reference as beside_reference
    from .recorded_results import record as record
    from .recorded_results import recorded as recorded
    from .recorded_results import show_recorded as show_recorded
    from .seeding import seed_everything as seed_everything
    from .timing import Timing as Timing
    from .timing import measure_time as measure_time
    from .visible_checks import expect as expect
    from .visible_checks import summary as summary
    from .visible_checks import visible_check as visible_check
    from .widgets import explore as explore

_MODULE_OF = {
    "PALETTE": "plots",
    "PeakMemory": "memory",
    "Recorded": "recorded_results",
    "SavedTensors": "memory",
    "Split": "datasets",
    "Timing": "timing",
    "annotated_matrix": "plots",
    "bar_chart": "plots",
    "beside_reference": "recorded_results",
    "describe_machine": "devices",
    "digit_convnet": "models",
    "digit_mlp": "models",
    "digits": "datasets",
    "expect": "visible_checks",
    "explore": "widgets",
    "gaussian_clusters": "datasets",
    "line_chart": "plots",
    "measure_time": "timing",
    "new_figure": "plots",
    "peak_memory": "memory",
    "pick_device": "devices",
    "record": "recorded_results",
    "recorded": "recorded_results",
    "saved_tensor_bytes": "memory",
    "seed_everything": "seeding",
    "show_graph": "graph",
    "show_recorded": "recorded_results",
    "summary": "visible_checks",
    "use_course_style": "plots",
    "visible_check": "visible_checks",
}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"course_utils has no {name!r}.")
    module = import_module(f"{__name__}.{_MODULE_OF[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
