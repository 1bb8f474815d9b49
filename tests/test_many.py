"""A large class: a grading worker is killed, then the coordinator; every submission
is graded once, with the marks of a quiet run."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from commands import SCRIPTS, course_says, environment, exported, put
from mini_course import write_mini

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course

CHAPTER = "03_mini"
MANY = 500


def large_class(folder: Path) -> Course:
    """A course with many submissions; the same at every call."""
    course = write_mini(folder)
    course_says(course.root, "release")
    grading, _, released = build_chapter(course, CHAPTER)
    rng = random.Random(0)
    for number in range(MANY):
        chosen = {
            exercise.id: grading.answer_cell(
                rng.choice(grading.answers_of(exercise.id))
            )
            for exercise in grading.chapter.exercises
        }
        put(
            course.root,
            f"student{number:03}",
            answered(grading, released, chosen),
        )
    return course


def graders(parent: psutil.Process) -> list[psutil.Process]:
    return [
        one
        for one in parent.children()
        if one.status() != psutil.STATUS_ZOMBIE
        and "course_grader.grading.process" in one.cmdline()
    ]


def written(course: Course) -> dict[Path, int]:
    """When each graded notebook was finished."""
    pattern = f"autograded/*/{CHAPTER}/course.sha256"
    return {
        path: path.stat().st_mtime_ns for path in course.people.glob(pattern)
    }


@pytest.mark.slow
def test_each_submission_is_graded_once_whoever_is_killed(
    tmp_path: Path,
) -> None:
    disturbed = large_class(tmp_path / "disturbed")
    quiet = large_class(tmp_path / "quiet")
    course_says(quiet.root, "grade", "03", "--seed", "7")

    with subprocess.Popen(
        [SCRIPTS / "course", "grade", "03", "--seed", "7", "--workers", "2"],
        cwd=disturbed.root,
        env=environment(activated=False),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        seen = 0
        for line in running.stdout:
            seen += " of 5 points" in line
            if seen in (60, 120):
                # the first was started by exec; workers are its forks, and each
                # of them watches one of its own
                (first,) = graders(psutil.Process(running.pid))
                forks = graders(first)
                assert len(forks) == 2
                killed = forks[0] if seen == 60 else first
                killed.send_signal(signal.SIGKILL)
                seen += 1
            elif seen == 250:
                running.send_signal(signal.SIGKILL)
                break
    before = written(disturbed)
    assert 200 <= len(before) < MANY

    said = course_says(disturbed.root, "grade", "03", "--seed", "7")
    assert said.count(" of 5 points") == MANY - len(before)
    after = written(disturbed)
    assert len(after) == MANY
    assert {path: after[path] for path in before} == before
    assert exported(disturbed.root, "03") == exported(quiet.root, "03")
