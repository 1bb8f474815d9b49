"""What a busy machine has taken from a learner's processes.

A limit in seconds is there for code that hangs or takes too long. Where other work
has the processors, right code is late, too: time in which it was ready to run and
did not get to is no time of its own. Linux counts that time for each thread, in
`/proc/PID/task/TID/schedstat`; elsewhere it is taken for none.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MOST = 2
"""More time that is given at most, as a multiple of a limit: threads of one process
keep each other waiting, too."""
LEAST_S = 0.2
"""Less than that is no reason to wait."""


def waited_s(sandbox: int, pid: int) -> float:
    """The longest that a thread of a learner's process, or of one that it has
    started, has waited for a processor so far, in seconds.

    Args:
        sandbox: the process that the warm process was started as.
        pid: the learner's process, by the number that the warm process knows.
    """
    return max(
        (
            _thread_waited_s(thread)
            for top in _below(sandbox)
            if _number(top) == pid
            for one in (top, *_below(top))
            for thread in _listed(Path(f"/proc/{one}/task"))
        ),
        default=0.0,
    )


class Patience:
    """How much longer than their limits waits for one learner's process may take."""

    def __init__(self, sandbox: int, pid: int, deadline: float) -> None:
        """For a process that is named as in `waited_s`.

        Args:
            sandbox, pid: the process.
            deadline: by `time.monotonic`, for all waits.
        """
        self.sandbox, self.pid, self.deadline = sandbox, pid, deadline
        self.used_s = 0.0

    def beyond(self, limit_s: float) -> Callable[[float], float]:
        """For a wait of `limit_s`: a function that is told by how much its end has
        passed, and says for how many seconds to go on; 0 if there is no reason."""
        left = MOST * limit_s

        def more_s(late_s: float) -> float:
            nonlocal left
            # a machine that stood still wakes everybody late
            waited = waited_s(self.sandbox, self.pid) + late_s
            more = min(
                waited - self.used_s, left, self.deadline - time.monotonic()
            )
            self.used_s = max(self.used_s, waited)
            left -= max(more, 0.0)
            return more if more > LEAST_S else 0.0

        return more_s


def _below(pid: int) -> Iterator[int]:
    """All processes that have come from one."""
    for thread in _listed(Path(f"/proc/{pid}/task")):
        with contextlib.suppress(OSError):
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from _below(int(child))


def _number(pid: int) -> int:
    """A process's number in the sandbox, or here if it is in none."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[1:3][-1])
    return 0


def _listed(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _thread_waited_s(thread: Path) -> float:
    with contextlib.suppress(OSError, LookupError, ValueError):
        return int((thread / "schedstat").read_text().split()[1]) / 1e9
    return 0.0
