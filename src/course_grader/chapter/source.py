"""Reads the one source of a chapter: cells with their roles, and exercises."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import jupytext

from course_grader.course import CourseError

BEGIN_SOLUTION = "### BEGIN SOLUTION"
END_SOLUTION = "### END SOLUTION"
ID = re.compile(r"[a-z][a-z0-9_]*")


class Level(StrEnum):
    """What an exercise is for a learner with little time."""

    CORE = "core"
    MORE = "more"
    HARD = "hard"


class Role(StrEnum):
    """What a cell is for; the words that mark it in the source."""

    READING = "reading"
    SETUP = "setup"
    TASK = "task"
    EXERCISE = "exercise"
    CHECK = "check"
    GRADE = "grade"


MARKS = [role for role in Role if role is not Role.READING]
FOLDED = {"figure": "Figure: ", "folded": ""}
"""Options of a cell that learners see folded, and how what stands there begins."""


@dataclass(frozen=True)
class Cell:
    """One cell of a chapter.

    Attributes:
        role: what it is for.
        name: the id given on its marker; empty for unnamed reading cells.
        id: the notebook cell id, the same from build to build.
        markdown: whether it is text.
        source: its text, solutions included.
        folded: what stands in its place where learners see it folded; else empty.
    """

    role: Role
    name: str
    id: str
    markdown: bool
    source: str
    folded: str = ""


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter.

    Attributes:
        id: the nbgrader grade_id of its solution cell.
        title: what it is called.
        minutes: how long it takes.
        builds_on: what it builds on.
        points: what it gives.
        source: the solution cell.
        names: what the solution cell defines, in order.
        level: core, more or hard.
    """

    id: str
    title: str
    minutes: int
    builds_on: str
    points: float
    source: str
    names: tuple[str, ...]
    level: Level

    @property
    def solution(self) -> str:
        """The solution cell without the lines that mark the solution in it."""
        marks = (BEGIN_SOLUTION, END_SOLUTION)
        lines = self.source.splitlines()
        return "\n".join(one for one in lines if one.strip() not in marks)


@dataclass(frozen=True)
class Chapter:
    """One chapter as its source describes it.

    Attributes:
        name: as `03_one_hot_and_losses`.
        title: as `03 · One-hot labels and losses`.
        reading_minutes: how long it takes without its exercises.
        builds_on: what it builds on.
        cells: in order.
        exercises: in order.
    """

    name: str
    title: str
    reading_minutes: int
    builds_on: str
    cells: tuple[Cell, ...]
    exercises: tuple[Exercise, ...]

    def exercise(self, exercise_id: str) -> Exercise:
        for one in self.exercises:
            if one.id == exercise_id:
                return one
        raise CourseError(
            f"Chapter {self.name} has no exercise {exercise_id!r}. It has: "
            + ", ".join(one.id for one in self.exercises)
            + "."
        )

    def minutes(self, *levels: Level) -> int:
        """What its exercises take: all, or those of these levels."""
        return sum(
            one.minutes
            for one in self.exercises
            if not levels or one.level in levels
        )

    @property
    def points(self) -> float:
        """What its exercises give together."""
        return sum(one.points for one in self.exercises)

    @property
    def setup_source(self) -> list[tuple[str, str]]:
        """(cell id, code) of the set-up cells, in order."""
        return [
            (cell.id, cell.source)
            for cell in self.cells
            if cell.role is Role.SETUP
        ]


def read_chapter(path: Path) -> Chapter:
    """Reads a chapter.

    Raises:
        CourseError: the source breaks a rule; the message names the cell.
    """
    notebook = jupytext.reads(
        path.read_text(encoding="utf-8"), fmt="py:percent"
    )
    name = path.stem
    cells: list[Cell] = []
    options: dict[str, dict[str, object]] = {}
    digests: Counter[str] = Counter()
    for raw in notebook.cells:
        marks = [mark for mark in MARKS if mark.value in raw.metadata]
        if len(marks) > 1:
            raise CourseError(
                f"{path.name}: a cell is marked both {marks[0]} and {marks[1]}."
            )
        role = marks[0] if marks else Role.READING
        given = raw.metadata.get(role.value if marks else "cell", "")
        markdown = raw.cell_type == "markdown"
        if (given or marks) and not ID.fullmatch(str(given)):
            raise CourseError(
                f"{path.name}: {role}={given!r} is no id: use small letters, "
                "digits and underscores."
            )
        if markdown != (role is Role.TASK) and marks:
            raise CourseError(
                f"{path.name}: the cell {role}={given!r} must be "
                + ("markdown." if role is Role.TASK else "code.")
            )
        folded = ""
        for option, begins in FOLDED.items():
            words = raw.metadata.get(option)
            if words and (marks or markdown):
                raise CourseError(
                    f"{path.name}: {option}={words!r} stands on a cell that is no "
                    "reading cell of code."
                )
            folded = f"{begins}{words}" if words else folded
        cell_id = _cell_id(role, str(given), raw.source, digests)
        cells.append(
            Cell(role, str(given), cell_id, markdown, raw.source, folded)
        )
        options[cell_id] = dict(raw.metadata)
    repeated = [
        one for one, n in Counter(cell.id for cell in cells).items() if n > 1
    ]
    if repeated:
        raise CourseError(f"{path.name}: the id {repeated[0]} occurs twice.")
    title = _title(cells, path)
    of_title = options[cells[0].id]
    for option in ("reading_minutes", "builds_on"):
        if option not in of_title:
            raise CourseError(
                f"{path.name}: the first cell does not say {option}=."
            )
    exercises = _exercises(cells, options, path)
    return Chapter(
        name=name,
        title=title,
        reading_minutes=int(str(of_title["reading_minutes"])),
        builds_on=str(of_title["builds_on"]),
        cells=tuple(cells),
        exercises=tuple(exercises),
    )


def read_title(path: Path) -> str:
    """A chapter's title, without reading the rest of it.

    Raises:
        CourseError: it has none.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and not line.startswith("# %%"):
            return line.removeprefix("# ").strip()
    raise CourseError(f"{path.name}: there is no line '# ' with a title.")


def _cell_id(role: Role, given: str, source: str, digests: Counter[str]) -> str:
    """A named cell's id comes from its name, another's from its text: building
    again, or changing a neighbour, never changes it. At most 64 characters."""
    if given:
        return f"{role}-{given}".replace("_", "-")[:64]
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    digests[digest] += 1
    again = f"-{digests[digest]}" if digests[digest] > 1 else ""
    return f"reading-{digest}{again}"


def _title(cells: list[Cell], path: Path) -> str:
    first = cells[0] if cells else None
    if first is None or not first.markdown or not first.source.startswith("# "):
        raise CourseError(
            f"{path.name}: the first cell must be markdown and open with "
            "'# ' and the chapter's title."
        )
    return first.source.splitlines()[0].removeprefix("# ").strip()


def _exercises(
    cells: list[Cell], options: dict[str, dict[str, object]], path: Path
) -> list[Exercise]:
    by_role: dict[Role, dict[str, Cell]] = {
        role: {cell.name: cell for cell in cells if cell.role is role}
        for role in MARKS
    }
    order = [
        (cell.role, cell.name)
        for cell in cells
        if cell.role in (Role.TASK, Role.EXERCISE, Role.CHECK, Role.GRADE)
    ]
    found = []
    for name, cell in by_role[Role.EXERCISE].items():
        for role in (Role.TASK, Role.CHECK, Role.GRADE):
            if name not in by_role[role]:
                raise CourseError(
                    f"{path.name}: the exercise {name} has no {role} cell."
                )
        place = order.index((Role.TASK, name))
        if [one for one, of in order[place : place + 4] if of == name] != [
            Role.TASK,
            Role.EXERCISE,
            Role.CHECK,
            Role.GRADE,
        ]:
            raise CourseError(
                f"{path.name}: the cells of {name} must come as task, "
                "exercise, check, grade."
            )
        task = options[by_role[Role.TASK][name].id]
        grade = options[by_role[Role.GRADE][name].id]
        for option, holder in (
            ("title", task),
            ("level", task),
            ("minutes", task),
            ("builds_on", task),
            ("points", grade),
        ):
            if option not in holder:
                raise CourseError(
                    f"{path.name}: the exercise {name} does not say {option}=."
                )
        if by_role[Role.GRADE][name].source.strip():
            raise CourseError(
                f"{path.name}: the grade cell of {name} must be empty; the "
                "build writes it."
            )
        if BEGIN_SOLUTION not in cell.source or END_SOLUTION not in cell.source:
            raise CourseError(
                f"{path.name}: the exercise {name} has no region between "
                f"{BEGIN_SOLUTION!r} and {END_SOLUTION!r}."
            )
        found.append(
            Exercise(
                id=name,
                title=str(task["title"]),
                minutes=int(str(task["minutes"])),
                builds_on=str(task["builds_on"]),
                points=float(str(grade["points"])),
                source=cell.source,
                names=_defined_names(cell, path),
                level=_level(name, task, path),
            )
        )
    exercise_names = set(by_role[Role.EXERCISE])
    for role in (Role.TASK, Role.CHECK, Role.GRADE):
        for name in by_role[role]:
            if name not in exercise_names:
                raise CourseError(
                    f"{path.name}: there is a {role} cell for {name} but no "
                    "exercise of that name."
                )
    return found


def _level(name: str, task: dict[str, object], path: Path) -> Level:
    given = task["level"]
    if given not in list(Level):
        raise CourseError(
            f"{path.name}: the exercise {name} says level={given!r}; the "
            f"levels are {', '.join(Level)}."
        )
    return Level(str(given))


def _defined_names(cell: Cell, path: Path) -> tuple[str, ...]:
    names: list[str] = []
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        raise CourseError(
            f"{path.name}: the exercise {cell.name} is not plain Python "
            f"(line {error.lineno}: {error.msg})."
        ) from error
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.append(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    if not names:
        raise CourseError(
            f"{path.name}: the exercise {cell.name} defines nothing."
        )
    # helpers may come first; what the exercise is named after leads
    return tuple(sorted(names, key=lambda one: one != cell.name))
