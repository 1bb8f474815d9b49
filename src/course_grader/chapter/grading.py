"""What an author wrote about grading one chapter: probes, checks, answers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from course_grader.bank import Answer, answers_of
from course_grader.chapter.source import Chapter, Exercise, read_chapter
from course_grader.checks import Check
from course_grader.course import Course, CourseError

LARGE = ("sklearn.datasets", "sklearn.metrics")
"""Modules that bring two hundred libraries: whatever has them forks at half the speed."""


@dataclass(frozen=True)
class Grading:
    """All that judging a chapter needs. Never leaves the judge.

    Attributes:
        chapter: the chapter with its solutions.
        probes_source: text of `probes.py`, sent to learner processes.
        checks: the hidden checks, in order.
        answers: the answer bank, in order.
    """

    chapter: Chapter
    probes_source: str
    checks: tuple[Check, ...]
    answers: tuple[Answer, ...]

    @property
    def large(self) -> tuple[str, ...]:
        """Those of `LARGE` that set-up cells, exercises or probes name."""
        sources = [source for _, source in self.chapter.setup_source]
        sources += [one.source for one in self.chapter.exercises]
        text = "\n".join([*sources, self.probes_source])
        return tuple(one for one in LARGE if one in text)

    def checks_of(self, exercise_id: str) -> list[Check]:
        return [one for one in self.checks if one.exercise == exercise_id]

    def answers_of(self, exercise_id: str) -> list[Answer]:
        return [one for one in self.answers if one.exercise == exercise_id]

    def points_of(self, check: Check) -> float:
        """What a check gives: its share, by weight, of the exercise's points."""
        total = sum(one.weight for one in self.checks_of(check.exercise))
        points = self.chapter.exercise(check.exercise).points
        return points * check.weight / total

    def answer_cell(self, answer: Answer) -> str:
        """The exercise cell of a learner who gives this answer."""
        exercise: Exercise = self.chapter.exercise(answer.exercise)
        return answer.cell(exercise.names[0])


def load_grading(course: Course, chapter_name: str) -> Grading:
    """Reads a chapter's source, its probes, checks and answer bank.

    Raises:
        CourseError: something is missing or contradicts something else.
    """
    chapter = read_chapter(course.source_of(chapter_name))
    folder = course.autograde / chapter_name
    for name in ("probes.py", "hidden_tests.py", "answers"):
        if not (folder / name).exists():
            raise CourseError(
                f"autograde/{chapter_name}/{name} is missing; "
                "docs/authors.md says what it holds."
            )
    ids = [one.id for one in chapter.exercises]
    banks = folder / "answers"
    for file in sorted([*banks.glob("*.py"), *banks.glob("*.diff")]):
        if file.stem not in ids:
            raise CourseError(
                f"autograde/{chapter_name}/answers/{file.name} is for "
                f"{file.stem!r}, but there is no such exercise."
            )
    present = [
        one for one in ids if (folder / "answers" / f"{one}.py").exists()
    ]
    package = _load(folder, chapter_name, present)
    grading = Grading(
        chapter=chapter,
        probes_source=(folder / "probes.py").read_text(encoding="utf-8"),
        checks=tuple(
            one
            for one in vars(package["hidden_tests"]).values()
            if isinstance(one, Check)
        ),
        answers=tuple(_answers(folder, package, chapter, present)),
    )
    _refuse_contradictions(grading, package["probes"])
    return grading


def _load(
    folder: Path, chapter_name: str, exercises: list[str]
) -> dict[str, ModuleType]:
    """Imports a chapter's files as one package under a name of its own.

    Args:
        folder: `autograde/NN_name`.
        chapter_name: the chapter.
        exercises: ids of those that have a file in `answers/`.
    """
    package_name = f"course_chapter_{chapter_name}"
    for known in [one for one in sys.modules if one.startswith(package_name)]:
        del sys.modules[known]
    for name, place in (
        (package_name, folder),
        (f"{package_name}.answers", folder / "answers"),
    ):
        package = ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package
    banks = [f"answers.{one}" for one in exercises]
    modules = {}
    for name in ("probes", "hidden_tests", *banks):
        file = folder.joinpath(*name.split(".")).with_suffix(".py")
        spec = importlib.util.spec_from_file_location(
            f"{package_name}.{name}", file
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        parent, _, stem = spec.name.rpartition(".")
        setattr(sys.modules[parent], stem, module)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise CourseError(
                f"{file.relative_to(folder.parents[1])} does not load: "
                f"{type(error).__name__}: {error}"
            ) from error
        modules[name] = module
    return modules


def _answers(
    folder: Path,
    package: dict[str, ModuleType],
    chapter: Chapter,
    exercises: list[str],
) -> Iterator[Answer]:
    """The bank of a chapter, in the order of its exercises.

    Raises:
        CourseError: an edit does not fit, or two answers have one name.
    """
    names: set[str] = set()
    for exercise in exercises:
        try:
            found = list(
                answers_of(
                    package[f"answers.{exercise}"],
                    folder / "answers" / f"{exercise}.diff",
                    chapter.exercise(exercise),
                )
            )
        except CourseError as error:
            raise CourseError(f"{chapter.name}, {exercise}: {error}") from None
        for answer in found:
            if answer.name in names:
                raise CourseError(
                    f"{chapter.name}: two answers are called {answer.name}."
                )
            names.add(answer.name)
            yield answer


def _refuse_contradictions(grading: Grading, probes: ModuleType) -> None:
    chapter = grading.chapter
    ids = {one.id for one in chapter.exercises}
    for what in grading.checks:
        if what.exercise not in ids:
            raise CourseError(
                f"{chapter.name}: {what.name} is for {what.exercise!r}, but "
                "there is no such exercise."
            )
    for check in grading.checks:
        if not callable(getattr(probes, check.probe, None)):
            raise CourseError(
                f"{chapter.name}: the check {check.name} names the probe "
                f"{check.probe}, which probes.py does not define."
            )
    for exercise in chapter.exercises:
        checks = {one.name for one in grading.checks_of(exercise.id)}
        answers = grading.answers_of(exercise.id)
        if not checks:
            raise CourseError(
                f"{chapter.name}: the grade cell of {exercise.id} has no "
                "checks in hidden_tests.py."
            )
        if not any(a.right for a in answers) or all(a.right for a in answers):
            raise CourseError(
                f"{chapter.name}: the exercise {exercise.id} has no answer "
                f"bank: autograde/{chapter.name}/answers/{exercise.id}.py "
                "needs right and wrong answers."
            )
        for answer in answers:
            for broken in answer.breaks:
                if broken not in checks:
                    raise CourseError(
                        f"{chapter.name}: {answer.name} breaks {broken}, which "
                        f"is no check of {exercise.id}."
                    )
