"""What an author wrote about grading one chapter: probes, checks, answers."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from course_grader.bank import Answer
from course_grader.chapter.source import Chapter, Exercise, read_chapter
from course_grader.checks import Check
from course_grader.course import Course, CourseError


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
    """Reads a chapter's source and its three grading files.

    Raises:
        CourseError: something is missing or contradicts something else.
    """
    chapter = read_chapter(course.source_of(chapter_name))
    folder = course.autograde / chapter_name
    for name in ("probes.py", "hidden_tests.py", "answers.py"):
        if not (folder / name).exists():
            raise CourseError(
                f"autograde/{chapter_name}/{name} is missing; "
                "docs/authors.md says what it holds."
            )
    package = _load(folder, chapter_name)
    hidden, bank = package["hidden_tests"], package["answers"]
    grading = Grading(
        chapter=chapter,
        probes_source=(folder / "probes.py").read_text(encoding="utf-8"),
        checks=tuple(v for v in vars(hidden).values() if isinstance(v, Check)),
        answers=tuple(v for v in vars(bank).values() if isinstance(v, Answer)),
    )
    _refuse_contradictions(grading, package["probes"])
    return grading


def _load(folder: Path, chapter_name: str) -> dict[str, ModuleType]:
    """Imports the three files as one package under a name of its own."""
    package_name = f"course_chapter_{chapter_name}"
    for known in [one for one in sys.modules if one.startswith(package_name)]:
        del sys.modules[known]
    package = ModuleType(package_name)
    package.__path__ = [str(folder)]
    sys.modules[package_name] = package
    modules = {}
    for name in ("probes", "hidden_tests", "answers"):
        spec = importlib.util.spec_from_file_location(
            f"{package_name}.{name}", folder / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        setattr(package, name, module)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise CourseError(
                f"autograde/{chapter_name}/{name}.py does not load: "
                f"{type(error).__name__}: {error}"
            ) from error
        modules[name] = module
    return modules


def _refuse_contradictions(grading: Grading, probes: ModuleType) -> None:
    chapter = grading.chapter
    ids = {one.id for one in chapter.exercises}
    parts: list[Check | Answer] = [*grading.checks, *grading.answers]
    for what in parts:
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
                "bank: answers.py needs right and wrong answers for it."
            )
        for answer in answers:
            for broken in answer.breaks:
                if broken not in checks:
                    raise CourseError(
                        f"{chapter.name}: {answer.name} breaks {broken}, which "
                        f"is no check of {exercise.id}."
                    )
