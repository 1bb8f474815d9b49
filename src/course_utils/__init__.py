"""What a chapter would otherwise repeat.

    from course_utils import expect, pick_device, seed_everything, visible_check

Importing this package imports neither torch nor matplotlib: each name below is
fetched from its module when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .visible_checks import expect as expect
    from .visible_checks import visible_check as visible_check

_MODULE_OF = {
    "expect": "visible_checks",
    "visible_check": "visible_checks",
}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"course_utils has no {name!r}")
    module = import_module(f"{__name__}.{_MODULE_OF[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
