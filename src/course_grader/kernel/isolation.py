"""The room that one submission runs in: namespaces, mounts, no privileges.

Three processes make a room. The keeper, small, since nothing heavy was ever
imported there, forks a watcher per room. The watcher makes the namespaces and
stays outside of the room's PID namespace: it counts what the room uses and ends
it. Its child is the room's process 1, which mounts and then only reaps. The
learner's process is forked from the warm process straight into the room, so
that a room costs one fork of a large process, as without it.

Linux alone has this. Everything here runs inside the sandbox of
`judge/sandbox.py`; nothing here is secret.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from course_grader.kernel import groups, seccomp
from course_grader.kernel.limits import Limits

if sys.platform != "win32":  # where this module is imported but not used
    import fcntl
    import resource

HOME = "/home/learner"
"""The submission's working folder; empty at first."""
LEARNER_ID = 1000
"""The user that the learner is, to itself."""
LOOK_S = 0.1
"""How often a watcher counts what its room uses."""
MOST_BUSY = 8
"""Processes and threads of a room that may be busy at once before all of them get
what others leave of the processors."""
MOST_TERMINALS = 64
"""Pseudo-terminals of a room."""
ADDRESSES = 2
"""Addresses that a process may use beyond those that it has, as a multiple of its
memory: what page tables take is a small share of them."""

_CLONE = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
}
_CLONE_NEWPID = 0x20000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_RESERVED_PIDS = 300
"""Linux hands out no lower process number again once the count has wrapped."""

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class IsolationRefused(OSError):
    """This machine does not allow what the isolation needs; says what."""


def call(what: str, name: str, *arguments: object) -> int:
    """Calls a function of the C library.

    Args:
        what: what it is for, in words.
        name: the function.
        arguments: texts, numbers or None.

    Raises:
        IsolationRefused: it failed.
    """
    assert _libc is not None
    given = [a.encode() if isinstance(a, str) else a for a in arguments]
    result: int = getattr(_libc, name)(*given)
    if result < 0:
        number = ctypes.get_errno()
        raise IsolationRefused(number, f"{what}: {os.strerror(number)}")
    return result


class Room:
    """A room, as the warm process holds it."""

    def __init__(
        self,
        watcher: int,
        link: socket.socket,
        parent: int | None = None,
        group: str = "",
    ) -> None:
        self.link = link
        self.parent, self.group = parent, group
        names = [*_CLONE, "pid_for_children"]
        self.namespaces = {
            name: os.open(f"/proc/{watcher}/ns/{name}", os.O_RDONLY)
            for name in names
        }

    def fork(
        self, limits: Limits, channel: int, body: Callable[[], object]
    ) -> int:
        """Forks this process into the room.

        Args:
            limits: of the process.
            channel: the only descriptor that it keeps, next to 0, 1 and 2.
            body: what it runs; it ends with it.

        Returns:
            Its process id.

        Raises:
            IsolationRefused: something is not to be had; `body` did not run.
        """
        mine = os.open("/proc/self/ns/pid", os.O_RDONLY)
        ready, told = os.pipe()
        pids = self.namespaces["pid_for_children"]
        pid, failed = -1, ""
        try:
            call("joining a PID namespace", "setns", pids, _CLONE_NEWPID)
            pid = os.fork()
        except OSError as error:  # the room has ended meanwhile
            failed = str(error.strerror)
        if pid == 0:
            try:
                self._enter(limits)
            except BaseException as error:
                os.write(told, str(error).encode())
                os._exit(1)
            os.write(told, b"ready")
            close_all_but(channel)
            with contextlib.suppress(BaseException):
                body()
            os._exit(0)
        call("leaving a PID namespace", "setns", mine, _CLONE_NEWPID)
        os.close(mine)
        os.close(told)
        for number in self.namespaces.values():
            os.close(number)
        self.namespaces.clear()
        with os.fdopen(ready, "rb") as pipe:
            answer = pipe.read().decode() or failed
        if answer != "ready":
            self.end(pid)
            raise IsolationRefused(errno.EPERM, answer or "it died")
        return pid

    def _enter(self, limits: Limits) -> None:
        with contextlib.suppress(OSError):
            # where memory runs out, the machine ends learners first; the room's
            # own /proc is read-only, so that this stays
            Path("/proc/self/oom_score_adj").write_text("1000")
        if self.parent is not None and self.group:
            groups.enter(self.parent, self.group)
        for name, flag in _CLONE.items():
            descriptor = self.namespaces[name]
            call(f"joining a {name} namespace", "setns", descriptor, flag)
        os.setsid()
        os.chdir(HOME)
        os.environ["HOME"] = HOME
        limit_resources(limits)
        if _namespace_counts_processes():
            _limit(resource.RLIMIT_NPROC, limits.processes)
        _leave_keyring()
        drop_capabilities()
        seccomp.install()

    def end(self, pid: int) -> str:
        """Ends everything in the room, `pid` first if it is one's.

        Returns:
            The name of the limit for which the watcher had ended it before;
            empty if it had not.
        """
        if pid > 0:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_WR)
        why = b""
        with contextlib.suppress(OSError):
            while piece := self.link.recv(4096):
                why += piece
        self.link.close()
        return why.decode()


class Keeper:
    """A small process that makes rooms, as the warm process holds it."""

    def __init__(
        self,
        limits: Limits,
        close: socket.socket | None,
        parent: int | None = None,
    ) -> None:
        """Forks it; to be called before anything heavy is imported.

        Args:
            limits: of each room.
            close: a socket that it must not hold.
            parent: descriptor of the folder in which rooms get control groups; None
                if they get none.
        """
        self.parent = parent
        self.link, theirs = socket.socketpair()
        if os.fork() == 0:
            self.link.close()
            if close is not None:
                close.close()
            with contextlib.suppress(BaseException):
                _keep(theirs, limits, parent)
            os._exit(0)
        theirs.close()

    def room(self) -> Room:
        """A fresh room.

        Raises:
            IsolationRefused: this machine does not allow it.
        """
        mine, theirs = socket.socketpair()
        with theirs:
            right = array.array("i", [theirs.fileno()])
            self.link.sendmsg(
                [b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, right)]
            )
        answer = json.loads(mine.recv(4096) or b'{"error": "it died"}')
        if "error" in answer:
            mine.close()
            raise IsolationRefused(errno.EPERM, answer["error"])
        return Room(answer["watcher"], mine, self.parent, answer["group"])


def _keep(link: socket.socket, limits: Limits, parent: int | None) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # watchers reap themselves
    while True:
        _, rights, _, _ = link.recvmsg(1, socket.CMSG_SPACE(4))
        if not rights:
            return
        room = socket.socket(fileno=array.array("i", rights[0][2])[0])
        if os.fork() == 0:
            link.close()
            with contextlib.suppress(BaseException):
                _watch(room, limits, parent)
            os._exit(0)
        room.close()


def _watch(link: socket.socket, limits: Limits, parent: int | None) -> None:
    """Makes a room, watches it until it is told to end it, and ends it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    group = _group(parent, limits)
    try:
        _unshare()
        _die_with_parent()
        ready, told = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(ready)
            link.close()
            _be_first(told, limits, group)
        os.close(told)
        with os.fdopen(ready, "rb") as pipe:
            answer = pipe.read().decode()
        if answer != "ready":
            raise IsolationRefused(errno.EPERM, answer or "it died")
    except OSError as error:
        reason = {"error": error.strerror or str(error)}
        link.sendall(json.dumps(reason).encode())
        return
    made = {"watcher": os.getpid(), "group": group.name if group else ""}
    link.sendall(json.dumps(made).encode())
    poll = select.poll()
    poll.register(link, select.POLLIN)
    wait_s, why = LOOK_S, ""
    deadline = time.monotonic() + limits.lifetime_s
    while not why and not poll.poll(wait_s * 1000):
        started = time.monotonic()
        why = "lifetime_s" if started > deadline else _over(limits)
        if group is None and _is_crowded():
            os.kill(init, signal.SIGUSR1)
        if _is_orphaned():
            break
        # never busy with counting for more than a tenth of the time
        wait_s = max(LOOK_S, 10 * (time.monotonic() - started))
    if group is not None:
        why = why or group.passed()
    with contextlib.suppress(OSError):
        link.sendall(why.encode())
    os.kill(init, signal.SIGKILL)
    os.waitpid(init, 0)
    if group is not None:
        group.remove()


def _group(parent: int | None, limits: Limits) -> groups.RoomGroup | None:
    """The room's control group; None where whoever grades could not have any, and
    has said so."""
    if parent is not None:
        with contextlib.suppress(OSError):
            return groups.RoomGroup(parent, limits)
    return None


def _die_with_parent() -> None:
    call("prctl", "prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _unshare() -> None:
    uid, gid = os.getuid(), os.getgid()
    flags = _CLONE_NEWPID
    for flag in _CLONE.values():
        flags |= flag
    call("making namespaces", "unshare", flags)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{LEARNER_ID} {uid} 1"),
        ("gid_map", f"{LEARNER_ID} {gid} 1"),
    ):
        Path("/proc/self", name).write_text(text)


def _be_first(
    told: int, limits: Limits, group: groups.RoomGroup | None
) -> None:
    """Is process 1 of the room: mounts what it needs, then reaps orphans."""
    try:
        _die_with_parent()
        if group is not None:
            groups.enter(group.parent, group.name)
            os.close(group.parent)
        for number in (signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, lambda *_: _yield_processors())
        _mount_everything(limits)
        _raise_loopback()
        if _version() >= (6, 14):
            # since then it belongs to the PID namespace
            with contextlib.suppress(OSError):
                Path("/proc/sys/kernel/pid_max").write_text(
                    str(_RESERVED_PIDS + limits.processes)
                )
        quiet = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | quiet
        call("closing /proc", "mount", None, "/proc", None, flags, None)
        os.chdir("/")
        drop_capabilities()
        call("prctl", "prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    except BaseException as error:
        os.write(told, str(error).encode())
        os._exit(1)
    os.write(told, b"ready")
    os.close(told)
    while True:
        signal.pause()


def _mount_everything(limits: Limits) -> None:
    def mount(kind: str, where: str, options: str | None, flags: int) -> None:
        call(f"mounting {where}", "mount", kind, where, kind, flags, options)

    def bind(what: str, where: str) -> None:
        call(f"mounting {where}", "mount", what, where, None, _MS_BIND, None)

    call("mounting /", "mount", None, "/", None, _MS_REC | _MS_PRIVATE, None)
    quiet = _MS_NOSUID | _MS_NODEV
    mount("proc", "/proc", None, quiet | _MS_NOEXEC)
    for name in ("/proc/keys", "/proc/key-users"):
        if os.path.exists(name):
            bind("/dev/null", name)
    # the terminals of other rooms are in the one that came with the sandbox
    mount(
        "devpts",
        "/dev/pts",
        f"newinstance,ptmxmode=0666,mode=0620,max={MOST_TERMINALS}",
        _MS_NOSUID | _MS_NOEXEC,
    )
    # as good to read from, but nobody gets shared memory by mapping it
    bind("/dev/full", "/dev/zero")
    # a Python environment that lies in /tmp must stay in sight
    kept = {
        path: os.open(path, os.O_PATH | os.O_DIRECTORY)
        for path in {sys.base_prefix, sys.prefix}
        if path.startswith("/tmp/")
    }
    mount(
        "tmpfs",
        "/tmp",
        f"size={limits.disk_bytes},nr_inodes={limits.files + 3},mode=700",
        quiet,
    )
    # one file system in two places, so that one size holds for both
    for name in ("home", "tmp"):
        os.mkdir(f"/tmp/{name}", 0o700)
    bind("/tmp/home", HOME)
    bind("/tmp/tmp", "/tmp")
    for path, descriptor in sorted(kept.items()):
        os.makedirs(path, exist_ok=True)
        bind(f"/proc/self/fd/{descriptor}", path)
        os.close(descriptor)
    mount(
        "tmpfs",
        "/dev/shm",
        f"size={limits.shm_bytes},nr_inodes={limits.files},mode=1777",
        quiet,
    )


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def _is_orphaned() -> bool:
    """Whether something runs in the room although the process that was forked
    into it, its second, does not. One that came and went between two looks is
    seen by what it has left behind."""
    others = {pid for pid in os.listdir("/proc") if pid.isdigit()} - {"1"}
    try:
        stat = Path("/proc/2/stat").read_text()
    except OSError:
        return bool(others)
    return stat.rpartition(")")[2].split()[0] in "ZX"


def _over(limits: Limits) -> str:
    """Which limit a room has passed, by its name; empty if none. Reads the
    room's own /proc, where there is nobody else."""
    tasks, held = 0, {}
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            with contextlib.suppress(OSError, LookupError, ValueError):
                threads, held[pid] = _looked_at(pid)
                tasks += threads
    if tasks > limits.processes:
        return "processes"
    if sum(map(sum, held.values())) > limits.memory_bytes:
        # pages that several share count once; slow, so asked only now
        used = sum(
            _share(pid, shared) + own for pid, (shared, own) in held.items()
        )
        if used > limits.memory_bytes:
            return "memory_bytes"
    with contextlib.suppress(OSError, ValueError):
        text = Path("/proc/1/net/sockstat").read_text()
        if int(text.split()[2]) > limits.sockets:
            return "sockets"
    return ""


def _looked_at(pid: str) -> tuple[int, tuple[int, int]]:
    """(threads, (resident bytes, those swapped out and in page tables))."""
    fields = {}
    for line in Path("/proc", pid, "status").read_text().splitlines():
        name, _, value = line.partition(":")
        fields[name] = value
    kib = {
        name: int(fields.get(name, "0").split()[0])
        for name in ("Threads", "VmRSS", "VmSwap", "VmPTE")
    }
    own = kib["VmSwap"] + kib["VmPTE"]
    return kib["Threads"], (kib["VmRSS"] * 1024, own * 1024)


def _is_crowded() -> bool:
    """Whether more of the room's processes and threads want a processor than one
    submission may have at once."""
    tasks = [
        f"/proc/{pid}/task/{task}"
        for pid in _listed("/proc")
        if pid.isdigit()
        for task in _listed(f"/proc/{pid}/task")
    ]
    most = max(MOST_BUSY, os.cpu_count() or 1)
    return len(tasks) > most and sum(_state(one) == "R" for one in tasks) > most


def _yield_processors() -> None:
    """All that runs in the room gets, from now on, what others leave of the
    processors: the machine shares its time out by process, and other people's work
    is waiting. To be called in the room; nobody without privileges takes it back."""
    for pid in _listed("/proc"):
        for task in _listed(f"/proc/{pid}/task") if pid.isdigit() else ():
            with contextlib.suppress(OSError):
                os.sched_setscheduler(
                    int(task), os.SCHED_IDLE, os.sched_param(0)
                )


def _listed(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _state(folder: str) -> str:
    with contextlib.suppress(OSError, IndexError):
        stat = Path(folder, "stat").read_text()
        return stat.rpartition(")")[2].split()[0]
    return ""


def _share(pid: str, most: int) -> int:
    """A process's share of memory in bytes; `most` where it will not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc", pid, "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return most if Path("/proc", pid).exists() else 0


def close_all_but(descriptor: int) -> None:
    """Closes all descriptors but `descriptor` and the standard three."""
    os.closerange(3, descriptor)
    os.closerange(max(descriptor + 1, 3), os.sysconf("SC_OPEN_MAX"))


def limit_resources(limits: Limits) -> None:
    """Sets the limits of this process that hold with a sandbox and without."""
    for kind, value in (
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        _limit(kind, value)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        more = ADDRESSES * limits.memory_bytes
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + more)
    # a file over its limit is an OSError for the learner, not a silent death
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (value, value))


def _version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    digits = "".join(one for one in minor if one.isdigit())
    return int(major), int(digits or 0)


def _namespace_counts_processes() -> bool:
    """Before Linux 5.14 the whole machine's processes of a user counted."""
    return _version() >= (5, 14)


def _leave_keyring() -> None:
    """Keys of the session that started the grader cross every namespace."""
    number = _KEYCTL[os.uname().machine]
    call("a new keyring", "syscall", number, _KEYCTL_JOIN_SESSION_KEYRING, None)


def drop_capabilities() -> None:
    """Gives up every privilege inside of the namespaces, for good."""
    assert _libc is not None
    for number in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
            break
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", 0x20080522, 0)
    call("dropping capabilities", "capset", header, bytes(24))


def try_out() -> None:
    """Makes a room and runs nothing in it: exit status 0 if that works, else
    the reason on standard output."""
    limits = Limits()
    try:
        keeper = Keeper(limits, None)
        room = keeper.room()
        room.end(room.fork(limits, 2, lambda: None))
    except OSError as error:
        print(error.strerror or error)
        sys.exit(1)
