"""What one submission may take. Each is a setting of the course, under
`[limits]` in course.toml."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

GIB = 2**30
CUT_HERE = "\n[output cut here: too long]\n"
"""Where a cell wrote more than it may."""


@dataclass(frozen=True)
class Limits:
    """What one submission may take; the defaults are safe on a small machine.

    Those marked * hold in the sandbox alone: outside of it nothing can count
    what belongs to a submission.

    Attributes:
        cell_s: wall time of one cell, in seconds.
        submission_s: wall time of all that a notebook's code does: cells, probes,
            repeats after a dead process.
        grader_cpu_s: processor time that the grader itself spends on one
            submission: reading, comparing, repairing, writing its page.
        grader_bytes: memory that it takes for that, on top of what it has.
        lifetime_s: * wall time of one of its learner processes, probes and
            waiting included: the last resort.
        memory_bytes: private memory of each of its processes; * also of all of
            them together, shared mappings included.
        cpu_s: processor time of each of its processes.
        file_bytes: size of one file.
        open_files: open files of each process.
        processes: * processes and threads that live at once.
        sockets: * sockets that are open at once, in all of its processes.
        disk_bytes: * its folder and /tmp together; they are held in memory.
        files: * number of files and folders in them.
        shm_bytes: * /dev/shm, held in memory.
        outputs: outputs of one cell.
        output_chars: text of one cell's streams, and of one other output.
        figure_chars: a figure or a page of HTML, as notebooks hold it.
        notebook_chars: all outputs of a notebook.
    """

    cell_s: float = 60.0
    submission_s: float = 300.0
    grader_cpu_s: int = 60
    grader_bytes: int = 2 * GIB
    lifetime_s: float = 3600.0
    memory_bytes: int = 6 * GIB
    cpu_s: int = 600
    file_bytes: int = 256 * 2**20
    open_files: int = 1024
    processes: int = 256
    sockets: int = 1024
    disk_bytes: int = 512 * 2**20
    files: int = 20_000
    shm_bytes: int = 512 * 2**20
    outputs: int = 100
    output_chars: int = 200_000
    figure_chars: int = 4_000_000
    notebook_chars: int = 20_000_000

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    def as_toml(self) -> str:
        """A `course.toml` that says these limits and nothing else."""
        # numbers and booleans are written alike in JSON and TOML
        lines = [f"{k} = {json.dumps(v)}" for k, v in asdict(self).items()]
        return "\n".join(["[limits]", *lines, ""])


def worst_case(limits: Limits, workers: int, bounded: bool) -> str:
    """The most that grading can take of the machine, in words.

    Args:
        limits: of each submission.
        workers: submissions that are graded at once.
        bounded: each submission has a control group.
    """
    each = limits.memory_bytes + limits.disk_bytes + limits.shm_bytes
    return (
        f"At most {workers} {'submission' if workers == 1 else 'submissions'} "
        f"at once, each with {limits.memory_bytes / GIB:g} GiB of memory, "
        f"{limits.disk_bytes / GIB:g} GiB of files and "
        f"{limits.shm_bytes / GIB:g} GiB of shared memory, which are held in "
        f"memory too, and {limits.processes} processes: "
        f"{workers * each / GIB:g} GiB and {workers * limits.processes} "
        "processes in all. Its code may run for "
        f"{limits.submission_s:g} seconds. The grader itself takes at most "
        f"{limits.grader_bytes / GIB:g} GiB more for each. "
        + (_BOUNDED if bounded else _NOT_BOUNDED)
    )


_BOUNDED = (
    "Each submission has a control group, which counts what the kernel keeps for "
    "it, too, and gets one share of the processors."
)
_NOT_BOUNDED = (
    "There is no control group to be had here: what the kernel keeps for open "
    "sockets and pipes is bounded by their number alone, and memory of several "
    "processes together is looked at ten times a second. docs/sandbox.md says how "
    "to get one."
)
