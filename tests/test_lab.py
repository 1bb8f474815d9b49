"""Hidden checks at once: what a kernel of `course lab` is answered."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import course_says
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from mini_course import write_mini

from course_grader.course import Course
from course_grader.kernel.channel import Channel
from course_grader.lab import asking
from course_grader.lab.asking import Asking
from course_grader.lab.service import Service

SETUP = ["setup-imports", "import torch\nfrom torch import Tensor"]
RIGHT = "def mean(x):\n    return x.mean().item()\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The small course, in which all of these tests ask."""
    course = write_mini(tmp_path_factory.mktemp("lab") / "mini")
    course_says(course.root, "build")
    return course


@pytest.fixture(scope="module")
def service(lab: Course) -> Iterator[Service]:
    one = Service(lab)
    yield one
    one.close()


@pytest.fixture
def learner(service: Service, monkeypatch: pytest.MonkeyPatch) -> Asking:
    monkeypatch.setenv("JPY_SESSION_NAME", "03_mini/03_mini.ipynb")
    return Asking(service.address)


def answered(learner: Asking, source: str, *before: list[str]) -> Any:
    cells = [SETUP, *before, ["exercise-mean", source]]
    return learner.ask({"op": "check", "exercise": "mean", "cells": cells})


def test_what_hidden_checks_say_is_what_a_class_is_told(
    learner: Asking, lab: Course
) -> None:
    learner.ask({"op": "hello"})
    right = answered(learner, RIGHT)
    wrong = answered(learner, RIGHT.replace("mean()", "sum()"))
    stub = answered(learner, "def mean(x):\n    raise NotImplementedError()\n")

    assert "Mean looks right" in right["html"]
    assert "2 of 2 points" in right["html"]
    assert "0 of 1 check pass" in wrong["html"]
    assert "That is the sum." in wrong["html"]
    assert "mean(torch.tensor([" in wrong["text"]
    assert "Yours is 7 times what is right." in wrong["text"]
    assert "Nothing was handed in" in stub["text"]
    kept = (lab.work / ".course" / "progress.json").read_text()
    assert '"best": 2.0' in kept


def test_each_check_is_shown_as_it_is_judged(
    learner: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "AT_ONCE_S", 0.0)
    so_far: list[str] = []
    cell = "def double(x, times=1):\n    x *= 2**times\n    return x\n"
    asked = {
        "op": "check",
        "exercise": "double",
        "cells": [SETUP, ["exercise-double", cell]],
    }

    answer = learner.ask(asked, so_far.append)

    assert "1 of 3 checks pass" in answer["html"]
    shown = [
        (
            re.findall(r"running, (\d) of 3 so far", one),
            re.findall(
                r"<tr.*?><td>(?:<svg.*?</svg>)? ?(\w+)</td>", one, re.DOTALL
            ),
        )
        for one in so_far
        if one
    ]
    lines = ["passed", "failed", "failed"]
    assert shown == [
        (["1"], [*lines[:1], "running", "waiting"]),
        (["2"], [*lines[:2], "running"]),
        ([], lines),
    ]
    assert "all hidden checks have run" in so_far[-1]
    # the first fault comes with its case, as in the answer
    (case,) = re.findall(r"<p class=.first.*?<table>", so_far[-1], re.DOTALL)
    assert "double(torch.tensor(" in case
    assert all(part in answer["html"] for part in case.split("<table>"))
    assert case not in so_far[0]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def mean(x:\n", "Your cell stopped with SyntaxError"),
        ("def mean(x):\n    while True: pass\n", "did not answer within"),
        ("while True: pass\n", "did not finish within"),
        ("print('x' * 100_000_000)\n" + RIGHT, "passed"),
        ("import os\nos._exit(3)\n", "ended the whole process"),
        ("helper = 1\n", "Nothing was handed in"),
    ],
)
def test_bad_cells_get_a_sentence(
    learner: Asking, source: str, said: str
) -> None:
    assert said in answered(learner, source)["text"]


def test_a_killed_grading_process_is_replaced(
    learner: Asking, service: Service
) -> None:
    answered(learner, RIGHT)
    assert service.process is not None
    os.killpg(service.process.process.pid, signal.SIGKILL)

    assert "looks right" in answered(learner, RIGHT)["html"]


def test_two_notebooks_at_once_and_a_renamed_one(
    learner: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "03_mini/my own name.ipynb")
    heard: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda text=text: heard.append(answered(learner, text))
        )
        for text in (RIGHT, RIGHT.replace("mean()", "sum()"))
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert sorted("looks right" in one["html"] for one in heard) == [
        False,
        True,
    ]


def test_cells_of_ones_own_come_along_if_they_are_used(
    learner: Asking,
) -> None:
    helper = ["own-1", "def centre(x):\n    return scale * x.mean()\n"]
    deeper = ["own-2", "scale = 1\n"]
    other = ["own-3", "while True: pass\n"]
    source = "def mean(x):\n    return centre(x).item()\n"

    told = answered(learner, source, deeper, helper, other)

    assert "looks right" in told["html"]


def test_a_notebook_that_is_none_of_the_course_is_not_answered(
    learner: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "Untitled.ipynb")
    cells = [["a", "x = 1"], ["b", "with visible_check('mean'): pass"]]
    told = learner.ask({"op": "check", "exercise": "mean", "cells": cells})
    assert told == {"text": ""}


class Shell:
    """What IPython gives an extension."""

    def __init__(self) -> None:
        self.registered: list[str] = []
        self.events = self

    def register(self, event: str, _: Any) -> None:
        self.registered.append(event)


@pytest.mark.parametrize(
    "settings",
    [{}, {asking.ADDRESS: "/nowhere", "NBGRADER_EXECUTION": "validate"}],
)
def test_nothing_of_it_runs_elsewhere(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (asking.ADDRESS, "NBGRADER_EXECUTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    shell = Shell()

    asking.load_ipython_extension(shell)

    assert shell.registered == []


class Ran:
    """What IPython tells of a visible check that ran to its end."""

    class info:
        raw_cell = 'with visible_check("mean"):\n    pass\n'

    error_before_exec = error_in_exec = None


def shown_by(one: Asking) -> list[tuple[str, bool]]:
    """The texts that a visible check shows below its cell, and whether each takes
    the place of the one before."""
    InteractiveShell.instance()
    with capture_output() as captured:
        one.after(Ran)
    shown = captured._outputs
    assert len({one["transient"]["display_id"] for one in shown}) <= 1
    return [(one["data"]["text/plain"], one["update"]) for one in shown]


def test_without_the_process_a_sentence_takes_its_place() -> None:
    ((said, _),) = shown_by(Asking("/nowhere/socket"))
    assert "cannot be reached" in said


@pytest.mark.parametrize("late", [False, True])
def test_an_answer_that_takes_long_is_announced_and_replaces_that(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "AT_ONCE_S", 0.0 if late else 60.0)
    announced = threading.Event()
    html: list[str] = []
    show = asking._Below.show

    def noted(below: Any, text: str, given: str = "") -> None:
        show(below, text, given)
        html.append(given)
        announced.set()

    monkeypatch.setattr(asking._Below, "show", noted)
    with socket.create_server(
        str(tmp_path / "socket"), family=socket.AF_UNIX
    ) as server:

        def serve() -> None:
            channel = Channel(server.accept()[0])
            channel.receive(60)
            if late:
                announced.wait(60)
                channel.send({"running": True, "html": "<b>0 of 1 so far</b>"})
            channel.send({"text": "1 of 1", "html": "<b>1 of 1</b>"})

        thread = threading.Thread(target=serve)
        thread.start()
        said = shown_by(Asking(str(tmp_path / "socket")))
        thread.join()

    running = "The hidden checks are running…"
    waiting = [(running, False), (running, True)]
    assert said == [*(waiting if late else []), ("1 of 1", late)]
    assert html == [
        *(["", "<b>0 of 1 so far</b>"] if late else []),
        "<b>1 of 1</b>",
    ]
