"""A report as plain text: for a terminal, and for the output of a grade cell."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    FailingCase,
    Verdict,
)


def as_text(report: ExerciseReport) -> str:
    """What the page says of one exercise: the mistake if it is known, the checks
    that failed by faults of their own with their cases, then the others."""
    lines = []
    if report.misconception:
        lines.append(textwrap.fill(report.misconception, 78))
    for check in report.checks:
        if check.verdict is not Verdict.PASSED and not check.follows:
            lines += _told(check)
    lines += [
        f"{check.verdict if not check.follows else 'follows':14} {check.says}"
        for check in report.checks
        if check.verdict is Verdict.PASSED or check.follows
    ]
    return "\n".join(lines)


def _told(check: CheckReport) -> Iterator[str]:
    yield f"{check.verdict:14} {check.says}"
    if check.message:
        yield textwrap.indent(check.message, "    ")
    if check.case is not None:
        yield textwrap.indent(case_text(check.case), "    ")


def case_text(case: FailingCase) -> str:
    """A failing case, as lines."""
    lines = [textwrap.indent(case.call, ">>> ", lambda _: True)]
    lines += [f"    {one}" for one in case.given]
    for label, value in (("yours", case.yours), ("right", case.right)):
        if value:
            first, *rest = value.split("\n")
            lines += [f"{label}  {first}", *(f"       {one}" for one in rest)]
    if case.differs:
        lines.append(case.differs)
    return "\n".join(lines)
