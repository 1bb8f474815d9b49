"""What the tests of the chapters' statements share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

import pytest
import torch


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
