"""What the tests of the chapters' statements share."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _needs_a_gpu(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("there is no NVIDIA GPU")


@pytest.fixture
def waits() -> Callable[[Callable[[], object]], bool]:
    """Whether a call returns only when the GPU has done what it was given before:
    here, to stand still for a while."""

    def waits(call: Callable[[], object]) -> bool:
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000_000)
        done = torch.cuda.Event()
        done.record()
        call()
        waited = done.query()
        torch.cuda.synchronize()
        return waited

    return waits


@pytest.fixture
def python() -> Callable[..., str]:
    """What a program prints that is alone with the GPU, its errors included."""

    def run(program: str, **settings: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout.strip()

    return run


@pytest.fixture(autouse=True)
def _names_its_sentences(
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    """What a test shows stands in its report: where it fails, `make test` and
    `make release-check` name the sentences."""
    for one in re.split(r"\n\s*\n", inspect.getdoc(request.function) or ""):
        record_property("says", " ".join(one.split()))


@pytest.fixture(autouse=True)
def _same_start() -> Iterator[None]:
    """Every test draws the same numbers, on one thread, alone or with others."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)
