"""`course grade CHAPTER --from PATH --to DIR`: grading without a gradebook."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from commands import SCRIPTS, course_says, environment

from course_grader.chapter.build import build_chapter
from course_grader.classroom.collect_tree import Limits
from course_grader.classroom.demo import answered
from course_grader.classroom.folder import jobs_in
from course_grader.course import Course
from course_grader.judge.inprocess import (
    answer_namespace,
    judge_namespace,
    local_expectations,
)

CHAPTER = "03_mini"
RIGHT = {
    "double": """\
def double(x, times=1):
    if times < 0:
        raise ValueError("negative")
    return x * 2**times
""",
    "mean": "def mean(x):\n    return x.mean().item()\n",
}
LEAVE = {
    "hangs": "    while True:\n        pass\n",
    "exits": "    import os\n    os._exit(0)\n",
    "crashes": "    import ctypes\n    ctypes.string_at(0)\n",
    "swells": "    return torch.zeros(10**10)\n",
}
"""Bodies that end the process; each must cost its own exercise alone."""
VERDICTS = {
    "hangs": {"timed out"},
    "exits": {"exited"},
    "crashes": {"exited"},
    "swells": {"error", "out of memory"},
}


def notebook(course: Course, **chosen: str) -> nbformat.NotebookNode:
    grading, _, released = build_chapter(course, CHAPTER)
    return answered(grading, released, chosen)


def hand_in(folder: Path, student: str, content: bytes | str) -> Path:
    path = folder / student / "answers.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def results(to: Path) -> tuple[dict[str, float], dict[str, Any]]:
    scores = json.loads((to / "scores.json").read_text(encoding="utf-8"))
    details = json.loads((to / "details.json").read_text(encoding="utf-8"))
    assert set(scores) == set(details)
    return scores, details


def test_programs_beside_the_work_are_not_run(
    mini: Course, tmp_path: Path
) -> None:
    """Somebody grades where an archive was unpacked, and it holds modules."""
    folder, ran = tmp_path / "in", tmp_path / "ran"
    hand_in(folder, "ada", nbformat.writes(notebook(mini, **RIGHT)))
    leaves_a_trace = f"open({str(ran)!r}, 'a').write(__name__)\n"
    (folder / "course_grader").mkdir()
    for name in ("torch", "nbformat", "random", "socket", "sitecustomize"):
        (folder / f"{name}.py").write_text(leaves_a_trace)
    (folder / "course_grader" / "__init__.py").write_text(leaves_a_trace)

    done = subprocess.run(
        [
            *(SCRIPTS / "course", "--course", mini.root),
            *("grade", "03", "--from", "ada/answers.ipynb"),
            *("--to", tmp_path / "out"),
        ],
        cwd=folder,
        env=environment(activated=False),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )

    assert not ran.exists(), ran.read_text()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 points" in done.stdout


def test_code_that_ends_its_process_costs_its_exercise_alone(
    mini: Course, tmp_path: Path
) -> None:
    """Every way out, in either exercise; and work that misses nothing."""
    tests = mini.autograde / CHAPTER / "hidden_tests.py"
    impatient = tests.read_text().replace("says=", "timeout_s=2, says=")
    tests.write_text(impatient)
    folder, to = tmp_path / "in", tmp_path / "out"
    hand_in(folder, "ada", nbformat.writes(notebook(mini, **RIGHT)))
    heads = {"double": "def double(x, times=1):\n", "mean": "def mean(x):\n"}
    for way, body in LEAVE.items():
        for exercise, head in heads.items():
            cells = {**RIGHT, exercise: head + body}
            text = nbformat.writes(notebook(mini, **cells))
            hand_in(folder, f"{way}_{exercise}", text)
    text = nbformat.writes(notebook(mini, double="import os\nos._exit(3)\n"))
    hand_in(folder, "at_once", text)

    # somebody should look at work that calls os._exit
    course_says(mini.root, "grade", "03", "--from", folder, "--to", to, code=3)

    scores, details = results(to)
    assert scores.pop("ada") == 5
    assert scores.pop("at_once") == 0
    for student, points in scores.items():
        way, _, exercise = student.partition("_")
        assert points == {"double": 2, "mean": 3}[exercise], student
        verdicts = {
            one["verdict"] for one in details[student].pop(exercise).values()
        }
        assert verdicts <= VERDICTS[way], student
        (kept,) = details[student].values()
        assert {one["verdict"] for one in kept.values()} == {"passed"}
    for check in details["at_once"]["double"].values():
        assert check["verdict"] == "exited"
        assert check["message"]
    for student in details:
        page = to / "feedback" / student / f"{CHAPTER}.html"
        assert student in page.read_text(encoding="utf-8")


def old_format(node: nbformat.NotebookNode) -> bytes:
    return nbformat.writes(nbformat.convert(node, 3), version=3).encode()


SPOILT: dict[str, Callable[[bytes, nbformat.NotebookNode], bytes]] = {
    "empty": lambda whole, _: b"",
    "blank": lambda whole, _: b" \n\n",
    "binary": lambda whole, _: bytes(range(256)) * 20,
    "a_list": lambda whole, _: b"[1, 2, 3]",
    "a_page": lambda whole, _: b"<!DOCTYPE html><p>Sign in to go on.",
    "a_number": lambda whole, _: b"7",
    "another": lambda whole, _: b'{"cells": [], "metadata": {}}',
    "truncated": lambda whole, _: whole[: len(whole) // 8],
}
"""Files of which nothing can be graded."""
MENDED: dict[str, Callable[[bytes, nbformat.NotebookNode], bytes]] = {
    "utf_16": lambda whole, _: whole.decode().encode("utf-16"),
    "with_bom": lambda whole, _: b"\xef\xbb\xbf" + whole,
    "format_3": lambda _, node: old_format(node),
}
"""Files in which the whole of the work can be recognised."""


def test_one_bad_file_costs_nobody_else_anything(
    mini: Course, tmp_path: Path
) -> None:
    folder, to = tmp_path / "in", tmp_path / "out"
    node = notebook(mini, **RIGHT)
    whole = nbformat.writes(node).encode()
    hand_in(folder, "ada", whole)
    for kind, spoil in {**SPOILT, **MENDED}.items():
        hand_in(folder, kind, spoil(whole, node))
    for name in ("no_notebook", "a_link", "a_fifo", "a_folder", "hidden"):
        (folder / name).mkdir()
    hand_in(folder, "several", whole)
    (folder / "several" / "answers (1).ipynb").write_bytes(whole)
    (folder / "no_notebook" / "notes.txt").write_text("I was ill.")
    (folder / "a_link" / "answers.ipynb").symlink_to(
        folder / "ada" / "answers.ipynb"
    )
    os.mkfifo(folder / "a_fifo" / "answers.ipynb")
    (folder / "a_folder" / "answers.ipynb").mkdir()
    (folder / "hidden" / ".ipynb_checkpoints").mkdir()
    (folder / "hidden" / ".ipynb_checkpoints" / "answers.ipynb").write_bytes(
        whole
    )
    (folder / "not a student.txt").write_text("left over")
    (folder / "linked").symlink_to(folder / "ada")
    before = {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }

    said = course_says(
        mini.root, "grade", "03", "--from", folder, "--to", to, code=3
    )

    scores, details = results(to)
    told = {
        line.partition(": ")[0]: line.partition(": ")[2]
        for line in said.splitlines()
        if ": " in line
    }
    for student in ("ada", *MENDED):
        assert scores.pop(student) == 5, student
        assert told[student] == "5 of 5 points"
    # nobody of the others is forgotten, and each hears one sentence
    assert set(scores) == {
        *SPOILT,
        "several",
        "no_notebook",
        "a_link",
        "a_fifo",
        "a_folder",
        "hidden",
        "linked",
    }
    for student, points in scores.items():
        assert points is None, student
        assert list(details[student]) == ["refused"], student
        why = details[student]["refused"]
        assert told[student] == why, student
        assert why[0].isupper(), why
        assert why.endswith("."), why
        assert "\n" not in why, why
    for student, word in {
        "a_link": "symbolic link",
        "a_fifo": "FIFO",
        "a_folder": "folder",
        "several": "several",
        "empty": "empty",
        "linked": "symbolic link",
    }.items():
        assert word in details[student]["refused"], student
    assert {path: path.read_bytes() for path in before} == before


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    hand_in(tmp_path, "ada", b"{}")
    hand_in(tmp_path, "bob", b" " * 2_000_001)

    jobs, refused = jobs_in(tmp_path, Limits(max_file_bytes=2_000_000))

    assert [one.student for one in jobs] == ["ada"]
    assert list(refused) == ["bob"]
    assert "larger than 2 MB" in refused["bob"]


def test_one_file_and_its_page(mini: Course, tmp_path: Path) -> None:
    """What a learner without an instructor does."""
    path = tmp_path / "03_mini.ipynb"
    cells = {**RIGHT, "mean": "def mean(x):\n    return x.sum().item()\n"}
    path.write_text(nbformat.writes(notebook(mini, **cells)))

    said = course_says(
        mini.root, "grade", "03", "--from", path, "--to", tmp_path / "out"
    )

    assert "3 of 5 points" in said
    assert "3 of 3  Double: solved" in said
    assert "0 of 2  Mean: not solved yet" in said
    assert "Starting the grader for 03_mini" in said
    page = tmp_path / "out" / "03_mini.html"
    assert str(page) in said.replace("\n", "")
    assert "That is the sum." in page.read_text(encoding="utf-8")


def test_the_page_of_one_file_opens_in_a_browser(
    mini: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/opened"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    path = tmp_path / "renamed by me.ipynb"
    path.write_text(nbformat.writes(notebook(mini, **RIGHT)))

    course_says(mini.root, "grade", "03", "--from", path)
    course_says(mini.root, "grade", "03", "--from", path, "--no-browser")

    page = mini.work / ".course" / "reports" / "03_mini.html"
    assert page.exists()
    assert (tmp_path / "opened").read_text() == f"{page.as_uri()}\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"# Read me", "The file is no notebook"),
        (b"", "The file is empty"),
        (
            nbformat.writes(
                nbformat.v4.new_notebook(
                    cells=[nbformat.v4.new_code_cell("print(1)")]
                )
            ).encode(),
            "None of the notebook's cells belongs to this chapter",
        ),
    ],
)
def test_a_file_that_is_no_notebook_of_the_chapter_is_refused_at_once(
    mini: Course, tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "mine.ipynb"
    path.write_bytes(content)

    said = course_says(
        mini.root,
        *("grade", "03", "--from", path, "--to", tmp_path / "out"),
        code=2,
    )

    assert sentence in " ".join(said.split())
    assert "Starting the grader" not in said
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("prepare", "typed", "sentence"),
    [
        ("", ["--from", "nowhere", "--to", "out"], "There is no"),
        ("mkdir", ["--from", "given", "--to", "out"], "STUDENT/*.ipynb"),
        ("mkdir", ["--from", "given"], "STUDENT/*.ipynb"),
        ("file", ["--from", "given", "--to", "given/out"], "among the"),
        ("file", ["--from", "given", "--to", "pyproject.toml"], "be made"),
    ],
)
def test_what_cannot_be_graded_at_all(
    mini: Course,
    prepare: str,
    typed: list[str],
    sentence: str,
) -> None:
    if prepare:
        (mini.root / "given").mkdir()
    if prepare == "file":
        (mini.root / "given" / "it").write_text("{}")

    said = course_says(mini.root, "grade", "03", *typed, code=2)

    assert sentence in said
    assert said.count("\n") == 1


def test_names_that_no_file_should_have(tmp_path: Path) -> None:
    """They can be written down, and the notebooks are graded."""
    for name in (b"\xff", "Zoë".encode(), b"a\nb", b".hidden"):
        hand_in(tmp_path, os.fsdecode(name), b"{}")
    (tmp_path / "loose.ipynb").write_text("{}")

    jobs, refused = jobs_in(tmp_path)

    assert {one.student for one in jobs} == {"\\udcff", "Zoë", "a\\nb"}
    assert list(refused) == ["loose.ipynb"]
    assert "folder" in refused["loose.ipynb"]


@pytest.mark.slow
def test_both_judges_agree_on_answers_of_the_bank(
    course: Course, tmp_path: Path
) -> None:
    """Five answers of the real chapter, by the command and in this process."""
    chapter = "03_one_hot_and_losses"
    grading, _, released = build_chapter(course, chapter)
    chosen = []
    for exercise in grading.chapter.exercises:
        answers = [
            one
            for one in grading.answers_of(exercise.id)
            if not one.ends_process
        ]
        chosen.append(next(one for one in answers if not one.right))
    chosen.append(
        next(one for one in grading.answers if one.right)  # and a right one
    )
    assert len(chosen) == 5
    folder, to = tmp_path / "in", tmp_path / "out"
    for answer in chosen:
        cells = {answer.exercise: grading.answer_cell(answer)}
        hand_in(
            folder,
            answer.name,
            nbformat.writes(answered(grading, released, cells)),
        )

    course_says(
        course.root,
        *("grade", chapter, "--from", folder, "--to", to, "--seed", "11"),
    )

    scores, details = results(to)
    for answer in chosen:
        expected = local_expectations(grading, 11, answer.exercise)
        report = judge_namespace(
            grading,
            answer.exercise,
            answer_namespace(grading, answer),
            expected,
        )
        assert scores[answer.name] == pytest.approx(report.points)
        assert {
            name: (one["verdict"], one["points"])
            for name, one in details[answer.name][answer.exercise].items()
        } == {one.name: (one.verdict, one.points) for one in report.checks}


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(mini: Course, tmp_path: Path) -> None:
    """Killed in the middle: what was graded is there, and is not graded again."""
    folder, to = tmp_path / "in", tmp_path / "out"
    students = [f"student{number:02}" for number in range(12)]
    for number, student in enumerate(students):
        cells = RIGHT if number % 2 else {"mean": RIGHT["mean"]}
        hand_in(folder, student, nbformat.writes(notebook(mini, **cells)))
    typed = ["grade", "03", "--from", folder, "--to", to, "--workers", "1"]

    with subprocess.Popen(
        [SCRIPTS / "course", *map(str, typed)],
        cwd=mini.root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        seen = 0
        for line in running.stdout:
            seen += " of 5 points" in line
            if seen == 5:
                running.kill()
                break
    scores = json.loads((to / "scores.json").read_text())
    assert 5 <= len(scores) < 12
    pages = {
        student: (to / "feedback" / student / f"{CHAPTER}.html").stat()
        for student in scores
    }
    with (to / "unfinished.jsonl").open("a") as unfinished:
        unfinished.write('{"student": "half a li')

    said = course_says(mini.root, *typed)

    assert f"{len(scores)} were graded by a run that was stopped" in said
    assert said.count(" of 5 points") == 12 - len(scores)
    everybody, _ = results(to)
    assert everybody == {
        student: 5 if number % 2 else 2
        for number, student in enumerate(students)
    }
    for student, before in pages.items():
        page = to / "feedback" / student / f"{CHAPTER}.html"
        assert page.stat().st_mtime_ns == before.st_mtime_ns
    assert not (to / "unfinished.jsonl").exists()

    # a run that has ended is no unfinished one: the next begins anew
    said = course_says(mini.root, *typed)
    assert said.count(" of 5 points") == 12


def test_a_folder_of_a_chapter_is_no_class(
    mini: Course, tmp_path: Path
) -> None:
    """Nothing is announced that is not there."""
    folder = tmp_path / "03_mini"
    folder.mkdir()
    (folder / "03_mini.ipynb").write_text("{}")
    said = course_says(mini.root, "grade", "03", "--from", folder, code=2)
    assert "03_mini.ipynb: This notebook lies in no student's folder" in said
    assert "Nothing was graded: " in said
    assert not list(mini.people.rglob("*.json"))
