"""Makes verdicts: runs an exercise's checks against an implementation.

The same code judges through a learner's process (`kernels.Probing`), through
the stock route inside nbgrader's kernel (`inprocess`) and the answer bank: what
differs is only who calls the probe, the `Prober`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from typing import Protocol
from weakref import WeakValueDictionary

import torch

from course_grader.chapter.grading import Grading
from course_grader.chapter.source import BEGIN_SOLUTION, END_SOLUTION, Role
from course_grader.checks import (
    Case,
    Check,
    Draw,
    Result,
    Rule,
    SharedCases,
    gives_no_warning,
    leaves_inputs_alone,
    leaves_state_alone,
)
from course_grader.course import CourseError
from course_grader.judge.compare import (
    Difference,
    Tolerance,
    difference,
    noted,
)
from course_grader.judge.failing import (
    LONGEST_TEXT,
    Failure,
    Shows,
    exception_name,
    failing_case,
    size,
    subject_of,
)
from course_grader.judge.kernels import (
    Died,
    Exchanged,
    Kernel,
    ProbeRun,
    Traced,
)
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    FailingCase,
    Verdict,
    half_points,
    whole,
)
from course_grader.judge.written import one_line

TRIES = 2
"""How often a check is begun before it counts that its process ended: threads of
native code crash now and then, and a learner must not lose points by that."""
LONGEST_LINE = 200
"""Characters of a learner's line that a message quotes."""
LONGEST_MESSAGE = 2_000
"""Characters of a message."""
MOST_CASES = 3
"""Failed checks of one exercise that show a case: each costs a probe call."""
Behaviour = dict[tuple[str, int], Result]
"""What an implementation gave, by check name and number of the case."""
Answered = tuple[list[ProbeRun], Died | None]
"""What a check's cases gave until the process died, and whether it did."""
HasAnswered = Callable[
    [Check, Callable[[Sequence[Case]], Answered]], Answered | None
]
"""(check, what asks for some of its cases) -> what all of them gave; None where that
is to be asked for."""
Recognise = Callable[[str, Behaviour, str], str]
"""(exercise, what an answer gave on every case, its losses) -> what the one wrong
answer of the bank that behaves alike tells; empty if none or several do."""


class Prober(Protocol):
    """Whoever runs a probe on an implementation."""

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        """Runs it on each case in turn, until the process dies of one."""

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        """Runs it once more on one case and notes the calls that it makes; None
        where nothing notes them."""


@dataclass(frozen=True)
class Expectations:
    """A chapter's cases for one seed, and what the reference gives on them.

    Attributes:
        seed: the cases were drawn from it.
        cases: by check name.
        reference: by check name and number of the case.
        exchanged: what was asked on the cases, and answered.
        passed: results that have passed, by check name, number of the case and
            their id, as long as somebody has them.
    """

    seed: int
    cases: dict[str, list[Case]]
    reference: Mapping[tuple[str, int], Result]
    exchanged: Exchanged = field(default_factory=Exchanged)
    passed: WeakValueDictionary[tuple[str, int, int], Result] = field(
        default_factory=WeakValueDictionary
    )


class Recorded:
    """Answers probes with what was recorded, in the order it was recorded in."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.results = iter(results)

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        for _ in cases:
            yield ProbeRun(next(self.results))

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        return None


def draw_cases(
    grading: Grading, seed: int, exercises: Sequence[str] | None = None
) -> dict[str, list[Case]]:
    """All cases for a seed, each check with a generator of its own, so that a
    change to one check leaves the cases of the others as they are."""
    cases = {}
    shared: SharedCases = {}
    for check in grading.checks:
        if exercises is None or check.exercise in exercises:
            cases[check.name] = check.cases(Draw(seed, check.name, shared))
            if not cases[check.name]:
                raise CourseError(f"The check {check.name} draws no cases.")
    return cases


def reference_results(
    prober: Prober,
    checks: Iterable[Check],
    cases: Mapping[str, Sequence[Case]],
) -> Behaviour:
    """Runs the reference on the cases of checks.

    Args:
        prober: of the reference.
        checks: of one exercise.
        cases: by check name.

    Raises:
        CourseError: the reference fails a probe, or a check's cases make it
            raise throughout.
    """
    reference: Behaviour = {}
    for check in checks:
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
    return reference


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
    check: Check, cases: Sequence[Case], reference: Behaviour
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
    checks: Iterable[Check],
    cases: Mapping[str, Sequence[Case]],
) -> Generator[tuple[tuple[str, int], Result | None]]:
    """What an implementation of an exercise gives, a case at a time; None for
    the one in which its process ended."""
    for check in checks:
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
    shows: Shows | None = None,
    untouched: Callable[[], Prober] | None = None,
    tell: Callable[[Sequence[CheckReport]], None] | None = None,
    answered: HasAnswered | None = None,
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
        shows: which cases may be shown; None if neither these nor what an
            exception says are.
        untouched: a prober where no case has been that is not shown; `prober` if
            None.
        tell: is told of the checks that have been judged, after each of them, with
            their words and cases; where that matters to nobody they are asked for
            in the end, when all verdicts stand.
        answered: has a check's cases answered, some of them by somebody else.

    Returns:
        The report; never raises for what the learner's code does.
    """
    exercise = grading.chapter.exercise(exercise_id)
    seen: Behaviour = {}
    reports: list[CheckReport] = []
    current: Prober | None = None
    learner_line = _one_line_of(learner_line)
    losses_of: dict[str, list[_Lost]] = {}
    telling = _Telling(grading, exercise_id, shows, untouched or prober)

    def ask(check: Check, cases: Sequence[Case]) -> Answered:
        nonlocal current
        current = current or prober()
        given = answers(current, check, cases)
        current = None if given[1] else current
        return given

    for check in grading.checks_of(exercise_id):
        died = failed_before
        cases = expected.cases[check.name] if died is None else []
        runs: list[ProbeRun] = []
        asked = functools.partial(ask, check)
        given = answered(check, asked) if answered and cases else None
        for _ in range(TRIES if cases else 0):
            runs, died = given or asked(cases)
            given = None
            if died is None or died.verdict is not Verdict.EXITED:
                break
        lost: list[_Lost] = []
        for number, (case, run) in enumerate(zip(cases, runs, strict=False)):
            assert run.result is not None
            seen[check.name, number] = run.result
            # all cases that look as the first one does, for the smallest of them
            judged = _judged(check, number, case, run, expected, learner_line)
            if judged is not None:
                lost.append(judged)
        if died is not None:
            ended = cases[len(runs)] if cases else None
            lost = [_Lost(died.verdict, died.why, "", check, ended)]
        report = CheckReport(
            name=check.name,
            says=check.says,
            verdict=lost[0].verdict if lost else Verdict.PASSED,
            points=0.0 if lost else grading.points_of(check),
            max_points=grading.points_of(check),
        )
        if lost and tell is not None:
            report = telling.told(report, lost)
        reports.append(report)
        losses_of[check.name] = lost
        if tell is not None:
            tell(reports)
    if tell is None:
        # no verdict hangs on what is shown: all of them stand by now
        reports = [
            telling.told(one, lost) if (lost := losses_of[one.name]) else one
            for one in reports
        ]
    all_passed = all(one.verdict is Verdict.PASSED for one in reports)
    none_tried = all(one.verdict is Verdict.NOT_ATTEMPTED for one in reports)
    if not none_tried:
        reports = [_tried(one) for one in reports]
    complete = len(seen) == sum(
        len(expected.cases[one.name]) for one in grading.checks_of(exercise_id)
    )
    misconception = ""
    if recognise and complete and not all_passed and not none_tried:
        misconception = recognise(exercise_id, seen, losses(reports))
    if misconception:
        reports = _of_one_fault(reports)
    return ExerciseReport(
        exercise=exercise_id,
        title=exercise.title,
        points=half_points(
            sum(one.points for one in reports), exercise.points, all_passed
        ),
        max_points=exercise.points,
        checks=tuple(reports),
        misconception=misconception,
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
        if _judged(check, number, cases[number], run, expected):
            return True
    return False


def losses(reports: Sequence[CheckReport]) -> str:
    """Which checks an answer loses, a letter each: `.` passed, `e` raised, `f`
    lost otherwise."""
    letters = {Verdict.PASSED: ".", Verdict.ERROR: "e"}
    return "".join(letters.get(one.verdict, "f") for one in reports)


def as_reference(
    check: Check,
    behaviour: Behaviour,
    reference: Mapping[tuple[str, int], Result],
) -> bool:
    """Whether an implementation did what the reference does on every case of a
    check."""
    return all(
        alike(check, result, reference[key], reference[key])
        for key, result in behaviour.items()
        if key[0] == check.name
    )


def signature(
    checks: Sequence[Check],
    lost: str,
    behaviour: Behaviour,
    reference: Mapping[tuple[str, int], Result],
) -> str:
    """What an answer loses, as `losses` writes it, but `=` where it passes and does
    the same as the reference on every case."""
    return "".join(
        "="
        if letter == "." and as_reference(check, behaviour, reference)
        else letter
        for check, letter in zip(checks, lost, strict=True)
    )


def left_to_run(checks: Sequence[Check], signature: str) -> list[Check]:
    """The checks on which an answer with this signature does something else than the
    reference."""
    return [
        check
        for check, letter in zip(checks, signature, strict=True)
        if letter != "="
    ]


def that_tell(
    checks: Sequence[Check], signature: str, lost: str, plain: Sequence[Check]
) -> list[Check]:
    """The checks that show whether an answer with this signature is what was handed
    in: those that the one or the other loses, or may, and of those that both pass the
    ones on which only the submission does what the reference does: `plain`."""
    return [
        check
        for check, letter, other in zip(checks, signature, lost, strict=True)
        if letter not in ".="
        or other != "."
        or (letter == "." and check in plain)
    ]


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


def answers(prober: Prober, check: Check, cases: Sequence[Case]) -> Answered:
    """What the cases of a check gave before the process died, if it did."""
    runs: list[ProbeRun] = []
    for run in prober.probe_all(check.probe, cases, check.timeout_s):
        if run.died is not None or run.result is None:
            return runs, run.died or Died(Verdict.EXITED, "Your code ended.")
        runs.append(run)
    return runs, None


def _of_one_fault(reports: Sequence[CheckReport]) -> list[CheckReport]:
    """Reports of which one mistake explains all that failed: the first one that
    shows a case leads, or the first one if none does."""
    lost = [one for one in reports if one.verdict is not Verdict.PASSED]
    lead = next((one for one in lost if one.case is not None), lost[0])
    return [
        replace(one, case=None, follows=lead.name)
        if one.verdict is not Verdict.PASSED and one is not lead
        else one
        for one in reports
    ]


def _tried(report: CheckReport) -> CheckReport:
    """A learner who has done one part has attempted the exercise."""
    if report.verdict is not Verdict.NOT_ATTEMPTED:
        return report
    return replace(
        report,
        verdict=Verdict.ERROR,
        message="Your code raised NotImplementedError for this part.",
        follows="",
    )


@dataclass(frozen=True)
class _Lost:
    """A case on which a check failed.

    Attributes:
        verdict: failed, error, not attempted, or how the process ended.
        message: one sentence for the learner.
        kind: what went wrong, in a word or two: checks of one exercise that
            fail in one way have one fault.
        check: the check.
        case: what the probe was given; None if nothing was asked.
        run: what it gave; None if the process ended.
        expected: what the reference gave; None likewise.
        found: where the two differ, if a comparison says so.
        line: the learner's line that raised.
    """

    verdict: Verdict
    message: str
    kind: str
    check: Check
    case: Case | None = None
    run: ProbeRun | None = None
    expected: Result | None = None
    found: Difference | None = None
    line: str = ""


def _judged(
    check: Check,
    number: int,
    case: Case,
    run: ProbeRun,
    expectations: Expectations,
    learner_line: Callable[[str, int], str] = lambda cell, line: "",
) -> _Lost | None:
    """What is wrong with one case; None if nothing is."""
    seen = run.result
    assert seen is not None
    lost = functools.partial(_Lost, check=check, case=case, run=run)
    if seen.not_attempted:
        return lost(
            Verdict.NOT_ATTEMPTED, "Nothing was handed in for this yet.", ""
        )
    if run.out_of_memory:
        return lost(
            Verdict.OUT_OF_MEMORY, "Your code asked for too much memory.", ""
        )
    key = check.name, number, id(seen)
    if key in expectations.passed:
        return None
    # asked for as late as can be: it may still be worked out
    expected = expectations.reference[check.name, number]
    with noted() as notes:
        complaint = complaint_of(check, case, seen, expected)
    if complaint is None:
        expectations.passed[key] = seen
        return None
    if seen.raised and not expected.raised:
        name = exception_name(seen)
        line = "" if run.where is None else learner_line(*run.where)
        at = f" at your line `{line}`" if line else ""
        whose = "Your code" if run.where else "Using what your cell defines"
        return lost(
            Verdict.ERROR,
            f"{whose} raised {name}{at}.",
            f"{name} {run.where} {_kind(run.text, None, case)}",
            expected=expected,
            line=line,
        )
    found = next(
        (
            one
            for one in reversed(notes)
            if one.sentence.rstrip(".") in complaint
        ),
        None,
    )
    return lost(
        Verdict.FAILED,
        complaint,
        _kind(complaint if found is None else found.sentence, found, case),
        expected=expected,
        found=found,
    )


_AT_A_REFUSAL = ", when it refused a bad input"


def _kind(sentence: str, found: Difference | None, case: Case) -> str:
    """What tells one fault from another: the sentence, whatever number or name it
    is about, and whatever the author calls the case's input (its `form`). Wrong
    numbers of whatever are one fault."""
    if found is not None and found.kind in ("values", "NaN"):
        return "values"
    sentence = sentence.replace(_AT_A_REFUSAL, "")
    form = case.get("form")
    if isinstance(form, str) and form:
        sentence = sentence.replace(form, "#")
    return re.sub(r"`[^`]*`|\d+", "#", sentence)


class _Telling:
    """Words and cases for the failed checks of one exercise: each fault is told
    once, with its smallest case."""

    def __init__(
        self,
        grading: Grading,
        exercise_id: str,
        shows: Shows | None,
        prober: Callable[[], Prober],
    ) -> None:
        self.shows = shows
        self.prober = prober
        self.words = _words_of(grading, exercise_id)
        self.roots: dict[tuple[Verdict, str], str] = {}
        self.cases_left = MOST_CASES
        self.alone: ProbeRun | None = None
        """The last traced call."""

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        """One call more, in a process of the learner's code that has seen no other
        case."""
        traced = self.prober().trace(probe, case, timeout_s, enter_only)
        self.alone = None if traced is None else traced.run
        return traced

    def told(self, report: CheckReport, lost: Sequence[_Lost]) -> CheckReport:
        """The report of a failed check with its words.

        Args:
            report: of the check, without them.
            lost: the cases on which it failed, in order.
        """
        one = self._smallest(lost)
        fault = one.verdict, one.kind
        root = self.roots.setdefault(fault, report.name)
        case, subject = None, ""
        self.alone = None
        if root == report.name and self.cases_left and self._may(one):
            self.cases_left -= 1
            try:
                case, subject = self._shown(one)
            except MemoryError:
                raise
            except Exception:
                # a learner's process may send anything: what cannot be written
                # down is not shown, and costs no points
                case = None
        message = self._message(one, subject, case)
        return replace(
            report,
            message=whole(message)[:LONGEST_MESSAGE],
            case=case,
            follows="" if root == report.name else root,
        )

    def _shown(self, one: _Lost) -> tuple[FailingCase | None, str]:
        assert one.case is not None
        failure = Failure(
            one.check,
            one.case,
            one.run,
            one.expected or Result(),
            one.found or _blamed(one),
            one.found is not None,
        )
        case, subject = failing_case(failure, self, self.words)
        if case is not None and case.right and failure.found is not None:
            before = self._before(one, failure.found)
            case = replace(case, differs=f"{case.differs} {before}".strip())
        return None if case is None else _whole_case(case), subject

    def _before(self, one: _Lost, found: Difference) -> str:
        """Says so where something else was another before the step that is
        complained of: its numbers then follow from an earlier step."""
        step = _step(found.path)
        if not step or one.run is None or one.run.result is None:
            return ""
        seen, expected = one.run.result.data, one.expected
        if expected is None or not isinstance(expected.data, dict):
            return ""
        tolerance = Tolerance(one.check.rtol, one.check.atol)
        for key, right in expected.data.items():
            if key == found.path[0] or key not in seen:
                continue
            with noted() as notes:
                difference({key: seen[key]}, {key: right}, tolerance)
            earlier = _step(notes[-1].path) if notes else None
            if (
                earlier is not None
                and earlier < step
                and isinstance(notes[-1].expected, torch.Tensor)
            ):
                where = [one for one in notes[-1].path if isinstance(one, str)]
                subject = subject_of(where, self.words)
                return (
                    f"Step {earlier + 1} is to blame: "
                    f"{subject[:1].lower()}{subject[1:]} went wrong there."
                )
        return ""

    def _may(self, one: _Lost) -> bool:
        return (
            self.shows is not None
            and one.case is not None
            and one.verdict is not Verdict.NOT_ATTEMPTED
            and self.shows.may(one.check, one.case)
        )

    def _smallest(self, lost: Sequence[_Lost]) -> _Lost:
        """The smallest case among those that fail as the first one does; one that
        may be shown, if there is any."""
        alike = [one for one in lost if one.verdict is lost[0].verdict]
        if self.shows is None or len(alike) < 2:
            return alike[0]
        shown = [one for one in alike if self._may(one)]
        return min(shown or alike[:1], key=lambda one: size(one.case))

    def _message(
        self, one: _Lost, subject: str, case: FailingCase | None
    ) -> str:
        message = one.message
        if one.found is not None:
            subject = subject or subject_of(one.found.path, self.words)
            stem = one.found.sentence
            known = re.match(
                r"(`[^`]*`|What your code returned|Entry \S+) ", stem
            )
            seen, right = one.found.seen, one.found.expected
            if (
                known
                and subject.startswith("The ")
                and self.shows is not None
                and isinstance(seen, bool)
                and isinstance(right, bool)
            ):
                # a fact that the probe noted, in its words
                fact = subject.removeprefix("The ").rstrip(",")
                message = message.replace(
                    stem[:-1], f"“{fact}” is {seen} and should be {right}"
                )
            elif known:
                better = _agreeing(subject, stem[known.end() :])
                if not message.startswith(stem[:-1]):
                    # within an author's sentence
                    better = f"{better[:1].lower()}{better[1:]}"
                message = message.replace(stem[:-1], better[:-1])
        elif one.verdict is Verdict.ERROR and one.run and self.alone:
            text = one_line(self.alone.text, LONGEST_TEXT)
            result = self.alone.result
            if case is not None and text:
                message = f"{message.rstrip('.')}: {text}"
            elif case is None and result is not None and not result.raised:
                message += (
                    " Called alone it raises nothing: an earlier call has left "
                    "something, or chance decides."
                )
        return message


def _agreeing(subject: str, rest: str) -> str:
    """ "The weights" have; everything else has."""
    noun = re.split(r" of |,", subject)[0].split()[-1]
    if subject.startswith("The ") and re.search(r"[^s]s$", noun):
        pairs = ("has ", "have "), ("is ", "are "), ("holds ", "hold ")
        for one, several in pairs:
            if rest.startswith(one):
                rest = several + rest.removeprefix(one)
                rest = rest.replace(", but it should", ", but they should")
    return f"{subject} {rest}"


def _step(path: Sequence[object]) -> int | None:
    """The number of the step that a place in a probe's data belongs to: the
    index into a list that stands under a key."""
    number = path[1] if len(path) > 1 else None
    return number if type(number) is int else None


_UNREADABLE = "What came back is not of the form that the check reads."


def _blamed(one: _Lost) -> Difference | None:
    """What a rule that speaks in words of its own complains of: the value without
    which it would not. None if no single one is to blame."""
    seen = None if one.run is None else one.run.result
    expected = one.expected
    if (
        one.case is None
        or seen is None
        or expected is None
        or not isinstance(seen.data, dict)
        or not isinstance(expected.data, dict)
    ):
        return None
    tolerance = Tolerance(one.check.rtol, one.check.atol)
    for key in expected.data:
        if key not in seen.data:
            continue
        with noted() as notes:
            differs = difference(
                {key: seen.data[key]}, {key: expected.data[key]}, tolerance
            )
        if differs is None:
            continue
        mended = {**seen.data, key: expected.data[key]}
        complaint = complaint_of(
            one.check, one.case, replace(seen, data=mended), expected
        )
        if complaint not in (one.message, _UNREADABLE):
            return notes[-1]
    return None


def _whole_case(case: FailingCase) -> FailingCase:
    return FailingCase(
        call=whole(case.call),
        given=tuple(map(whole, case.given)),
        yours=whole(case.yours),
        right=whole(case.right),
        differs=whole(case.differs),
    )


def _words_of(grading: Grading, exercise_id: str) -> str:
    """The code in the exercise's text and what its cell gives: the names that a
    learner knows."""
    source = grading.chapter.exercise(exercise_id).source
    given = "".join(
        part.rpartition(END_SOLUTION)[2]
        for part in source.split(BEGIN_SOLUTION)
    )
    texts = [
        one.source
        for one in grading.chapter.cells
        if one.role is Role.TASK and one.name == exercise_id
    ]
    code = [
        part
        for text in texts
        for part in re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    ]
    prose = re.compile(r'"""(.*?)"""', re.DOTALL)
    named = re.findall(r"^ *(\w+):", "\n".join(prose.findall(given)), re.M)
    quoted = re.findall(r"`[^`\n]+`", given)
    return "\n".join([*code, prose.sub("", given), *named, *quoted])


def complaint_of(
    check: Check, case: Case, seen: Result, expected: Result
) -> str | None:
    """What is wrong with a result on a case; None if nothing is."""
    if expected.raised:
        asked = " or ".join(check.raises)
        if not seen.raised:
            return f"Your code raised nothing where it must raise {asked}."
        if not set(seen.raised) & set(check.raises):
            return (
                f"Your code raised {exception_name(seen)} where it must raise "
                f"{asked}."
            )
        kept: Rule
        for kept in (leaves_state_alone, leaves_inputs_alone):
            complaint = _asked(kept, case, seen, expected)
            if complaint:
                return f"{complaint.rstrip('.')}{_AT_A_REFUSAL}."
    elif seen.raised:
        return f"Your code raised {exception_name(seen)}."
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
        return _UNREADABLE


def _selected(data: object, keys: tuple[str, ...] | None) -> object:
    if keys is None or not isinstance(data, dict):
        return data
    return {key: data.get(key) for key in keys}


def alike(check: Check, one: Result, other: Result, reference: Result) -> bool:
    """Whether two implementations did the same on a case of a check, on which the
    reference gives this."""
    if one is other:
        return True
    asked = check.raises if reference.raised else ()
    # who refuses a good input chooses by what
    refused = one.refused and other.refused and not reference.raised
    effects = one.effects
    if gives_no_warning not in check.also:
        # `float` of a loss warns, `.item()` does not: no mistake, nor another one
        effects = replace(effects, warnings=other.effects.warnings)
    if effects != other.effects:
        return False
    if not refused and _raised_as(asked, one) != _raised_as(asked, other):
        return False
    tolerance = Tolerance(check.rtol, check.atol)
    try:
        return difference(one.data, other.data, tolerance) is None
    except MemoryError:
        raise
    except Exception:
        return False  # data that no answer of the bank gives


def _raised_as(asked: Collection[str], result: Result) -> str:
    """What was raised; whichever it is of those that were asked for."""
    if not result.raised:
        return ""
    return (
        exception_name(result)
        if set(asked).isdisjoint(result.raised)
        else "as asked"
    )


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
