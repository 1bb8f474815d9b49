"""The warm process: has imported what first use imports, and forks from there.

It is started by exec with a clean environment, never forked from a process
that has seen anything of the course. It runs no torch operator and no learner
code itself. One request, one answer, over the socket it was given:

    {"op": "start"} with a socket attached -> {"pid": ...}: a learner's process
    {"op": "stop", "pid": ...} -> {"status": ...}: that process and its group end
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile

from course_grader.kernel.channel import Channel, ChannelClosed
from course_grader.kernel.limits import Limits

PR_SET_PDEATHSIG = 1


def import_everything() -> None:
    """Imports what chapters and probes import on first use, so that no learner
    waits for it: the first `torch.testing.assert_close` alone brings 500 modules."""
    import matplotlib

    matplotlib.use("module://matplotlib_inline.backend_inline")
    for name in (
        "matplotlib.pyplot",
        "numpy.testing",
        "sklearn.datasets",
        "sklearn.metrics",
        "torch",
        "torch._dynamo",
        "torch.testing",
        "torch.testing._comparison",
        "torch.distributed",
        "torch.nn.parallel",
        "torch.nn.utils.parametrizations",
        "torch.optim.swa_utils",
        "torch.utils.checkpoint",
        "torch.utils.data",
        "torchinfo",
        "tqdm.auto",
        "ipywidgets",
        "course_utils",
        "course_grader.kernel.serve",
    ):
        with contextlib.suppress(ImportError):
            __import__(name)
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)


def main() -> None:
    """Serves the judge on the inherited socket whose number is argv[1]."""
    control = socket.socket(fileno=int(sys.argv[1]))
    limits = Limits(**json.loads(sys.argv[2]))
    import_everything()
    from course_grader.kernel.serve import _receive_with_fd, serve
    from course_grader.kernel.shell import make_shell

    shell = make_shell()
    channel = Channel(control)
    channel.send({"ready": os.getpid()})
    folders: dict[int, str] = {}
    while True:
        try:
            request, fd = _receive_with_fd(control)
        except (ChannelClosed, OSError):
            break
        if request["op"] == "start":
            assert fd is not None
            folder = tempfile.mkdtemp(prefix="submission-")
            pid = os.fork()
            if pid == 0:
                control.close()
                _become_learner(folder, limits)
                with contextlib.suppress(BaseException):
                    serve(socket.socket(fileno=fd), shell)
                os._exit(0)
            os.close(fd)
            folders[pid] = folder
            channel.send({"pid": pid})
        else:
            status = _stop(request["pid"], folders)
            channel.send({"status": status})
    for pid in list(folders):
        _stop(pid, folders)


def _become_learner(folder: str, limits: Limits) -> None:
    os.setsid()
    with contextlib.suppress(OSError, AttributeError):
        # dies with the warm process (Linux)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(folder)
    os.environ["HOME"] = folder
    for kind, value in (
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))
    # a file over its limit is an OSError for the learner, not a silent death
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _stop(pid: int, folders: dict[int, str]) -> int:
    """Ends a learner's process group and removes its folder."""
    status = 0
    if pid in folders:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        shutil.rmtree(folders.pop(pid), ignore_errors=True)
    return status


if __name__ == "__main__":
    main()
