"""The sandbox: what a submission cannot reach, what it may take, what works
inside, and that whoever is graded after an attack gets full marks."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from mini_course import ROOT, write_mini

from course_grader import cli
from course_grader.chapter.build import build_chapter
from course_grader.course import Course, CourseError
from course_grader.grading.submission import (
    Graded,
    Prepared,
    grade_submission,
    prepare,
)
from course_grader.judge import kernels, sandbox
from course_grader.judge.kernels import CellRun, Kernel
from course_grader.judge.report import Verdict
from course_grader.judge.warming import WarmProcess
from course_grader.kernel.limits import Limits, worst_case

WHY_NOT = sandbox.missing()
needs_sandbox = pytest.mark.skipif(
    # a machine that runs CI must have it: there the tests fail instead
    WHY_NOT is not None and os.environ.get("CI") != "true",
    reason=str(WHY_NOT),
)
MIB = 2**20
TIGHT = Limits(
    cell_s=60,
    memory_bytes=2000 * MIB,
    processes=80,
    open_files=128,
    sockets=100,
    file_bytes=64 * MIB,
    disk_bytes=48 * MIB,
    files=200,
    shm_bytes=32 * MIB,
)
HONEST = {
    "double": "def double(x, times=1):\n"
    "    if times < 0:\n"
    "        raise ValueError\n"
    "    return x * 2**times\n",
    "mean": "def mean(x):\n    return float(x.mean())\n",
}
ERRNO = """\
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def tried(result):
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return write_mini(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def warm(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WarmProcess]:
    """Started by a process that has something to hide: a variable, and a file
    that it has left open for its children."""
    path = tmp_path_factory.mktemp("grader") / "gradebook"
    with pytest.MonkeyPatch.context() as patch, path.open("w") as file:
        patch.setenv("COURSE_TEST_SECRET", "geheim")
        os.set_inheritable(file.fileno(), True)
        with WarmProcess(TIGHT) as process:
            yield process


@pytest.fixture(scope="module")
def prepared(course: Course, warm: WarmProcess) -> Prepared:
    return prepare(course, warm, "03_mini", 1)


def notebook(course: Course, *cells: str, **answers: str) -> bytes:
    """A submission with honest answers but for those given, and cells that the
    learner has added before the first exercise."""
    released = build_chapter(course, "03_mini")[2]
    for cell in released.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in HONEST:
            cell.source = answers.get(grade_id, HONEST[grade_id])
    first = next(
        number
        for number, cell in enumerate(released.cells)
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "double"
    )
    for source in reversed(cells):
        released.cells.insert(first, nbformat.v4.new_code_cell(source))
    return nbformat.writes(released).encode()


def points(graded: Graded) -> dict[str, float]:
    return {one.exercise: one.points for one in graded.report.exercises}


@pytest.fixture
def honest_after(
    course: Course, warm: WarmProcess, prepared: Prepared
) -> Iterator[None]:
    """Whoever is graded after the test gets full marks."""
    yield
    graded = grade_submission(warm, prepared, notebook(course))
    assert points(graded) == {"double": 3, "mean": 2}


def shown(run: CellRun) -> str:
    """All text of a cell's outputs."""
    return "".join(
        str(one.get("text", "")) + str(one.get("evalue", ""))
        for one in run.outputs
    ).strip()


def inside(warm: WarmProcess, source: str) -> str:
    """What a cell prints in a submission of its own."""
    with Kernel(warm) as kernel:
        run = kernel.run_cell(source, "c")
    assert run.ok, run.outputs or run.died
    return shown(run)


def processes_with(mark: str) -> list[str]:
    """Processes of this machine that carry `mark` in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found


# ---------------------------------------------------------- what it sees


@needs_sandbox
def test_no_file_of_the_course_or_of_the_instructor(
    warm: WarmProcess, course: Course, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    files = [
        ROOT / "pyproject.toml",
        ROOT / "src" / "course_grader" / "cli.py",
        ROOT / "solutions",
        ROOT / "autograde",
        course.root / "autograde" / "03_mini" / "hidden_tests.py",
        course.settings_file,
        tmp_path / "secret",
        "/etc/shadow",
        "/run",
        "/sys",
        "/var",
    ]
    seen = inside(
        warm,
        "import os\n"
        f"print([p for p in {[str(one) for one in files]!r}"
        " if os.path.lexists(p)])",
    )
    homes = inside(
        warm,
        "import os, sys\n"
        "def outside_python(top):\n"
        "    keep = (sys.prefix, sys.base_prefix)\n"
        "    for folder, folders, files in os.walk(top):\n"
        "        folders[:] = [d for d in folders if\n"
        "            os.path.join(folder, d) not in keep]\n"
        "        yield from (os.path.join(folder, f) for f in files)\n"
        f"print([f for top in ('/root', '/home', {str(Path.home())!r},"
        f" {str(ROOT)!r}) for f in outside_python(top)])",
    )
    rooms = inside(
        warm,
        "import course_grader, os\n"
        "print(sorted(os.listdir(course_grader.__path__[0])))",
    )

    assert seen == "[]"
    assert homes == "[]"
    assert "kernel" in rooms
    assert "judge" not in rooms


@needs_sandbox
def test_nothing_but_its_own_folders_can_be_written(warm: WarmProcess) -> None:
    told = inside(
        warm,
        "import os\n"
        "written = []\n"
        "for folder, folders, _ in os.walk('/'):\n"
        "    if folder.count('/') > 2 or folder == '/proc':\n"
        "        folders.clear()\n"
        "    try:\n"
        "        open(os.path.join(folder, 'x'), 'w').close()\n"
        "    except OSError:\n"
        "        continue\n"
        # an environment in /tmp lies in empty folders of the submission's own
        "    if not (folder + '/').startswith('/tmp/') or folder == '/tmp':\n"
        "        written.append(folder)\n"
        "print(sorted(written), os.getcwd())",
    )

    assert told == "['/dev/shm', '/home/learner', '/tmp'] /home/learner"


@needs_sandbox
def test_no_environment_descriptor_or_terminal_of_the_grader(
    warm: WarmProcess,
) -> None:
    environment = inside(
        warm,
        "import os, glob\n"
        "print(dict(os.environ))\n"
        "for name in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try:\n"
        "        print(open(name).read())\n"
        "    except OSError:\n"
        "        pass",
    )
    files = inside(
        warm,
        "import os\n"
        "for n in os.listdir('/proc/self/fd'):\n"
        "    try:\n"
        "        print(os.readlink(f'/proc/self/fd/{n}').partition(':')[0])\n"
        "    except OSError:\n"
        "        pass  # the listing's own",
    ).split()
    terminal = inside(
        warm,
        "try:\n    open('/dev/tty')\nexcept OSError as e:\n    print(e.errno)",
    )

    assert "geheim" not in environment
    assert sorted(files) == ["/dev/null"] * 3 + ["socket"]
    assert terminal == "6"  # ENXIO


@needs_sandbox
def test_no_other_process_is_there_and_kill_harms_nobody(
    warm: WarmProcess, honest_after: None
) -> None:
    with Kernel(warm) as one, Kernel(warm) as other:
        other.run_cell("x = 7", "c")
        seen = shown(
            one.run_cell(
                "import os\n"
                "print([int(n) for n in os.listdir('/proc') if n.isdigit()],"
                " os.getpid(), os.getppid())",
                "c",
            )
        )
        attack = one.run_cell(
            "import os\n"
            "for pid in (-1, 1):\n"
            "    try:\n"
            "        os.kill(pid, 9)\n"
            "    except OSError as e:\n"
            "        pass\n"
            "for pid in range(3, 400):\n"
            "    try:\n"
            "        os.kill(pid, 9)\n"
            "        print('killed', pid)\n"
            "    except ProcessLookupError:\n"
            "        pass",
            "c",
        )
        after = shown(other.run_cell("print(x)", "c"))

    assert seen == "[1, 2] 2 0"
    assert attack.ok
    assert shown(attack) == ""
    assert after == "7"


@needs_sandbox
def test_submissions_do_not_see_each_others_folders(warm: WarmProcess) -> None:
    # where the Python environment itself lies in /tmp, the way to it shows
    own = [
        path.parts[2]
        for path in map(Path, {sys.prefix, sys.base_prefix})
        if path.parts[:2] == ("/", "tmp")
    ]
    with Kernel(warm) as one, Kernel(warm) as other:
        for kernel in (one, other):
            told = shown(
                kernel.run_cell(
                    "import os\n"
                    "places = ['.', '/tmp', '/dev/shm']\n"
                    f"own = {own!r}\n"
                    "print([[f for f in os.listdir(p) if f not in own] "
                    "for p in places])\n"
                    "for p in places:\n"
                    "    open(os.path.join(p, 'mine'), 'w').write('x')",
                    "c",
                )
            )
            assert told == "[[], [], []]"
    assert not list(Path("/dev/shm").glob("mine"))
    assert not list(Path("/tmp").glob("mine"))


# ---------------------------------------------------------- the network


@needs_sandbox
def test_no_network_and_no_socket_of_the_machine(
    warm: WarmProcess, tmp_path: Path
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        abstract.bind(f"\0course-test-{os.getpid()}")
        abstract.listen()
        path = f"/tmp/course-test-{os.getpid()}"
        named.bind(path)
        named.listen()
        try:
            told = inside(
                warm,
                "import socket\n"
                "def tried(family, kind, address):\n"
                "    try:\n"
                "        with socket.socket(family, kind) as s:\n"
                "            s.settimeout(3)\n"
                "            s.connect(address)\n"
                "            s.send(b'x')\n"
                "        return 'sent'\n"
                "    except OSError as e:\n"
                "        return type(e).__name__\n"
                "i, u, t = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM\n"
                f"print(tried(i, t, {tcp.getsockname()!r}))\n"
                "print(tried(i, t, ('192.0.2.1', 80)))\n"
                f"print(tried(u, t, {abstract.getsockname()!r}))\n"
                f"print(tried(u, t, {path!r}))\n"
                f"print(tried(i, socket.SOCK_DGRAM, {udp.getsockname()!r}))\n"
                "print(tried(40, t, (2, 80)))  # vsock\n",
            ).split()
        finally:
            os.unlink(path)
        with pytest.raises(BlockingIOError):
            udp.recv(1)

    assert told[:4] == [
        "ConnectionRefusedError",
        "OSError",
        "ConnectionRefusedError",
        "FileNotFoundError",
    ]
    assert told[5] == "OSError"


@needs_sandbox
def test_its_own_loopback_and_names_work(warm: WarmProcess) -> None:
    told = inside(
        warm,
        "import socket\n"
        "with socket.create_server(('localhost', 0)) as s, "
        "socket.create_connection(s.getsockname()) as c:\n"
        "    print('connected')\n"
        "print(socket.gethostbyname(socket.gethostname()))",
    )

    assert told.split() == ["connected", "127.0.0.1"]


# ---------------------------------------------------------- the kernel


@needs_sandbox
@pytest.mark.parametrize(
    ("attack", "answers"),
    [
        ("libc.unshare(0x10000000)", "EPERM"),
        ("libc.unshare(0x20000)", "EPERM"),
        ("libc.setns(0, 0)", "EPERM"),
        ("libc.syscall(56, 0x10000011, 0, 0, 0, 0)", "EPERM"),
        ("libc.syscall(435, 0, 0)", "ENOSYS"),
        ("libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)", "EPERM"),
        ("libc.umount2(b'/proc', 2)", "EPERM"),
        ("libc.chroot(b'/tmp')", "EPERM"),
        ("libc.ptrace(0, 0, None, None)", "EPERM"),
        ("libc.process_vm_readv(1, None, 0, None, 0, 0)", "EPERM"),
        ("libc.process_vm_writev(1, None, 0, None, 0, 0)", "EPERM"),
        ("libc.syscall(425, 8, None)", "ENOSYS"),
        ("libc.syscall(321, 0, None, 0)", "EPERM"),
        ("libc.syscall(323, 0)", "EPERM"),
        ("libc.syscall(298, None, 0, -1, -1, 0)", "EPERM"),
        ("libc.syscall(246, 0, 0, None, 0)", "EPERM"),
        ("libc.init_module(None, 0, b'')", "EPERM"),
        ("libc.syscall(438, 0, 0, 0)", "EPERM"),
        ("libc.syscall(500)", "ENOSYS"),
        ("libc.syscall(0x40000000 + 39)", "ENOSYS"),
        ("libc.sethostname(b'x', 1)", "EPERM"),
        ("libc.syscall(319, b'x', 0)", "ENOSYS"),
        ("libc.shmget(0, 4096, 0o1600)", "ENOSYS"),
        ("libc.syscall(240, b'x', 66, 384, None)", "ENOSYS"),
        ("libc.syscall(206, 1, None)", "ENOSYS"),
        ("libc.syscall(278, 0, None, 0, 0)", "ENOSYS"),
        ("libc.syscall(216, 0, 0, 0, 0, 0)", "ENOSYS"),
        ("libc.inotify_init()", "EPERM"),
        ("libc.inotify_init1(0)", "EPERM"),
        ("libc.syscall(317, 1, 8, None)", "EPERM"),
    ],
)
@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the numbers are x86_64's"
)
def test_calls_that_leave_sandboxes_are_refused(
    warm: WarmProcess, attack: str, answers: str
) -> None:
    assert inside(warm, f"{ERRNO}print(tried({attack}))") == answers


@needs_sandbox
def test_privileges_are_gone_for_good(warm: WarmProcess) -> None:
    told = inside(
        warm,
        "import os\n"
        "lines = dict(l.split(':\\t', 1) for l in open('/proc/self/status'))\n"
        "print([int(lines[c], 16) for c in"
        " ('CapPrm', 'CapEff', 'CapBnd', 'CapAmb')],"
        " lines['NoNewPrivs'].strip(), os.getuid())\n"
        "try:\n    open('/proc/1/mem', 'rb')\n"
        "except OSError as e:\n    print(e.errno)",
    )

    assert told.splitlines() == ["[0, 0, 0, 0] 1 1000", "13"]


@needs_sandbox
def test_keys_do_not_cross(warm: WarmProcess) -> None:
    told = inside(
        warm,
        f"{ERRNO}"
        "import platform\n"
        "add, request, control = {'x86_64': (248, 249, 250)}.get(\n"
        "    platform.machine(), (217, 218, 219))\n"
        "print(tried(libc.syscall(add, b'user', b'k', b'v', 1, -3)),\n"
        "      tried(libc.syscall(request, b'user', b'k', None, -3)),\n"
        "      tried(libc.syscall(control, 0, -3, 0)),\n"
        "      repr(open('/proc/keys').read()))",
    )

    assert told == "EPERM EPERM EPERM ''"


# ---------------------------------------------------------- taking too much


EXHAUSTION = {
    "disk": (
        "try:\n"
        "    for n in range(10**6):\n"
        "        open(f'f{n}', 'wb').write(bytes(10**7))\n"
        "except OSError as e:\n    print(e.errno, n)",
        "28 5",
    ),
    "files": (
        "try:\n"
        "    for n in range(10**6):\n"
        "        open(f'/tmp/f{n}', 'wb').close()\n"
        "except OSError as e:\n    print(e.errno, n <= 200)",
        "28 True",
    ),
    "shared memory": (
        "try:\n"
        "    for n in range(10**6):\n"
        "        open(f'/dev/shm/f{n}', 'wb').write(bytes(10**7))\n"
        "except OSError as e:\n    print(e.errno, n)",
        "28 3",
    ),
    "one file": (
        "try:\n"
        "    open('f', 'wb').truncate(2**40)\n"
        "except OSError as e:\n    print(e.errno)",
        "27",
    ),
    "descriptors": (
        "try:\n"
        "    kept = [open('/dev/null') for _ in range(10**6)]\n"
        "except OSError as e:\n    print(e.errno)",
        "24",
    ),
    "forks": (
        "import os, time\n"
        "try:\n"
        "    for n in range(10**6):\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(1000)\n"
        "except OSError as e:\n    print(e.errno, n < 80)",
        "11 True",
    ),
    "threads": (
        "import threading, time\n"
        "try:\n"
        "    for n in range(10**6):\n"
        "        threading.Thread(target=time.sleep, args=(9,), daemon=True)"
        ".start()\n"
        "except RuntimeError:\n    print(n < 80)",
        "True",
    ),
    "memory of one process": (
        "try:\n    kept = [bytearray(10**8) for _ in range(10**4)]\n"
        "except MemoryError:\n    print('no')",
        "no",
    ),
    "memory that no process has": (
        "import mmap\n"
        "try:\n    mmap.mmap(-1, 4096)\n"
        "except PermissionError as e:\n    print(e.errno)",
        "1",
    ),
    "the same by a device": (
        "import mmap, os\n"
        "try:\n    mmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)\n"
        "except OSError as e:\n    print(e.errno, open('/dev/zero', 'rb').read(2))",
        "19 b'\\x00\\x00'",
    ),
    "page tables": (
        "import mmap\n"
        "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000\n"
        "try:\n"
        "    mmap.mmap(-1, 400 * 2**30, flags=flags, prot=mmap.PROT_READ)\n"
        "except OSError as e:\n    print(e.errno)",
        "12",
    ),
    "terminals": (
        "import os\n"
        "try:\n"
        "    kept = [os.open('/dev/ptmx', os.O_RDWR) for _ in range(100)]\n"
        "except OSError as e:\n    print(e.errno)",
        "28",
    ),
    "recursion": (
        "def f():\n    f()\n"
        "try:\n    f()\nexcept RecursionError:\n    print('no')",
        "no",
    ),
}


@needs_sandbox
@pytest.mark.parametrize("name", EXHAUSTION)
def test_what_is_too_much_is_refused(
    warm: WarmProcess, name: str, honest_after: None
) -> None:
    source, told = EXHAUSTION[name]

    assert inside(warm, source) == told


@needs_sandbox
@pytest.mark.parametrize(
    ("attack", "verdict"),
    [
        (
            "import os, time\n"
            "for _ in range(12):\n"
            "    if os.fork() == 0:\n"
            "        kept = b'x' * 300_000_000\n"
            "        time.sleep(1000)\n"
            "time.sleep(1000)\n",
            Verdict.OUT_OF_MEMORY,
        ),
        (
            "import socket, os\n"
            "for _ in range(5):\n"
            "    if os.fork() == 0:\n"
            "        break\n"
            "kept = [socket.socketpair() for _ in range(20)]\n"
            "while True:\n    pass\n",
            Verdict.EXITED,
        ),
        (
            "import os, signal\n"
            "if os.fork() == 0:\n"
            "    while True:\n"
            "        signal.pause()\n"
            "os._exit(0)",  # its child still holds the channel
            Verdict.EXITED,
        ),
    ],
    ids=["memory of many processes", "sockets", "a child keeps the channel"],
)
def test_what_cannot_be_refused_is_ended(
    warm: WarmProcess, attack: str, verdict: Verdict, honest_after: None
) -> None:
    with Kernel(warm) as kernel:
        died = kernel.run_cell(attack, "c").died

    assert died is not None
    assert died.verdict is verdict


@needs_sandbox
def test_many_busy_processes_get_what_others_leave(
    warm: WarmProcess, honest_after: None
) -> None:
    """Else one submission would slow its neighbours to a time-out. How soon is
    the watcher's affair: the cell waits for it."""
    told = inside(
        warm,
        "import os, signal\n"
        "kept = []\n"
        "for _ in range(min(60, 2 * os.cpu_count() + 10)):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        while True:\n            pass\n"
        "    kept.append(pid)\n"
        "while os.sched_getscheduler(kept[-1]) != os.SCHED_IDLE:\n"
        "    pass\n"
        "try:\n"
        "    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))\n"
        "except PermissionError:\n    print('for good')\n"
        "for pid in kept:\n    os.kill(pid, signal.SIGKILL)\n",
    )

    assert told == "for good"


@needs_sandbox
def test_rooms_have_terminals_of_their_own(warm: WarmProcess) -> None:
    with Kernel(warm) as one, Kernel(warm) as other:
        one.run_cell("import os\nkept = os.openpty()", "c")
        run = other.run_cell("import os\nprint(os.listdir('/dev/pts'))", "c")

    assert shown(run) == "['ptmx']"


@needs_sandbox
def test_who_is_ended_first_is_not_for_the_learner_to_say(
    warm: WarmProcess,
) -> None:
    told = inside(
        warm,
        "try:\n    open('/proc/self/oom_score_adj', 'w').write('0')\n"
        "except OSError as e:\n    print(e.errno)\n"
        "print(open('/proc/self/oom_score_adj').read())",
    )

    assert told.split() == ["30", "1000"]


@needs_sandbox
def test_a_flood_of_output_is_cut(
    warm: WarmProcess, honest_after: None
) -> None:
    with Kernel(warm) as kernel:
        run = kernel.run_cell("print('x' * 10**8)", "c")
        alive = kernel.run_cell("print('alive')", "c")

    assert run.ok
    assert len(shown(run)) < 10**6
    assert shown(alive) == "alive"


@needs_sandbox
def test_a_stopped_process_does_not_keep_the_judge_waiting(
    warm: WarmProcess, monkeypatch: pytest.MonkeyPatch, honest_after: None
) -> None:
    monkeypatch.setattr(kernels, "ANSWER_TIMEOUT_S", 1)
    with Kernel(warm) as kernel:
        kernel.run_cell(
            "import os, signal, time\n"
            "if os.fork() == 0:\n"
            "    while True:  # soon after the cell has answered\n"
            "        time.sleep(0.3)\n"
            "        os.kill(2, signal.SIGSTOP)\n"
            "time.sleep(0)",
            "a",
        )
        died = kernel.run_cell("x = '" + "x" * 10**7 + "'", "b", 1).died

    assert died is not None


@needs_sandbox
def test_outputs_that_no_cell_can_have_are_cut(warm: WarmProcess) -> None:
    forged = (
        "import builtins, json\n"
        "from course_grader.kernel.channel import Channel\n"
        "send = Channel.send\n"
        "def flood(self, header, blob=b''):\n"
        "    one = {'output_type': 'stream', 'name': 'stdout',"
        " 'text': 'x' * 10**6}\n"
        "    figure = {'output_type': 'display_data',"
        " 'data': {'text/html': 'x' * 5 * 10**6}}\n"
        "    send(self, {'outputs': [one] * 5 + [figure], 'ok': True})\n"
        "Channel.send = flood"
    )
    with Kernel(warm) as kernel:
        run = kernel.run_cell(forged, "a")

    assert run.ok
    assert len(run.outputs) == 6
    assert all(len(str(one)) < 3 * 10**5 for one in run.outputs)


@needs_sandbox
def test_a_fork_bomb_costs_its_own_submission_alone(
    course: Course, warm: WarmProcess, prepared: Prepared, honest_after: None
) -> None:
    bomb = (
        "import os, time\n"
        "def mean(x):\n"
        "    while True:\n"
        "        try:\n"
        "            os.fork()\n"
        "        except OSError:\n"
        "            time.sleep(0.1)\n"
    )

    graded = grade_submission(warm, prepared, notebook(course, mean=bomb))

    assert points(graded) == {"double": 3, "mean": 0}


@needs_sandbox
def test_an_exercise_that_ends_the_room_leaves_the_others_their_marks(
    course: Course, warm: WarmProcess, prepared: Prepared
) -> None:
    bomb = (
        "import mmap\n"
        "def double(x, times=1):\n"
        "    if times < 0:\n"
        "        raise ValueError\n"
        "    kept = []\n"
        "    while times > 1:\n"
        "        kept.append(mmap.mmap(-1, 2**26))\n"
        "        kept[-1].write(bytes(2**26))\n"
        "    return 2 * x\n"
    )

    graded = grade_submission(warm, prepared, notebook(course, double=bomb))

    double = graded.report.exercises[0]
    assert [one.verdict for one in double.checks][1:] == [Verdict.PASSED] * 2
    assert double.points == 1.5
    assert points(graded)["mean"] == 2


@needs_sandbox
def test_nothing_survives_a_submission(warm: WarmProcess) -> None:
    mark = f"course-test-survivor-{os.getpid()}"
    daemon = (
        "import os, signal, subprocess, sys\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.execv(sys.executable, [sys.executable, '-c',\n"
        "            'import signal, time; signal.signal(15, signal.SIG_IGN);'\n"
        f"            'time.sleep(1000)', '{mark}'])\n"
        "    os._exit(0)\n"
        f"stopped = subprocess.Popen([sys.executable, '-c',\n"
        f"    'import time; time.sleep(1000)', '{mark}'],"
        " start_new_session=True)\n"
        "os.kill(stopped.pid, signal.SIGSTOP)\n"
        "import glob\n"
        "found = 0\n"
        "while found < 2:\n"
        "    found = 0\n"
        "    for name in glob.glob('/proc/[0-9]*/cmdline'):\n"
        f"        found += '{mark}' in open(name).read()\n"
        "print(found)"
    )
    with Kernel(warm) as kernel:
        assert shown(kernel.run_cell(daemon, "c")) == "2"
        assert len(processes_with(mark)) == 2

    assert processes_with(mark) == []


@needs_sandbox
def test_everything_ends_with_the_grader(tmp_path: Path) -> None:
    mark = f"course-test-orphan-{os.getpid()}"
    script = (
        "import os, sys\n"
        "from course_grader.judge.kernels import Kernel\n"
        "from course_grader.judge.warming import WarmProcess\n"
        "warm = WarmProcess()\n"
        "kernel = Kernel(warm)\n"
        "run = kernel.run_cell('import subprocess, sys\\n'\n"
        "    'p = subprocess.Popen([sys.executable, \"-c\",'\n"
        "    '\"import time; print(1, flush=True); time.sleep(1000)\",'\n"
        f"    '\"{mark}\"], stdout=subprocess.PIPE)\\n'\n"
        "    'p.stdout.readline()', 'c')\n"
        "print(run.ok, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as grader:
        assert grader.stdout is not None
        assert grader.stdout.readline() == "True\n"
        assert processes_with(mark)
        grader.kill()

    gone = threading.Event()
    for _ in range(200):
        if not [one for one in processes_with(mark) if "Popen" not in one]:
            break
        gone.wait(0.1)  # the kernel ends them, one after the other
    assert processes_with(mark) == []


# ---------------------------------------------------------- what must work


@needs_sandbox
def test_figures_subprocesses_loader_workers_and_torchrun_work(
    warm: WarmProcess,
) -> None:
    with Kernel(warm) as kernel:
        figure = kernel.run_cell(
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "a"
        )
        child = kernel.run_cell(
            "import subprocess\n"
            "print(subprocess.run(['python', '-c',"
            " 'import course_utils; print(7)'],"
            " capture_output=True, text=True))",
            "b",
        )
        loader = kernel.run_cell(
            "import torch\n"
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "data = TensorDataset(torch.arange(8.0))\n"
            "loader = DataLoader(data, batch_size=4, num_workers=2)\n"
            "print([batch.sum().item() for (batch,) in loader])",
            "c",
        )
        torchrun = kernel.run_cell(
            "import subprocess\n"
            "open('ranks.py', 'w').write('''\n"
            "import torch, torch.distributed as dist\n"
            "dist.init_process_group('gloo')\n"
            "x = torch.ones(3) * dist.get_rank()\n"
            "dist.all_reduce(x)\n"
            "if dist.get_rank() == 0:\n"
            "    print(x.tolist())\n"
            "dist.destroy_process_group()\n"
            "''')\n"
            "print(subprocess.run(['torchrun', '--nproc-per-node', '2',"
            " 'ranks.py'], capture_output=True, text=True))",
            "d",
        )

    assert any("image/png" in one.get("data", {}) for one in figure.outputs)
    assert "stdout='7\\n'" in shown(child)
    assert shown(loader) == "[6.0, 22.0]"
    assert "[1.0, 1.0, 1.0]" in shown(torchrun)


# ---------------------------------------------------------- where there is none


@pytest.fixture
def no_bubblewrap(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """A machine without bubblewrap."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    sandbox.missing.cache_clear()
    yield
    sandbox.missing.cache_clear()


def course_command(course: Course, *arguments: str) -> int:
    parser = cli._parser()
    args = parser.parse_args(arguments)
    return args.run(course, args)


def test_grading_others_work_without_a_sandbox_is_refused(
    no_bubblewrap: None, mini: Course, tmp_path: Path
) -> None:
    (tmp_path / "class" / "ann").mkdir(parents=True)
    (tmp_path / "class" / "ann" / "x.ipynb").write_bytes(notebook(mini))
    to = tmp_path / "out"

    with pytest.raises(CourseError, match=r"bwrap.*install.*--unsandboxed"):
        course_command(
            mini,
            *("grade", "03", "--from", str(tmp_path / "class")),
            *("--to", str(to)),
        )

    assert not (to / "scores.json").exists()


def test_nbgraders_route_refuses_too(
    no_bubblewrap: None, mini: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbgrader_route = pytest.importorskip("course_grader.grading.nbgrader_route")
    monkeypatch.chdir(mini.root)
    node = nbformat.reads(notebook(mini).decode(), as_version=4)

    with pytest.raises(CourseError, match="unsandboxed = True"):
        nbgrader_route.ExecuteOutOfProcess().preprocess(
            node, {"nbgrader": {"notebook": "03_mini"}}
        )


@pytest.mark.slow
def test_unsandboxed_grades_where_there_is_no_sandbox(
    no_bubblewrap: None, mini: Course, tmp_path: Path
) -> None:
    (tmp_path / "class" / "ann").mkdir(parents=True)
    (tmp_path / "class" / "ann" / "x.ipynb").write_bytes(notebook(mini))

    code = course_command(
        mini,
        *("grade", "03", "--from", str(tmp_path / "class"), "--unsandboxed"),
        *("--to", str(tmp_path / "out"), "--seed", "1"),
    )

    scores = (tmp_path / "out" / "scores.json").read_text()
    assert code == 0
    assert '"ann"' in scores
    assert " 5.0" in scores


def test_ones_own_notebook_just_runs(
    no_bubblewrap: None,
    mini: Course,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[bool] = []

    def start(
        course: Course, sandboxed: bool = True, chapter: str = ""
    ) -> None:
        started.append(sandboxed)
        raise CourseError("started")

    monkeypatch.setattr("course_grader.grading.pool.GradingProcess", start)
    (tmp_path / "mine.ipynb").write_bytes(notebook(mini))

    with pytest.raises(CourseError, match="started"):
        course_command(
            mini,
            *("grade", "03", "--from", str(tmp_path / "mine.ipynb")),
            *("--to", str(tmp_path / "out")),
        )

    assert started == [False]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap")
def test_a_machine_that_allows_no_namespaces_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: not allowed here' >&2\nexit 1\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(sandbox, "command", lambda *_: [str(fake)])
    sandbox.missing.cache_clear()

    why = sandbox.missing()
    sandbox.missing.cache_clear()

    assert why is not None
    assert "bwrap: not allowed here" in why
    assert "docs/sandbox.md" in why


def test_an_environment_that_holds_the_course_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "prefix", str(ROOT))
    monkeypatch.setattr(sandbox, "need_program", lambda name: None)
    sandbox.missing.cache_clear()

    why = sandbox.missing()
    sandbox.missing.cache_clear()

    assert why is not None
    assert "has this project inside" in why


def test_the_worst_case_is_said_in_words() -> None:
    limits = Limits(
        memory_bytes=4 * 2**30,
        disk_bytes=2**30,
        shm_bytes=2**30,
        processes=100,
    )

    said = worst_case(limits, 3, bounded=False)

    assert said.startswith("At most 3 submissions at once")
    assert "18 GiB and 300 processes in all" in said


@needs_sandbox
def test_many_short_lived_processes_cost_nothing(warm: WarmProcess) -> None:
    """Process numbers wrap inside a submission; the room must not fill up."""
    source = (
        "import os\n"
        "for _ in range(400):\n"
        "    os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n"
        "len([os.posix_spawn('/bin/sleep', ['sleep', '99'], {}) "
        "for _ in range(20)])\n"
    )
    with Kernel(warm) as kernel:
        run = kernel.run_cell(source, "a")

    assert run.ok, (run.died, run.outputs)
    assert run.outputs[-1]["data"]["text/plain"] == "20"
