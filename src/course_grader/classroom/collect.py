"""Collects submissions from nbgrader's exchange without trusting them.

nbgrader's own Collect follows symbolic links with the instructor's rights, is
stopped for the whole class by one FIFO or one strange folder name, and deletes
the older submission when a newer one is collected. `SafeCollect` takes its
place in `nbgrader collect` and in formgrader:

    c.ExchangeFactory.collect = "course_grader.classroom.collect.SafeCollect"
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from datetime import datetime
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any

from nbgrader.exchange.default.collect import ExchangeCollect
from traitlets import Bool, Integer, Unicode

from course_grader.classroom.collect_names import (
    chapter_of,
    is_notebook,
    roster,
)
from course_grader.classroom.collect_tree import (
    Limits,
    copy_tree,
    left_out_sentence,
    printable,
)
from course_grader.classroom.collect_versions import (
    MOST_ATTEMPTS,
    RECEIPT_FILE,
    Outcome,
    bad_student_id,
    keep_version,
    mark,
    parse_timestamp,
    put_in_place,
    read_timestamp,
    staging,
    submitted_folder,
    versions_folder,
)


class SafeCollect(ExchangeCollect):  # type: ignore[misc]
    """nbgrader's Collect, with our way of copying and of keeping versions.

    Reads nbgrader's own settings (`update`, `before_duedate`, `check_owner`;
    of the course `ignore`, `include`, `max_file_size`, `max_dir_size`,
    `groupshared`). After `start()`, `outcomes` says what became of each
    submission; the same sentences go to nbgrader's log.

    The exchange lets every account put a folder there in any student's name.
    With `check_owner`, a submission that the student's account (or the
    collecting one) owns goes before those that others own; where nobody's
    account bears the student's id, nbgrader's warning is all there is. A newest
    submission without a notebook does not hide an older one that has it.
    """

    max_files = Integer(
        1000, help="Files and folders of one submission that are looked at."
    ).tag(config=True)

    max_depth = Integer(
        8, help="Folders within folders of one submission that are looked at."
    ).tag(config=True)

    every_attempt = Bool(
        False,
        help="Collect what a learner handed in before the newest, too.",
    ).tag(config=True)

    account = Unicode(
        "",
        help="What a learner's account is called, as '{student}'. If set, what "
        "belongs to another account is not collected at all.",
    ).tag(config=True)

    def start(self) -> None:
        """Collects; see `outcomes` for what became of each submission."""
        self.outcomes: list[Outcome] = []
        self._all_of: dict[str, list[dict[str, Any]]] = {}
        self._known = {one.id for one in roster(self.coursedir)}
        super().start()

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """One submission of the exchange; its student is "" if it is none."""
        name = os.path.basename(path)
        chapter = self.coursedir.assignment_id
        student, _, rest = name.partition(f"+{chapter}+")
        timestamp = _timestamp_of(rest)
        why = bad_student_id(student)
        if timestamp is None:
            why = "its name holds no time"
        account = _account(path)
        its_own = self.account.format(student=student) or student
        owned = not self.check_owner or account in (its_own, _account())
        if self.account and not owned:
            why = f"it belongs to the account {account}, not to {its_own}"
        if why:
            student = printable(student)
            message = f"{printable(name)} is not collected: {why}."
            self._report(Outcome(student, chapter, None, message, True))
            return {
                "username": "",
                "filename": name,
                "timestamp": datetime.min,
                "owned": False,
                "has_notebook": False,
            }
        return {
            "username": student,
            "filename": name,
            "timestamp": timestamp,
            "account": account,
            "owned": owned,
            "has_notebook": self._has_notebook(path),
        }

    def _has_notebook(self, path: str) -> bool:
        """Whether there is a regular file with the notebook's name, or one by
        which it is recognised."""
        chapter = self.coursedir.assignment_id
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return False
            with os.scandir(path) as listing:
                return any(
                    one.is_file(follow_symlinks=False)
                    and _is_the_notebook(one.name, chapter)
                    for one in islice(listing, self.max_files)
                )
        except OSError:
            return False

    def _sort_by_timestamp(
        self, records: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Newest first; but the student's own before what others put there,
        and what can be graded before what cannot."""
        newest_first: list[dict[str, Any]] = super()._sort_by_timestamp(records)
        ranked = sorted(
            newest_first,
            key=lambda one: (not one["owned"], not one["has_notebook"]),
        )
        newest, taken = newest_first[0], ranked[0]
        self._all_of[taken["username"]] = ranked
        if newest is not taken:
            why = f"holds no {self.coursedir.assignment_id}.ipynb"
            if taken["owned"] and not newest["owned"]:
                why = "belongs to another account: somebody may be cheating"
            message = (
                f"The newest submission is passed over, because it {why}; it "
                f"stays in the exchange as {printable(newest['filename'])}."
            )
            chapter = self.coursedir.assignment_id
            student = taken["username"]
            self._report(Outcome(student, chapter, None, message, True))
        return ranked

    def copy_files(self) -> None:
        """Collects one student after the other; none can stop the rest."""
        chapter = self.coursedir.assignment_id
        records = [one for one in self.src_records if one["username"]]
        if not records:
            self.log.warning("The exchange has no submissions of %s.", chapter)
        for record in sorted(records, key=lambda one: one["username"]):
            student = record["username"]
            try:
                if self.every_attempt:
                    self._keep_older(student, chapter, record)
                outcome = self._collect(student, chapter, record)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                message = f"The submission cannot be collected: {why}."
                outcome = Outcome(student, chapter, None, message, True)
            self._report(outcome)

    def _keep_older(
        self, student: str, chapter: str, newest: dict[str, Any]
    ) -> None:
        """Lays what a learner handed in before the newest among the versions,
        where it is not there already."""
        submitted = submitted_folder(self.coursedir, student, chapter)
        versions = versions_folder(self.coursedir, student, chapter)
        there = {read_timestamp(one) for one in versions.glob("*")}
        there.add(read_timestamp(submitted))
        before = [
            one
            for one in self._all_of.get(student, ())
            if one["timestamp"] < newest["timestamp"]
            and one["owned"] == newest["owned"]
            and one["has_notebook"]
        ]
        left = len(before[MOST_ATTEMPTS:])
        if left:
            message = (
                f"The oldest {left} attempts stay in the exchange: at most "
                f"{MOST_ATTEMPTS} before the newest are collected."
            )
            self._report(Outcome(student, chapter, None, message, True))
        for one in before[:MOST_ATTEMPTS]:
            if one["timestamp"] in there:
                continue
            with staging(self.coursedir) as made:
                source = Path(self.inbound_path) / one["filename"]
                said = self._copy(source, made, chapter)
                said.append(mark(made, one["timestamp"]))
                kept = keep_version(made, versions, one["timestamp"])
            where = kept.relative_to(self.coursedir.root)
            said.insert(0, f"An older attempt is kept in {where}.")
            self._report(
                Outcome(student, chapter, None, _joined(said), any(said[1:]))
            )

    def _collect(
        self, student: str, chapter: str, record: dict[str, Any]
    ) -> Outcome:
        submitted = submitted_folder(self.coursedir, student, chapter)
        notebook = submitted / f"{chapter}.ipynb"
        timestamp: datetime = record["timestamp"]
        if submitted.exists():
            existing = read_timestamp(submitted)
            newer = existing is None or timestamp > existing
            wanted = (self.update and newer) or (
                self.before_duedate and existing != timestamp
            )
            if not wanted:
                message = "Already collected."
                if newer:
                    message += " A newer submission waits: use --update."
                return Outcome(student, chapter, notebook, message, newer)

        source = Path(self.inbound_path) / record["filename"]
        versions = versions_folder(self.coursedir, student, chapter)
        with staging(self.coursedir) as made:
            said = self._copy(source, made, chapter)
            if not record["owned"]:
                said.append(
                    f"It belongs to the account {record['account']}: somebody "
                    "may be cheating (where accounts have other names than "
                    "students, unset ExchangeCollect.check_owner)."
                )
            has_notebook = (made / f"{chapter}.ipynb").is_file()
            said.append(mark(made, timestamp))
            if self.coursedir.groupshared:
                _share_with_group(made)
            if not has_notebook:
                kept = keep_version(made, versions, timestamp)
                where = kept.relative_to(self.coursedir.root)
                said.insert(
                    0,
                    f"There is no readable {chapter}.ipynb in the submission, "
                    f"so nothing of it will be graded; it is kept in {where}.",
                )
                path = notebook if notebook.is_file() else None
                return Outcome(student, chapter, path, _joined(said), True)
            older = put_in_place(made, submitted, versions)
        needs_human = any(said)
        if self._known and student not in self._known:
            said.append(f"{student} is on no roster: grading takes them in.")
        if older is not None:
            where = older.relative_to(self.coursedir.root)
            said.insert(0, f"Updated; the older version is kept in {where}.")
        else:
            said.insert(0, "Collected.")
        return Outcome(student, chapter, notebook, _joined(said), needs_human)

    def _copy(self, source: Path, made: Path, chapter: str) -> list[str]:
        """Copies a submission; returns sentences on what was wrong with it."""
        limits = Limits(
            max_file_bytes=1000 * self.coursedir.max_file_size,
            max_total_bytes=1000 * self.coursedir.max_dir_size,
            max_files=self.max_files,
            max_depth=self.max_depth,
        )
        wanted = f"{chapter}.ipynb"
        left_out = copy_tree(
            source, made, limits, first=wanted, skip=self._is_ignored
        )
        said = [left_out_sentence(left_out)]
        if not (made / wanted).exists():
            renamed = [
                path
                for path in made.iterdir()
                if path.is_file() and _is_the_notebook(path.name, chapter)
            ]
            if renamed:
                newest = max(renamed, key=lambda p: (p.stat().st_mtime, p.name))
                newest.rename(made / wanted)
                said.append(f"Taken as {wanted}: {printable(newest.name)}.")
        return said

    def _is_ignored(self, name: str, is_folder: bool) -> bool:
        """nbgrader's own rule: what `ignore` fits, and files that no `include`
        fits. A learner writes no receipt of a learning management system."""
        if name == RECEIPT_FILE:
            return True
        if any(fnmatch(name, pattern) for pattern in self.coursedir.ignore):
            return True
        return not is_folder and not any(
            fnmatch(name, pattern) for pattern in self.coursedir.include
        )

    def _report(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        level = self.log.warning if outcome.needs_human else self.log.info
        level("%s: %s", outcome.student, outcome.message)


def _timestamp_of(rest: str) -> datetime | None:
    """The time in "TIME" or "TIME+RANDOM", as nbgrader names a submission."""
    without_random = re.sub(r"\+[\w-]{12}$", "", rest)
    return parse_timestamp(without_random) or parse_timestamp(
        rest.rpartition("+")[0]
    )


def _is_the_notebook(name: str, chapter: str) -> bool:
    return is_notebook(name) and chapter_of(name, [chapter]) is not None


def _account(path: str | None = None) -> str:
    """Who owns a folder of the exchange; None asks for this process."""
    try:
        uid = os.geteuid() if path is None else os.lstat(path).st_uid
    except OSError:  # its owner may take it away at any time
        return "of nobody"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"number {uid}"


def _share_with_group(folder: Path) -> None:
    """nbgrader's permissions for a course with several instructors."""
    for path in [folder, *folder.rglob("*")]:
        wanted = 0o2770 if path.is_dir() else 0o660
        path.chmod(path.stat().st_mode & 0o7777 | wanted)


def _joined(sentences: list[str]) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
