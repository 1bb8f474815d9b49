"""Makes of whatever a learner submitted a notebook that can be graded.

`repair` never mends the submitted notebook. It starts from a copy of the
released one and puts the learner's work into it: the sources of exercise cells,
and the cells that the learner added or changed, where they stood. So points,
ids, locks, checks and the order of the chapter always are the release's own,
and nothing of the submission but plain text comes through.
"""

from __future__ import annotations

import copy
import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from course_grader.grading.definitions import (
    Code,
    glued,
    plain,
    read_code,
    same_code,
    without,
)
from course_grader.grading.matching import Cell, Matching, Role, Slot, match
from course_grader.grading.notebook_file import (
    Submitted,
    SubmittedCell,
    read_submitted,
)

MAX_ADDED_CELLS = 500
"""Cells of a learner's own that are kept; each is one more to run."""

MAX_PARTS = 8
"""Parts of one cell that are tried together."""

MAX_LOOSE_PARTS = 40
"""Cells without any mark that are tried as part of a split exercise."""

MAX_GLUE_TRIES = 1_000
MAX_GLUED_CHARS = 20_000
"""Every try to put parts together parses them. An honest notebook needs some
dozens, on exercises of a thousand characters; together these limits are a few
seconds."""

READING_SHARE = 0.25
"""Share of a chapter's texts that a notebook without exercises must hold to be
one of this chapter: some, as the install cell, stand in all chapters."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Repaired:
    """A submission made fit for grading.

    Attributes:
        notebook: the released cells in their order with the learner's work in
            them, sound for nbformat 4.5 and for nbgrader; None if refused.
        notes: sentences for the learner on what was put right.
        refused: one sentence on why it cannot be graded and what to do; empty
            if it can.
        changed: ids of the code cells that the learner added or changed, in
            order: to be run besides set-up and exercise cells.
        needs_human: why somebody should look at it; empty if nobody needs to.
    """

    notebook: NotebookNode | None
    notes: tuple[str, ...] = ()
    refused: str = ""
    changed: tuple[str, ...] = ()
    needs_human: tuple[str, ...] = ()


def repair(submitted: bytes, released: NotebookNode) -> Repaired:
    """The submission as a notebook of the chapter.

    Args:
        submitted: the file as the learner handed it in.
        released: the chapter's notebook as learners got it.

    Returns:
        A notebook, or a refusal if the file is no notebook or one of another
        chapter. An exercise whose cell is not found counts as not attempted.
        The same bytes always give the same result. Where it breaks on a
        notebook itself, the exercise cells that carry their marks are taken,
        nothing else, and somebody is told.

    Raises:
        MemoryError: there is not enough for a notebook of this size.
    """
    try:
        return _repaired(submitted, released)
    except MemoryError:
        raise
    except Exception as error:
        return _by_marks(submitted, released, type(error).__name__)


def _by_marks(submitted: bytes, released: NotebookNode, broke: str) -> Repaired:
    """The exercise cells as their marks tell them."""
    told = (
        f"The notebook could not be put in order: the grader broke ({broke}).",
    )
    try:
        cells = read_submitted(submitted).cells
    except Exception:
        return Repaired(
            None,
            refused="The grader could not read the file. Somebody looks at it.",
            needs_human=told,
        )
    sources = {one.grade_id: one.source for one in cells}
    notebook = copy.deepcopy(released)
    for cell in notebook["cells"]:
        nbgrader = cell["metadata"].get("nbgrader", {})
        if nbgrader.get("solution") and nbgrader["grade_id"] in sources:
            cell["source"] = sources[nbgrader["grade_id"]]
    note = (
        "The grader could not put your notebook in order. It took the exercise "
        "cells as they are, and nothing else. Somebody looks at it."
    )
    return Repaired(notebook, (note,), needs_human=told)


def _repaired(submitted: bytes, released: NotebookNode) -> Repaired:
    read = read_submitted(submitted)
    if read.refused:
        return Repaired(None, refused=read.refused)
    matching = match(released, read.cells)
    refused = _refusal(matching, released, read)
    if refused:
        return Repaired(None, refused=refused)
    rebuilding = _Rebuilding(matching)
    rebuilding.rebuild()
    notebook, changed = _assembled(rebuilding, released)
    notes = tuple(dict.fromkeys([*read.notes, *rebuilding.notes]))
    return Repaired(notebook, notes, changed=tuple(changed))


def _refusal(
    matching: Matching, released: NotebookNode, read: Submitted
) -> str:
    """Why the notebook is none of this chapter; empty if it is one."""
    ours = reading = all_reading = 0
    for slot in matching.slots:
        cells = matching.cells_of(slot)
        if slot.role is Role.READING:
            all_reading += 1
            reading += any(plain(c.source) == plain(slot.source) for c in cells)
        elif slot.role is Role.EXERCISE:
            ours += bool(cells) and slot.position not in matching.by_likeness
        elif slot.role is not Role.SETUP:
            # The text of these is much the same in all chapters.
            ours += any(c.submitted.grade_id == slot.grade_id for c in cells)
    foreign = [
        one
        for one in matching.foreign
        if _ID.fullmatch(one) and not one.startswith("setup_")
    ]
    if len(foreign) > ours:
        return (
            f"This is the notebook of another chapter{_which(read.cells)}: "
            f'submit the notebook with the title "{_title(released)}".'
        )
    if ours or reading >= max(1.0, READING_SHARE * all_reading):
        return ""
    if read.cut:
        return (
            f"The file breaks off after cell {len(read.cells)}, before the "
            "first exercise: download the notebook again and submit that file."
        )
    return (
        "None of the notebook's cells belongs to this chapter: submit the "
        f'notebook with the title "{_title(released)}".'
    )


def _title(released: NotebookNode) -> str:
    """A chapter's title: its first cell opens with it."""
    first: str = released["cells"][0]["source"]
    return first.partition("\n")[0].lstrip("# ")


def _which(cells: Sequence[SubmittedCell]) -> str:
    """Says what a notebook calls itself, where its title has a chapter's form."""
    for cell in cells:
        title = re.match(r"# (\d\d · [^\n]{1,80})", cell.source)
        if cell.cell_type == "markdown" and title:
            return f', "{title[1].strip()}"'
    return ""


_Key = tuple[int, int, int]
"""Where a cell goes: a released position; before (0), at (1) or after (2) it;
the number of the submitted cell."""


@dataclass(frozen=True)
class _Own:
    """A cell of the learner's own, and where it goes."""

    key: _Key
    cell_type: str
    code: Code

    @property
    def number(self) -> int:
        return self.key[2]

    @property
    def runs(self) -> bool:
        return self.cell_type == "code"


@dataclass
class _Rebuilding:
    """The learner's work, sorted into the released notebook.

    Attributes:
        matching: which submitted cell is which released one.
        notes: what was put right, for the learner.
        own: the learner's own cells.
        worked: by position, the versions of each exercise's answer.
        answers: by position, the source of each exercise that was worked on.
        chosen: by position, the number of the cell that answers it.
        readings: by position, each reading cell that the learner changed.
        glue_tries: how often parts were put together, in vain or not.
    """

    matching: Matching
    notes: list[str] = field(default_factory=list)
    own: list[_Own] = field(default_factory=list)
    worked: dict[int, list[Cell]] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    chosen: dict[int, int] = field(default_factory=dict)
    readings: dict[int, Cell] = field(default_factory=dict)
    glue_tries: int = 0

    def rebuild(self) -> None:
        """Fills `notes`, `own`, `answers` and `readings`."""
        matching = self.matching
        self.notes += _losses(matching)
        self._collect_work()
        self._join_loose_parts()
        for slot in matching.slots:
            match slot.role:
                case Role.EXERCISE:
                    self._settle_exercise(slot, self.worked[slot.position])
                case Role.SETUP:
                    self._settle_setup(slot, self._cells(slot))
                case Role.READING:
                    self._settle_reading(slot, self._cells(slot))
                case Role.CHECK | Role.GRADE:
                    self._settle_locked(slot, self._cells(slot))
        self._place_added()
        parted = [self._part_merged(slot) for slot in matching.exercises]
        if matching.reordered or any(parted):
            self._lift_helpers()
        unanswered = [
            slot
            for slot in matching.exercises
            if slot.position not in self.answers
        ]
        graded_elsewhere = [
            slot for slot in unanswered if self._answered_elsewhere(slot)
        ]
        for slot in graded_elsewhere:
            self._part_merged(slot)
        for slot in unanswered:
            if slot not in graded_elsewhere:
                self._note_not_attempted(slot)
        for slot in matching.exercises:
            self._complete_from_text(slot)
        for slot in matching.exercises:
            self._note_later_definitions(slot)
        if len(self.own) > MAX_ADDED_CELLS:
            self.notes.append(
                f"You added {len(self.own):,} cells; the first "
                f"{MAX_ADDED_CELLS} of them are run."
            )
            self.own.sort(key=lambda one: one.number)
            del self.own[MAX_ADDED_CELLS:]

    def _add(self, key: _Key, cell_type: str, source: str) -> None:
        self.own.append(_Own(key, cell_type, read_code(source)))

    def _note_split(self, slot: Slot) -> None:
        self.notes.append(
            f"The cell of exercise {slot.grade_id} had been split; its parts "
            "were put together again."
        )

    # The cells of the exercises, and parts of them elsewhere.

    def _collect_work(self) -> None:
        """Finds the cells in which each exercise was worked on, one for each
        version of the answer."""
        for slot in self.matching.exercises:
            worked: dict[str, Cell] = {}
            for cell in self._cells(slot):
                if not same_code(cell.source, slot.source):
                    # Of equal copies the last one counts.
                    worked.pop(plain(cell.source), None)
                    worked[plain(cell.source)] = cell
            parts = list(worked.values())[-MAX_PARTS:]
            together = self._parts_together(parts)
            if len(together) < len(parts):
                self._note_split(slot)
            versions = {plain(one.source): one for one in together}
            self.worked[slot.position] = _different(slot, versions.values())

    def _cells(self, slot: Slot) -> list[Cell]:
        """The submitted cells that are this one, without what was merged into
        them and without empty ones."""
        cells = [
            self.matching.without_merged(cell, slot)
            for cell in self.matching.cells_of(slot)
        ]
        return [cell for cell in cells if cell.source.strip()]

    def _join_loose_parts(self) -> None:
        """Puts the parts of split exercises back to the part that they follow:
        those without a mark, and those that another exercise was merged to."""
        hosts: dict[int, tuple[Slot | None, Cell]] = {
            cell.number: (slot, cell)
            for slot in self.matching.exercises
            for cell in self.worked[slot.position]
        }
        asked: set[str] = set()
        asked = asked.union(*(one.names for one in self.matching.exercises))
        hosts |= {
            cell.number: (None, cell)
            for cell in self.matching.added
            if cell.cell_type == "code" and cell.code.own_names & asked
        }
        loose = [
            cell
            for cell in self.matching.added
            if cell.number not in hosts
            and _may_be_part(cell, [host for _, host in hosts.values()])
        ]
        loose += [host for _, host in hosts.values() if not host.code.parses]
        loose.sort(key=lambda one: one.number)
        joined: set[int] = set()
        pieces: list[Cell] = []
        for cell in loose[:MAX_LOOSE_PARTS]:
            if cell.number in hosts and hosts[cell.number][1] is not cell:
                continue  # it was joined with another part in the meantime
            if pieces and any(
                pieces[-1].number < number < cell.number for number in hosts
            ):
                pieces = []
            pieces = [*pieces[1 - MAX_PARTS :], cell]
            # Later pieces may be needed before anything is Python again, and
            # a piece that belongs nowhere must not stand in their way.
            for start in range(len(pieces)):
                if self._joined(pieces[start:], hosts):
                    joined |= {piece.number for piece in pieces[start:]}
                    pieces = []
                    break
        self.matching.added = [
            hosts[cell.number][1] if cell.number in hosts else cell
            for cell in self.matching.added
            if cell.number not in joined
        ]
        for slot in self.matching.exercises:
            self.worked[slot.position] = [
                cell for of, cell in hosts.values() if of is slot
            ]

    def _joined(
        self,
        pieces: Sequence[Cell],
        hosts: dict[int, tuple[Slot | None, Cell]],
    ) -> bool:
        """Joins pieces to an exercise with which they are Python: one that is
        none without them, else the one that speaks of the same things, where
        standing right below it counts as much as two words."""
        first, last = pieces[0].number, pieces[-1].number
        sources = [piece.source for piece in pieces]
        sound = all(piece.code.parses for piece in pieces)
        spoken_of = _names_in("\n".join(sources))

        def strangeness(
            host: tuple[Slot | None, Cell],
        ) -> tuple[bool, int, bool, int]:
            of, cell = host
            same = [one for slot, one in hosts.values() if slot and slot is of]
            words = _names_in("\n".join(one.source for one in [cell, *same]))
            away = first - cell.number
            kinship = len(spoken_of & words) + 2 * (away == 1)
            return cell.code.parses, -kinship, away < 0, abs(away)

        for slot, host in sorted(hosts.values(), key=strangeness):
            if host in pieces or (sound and host.code.parses):
                continue
            source = self._glued([host.source, *sources])
            if source is None and last < host.number:
                source = self._glued([*sources, host.source])
            if source is not None:
                hosts[host.number] = slot, host.holding(source)
                for piece in pieces:
                    hosts.pop(piece.number, None)
                if slot is not None:
                    self._note_split(slot)
                return True
        return False

    def _parts_together(self, parts: Sequence[Cell]) -> list[Cell]:
        """The parts with those glued that are Python only together. Small
        groups first: a whole copy may stand before the parts of another."""
        together = list(parts)
        size = 2
        while size <= len(together):
            for start in range(len(together) - size + 1):
                group = together[start : start + size]
                if all(one.code.parses for one in group):
                    continue
                sources = [one.source for one in group]
                source = self._glued(sources) or self._glued(sources[::-1])
                if source is not None:
                    together[start : start + size] = [group[0].holding(source)]
                    size = 1
                    break
            size += 1
        return together

    def _glued(self, pieces: Sequence[str]) -> str | None:
        """The pieces as one cell, if they are Python together."""
        self.glue_tries += 1
        if (
            self.glue_tries > MAX_GLUE_TRIES
            or sum(map(len, pieces)) > MAX_GLUED_CHARS
        ):
            return None
        return glued(pieces)

    # One released cell at a time.

    def _settle_exercise(self, slot: Slot, versions: Sequence[Cell]) -> None:
        """Chooses what is graded of the versions of an answer."""
        if not versions:
            return
        if all(cell.cell_type != slot.cell_type for cell in versions):
            self.notes.append(
                f"The cell of exercise {slot.grade_id} had become a "
                f"{versions[-1].cell_type} cell; it is graded as "
                f"{slot.cell_type}."
            )
        asked = [one for one in versions if one.code.names & slot.names]
        complete = _complete(slot, asked)
        if slot.names and not complete:
            # A text or a note in a cell makes it no Python as a whole.
            sound = [replace(one, code=one.code.sound) for one in asked]
            complete = _complete(slot, sound)
            if complete:
                self.notes.append(
                    f"Lines in the cell of exercise {slot.grade_id} that are "
                    "no Python were left out."
                )
        used = [one for one in asked if one.code.parses]
        used = used or asked[-1:] or list(versions[-1:])
        if complete:
            # What defines less stands behind it only as a later version of
            # a part.
            later = [one for one in used if one.number > complete[-1].number]
            used = [complete[-1], *later]
            if len(asked) > 1:
                numbers = ", ".join(str(one.number) for one in asked)
                self.notes.append(
                    f"Exercise {slot.grade_id} was answered in several cells "
                    f"({numbers}); the last one, cell {used[-1].number}, is "
                    "graded."
                )
        elif len(used) > 1:
            self._note_split(slot)
        chosen = used[0]
        self.answers[slot.position] = "\n\n\n".join(
            plain(one.source) for one in used
        )
        self.chosen[slot.position] = chosen.number
        for one in versions:
            # What else was in a part of the split cell, as a helper, runs too.
            helper = one.code.parses and not one.code.names & slot.names
            if helper and one.number != chosen.number:
                side = 0 if one.number < chosen.number else 2
                self._add((slot.position, side, one.number), "code", one.source)

    def _settle_setup(self, slot: Slot, cells: Sequence[Cell]) -> None:
        """The released cell runs, then what the learner made of it: an import
        that was added there must not be lost."""
        for cell in _different(slot, cells):
            rest = without(cell.source, [slot.source])
            source = cell.source if rest is None else rest
            if source.strip():
                self._add((slot.position, 2, cell.number), "code", source)
                self.notes.append(
                    f"{_capital(slot.called)} had been changed; the original "
                    "runs first, then what you added to it."
                )

    def _settle_locked(self, slot: Slot, cells: Sequence[Cell]) -> None:
        """The released cell stands; what the learner defined in it, which may
        be the answer, runs before it."""
        for cell in self._parts_together(_different(slot, cells)[-MAX_PARTS:]):
            self.notes.append(
                f"{_capital(slot.called)} had been changed; the original was "
                "put back."
            )
            kept = without(cell.source, [slot.source])
            if kept is None:
                kept = "".join(
                    chunk.text
                    for chunk in cell.code.sound.chunks
                    if chunk.names - slot.code.names
                )
            if read_code(kept).sound.names:
                self._add((slot.position, 0, cell.number), "code", kept)

    def _settle_reading(self, slot: Slot, cells: Sequence[Cell]) -> None:
        """A changed reading cell stays changed; what was merged with it or
        written below it becomes a cell of the learner's own."""
        different = _different(slot, cells)
        changed = []
        for cell in different:
            rest = without(cell.source, [slot.source])
            if rest is None:
                changed.append(cell)
            elif rest.strip():
                key = (slot.position, 2, cell.number)
                self._add(key, cell.cell_type, rest)
        if changed and len(different) == len(cells):
            self.readings[slot.position] = changed.pop(0)
        for cell in changed:
            key = (slot.position, 2, cell.number)
            self._add(key, cell.cell_type, cell.source)

    # The learner's own cells, and answers that stand in them.

    def _place_added(self) -> None:
        """Puts an added cell after the released cell that it stood below; where
        the learner moved cells, before the one it stood above if that one uses
        what it defines."""
        landmarks = sorted(
            (
                (cell.number, slot, cell)
                for slot in self.matching.slots
                for cell in self.matching.cells_of(slot)
                if self.chosen.get(slot.position, cell.number) == cell.number
            ),
            key=lambda one: one[0],
        )
        lost_setup = [
            slot.position
            for slot in self.matching.missing
            if slot.role is Role.SETUP
        ]
        passed = 0
        for cell in sorted(self.matching.added, key=lambda one: one.number):
            while (
                passed < len(landmarks) and landmarks[passed][0] < cell.number
            ):
                passed += 1
            position = landmarks[passed - 1][1].position if passed else -1
            key = (position, 2, cell.number)
            if passed < len(landmarks):
                _, slot, held = landmarks[passed]
                used = _names_in(held.source)
                if slot.position < position and cell.code.names & used:
                    key = (slot.position, 0, cell.number)
                for lost in lost_setup:
                    # It is back, and runs before what may need it.
                    if position < lost < slot.position:
                        key = (lost, 2, cell.number)
            self._add(key, cell.cell_type, cell.source)

    def _lift_helpers(self) -> None:
        """Where cells were moved, puts what an exercise speaks of before it."""
        for at, own in enumerate(self.own):
            spoken_of = _names_in(own.code.source)
            users = [
                slot
                for slot in self.matching.exercises
                if (slot.position, 1, 0) < own.key
                and not slot.names & spoken_of
                and own.code.own_names
                & _names_in(self.answers.get(slot.position, ""))
            ]
            if own.runs and own.code.parses and users:
                key = (users[0].position, 0, own.number)
                self.own[at] = replace(own, key=key)

    def _part_merged(self, host: Slot) -> bool:
        """Gives exercises that were merged into another one's cell, or answered
        there, their own cells back; returns whether there were any."""
        source = self.answers.get(host.position)
        if source is None:
            return False
        code = read_code(source)
        guests = [
            slot
            for slot in self.matching.exercises
            if slot.position not in self.answers
            and slot.names
            and slot.names <= code.own_names
        ]
        if not guests:
            return False
        parts = _parted(code, [host, *guests])
        for guest in guests:
            # Not to be told apart, the whole runs where each one stands.
            part = source if parts is None else parts[guest.position]
            if not same_code(part, guest.source):
                self.answers[guest.position] = part
                self.notes.append(
                    f"Exercise {guest.grade_id} was answered in "
                    f"{host.called}; it was put back into its own."
                )
        if parts is not None:
            self.answers[host.position] = parts[host.position]
            if same_code(parts[host.position], host.source):
                del self.answers[host.position]
        return True

    def _answered_elsewhere(self, slot: Slot) -> bool:
        """Looks for an exercise's answer in the learner's own cells, and says
        whether there is one. Cells that became text count if no code does."""
        own = sorted(self.own, key=lambda one: (one.runs, one.key))
        definers = {
            name: one
            for one in own
            for name in one.code.sound.own_names & slot.names
        }
        holders = [one for one in self.own if one in definers.values()]
        holders.sort(key=lambda one: one.key)
        if holders:
            self._move_answer(slot, holders)
        return bool(holders) or self._answered_in_reading(slot)

    def _complete_from_text(self, slot: Slot) -> None:
        """Adds what an answer lacks from cells that became text."""
        answer = self.answers.get(slot.position, "")
        for own in sorted(self.own, key=lambda one: one.key):
            lacks = slot.names - read_code(answer).names
            if answer and not own.runs and lacks & own.code.sound.own_names:
                answer = f"{plain(answer)}\n\n\n{own.code.sound.source}"
                self.answers[slot.position] = answer
                self._note_split(slot)

    def _note_not_attempted(self, slot: Slot) -> None:
        """Says why an exercise counts as not attempted, unless its untouched
        cell is there."""
        if slot.position in self.answers:
            return
        cells = self.matching.cells_of(slot)
        if not cells:
            self.notes.append(
                f"The notebook has no cell of exercise {slot.grade_id}; it "
                "counts as not attempted."
            )
        elif not any(cell.source.strip() for cell in cells):
            self.notes.append(
                f"The cell of exercise {slot.grade_id} was empty; it counts as "
                "not attempted."
            )

    def _move_answer(self, slot: Slot, holders: Sequence[_Own]) -> None:
        """Moves an answer into its exercise's cell if nothing of the learner's
        runs in between. Otherwise an answer below stays, since it may need
        what runs before it, and one above is copied, since the exercise's own
        cell would undo it."""
        place = (slot.position, 1, 0)
        keys = [place, *(one.key for one in holders)]
        between = [
            key
            for key in self._running()
            if min(keys) < key < max(keys) and key not in keys
        ]
        numbers = " and ".join(str(one.number) for one in holders)
        below = min(keys) == place
        works = all(one.runs and one.code.parses for one in holders)
        if not (below and between and works):
            sources = [plain(one.code.sound.source) for one in holders]
            defined = frozenset().union(*(o.code.sound.names for o in holders))
            if not slot.names <= defined:
                sources.insert(0, slot.source)
            self.answers[slot.position] = "\n\n\n".join(sources)
            self.own = [
                one
                for one in self.own
                if one not in holders or (between and one.runs)
            ]
        self.notes.append(
            f"Exercise {slot.grade_id} was answered outside its cell, in cell "
            f"{numbers}; it is graded all the same."
        )

    def _running(self) -> list[_Key]:
        """Where code of the learner's runs."""
        return [
            *(one.key for one in self.own if one.runs),
            *(
                (position, 1, 0)
                for position, cell in self.readings.items()
                if cell.cell_type == "code"
            ),
            *((position, 1, 0) for position in self.answers),
        ]

    def _answered_in_reading(self, slot: Slot) -> bool:
        for position, cell in sorted(self.readings.items()):
            code = cell.code.sound
            if slot.names and slot.names <= code.own_names:
                works = cell.cell_type == "code" and cell.code.parses
                if position < slot.position or not works:
                    self.answers[slot.position] = code.source
                self.notes.append(
                    f"Exercise {slot.grade_id} was answered outside its cell, "
                    f"in cell {cell.number}; it is graded all the same."
                )
                return True
        return False

    def _note_later_definitions(self, slot: Slot) -> None:
        later = [
            one.number
            for one in self.own
            if one.key > (slot.position, 1, 0)
            and one.runs
            and one.code.own_names & slot.names
        ]
        if later and slot.position in self.answers:
            self.notes.append(
                f"Exercise {slot.grade_id} is defined once more in your cell "
                f"{max(later)}; the last definition is graded."
            )


def _losses(matching: Matching) -> list[str]:
    """What the notebook lost of the course's own, as notes."""
    notes = []
    missing = [
        slot.called
        for slot in matching.missing
        if slot.role in (Role.SETUP, Role.CHECK, Role.GRADE)
    ]
    if missing:
        notes.append(
            f"These cells were missing and were put back: {', '.join(missing)}."
        )
    if matching.by_text:
        notes.append(
            "Cells of the course had lost the marks that identify them; they "
            "were recognised by their text."
        )
    for exercise, number in matching.misnamed.items():
        notes.append(
            f"Cell {number} carried the id of another exercise; it is graded "
            f"as {exercise}."
        )
    changed = [
        slot.called
        for slot in matching.slots
        for cell in matching.cells_of(slot)[:1]
        if cell.submitted.grade_id == slot.grade_id != ""
        and any(
            slot.marks.get(key) != value
            for key, value in cell.submitted.marks.items()
        )
    ]
    if changed:
        notes.append(
            "Points or other settings had been changed and were put back: "
            f"{', '.join(changed)}."
        )
    if matching.reordered:
        notes.append(
            "Cells did not stand in the chapter's order; they were put back "
            "into it."
        )
    return notes


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _names_in(source: str) -> set[str]:
    """All names that a text speaks of."""
    return set(re.findall(r"[^\W\d]\w*", source)) - set(keyword.kwlist)


def _different(slot: Slot, cells: Iterable[Cell]) -> list[Cell]:
    return [one for one in cells if not same_code(one.source, slot.source)]


def _complete(slot: Slot, cells: Iterable[Cell]) -> list[Cell]:
    """Those that define all that the exercise asks for."""
    return [
        one for one in cells if one.code.parses and slot.names <= one.code.names
    ]


def _may_be_part(cell: Cell, hosts: Iterable[Cell]) -> bool:
    """Whether an added cell may be a part of an exercise: code that is no
    Python by itself or stands next to an exercise that is none; text where
    an exercise became text."""
    if cell.cell_type != "code":
        return any(host.cell_type == cell.cell_type for host in hosts)
    return not cell.code.parses or any(
        abs(host.number - cell.number) == 1 and not host.code.parses
        for host in hosts
    )


def _parted(code: Code, slots: Sequence[Slot]) -> dict[int, str] | None:
    """The code of several exercises in one cell, parted where each one's first
    definition begins; None if the parts then lack what they need."""
    starts: dict[int, Slot] = {}
    for slot in slots:
        binding = [
            at
            for at, chunk in enumerate(code.chunks)
            if chunk.names & slot.names
        ]
        if not binding or binding[0] in starts:
            return None
        starts[binding[0]] = slot
    bounds = [*sorted(starts), len(code.chunks)]
    parts = {}
    for at, (start, end) in enumerate(pairwise(bounds)):
        slot = starts[start]
        chunks = code.chunks[start if at else 0 : end]
        if not slot.names <= frozenset().union(*(c.names for c in chunks)):
            return None
        parts[slot.position] = "".join(chunk.text for chunk in chunks)
    return parts


def _assembled(
    rebuilding: _Rebuilding, released: NotebookNode
) -> tuple[NotebookNode, list[str]]:
    """(the notebook, ids of the cells to run besides set-up and exercises)."""
    notebook = copy.deepcopy(released)
    entries: list[tuple[_Key, NotebookNode, bool]] = []
    for position, cell in enumerate(notebook["cells"]):
        changed = rebuilding.readings.get(position)
        if changed is not None:
            cell = _new_cell(changed.cell_type, changed.source, cell["id"])
        elif position in rebuilding.answers:
            cell["source"] = rebuilding.answers[position]
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
        runs = changed is not None and changed.cell_type == "code"
        entries.append(((position, 1, 0), cell, runs))
    for own in sorted(rebuilding.own, key=lambda one: one.key):
        cell_id = f"added-{own.number}"
        cell = _new_cell(own.cell_type, own.code.source, cell_id)
        entries.append((own.key, cell, own.runs))
    entries.sort(key=lambda entry: entry[0])
    notebook["cells"] = [cell for _, cell, _ in entries]
    return notebook, [cell["id"] for _, cell, runs in entries if runs]


def _new_cell(cell_type: str, source: str, cell_id: str) -> NotebookNode:
    new = {
        "code": new_code_cell,
        "markdown": new_markdown_cell,
        "raw": new_raw_cell,
    }[cell_type]
    cell: NotebookNode = new(source=source, id=cell_id)
    return cell
