"""Recognises the cells of a released notebook in a learner's.

Cells are matched by their grade_id, then by their cell id, then by their text,
by the names that an exercise asks for, and at last by how many words they share
with a released cell that nothing else was found for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from nbformat import NotebookNode

from course_grader.grading.definitions import Code, plain, read_code, without
from course_grader.grading.notebook_file import SubmittedCell

COMPARED_CHARS = 2_000
"""How much of a text is looked at to see whether it is like another."""

COMPARED_CELLS = 300
"""How many cells that nothing else identifies are compared with the released
ones: each comparison costs a fraction of a millisecond."""

ALIKE = 0.6
"""Share of common words from which two texts count as versions of one."""

_STUB_LINE = re.compile(r".*(YOUR CODE HERE|NotImplementedError).*")


class Role(StrEnum):
    """What a released cell is for, in the words of a note to the learner."""

    SETUP = "set-up cell"
    EXERCISE = "exercise"
    CHECK = "visible check"
    GRADE = "grade cell"
    READING = "reading cell"


@dataclass(frozen=True)
class Slot:
    """One released cell, and the place that it keeps.

    Attributes:
        position: its index in the released notebook.
        role: what it is for.
        grade_id: its nbgrader id; empty for reading cells.
        cell_id: its notebook cell id.
        cell_type: code, markdown or raw.
        code: its text.
        marks: its nbgrader metadata.
        names: what an exercise asks for and no other cell of the chapter
            defines: code that defines them is an answer.
    """

    position: int
    role: Role
    grade_id: str
    cell_id: str
    cell_type: str
    code: Code
    marks: Mapping[str, object]
    names: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        return self.code.source

    @property
    def called(self) -> str:
        """How a note to the learner calls it."""
        name = re.sub(r"^setup_|_(visible|hidden)$", "", self.grade_id)
        if self.role in (Role.CHECK, Role.GRADE):
            return f"the {self.role} of exercise {name}"
        if self.role is Role.EXERCISE:
            return f"the cell of exercise {self.grade_id}"
        return f"the {self.role} {name}"


@dataclass(frozen=True)
class Cell:
    """One submitted cell and what its code defines."""

    submitted: SubmittedCell
    code: Code

    @property
    def number(self) -> int:
        return self.submitted.number

    @property
    def cell_type(self) -> str:
        return self.submitted.cell_type

    @property
    def source(self) -> str:
        return self.code.source

    def holding(self, source: str) -> Cell:
        """The same cell with another text."""
        return replace(self, code=read_code(source))


@dataclass
class Matching:
    """Which submitted cells belong to which released one.

    Attributes:
        slots: the released cells.
        held: by position of a released cell, the submitted ones that are it:
            several if it was duplicated or split.
        added: the learner's own cells.
        by_text: positions with a grade_id that only a text could fill.
        by_likeness: positions filled by a text that only shares words.
        misnamed: by exercise, the number of the last cell that answers it but
            carried the id of another.
        foreign: grade ids that are none of this chapter's.
    """

    slots: list[Slot]
    held: dict[int, list[Cell]] = field(
        default_factory=lambda: defaultdict(list)
    )
    added: list[Cell] = field(default_factory=list)
    by_text: set[int] = field(default_factory=set)
    by_likeness: set[int] = field(default_factory=set)
    misnamed: dict[str, int] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)

    @property
    def exercises(self) -> list[Slot]:
        return [one for one in self.slots if one.role is Role.EXERCISE]

    @property
    def missing(self) -> list[Slot]:
        """The released cells that were not found."""
        return [one for one in self.slots if not self.held[one.position]]

    @property
    def reordered(self) -> bool:
        """Whether the cells found stand in another order than the released."""
        found = [
            (self.held[slot.position][0].number, slot.position)
            for slot in self.slots
            if self.held[slot.position]
        ]
        return sorted(found) != sorted(found, key=lambda one: one[1])

    def without_merged(self, cell: Cell, holder: Slot | None = None) -> Cell:
        """The cell without cells of the course that were merged into it.

        Cells that are missing can have been, and they come back from the
        release. Code of reading cells is left in: the learner's own may need
        it. Another exercise's untouched cell never stays: it would undo the
        answer.

        Args:
            cell: a submitted cell.
            holder: the released cell that it is taken for, if any.
        """
        texts = [
            slot.source
            for slot in self.slots
            if slot is not holder
            and (slot.role is Role.EXERCISE or not self.held[slot.position])
            and (slot.role is not Role.READING or slot.cell_type == "markdown")
        ]
        rest = without(cell.source, texts)
        return cell if rest is None else cell.holding(rest)

    def cells_of(self, slot: Slot) -> list[Cell]:
        """The submitted cells that are this one, in order."""
        return self.held[slot.position]


def match(released: NotebookNode, cells: Sequence[SubmittedCell]) -> Matching:
    """Matches submitted cells to the released notebook's."""
    matching = Matching(_slots(released))
    known = {slot.grade_id for slot in matching.slots} | {""}
    waiting = [Cell(one, read_code(one.source)) for one in cells]
    matching.foreign = list(
        dict.fromkeys(
            one.grade_id for one in cells if one.grade_id not in known
        )
    )
    waiting = _match_grade_ids(matching, waiting)
    waiting = _match_cell_ids(matching, waiting)
    waiting = [cell for cell in waiting if cell.source.strip()]
    waiting = _match_texts(matching, waiting)
    waiting = [matching.without_merged(cell) for cell in waiting]
    waiting = [cell for cell in waiting if cell.source.strip()]
    waiting = _match_names(matching, waiting)
    waiting = _match_likeness(matching, waiting)
    # One more copy of an untouched cell would only undo what came before it.
    copies = {plain(slot.source) for slot in matching.slots}
    matching.added = [one for one in waiting if plain(one.source) not in copies]
    return matching


def _slots(released: NotebookNode) -> list[Slot]:
    slots: list[Slot] = []
    for position, cell in enumerate(released["cells"]):
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution"):
            role = Role.EXERCISE
        elif marks.get("grade"):
            role = Role.GRADE if marks["points"] else Role.CHECK
        else:
            role = Role.SETUP if marks.get("locked") else Role.READING
        slots.append(
            Slot(
                position=position,
                role=role,
                grade_id=marks.get("grade_id", ""),
                cell_id=cell["id"],
                cell_type=cell["cell_type"],
                code=read_code(cell["source"]),
                marks=marks,
            )
        )
    bound = Counter(
        name
        for slot in slots
        if slot.cell_type == "code"
        for name in slot.code.own_names
    )
    once = frozenset(name for name, times in bound.items() if times == 1)
    return [
        replace(slot, names=slot.code.own_names & once)
        if slot.role is Role.EXERCISE
        else slot
        for slot in slots
    ]


def _match_grade_ids(matching: Matching, cells: Iterable[Cell]) -> list[Cell]:
    slots = {slot.grade_id: slot for slot in matching.slots if slot.grade_id}
    waiting = []
    for cell in cells:
        slot = slots.get(cell.submitted.grade_id)
        if slot is None:
            waiting.append(cell)
            continue
        if slot.role is Role.EXERCISE:
            slot = _meant(matching, slot, cell)
        matching.held[slot.position].append(cell)
    return waiting


def _meant(matching: Matching, slot: Slot, cell: Cell) -> Slot:
    """The exercise that a cell with an exercise's id answers: a copied cell
    keeps the id of the cell that it was copied from."""
    if slot.names & cell.code.names:
        return slot
    for other in matching.exercises:
        if other.names and other.names <= cell.code.own_names:
            matching.misnamed[other.grade_id] = cell.number
            return other
    return slot


def _match_cell_ids(matching: Matching, cells: Iterable[Cell]) -> list[Cell]:
    free = {slot.cell_id: slot for slot in matching.missing}
    waiting = []
    for cell in cells:
        slot = free.get(cell.submitted.cell_id)
        if slot is None:
            waiting.append(cell)
        else:
            matching.held[slot.position].append(cell)
    return waiting


def _match_texts(matching: Matching, cells: Iterable[Cell]) -> list[Cell]:
    free: dict[str, list[Slot]] = defaultdict(list)
    for slot in reversed(matching.missing):
        free[plain(slot.source)].append(slot)
    waiting = []
    for cell in cells:
        same = free.get(plain(cell.source))
        if same:
            _hold_by_text(matching, same.pop(), cell)
        else:
            waiting.append(cell)
    return waiting


def _match_names(matching: Matching, cells: Iterable[Cell]) -> list[Cell]:
    free = [one for one in matching.missing if one.role is Role.EXERCISE]
    waiting = []
    for cell in cells:
        code = cell.code if cell.cell_type == "code" else cell.code.sound
        names = code.own_names
        fits = [one for one in free if one.names and one.names <= names]
        fits = fits or [one for one in free if one.names & names]
        if fits:
            words = _words(cell.source)
            likeness = [_alike(_words(one.source), words) for one in fits]
            best = fits[likeness.index(max(likeness))]
            _hold_by_text(matching, best, cell)
        else:
            waiting.append(cell)
    return waiting


def _match_likeness(matching: Matching, cells: list[Cell]) -> list[Cell]:
    compared = [(one, _words(one.source)) for one in cells[:COMPARED_CELLS]]
    pairs = []
    for slot in matching.missing:
        exercise = slot.role is Role.EXERCISE
        text = _STUB_LINE.sub("", slot.source) if exercise else slot.source
        words = _words(text)
        for cell, cell_words in compared:
            if exercise and cell.cell_type != "code":
                continue
            measure = _within if exercise else _alike
            likeness = measure(words, cell_words)
            if likeness >= ALIKE:
                pairs.append((-likeness, slot.position, cell.number))
    waiting = {cell.number: cell for cell in cells}
    for _, position, number in sorted(pairs):
        if number in waiting and not matching.held[position]:
            slot = matching.slots[position]
            _hold_by_text(matching, slot, waiting.pop(number))
            matching.by_likeness.add(position)
    return list(waiting.values())


def _hold_by_text(matching: Matching, slot: Slot, cell: Cell) -> None:
    matching.held[slot.position].append(cell)
    if slot.grade_id:
        matching.by_text.add(slot.position)


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text[:COMPARED_CHARS]))


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """The words that both have as a share of all words of both, 0 to 1."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _within(one: Counter[str], other: Counter[str]) -> float:
    """The share of one's words that the other has too, 0 to 1."""
    return (one & other).total() / max(1, one.total())
