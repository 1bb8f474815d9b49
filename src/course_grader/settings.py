"""What `course.toml` may hold: docs/instructors.md says what each setting does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from course_grader.kernel.limits import Limits

NoChapter = Callable[[str], str]
"""Why a name is no chapter's, in a sentence; empty if it is one's."""


@dataclass(frozen=True)
class _Kind:
    """What a setting's value must be.

    Attributes:
        words: behind "it must be".
        fits: whether a value is such.
    """

    words: str
    fits: Callable[[Any], bool]


def _number(value: Any, least: float, most: float = math.inf) -> bool:
    # to Python, true is a number
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and least <= value <= most
        and math.isfinite(value)
    )


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and _number(value, least)


def _is_zone(value: Any) -> bool:
    from dateutil.tz import gettz  # most courses name none

    return isinstance(value, str) and value != "" and gettz(value) is not None


def _one_of(*words: str) -> _Kind:
    said = " or ".join(f'"{one}"' for one in words)
    return _Kind(said, lambda value: value in words)


_TEXT = _Kind('a text, as "…"', lambda v: isinstance(v, str))
_SHARE = _Kind("a number from 0 to 100", lambda v: _number(v, 0, 100))
_WEIGHT = _Kind("a number from 0 up", lambda v: _number(v, 0))
_COUNT = _Kind("a whole number from 0 up", lambda v: _whole(v, 0))
_LIMITS = {
    "int": _Kind("a whole number from 1 up", lambda v: _whole(v, 1)),
    "float": _Kind("a number above 0", lambda v: _number(v, 0) and v > 0),
}
_TOP = {
    "timezone": _Kind('a time zone such as "Europe/Berlin"', _is_zone),
    "exams": _Kind(
        'a list of chapters, as ["03"], or ["all"]',
        lambda v: isinstance(v, list),
    ),
    "attempts": _one_of("best", "last"),
}
_SECTIONS: dict[str, dict[str, _Kind]] = {
    "late": {
        "percent_per_day": _SHARE,
        "at_most_percent": _SHARE,
        "free_days": _COUNT,
    },
    "lms": {
        "kind": _one_of("canvas", "moodle"),
        "address": _TEXT,
        "course": _COUNT,
        "assignments": _Kind(
            'numbers by chapter, as { "03" = 777 }',
            lambda v: isinstance(v, dict) and all(map(_COUNT.fits, v.values())),
        ),
    },
    "edition": {
        "address": _TEXT,
        "name": _TEXT,
        "host": _one_of("github", "gitlab", "web"),
    },
    "limits": {one.name: _LIMITS[str(one.type)] for one in fields(Limits)},
}
# [hub] is looked at where the class server is set up, [nbgrader] where nbgrader is
_OTHERS = ("weights", "hub", "nbgrader")


def objection(tree: Mapping[str, Any], no_chapter: NoChapter) -> str:
    """What is wrong in `course.toml`, in a sentence; empty if nothing is.

    Args:
        tree: what stands there.
        no_chapter: whether a chapter is of this course.
    """
    for said in _objections(tree, no_chapter):
        return f"course.toml: {said}"
    return ""


def misplaced(name: str, section: str) -> Iterator[str]:
    """That a setting which belongs at the top stands in a section.

    Args:
        name: of the setting.
        section: where it stands, as `[late]`.
    """
    if name in _TOP:
        yield (
            f"{name} stands under {section} and belongs at the top of the file, "
            "above the first [section]."
        )


def _objections(
    tree: Mapping[str, Any], no_chapter: NoChapter
) -> Iterator[str]:
    for name, value in tree.items():
        if name in _TOP:
            yield from _misfit(name, value, _TOP[name])
            if name == "exams":
                named = [str(one) for one in value if one != "all"]
                yield from _strangers(name, named, no_chapter)
        elif name not in _SECTIONS and name not in _OTHERS:
            yield _unknown(name)
        elif not isinstance(value, dict):
            yield (
                f"{name} is a section: write [{name}] in a line, and its "
                "settings below."
            )
        else:
            yield from _in_section(name, value, no_chapter)


def _in_section(
    section: str, tree: Mapping[str, Any], no_chapter: NoChapter
) -> Iterator[str]:
    for name, value in tree.items():
        yield from misplaced(name, f"[{section}]")
        said = f"[{section}] {name}"
        if section == "weights":
            yield from _strangers(f"[{section}]", [name], no_chapter)
            yield from _misfit(said, value, _WEIGHT)
        elif section in _SECTIONS:
            known = _SECTIONS[section]
            if name not in known:
                yield f"[{section}] knows {', '.join(known)}, not {name}."
                return
            yield from _misfit(said, value, known[name])
            if name == "assignments":
                yield from _strangers(said, value, no_chapter)


def _misfit(name: str, value: Any, kind: _Kind) -> Iterator[str]:
    if not kind.fits(value):
        yield f"{name} must be {kind.words}, not {value!r}."


def _strangers(
    name: str, chapters: Iterable[str], no_chapter: NoChapter
) -> Iterator[str]:
    for one in chapters:
        if why := no_chapter(one):
            yield f"{name}: {why}"


def _unknown(name: str) -> str:
    """Of a setting at the top that is none."""
    homes = [one for one, known in _SECTIONS.items() if name in known]
    if homes:
        return (
            f"{name} stands at the top and belongs under [{homes[0]}], which "
            "needs a line of its own."
        )
    sections = ", ".join(f"[{one}]" for one in (*_SECTIONS, *_OTHERS))
    return (
        f"there is no setting {name}. At the top stand {', '.join(_TOP)}; "
        f"the sections are {sections}."
    )
