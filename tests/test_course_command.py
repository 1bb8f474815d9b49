"""The `course` command itself: help, exit codes, one sentence per error."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import nbformat
import pytest
from commands import SCRIPTS, course_says, environment, run_course

from course_grader.classroom.named_files import writing
from course_grader.commands.grade import _anything_new
from course_grader.course import Course, CourseError, find_course
from course_grader.lab.work import fill_work
from course_grader.needs import free_port

COMMANDS = (
    *("lab", "grade"),
    *(
        "teach",
        "demo",
        "roster",
        "release",
        "collect",
        "feedback",
        "report",
        "similar",
    ),
    *("status", "due", "extend", "export", "solutions", "total", "lms"),
    *("backup", "restore", "new-term", "forget"),
    *("new", "try", "mutate", "build", "publish"),
)


def test_help_names_every_command_by_who_types_it(tmp_path: Path) -> None:
    said = course_says(tmp_path, "--help")

    named = re.findall(r"^  (\w[\w-]*) +[A-Z]", said, re.MULTILINE)
    assert tuple(dict.fromkeys(named)) == COMMANDS
    assert said.count("for example: course ") == 3
    # and whoever types nothing is shown the same
    nothing = run_course(tmp_path)
    assert nothing.returncode == 2
    assert nothing.stderr == said


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name: str, tmp_path: Path) -> None:
    said = course_says(tmp_path, name, "--help")

    usage, _, rest = said.partition("\n\n")
    assert usage.startswith(f"usage: course {name}")
    sentence, _, options = rest.partition("\n\n")
    assert sentence.endswith(".")  # what it does
    one_line_each = re.sub(r"\n {10,}", "  ", options)
    for line in one_line_each.splitlines():  # no argument without a word
        if line.startswith("  "):
            assert re.fullmatch(r"  \S.*?  +\S.*", line), line


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (
            ("build", "99"),
            "There is no chapter '99'. The chapters are: 03_mini.",
        ),
        (("try", "03", "triple"), "double, mean"),
        (("grade", "03", "--from", "nothing", "--to", "out"), "no file or"),
        (("publish", "solutions"), "no kit"),
        (("--course", "nowhere", "build"), "There is no folder nowhere."),
    ],
)
def test_an_error_is_one_sentence(
    mini: Course, typed: tuple[str, ...], sentence: str
) -> None:
    done = run_course(mini.root, *typed)

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("course: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ('timezone = "Mars/X"', "timezone must be a time zone such as"),
        ('timezon = "Europe/Berlin"', "there is no setting timezon. At the"),
        ("free_days = 3", "free_days stands at the top and belongs under"),
        ('exams = "03"', "exams must be a list of chapters"),
        ('exams = ["99"]', "exams: There is no chapter '99'. The chapters"),
        ('attempts = "first"', '"best" or "last", not \'first\''),
        ("late = 3", "late is a section: write [late]"),
        ("[late]\npercent = 3", "[late] knows percent_per_day, at_most"),
        ('[late]\npercent_per_day = "ten"', "must be a number from 0 to 100"),
        ("[late]\npercent_per_day = -5", "not -5."),
        ("[late]\nfree_days = 1.5", "must be a whole number from 0 up"),
        ('[late]\nexams = ["03"]', "exams stands under [late] and belongs"),
        ('[weights]\n"03" = "x"', "[weights] 03 must be a number from 0"),
        ('[weights]\n"99" = 2', "[weights]: There is no chapter '99'"),
        ("[limits]\ncell = 3", "[limits] knows cell_s, submission_s"),
        ("[limits]\ncell_s = -1", "cell_s must be a number above 0"),
        ("[limits]\nprocesses = true", "must be a whole number from 1 up"),
        ('[lms]\nassignments = { "99" = 1 }', "assignments: There is no"),
        ('[edition]\nhost = "ftp"', '"github" or "gitlab" or "web"'),
        ("[latte]\n", "there is no setting latte"),
        ("exams =", "course.toml cannot be read"),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    mini: Course, written: str, sentence: str
) -> None:
    mini.settings_file.write_text(written)
    with pytest.raises(CourseError) as refused:
        _ = Course(mini.root).settings
    assert "course.toml" in str(refused.value)
    assert sentence in str(refused.value)


def test_every_command_that_reads_settings_refuses_wrong_ones(
    mini: Course,
) -> None:
    root, file = mini.root, mini.settings_file
    file.write_text("[late]\npercent = 3\n")
    for typed in (
        ("due",),
        ("status",),
        ("export",),
        ("total",),
        ("grade", "03"),
        ("feedback", "03"),
        ("release", "03"),
        ("grade", "03", "--from", "solutions"),
        ("build", "--check"),
    ):
        assert "[late] knows" in course_says(root, *typed, code=2), typed
    for written, sentence in (
        ("[nbgrader.Exchang]\nroot = 'x'", "[nbgrader.Exchang] is no class"),
        ("[nbgrader.Exchange]\nrot = 'x'", "not rot."),
        ("[nbgrader.Exchange]\nexams = ['03']", "exams stands under"),
        ("[nbgrader.CourseDirectory]\ndb_url = 3", "db_url"),
        ("[nbgrader.SafeCollect]\naccount = 'jupyter-{student}'", ""),
    ):
        file.write_text(written)
        code = 2 if sentence else 0
        assert sentence in course_says(root, "due", code=code), written


def test_outside_of_a_course(tmp_path: Path) -> None:
    done = run_course(tmp_path, "status")

    assert done.returncode == 2
    assert "No course was found" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_learner_handed_in_is_no_course(mini: Course) -> None:
    handed_in = mini.people / "submitted" / "ada" / "03_mini"
    (handed_in / "solutions").mkdir(parents=True)
    (handed_in / "pyproject.toml").write_text("")

    assert find_course(handed_in).root == mini.root
    assert find_course(mini.solutions).root == mini.root


def test_something_that_is_no_command(tmp_path: Path) -> None:
    done = run_course(tmp_path, "grad")

    assert done.returncode == 2
    assert "invalid choice: 'grad'" in done.stderr


def test_a_stale_notebook_is_shown(mini: Course) -> None:
    assert "03_mini.ipynb: written" in course_says(mini.root, "build")
    path = mini.notebook_of("03_mini")
    built = path.read_text()
    assert "up to date" in course_says(mini.root, "build", "--check")
    path.write_text(built.replace("Return the mean.", "Return the median."))

    said = course_says(mini.root, "build", "--check", code=1)

    assert "03_mini.ipynb: stale" in said
    (removed,) = [one for one in said.splitlines() if one[:2] == "- "]
    (added,) = [one for one in said.splitlines() if one[:2] == "+ "]
    assert "median" in removed
    assert "mean" in added
    assert "median" in path.read_text()  # --check writes nothing


def test_a_new_chapter_builds_tries_and_grades(
    mini: Course, tmp_path: Path
) -> None:
    said = course_says(mini.root, "new", "16_weight_averages")
    assert "solutions/16_weight_averages/16_weight_averages.py" in said

    assert "16_weight_averages.ipynb: written" in course_says(
        mini.root, "build", "16"
    )
    said = course_says(mini.root, "try", "16", "--both", "--seeds", "2")
    assert "4 trials of center: 4 as they must be, 0 not" in said
    notebook = mini.notebook_of("16_weight_averages")
    text = notebook.read_text()
    assert "# 16 · Weight averages" in text
    answered = text.replace(
        "raise NotImplementedError()", "return x - x.mean()"
    )
    assert answered != text
    mine = tmp_path / "16_weight_averages.ipynb"
    mine.write_text(answered)
    said = course_says(
        mini.root, "grade", "16", "--from", mine, "--to", tmp_path / "report"
    )
    assert "2 of 2 points" in said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("distillation", "is no chapter's name"),
        ("16-distillation", "is no chapter's name"),
        ("03_other", "The number 03 is taken by 03_mini"),
    ],
)
def test_a_new_chapter_needs_a_name_and_a_free_number(
    mini: Course, name: str, says: str
) -> None:
    assert says in course_says(mini.root, "new", name, code=2)


def test_try_tells_right_banks_from_wrong_ones(mini: Course) -> None:
    said = course_says(mini.root, "try", "03", "mean")
    assert "2 trials of mean: 2 as they must be, 0 not" in said
    edits = mini.autograde / "03_mini" / "answers" / "mean.diff"
    median = "-return x.mean().item()\n+return x.median().item()\n"
    edits.write_text(
        edits.read_text().replace("x.sum", "x.median")
        + f"\nby_median from by_method\n{median}"
    )

    said = course_says(mini.root, "try", "03", "mean", code=1)

    assert "by_median (right, seed 1): 0 of 2 points" in said
    assert "1 not" in said


def test_work_is_filled_and_never_overwritten(mini: Course) -> None:
    course_says(mini.root, "build")
    path = mini.work / "03_mini" / "03_mini.ipynb"

    assert fill_work(mini).new == ["03_mini"]
    released = nbformat.read(mini.notebook_of("03_mini"), as_version=4)
    for mine, theirs in zip(
        nbformat.read(path, as_version=4).cells, released.cells, strict=True
    ):
        # alone, one may look up the solution; a class's notebook has none
        text, _, fold = mine.source.partition("\n<details><summary>Solution")
        assert {**mine, "source": text} == theirs
        assert bool(fold) == (mine.id in ("task-double", "task-mean"))
    assert "return x * 2**times" in path.read_text()

    path.write_text("a learner's work")
    done = fill_work(mini)
    assert done.new == done.renewed == []
    assert path.read_text() == "a learner's work"
    # not even through a link that leads nowhere, or a folder in its place
    path.unlink()
    path.symlink_to(mini.root / "moved away.ipynb")
    assert fill_work(mini).new == []
    assert not (mini.root / "moved away.ipynb").exists()


def test_lab_serves_the_chapters_and_nbgraders_extensions(mini: Course) -> None:
    course_says(mini.root, "build")
    course_says(mini.root, "release")  # by who teaches; never by `course lab`
    port = free_port(18888)
    settings = environment(activated=False)
    settings["JUPYTER_TOKEN"] = "letmein"
    with subprocess.Popen(
        [SCRIPTS / "course", "lab", "--no-browser", "--port", str(port)],
        cwd=mini.root,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert running.stdout is not None
            said = [running.stdout.readline() for _ in range(4)]
            assert said == [
                "Installed; 1 of 1 chapters are new in work/.\n",
                f"Address: http://localhost:{port}/course?token=letmein\n",
                "The page lists the chapters. Open one, run it from the top, "
                "answer, run the cell below the answer.\n",
                "To stop, press Ctrl-C twice. Your work stays in work/.\n",
            ]

            def get(path: str, sent: bytes | None = None) -> bytes:
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/{path}",
                    sent,
                    headers={"Authorization": "token letmein"},
                )
                with urllib.request.urlopen(request) as answer:
                    return bytes(answer.read())

            def ask(path: str, sent: bytes | None = None) -> Any:
                return json.loads(get(path, sent))

            assert b"0 of 2 exercises solved" in get("course")
            for place in ("reports/03_mini", "reports/..%2Fprogress"):
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    get(f"course/{place}")
            # a stranger sees the login
            home = f"http://127.0.0.1:{port}/course"
            with urllib.request.urlopen(home) as answer:
                assert "/login" in answer.url

            assert "started" in ask("api/status")
            (chapter,) = ask("api/contents")["content"]
            assert chapter["name"] == "03_mini"
            courses = ask("courses")
            assert courses["value"] == ["pytorch_training_tricks"], courses
            asked = "course_id=pytorch_training_tricks"
            (assignment,) = ask(f"assignments?{asked}")["value"]
            assert assignment["assignment_id"] == "03_mini"
            assert assignment["status"] == "fetched"  # for it lies in work/
            asked += "&assignment_id=03_mini"
            listed = ask(f"assignments/submit?{asked}", b"")["value"]
            assert "submitted" in {one["status"] for one in listed}
            (handed_in,) = mini.people.glob("exchange/*/inbound/*/*.ipynb")
            mine = mini.work / "03_mini" / "03_mini.ipynb"
            assert handed_in.read_bytes() == mine.read_bytes()
            assert ask("nbgrader_version?version=0.9.6")["success"]
        finally:
            os.killpg(running.pid, 15)
            running.stdout.close()


def test_a_port_that_is_taken(mini: Course) -> None:
    course_says(mini.root, "build")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_course(mini.root, "lab", "--no-browser", "--port", port)

    assert done.returncode == 2
    assert f"Port {port} is taken" in done.stderr


def test_a_file_that_cannot_be_read_is_not_said_to_be_unwritable(
    tmp_path: Path,
) -> None:
    given, missing = tmp_path / "to.csv", tmp_path / "class" / "page.html"

    with pytest.raises(CourseError, match=f"^{missing}: No such file"):  # noqa: SIM117
        with writing(given):
            missing.read_text()


def test_the_grader_starts_early_only_where_something_is_new(
    mini: Course,
) -> None:
    (name,) = mini.chapters()[:1]
    assert not _anything_new(mini, name)
    for room in ("submitted", "autograded"):
        (mini.people / room / "ann" / name).mkdir(parents=True)
    assert not _anything_new(mini, name)
    (mini.people / "submitted" / "bob" / name).mkdir(parents=True)
    assert _anything_new(mini, name)
