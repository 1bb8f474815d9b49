"""What one submission may take. Each is a setting of the course, under
`[tool.course.limits]` in pyproject.toml."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """What one submission may take; the defaults are safe on a small machine.

    Attributes:
        cell_s: wall time of one cell, in seconds.
        submission_s: wall time of all cells of a notebook, repeats after a dead
            process included; probes have deadlines of their own.
        memory_bytes: private memory of each of its processes.
        cpu_s: processor time of each of its processes.
        file_bytes: size of one file.
        open_files: open files of each process.
    """

    cell_s: float = 60.0
    submission_s: float = 300.0
    memory_bytes: int = 6 * 2**30
    cpu_s: int = 600
    file_bytes: int = 256 * 2**20
    open_files: int = 1024

    def to_json(self) -> dict[str, float]:
        return asdict(self)
