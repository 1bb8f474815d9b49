"""The control group of one room (cgroup v2).

It counts what a room takes with all that the kernel keeps for it: page tables,
sockets, pipes, pages that no process has any more. It bounds the room's processes,
and gives all of them together one share of the processors.

The folder in which rooms get theirs is `judge/delegated.py`'s to find. It comes as
an open descriptor: there is no /sys in the sandbox, and a learner's process has
neither.
"""

from __future__ import annotations

import contextlib
import os
import time

from course_grader.kernel.limits import Limits

_LOOKS, _LOOK_S = 50, 0.02


class RoomGroup:
    """A room's group, as its watcher holds it."""

    def __init__(self, parent: int, limits: Limits) -> None:
        """Makes it.

        Args:
            parent: descriptor of the folder in which rooms get theirs.
            limits: of the room.

        Raises:
            OSError: it cannot be had.
        """
        self.parent, self.name = parent, f"room-{os.getpid()}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.name, 0o755, dir_fd=parent)
        held = limits.memory_bytes + limits.disk_bytes + limits.shm_bytes
        write(parent, f"{self.name}/memory.max", str(held))
        # process 1 of the room is ours
        write(parent, f"{self.name}/pids.max", str(limits.processes + 1))
        # a room that is half ended would be of no use
        write(parent, f"{self.name}/memory.oom.group", "1")
        with contextlib.suppress(OSError):  # where the kernel can swap
            write(parent, f"{self.name}/memory.swap.max", "0")

    def passed(self) -> str:
        """The limit for which the machine has ended the room, by its name; empty
        if it has not."""
        events = _read(self.parent, f"{self.name}/memory.events")
        counts = dict(line.split() for line in events.splitlines())
        return "memory_bytes" if int(counts.get("oom_kill", 0)) else ""

    def remove(self) -> None:
        """Takes the group away, once all that was in it is gone."""
        for _ in range(_LOOKS):
            try:
                os.rmdir(self.name, dir_fd=self.parent)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(_LOOK_S)
            else:
                return


def enter(parent: int, name: str) -> None:
    """Puts this process into a room's group.

    Raises:
        OSError: it cannot.
    """
    write(parent, f"{name}/cgroup.procs", "0")


def write(parent: int, path: str, value: str) -> None:
    """Writes a setting, in the one piece that the kernel wants."""
    number = os.open(path, os.O_WRONLY, dir_fd=parent)
    try:
        os.write(number, value.encode())
    finally:
        os.close(number)


def _read(parent: int, path: str) -> str:
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDONLY, dir_fd=parent)
        with os.fdopen(number) as file:
            return file.read()
    return ""
