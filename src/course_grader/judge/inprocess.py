"""The stock route: the same checks inside the kernel that nbgrader started.

A grade cell's hidden-test region calls `grade`, so that `nbgrader autograde`
with nbgrader's own Execute still gives honest learners the right marks. It
trusts the kernel it runs in; marks that must not be forged come from the
out-of-process judge.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading, load_grading
from course_grader.checks import Case
from course_grader.course import CourseError, find_course
from course_grader.judge.judging import (
    Expectations,
    draw_cases,
    judge_exercise,
    reference_results,
)
from course_grader.judge.kernels import (
    ProbeRun,
    SharedRuns,
    Traced,
    read_record,
)
from course_grader.judge.report import ExerciseReport
from course_grader.kernel import plain
from course_grader.kernel.probing import load_probes, run_probe

ANSWER_FILE = "<answer>"
"""Code file name of reference and bank cells run in this process."""


class LocalProber:
    """Runs probes on a namespace of this process."""

    def __init__(
        self, probes_source: str, namespace: Mapping[str, Any]
    ) -> None:
        self.probes = load_probes(compile(probes_source, "probes.py", "exec"))
        self.namespace = namespace
        self.runs = SharedRuns()
        # what probes write stays nowhere; it goes with the prober
        self.folder = tempfile.TemporaryDirectory(prefix="probes-")

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        """Runs a probe on each case."""
        for case in cases:
            run = self.runs.known(probe, case) or self._probe(probe, case)
            self.runs.keep(probe, case, run)
            yield run

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        """Nothing: this route gives points alone."""
        return None

    def _probe(self, probe: str, case: Case) -> ProbeRun:
        """A case and an answer travel as they would between processes, so that
        both routes see the same data."""
        with contextlib.chdir(self.folder.name):
            record = run_probe(
                self.probes[probe],
                self.namespace,
                plain.decode(*plain.encode(case)),
                _is_learners_file,
            )
        data = plain.decode(*plain.encode(record.pop("data")))
        return read_record(record, data)


def _is_learners_file(name: str) -> bool:
    return name == ANSWER_FILE or "ipykernel" in name or "ipython-input" in name


def reference_namespace(grading: Grading) -> dict[str, Any]:
    """The chapter's set-up and solution cells, run in a namespace of their own."""
    namespace = setup_namespace(grading)
    for exercise in grading.chapter.exercises:
        exec(compile(exercise.source, ANSWER_FILE, "exec"), namespace)
    return namespace


def setup_namespace(grading: Grading) -> dict[str, Any]:
    """The chapter's set-up cells, run in a namespace of their own."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for _, source in grading.chapter.setup_source:
        exec(compile(source, ANSWER_FILE, "exec"), namespace)
    return namespace


def answer_namespace(grading: Grading, answer: Answer) -> dict[str, Any]:
    """What a learner's kernel holds who gives this answer."""
    namespace = setup_namespace(grading)
    source = grading.answer_cell(answer)
    with contextlib.suppress(Exception):  # as a cell that stops half-way
        exec(compile(source, ANSWER_FILE, "exec"), namespace)
    return namespace


def local_expectations(
    grading: Grading, seed: int, exercise_id: str
) -> Expectations:
    """Cases and reference results, worked out in this process."""
    prober = LocalProber(grading.probes_source, reference_namespace(grading))
    cases = draw_cases(grading, seed, [exercise_id])
    results = reference_results(prober, grading.checks_of(exercise_id), cases)
    return Expectations(seed, cases, results)


def judge_namespace(
    grading: Grading,
    exercise_id: str,
    namespace: Mapping[str, Any],
    expected: Expectations,
) -> ExerciseReport:
    """Judges an exercise by what a namespace of this process defines."""
    prober = LocalProber(grading.probes_source, namespace)
    return judge_exercise(grading, exercise_id, expected, lambda: prober, None)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing reaches stdout or stderr: not through `sys`, not through a stream
    that a log handler has kept, not through the file descriptors."""
    streams = (sys.stdout, sys.stderr)
    descriptors = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        stream.flush()
        with contextlib.suppress(AttributeError):
            stream.write = len  # type: ignore[method-assign]
    for number in descriptors:
        os.dup2(nowhere, number)
    try:
        with (
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            yield
    finally:
        for number, kept in descriptors.items():
            os.dup2(kept, number)
            os.close(kept)
        os.close(nowhere)
        for stream in streams:
            with contextlib.suppress(AttributeError):
                del stream.write


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    """Every probe call is seeded, and this process is the learner's."""
    numpy, python = np.random.get_state(), random.getstate()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            np.random.set_state(numpy)
            random.setstate(python)


@functools.cache
def _grading(chapter: str) -> Grading:
    return load_grading(find_course(), chapter)


def grade(chapter: str, exercise_id: str, namespace: dict[str, Any]) -> float:
    """Points of one exercise; what a grade cell ends in under stock nbgrader.

    Text on stderr would cost the whole cell there, so none gets out.

    Args:
        chapter: the chapter's name.
        exercise_id: the exercise.
        namespace: the learner's globals.

    Raises:
        CourseError: PyTorch sees a GPU. Probes fork, and beside one a fork can
            take no gradients.
    """
    if torch.cuda.is_available():
        raise CourseError(
            "Checks cannot run where PyTorch sees a GPU: set the environment "
            "variable CUDA_VISIBLE_DEVICES to nothing and grade again."
        )
    with _silence(), _random_state_kept():
        grading = _grading(chapter)
        expected = local_expectations(
            grading, secrets.randbelow(2**31), exercise_id
        )
        report = judge_namespace(grading, exercise_id, namespace, expected)
    return report.points
