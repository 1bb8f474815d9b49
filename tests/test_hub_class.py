"""The class server with a whole class: 60 learners hand in within a minute, and what one
learner with a torch kernel takes. Figures go to build/hub/; docs/server.md has those of
one machine."""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles

import pytest
from hub import (
    COURSE_ID,
    RIGHT,
    ROOT,
    Hub,
    Person,
    end_everything,
    needed,
    start_hub,
    until,
)

pytestmark = pytest.mark.slow

LEARNERS = [f"tt-{number:02}" for number in range(60)]
WITHIN_S = 60.0
FIGURES = ROOT / "build" / "hub"


@pytest.fixture(scope="module", params=["folder", "ngshare"])
def exchange(request: pytest.FixtureRequest) -> str:
    """Of `[hub]`."""
    return str(request.param)


@pytest.fixture(scope="module")
def hub(exchange: str) -> Iterator[Hub]:
    more = f'exchange = "{exchange}"\n'
    needed(more)
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    made = start_hub(folder, LEARNERS, more)
    yield made
    end_everything(made)


def row(what: str, seconds: list[float]) -> str:
    """A line of the table of latencies."""
    cuts = quantiles(seconds, n=20)
    return f"| {what} | {cuts[9]:.2f} | {cuts[18]:.2f} | {max(seconds):.2f} |\n"


def room_bytes(name: str) -> int:
    """What a learner's processes take, pages that several share counted in parts:
    files of torch are in memory once, whoever uses them."""
    taken = 0
    for one in Path("/proc").glob("[0-9]*"):
        try:
            environment = (one / "environ").read_bytes()
            rollup = (one / "smaps_rollup").read_text()
        except OSError:
            continue
        if f"JUPYTERHUB_USER={name}\0".encode() in environment:
            (pss,) = [x for x in rollup.splitlines() if x.startswith("Pss:")]
            taken += 1024 * int(pss.split()[1])
    return taken


def test_sixty_hand_in_within_a_minute(hub: Hub, exchange: str) -> None:
    hub.as_grader("release")
    lock = threading.Lock()
    took: dict[str, list[float]] = {}

    def timed(what: str, started: float) -> None:
        with lock:
            took.setdefault(what, []).append(time.monotonic() - started)

    def begin(name: str) -> Person:
        started = time.monotonic()
        one = hub.person(name)
        timed("log in", started)
        started = time.monotonic()
        one.start()
        timed("server starts", started)
        one.write(RIGHT)
        return one

    with ThreadPoolExecutor(4) as pool:
        class_ = list(pool.map(begin, LEARNERS))

    rng = random.Random(0)
    when = {one.name: rng.uniform(0, WITHIN_S) for one in class_}
    start = time.monotonic()

    def hand_in(one: Person) -> None:
        time.sleep(max(0.0, start + when[one.name] - time.monotonic()))
        started = time.monotonic()
        one.assignments("submit")
        timed("Submit", started)
        nothing = f"{one.name} gets no feedback"
        until(one.has_feedback, nothing, 1200, every_s=10)
        timed("until feedback", started)

    with ThreadPoolExecutor(len(class_)) as pool:
        list(pool.map(hand_in, class_))

    marks = hub.points()
    assert marks == dict.fromkeys(LEARNERS, 5.0)
    inbound = hub.course / "class" / "exchange" / COURSE_ID / "inbound"
    handed_in = [one.partition("+")[0] for one in os.listdir(inbound)]
    assert sorted(handed_in) == LEARNERS
    assert not (hub.course / "class" / "versions" / LEARNERS[0]).exists()
    FIGURES.mkdir(parents=True, exist_ok=True)
    table = (
        "| 60 learners | median s | 95 % s | longest s |\n|---|--:|--:|--:|\n"
    )
    table += "".join(row(what, took[what]) for what in took)
    (FIGURES / f"latencies-{exchange}.md").write_text(table)
    if exchange == "folder":
        memory_of_kernels(class_)


def memory_of_kernels(class_: list[Person]) -> None:
    """What learners' servers take with a torch kernel open, in `build/hub`."""
    idle = room_bytes(LEARNERS[0])
    before = available()
    for one in class_[:20]:
        assert (
            one.run("import torch; print(torch.ones(2).sum().item())")
            == "2.0\n"
        )
    after = available()
    with_torch = room_bytes(LEARNERS[0])
    assert with_torch > idle
    (FIGURES / "memory.md").write_text(
        f"one learner, idle: {idle / 2**20:.0f} MiB\n"
        f"one learner with a torch kernel: {with_torch / 2**20:.0f} MiB\n"
        "the machine, for each torch kernel more: "
        f"{(before - after) / 20 / 2**20:.0f} MiB\n"
    )


def available() -> int:
    """Bytes that the machine has left."""
    text = Path("/proc/meminfo").read_text()
    (line,) = [x for x in text.splitlines() if x.startswith("MemAvailable:")]
    return 1024 * int(line.split()[1])
