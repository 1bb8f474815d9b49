"""Makes verdicts: runs an exercise's checks against an implementation.

The same code judges through a learner's process (`kernels.Probing`), through
the stock route inside nbgrader's kernel (`inprocess`) and the answer bank: what
differs is only who calls the probe, the `Prober`.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from typing import Protocol

from course_grader.chapter.grading import Grading
from course_grader.checks import Case, Check, Draw, Result, Rule
from course_grader.course import CourseError
from course_grader.judge.compare import Tolerance, difference
from course_grader.judge.kernels import Died, Kernel, ProbeRun
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    Verdict,
    whole,
)

TRIES = 2
"""How often a check is begun before it counts that its process ended: threads of
native code crash now and then, and a learner must not lose points by that."""
LONGEST_LINE = 200
"""Characters of a learner's line that a message quotes."""
LONGEST_MESSAGE = 2_000
"""Characters of a message."""
Behaviour = dict[tuple[str, int], Result]
"""What an implementation gave, by check name and number of the case."""
Recognise = Callable[[str, Behaviour, str], str]
"""(exercise, what an answer gave on every case, its losses) -> what the one wrong
answer of the bank that behaves alike tells; empty if none or several do."""


class Prober(Protocol):
    """Whoever runs a probe on an implementation."""

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        """Runs it on each case in turn, until the process dies of one."""


@dataclass(frozen=True)
class Expectations:
    """A chapter's cases for one seed, and what the reference gives on them.

    Attributes:
        seed: the cases were drawn from it.
        cases: by check name.
        reference: by check name and number of the case.
    """

    seed: int
    cases: dict[str, list[Case]]
    reference: Mapping[tuple[str, int], Result]


class Recorded:
    """Answers probes with what was recorded, in the order it was recorded in."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.results = iter(results)

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        for _ in cases:
            yield ProbeRun(next(self.results))


def draw_cases(
    grading: Grading, seed: int, exercises: Sequence[str] | None = None
) -> dict[str, list[Case]]:
    """All cases for a seed, each check with a generator of its own, so that a
    change to one check leaves the cases of the others as they are."""
    cases = {}
    for check in grading.checks:
        if exercises is None or check.exercise in exercises:
            # 32 bits: torch's CPU generator takes no more of a seed
            of_its_own = zlib.crc32(f"{seed}:{check.name}".encode())
            cases[check.name] = check.cases(Draw(of_its_own))
            if not cases[check.name]:
                raise CourseError(f"The check {check.name} draws no cases.")
    return cases


def expectations(
    grading: Grading,
    seed: int,
    prober_of: Callable[[str], Prober],
    exercises: Sequence[str] | None = None,
) -> Expectations:
    """Runs the reference on the cases of a seed.

    Args:
        grading: the chapter's grading.
        seed: to draw from.
        prober_of: a prober of the reference for an exercise id.
        exercises: ids; all if None.

    Raises:
        CourseError: the reference fails a probe, or a check's cases make it
            raise throughout.
    """
    cases = draw_cases(grading, seed, exercises)
    reference: Behaviour = {}
    for check in grading.checks:
        if check.name not in cases:
            continue
        prober = prober_of(check.exercise)
        raised = 0
        runs = prober.probe_all(
            check.probe, cases[check.name], 4 * check.timeout_s
        )
        for number, run in enumerate(runs):
            if run.result is None:
                raise CourseError(
                    f"The reference solution fails the check {check.name}: "
                    f"{run.died.why if run.died else 'no answer'}"
                )
            wanted = set(check.raises)
            if run.result.raised and not wanted & set(run.result.raised):
                raise CourseError(
                    f"The reference solution raises {run.result.raised[0]} in "
                    f"the check {check.name}, which the check does not list "
                    "among what it `raises`."
                )
            raised += bool(run.result.raised)
            _refuse_missing_keys(check, run.result)
            reference[check.name, number] = run.result
        if raised == len(cases[check.name]):
            raise CourseError(
                f"The reference raises on every case of {check.name}: code "
                "that always raises would pass. Add a case that succeeds."
            )
        if check.rule is not None or check.also:
            _refuse_broken_reference(check, cases[check.name], reference)
    return Expectations(seed, cases, reference)


def _refuse_missing_keys(check: Check, result: Result) -> None:
    """A key that the reference lacks would compare None with None."""
    if check.on is None or result.raised:
        return
    keys = list(result.data) if isinstance(result.data, dict) else []
    for key in check.on:
        if key not in keys:
            raise CourseError(
                f"The check {check.name} compares {key!r} (`on=`), which the "
                f"probe {check.probe} does not return for the reference: it "
                f"returns {', '.join(map(repr, keys)) or 'no dict'}."
            )


def _refuse_broken_reference(
    check: Check, cases: list[Case], reference: Behaviour
) -> None:
    for number, case in enumerate(cases):
        result = reference[check.name, number]
        complaint = complaint_of(check, case, result, result)
        if complaint:
            raise CourseError(
                f"The reference solution breaks its own check {check.name}: "
                f"{complaint}"
            )


def steps(
    prober: Prober,
    grading: Grading,
    exercise_id: str,
    cases: Mapping[str, Sequence[Case]],
) -> Generator[tuple[tuple[str, int], Result | None]]:
    """What an implementation of an exercise gives, a case at a time; None for
    the one in which its process ended."""
    for check in grading.checks_of(exercise_id):
        runs = prober.probe_all(check.probe, cases[check.name], check.timeout_s)
        for number, run in enumerate(runs):
            yield (check.name, number), run.result


def judge_exercise(
    grading: Grading,
    exercise_id: str,
    expected: Expectations,
    prober: Callable[[], Prober],
    recognise: Recognise | None,
    learner_line: Callable[[str, int], str] = lambda cell, line: "",
    failed_before: Died | None = None,
) -> ExerciseReport:
    """Judges one exercise.

    Args:
        grading: the chapter's grading.
        exercise_id: the exercise.
        expected: cases and reference results.
        prober: a working prober; called again after one has died, and a check
            whose process ended is tried once more.
        recognise: tells wrong ideas; None to skip that.
        learner_line: the text of a line of one of the learner's cells.
        failed_before: the exercise's own cell already ended its process.

    Returns:
        The report; never raises for what the learner's code does.
    """
    exercise = grading.chapter.exercise(exercise_id)
    seen: Behaviour = {}
    reports = []
    current: Prober | None = None
    learner_line = _one_line_of(learner_line)
    for check in grading.checks_of(exercise_id):
        died = failed_before
        message, verdict = "", Verdict.PASSED
        cases = expected.cases[check.name] if died is None else []
        runs: list[ProbeRun] = []
        for _ in range(TRIES if cases else 0):
            current = current or prober()
            runs, died = _answers(current, check, cases)
            if died is None:
                break
            current = None
            if died.verdict is not Verdict.EXITED:
                break
        for number, (case, run) in enumerate(zip(cases, runs, strict=False)):
            assert run.result is not None
            seen[check.name, number] = run.result
            if verdict is Verdict.PASSED:
                verdict, message = _verdict(
                    check, number, case, run, expected, learner_line
                )
        if died is not None:
            verdict, message = died.verdict, died.why
        points = grading.points_of(check)
        reports.append(
            CheckReport(
                name=check.name,
                says=check.says,
                verdict=verdict,
                points=points if verdict is Verdict.PASSED else 0.0,
                max_points=points,
                message=whole(message)[:LONGEST_MESSAGE],
            )
        )
    all_passed = all(one.verdict is Verdict.PASSED for one in reports)
    none_tried = all(one.verdict is Verdict.NOT_ATTEMPTED for one in reports)
    if not none_tried:
        reports = [_tried(one) for one in reports]
    complete = len(seen) == sum(
        len(expected.cases[one.name]) for one in grading.checks_of(exercise_id)
    )
    return ExerciseReport(
        exercise=exercise_id,
        title=exercise.title,
        # the sum of equal shares must not miss the whole by a rounding error
        points=exercise.points
        if all_passed
        else round(sum(one.points for one in reports), 6),
        max_points=exercise.points,
        checks=tuple(reports),
        misconception=recognise(exercise_id, seen, losses(reports))
        if recognise and complete and not all_passed and not none_tried
        else "",
    )


def loses(prober: Prober, check: Check, expected: Expectations) -> bool:
    """Whether an implementation loses a check; it runs to the first case that
    shows it."""
    cases = expected.cases[check.name]
    for number, run in enumerate(
        prober.probe_all(check.probe, cases, check.timeout_s)
    ):
        if run.result is None:
            return True
        verdict, _ = _verdict(
            check, number, cases[number], run, expected, lambda cell, line: ""
        )
        if verdict is not Verdict.PASSED:
            return True
    return False


def losses(reports: Sequence[CheckReport]) -> str:
    """Which checks an answer loses, a letter each: `.` passed, `e` raised, `f`
    lost otherwise."""
    letters = {Verdict.PASSED: ".", Verdict.ERROR: "e"}
    return "".join(letters.get(one.verdict, "f") for one in reports)


def _one_line_of(
    learner_line: Callable[[str, int], str],
) -> Callable[[str, int], str]:
    """Quotes a single line per exercise, and not much of it: which line it is
    comes from the learner's process, and may say something about a case."""
    quoted: dict[tuple[str, int], str] = {}

    def line(cell: str, number: int) -> str:
        if not quoted:
            text = learner_line(cell, number).strip()
            if len(text) > LONGEST_LINE:
                text = f"{text[:LONGEST_LINE]}…"
            quoted[cell, number] = text
        return quoted.get((cell, number), "")

    return line


def _answers(
    prober: Prober, check: Check, cases: list[Case]
) -> tuple[list[ProbeRun], Died | None]:
    """What the cases of a check gave before the process died, if it did."""
    runs: list[ProbeRun] = []
    for run in prober.probe_all(check.probe, cases, check.timeout_s):
        if run.died is not None or run.result is None:
            return runs, run.died or Died(Verdict.EXITED, "Your code ended.")
        runs.append(run)
    return runs, None


def _tried(report: CheckReport) -> CheckReport:
    """A learner who has done one part has attempted the exercise."""
    if report.verdict is not Verdict.NOT_ATTEMPTED:
        return report
    return replace(
        report,
        verdict=Verdict.ERROR,
        message="Your code raised NotImplementedError for this part.",
    )


def _verdict(
    check: Check,
    number: int,
    case: Case,
    run: ProbeRun,
    expectations: Expectations,
    learner_line: Callable[[str, int], str],
) -> tuple[Verdict, str]:
    seen = run.result
    assert seen is not None
    if seen.not_attempted:
        return Verdict.NOT_ATTEMPTED, "Nothing was handed in for this yet."
    if run.out_of_memory:
        return Verdict.OUT_OF_MEMORY, "Your code asked for too much memory."
    # asked for as late as can be: it may still be worked out
    expected = expectations.reference[check.name, number]
    complaint = complaint_of(check, case, seen, expected)
    if complaint is None:
        return Verdict.PASSED, ""
    if seen.raised and not expected.raised:
        where = ""
        if run.where is not None:
            line = learner_line(*run.where)
            where = f" at your line `{line}`" if line else ""
        return Verdict.ERROR, f"Your code raised {_builtin(seen)}{where}."
    return Verdict.FAILED, complaint


def complaint_of(
    check: Check, case: Case, seen: Result, expected: Result
) -> str | None:
    """What is wrong with a result on a case; None if nothing is."""
    if expected.raised:
        if not seen.raised:
            return "Your code accepted an input that it must refuse."
        if not set(seen.raised) & set(check.raises):
            return (
                f"Your code refused a bad input with {_builtin(seen)}, but "
                f"should raise {' or '.join(check.raises)}."
            )
    elif seen.raised:
        return f"Your code raised {_builtin(seen)}."
    elif check.rule is not None:
        complaint = _asked(check.rule, case, seen, expected)
        if complaint:
            return complaint
    else:
        complaint = _asked(
            functools.partial(_compared, check), case, seen, expected
        )
        if complaint:
            return complaint
    for rule in check.also:
        complaint = _asked(rule, case, seen, expected)
        if complaint:
            return complaint
    return None


def _compared(
    check: Check, case: Case, seen: Result, expected: Result
) -> str | None:
    return difference(
        _selected(seen.data, check.on),
        _selected(expected.data, check.on),
        Tolerance(check.rtol, check.atol),
    )


def _asked(
    rule: Rule, case: Case, seen: Result, expected: Result
) -> str | None:
    """What a rule says. Rules read what a probe returned, and a learner's process
    may send anything in its place."""
    try:
        return rule(case, seen, expected)
    except MemoryError:
        raise
    except Exception:
        return "What came back is not of the form that the check reads."


def _selected(data: object, keys: tuple[str, ...] | None) -> object:
    if keys is None or not isinstance(data, dict):
        return data
    return {key: data.get(key) for key in keys}


def alike(check: Check, one: Result, other: Result) -> bool:
    """Whether two implementations did the same on a case of a check."""
    if one.effects != other.effects or (
        (_builtin(one) if one.raised else "")
        != (_builtin(other) if other.raised else "")
    ):
        return False
    tolerance = Tolerance(check.rtol, check.atol)
    try:
        return difference(one.data, other.data, tolerance) is None
    except MemoryError:
        raise
    except Exception:
        return False  # data that no answer of the bank gives


def _builtin(seen: Result) -> str:
    """The most special builtin exception type: a learner's own class names
    never go to feedback."""
    import builtins

    for name in seen.raised:
        value = getattr(builtins, name, None)
        if isinstance(value, type) and issubclass(value, BaseException):
            return name
    return "an exception"


def run_cells(
    kernel: Kernel, cells: Sequence[tuple[str, str]], chapter: str
) -> None:
    """Runs cells of the course's own (id, source) in a fresh process.

    Raises:
        CourseError: one of them fails.
    """
    for cell_id, source in cells:
        run = kernel.run_cell(source, cell_id)
        if not run.ok:
            error = next(
                (
                    f"{one['ename']}: {one['evalue']}"
                    for one in run.outputs
                    if one["output_type"] == "error"
                ),
                run.died.why if run.died else "it failed",
            )
            raise CourseError(
                f"{chapter}: the cell {cell_id} does not run: {error}"
            )
