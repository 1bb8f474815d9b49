"""A learner's server on one machine: an account, a room and limits of its own.

The room is bubblewrap's: the machine's programs and the Python environment,
read-only, the learner's own home, the exchange, and processes and temporary files
that nobody else has. The course's folder, other homes and the hub's files are not
in it, so there is nothing to guard there. The hub is root when it makes the room;
what runs inside is the learner's account without any way back.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner
from roles import COURSE_ID, TEACHING
from traitlets import Integer, Unicode

import course_home

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
GROUP = "course-learners"
"""Every account that this server has made is in it: no other is ever used."""
EXCHANGE = "/srv/exchange"
"""Of nbgrader, in a room."""
DESK = "/run/course"
"""Settings and the contents of the course, in a room. A course lies nowhere near, so
this hides no Python environment of one."""
OWN_EXCHANGE = ".course/exchange"
"""Where no disk is shared: a learner's own copy, in their home."""
LEARNERS_PACKAGES = ("course_utils", "course_exchange", "course_home")
"""What a room shows of the course's own code."""
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64")
_ETC = (
    "alternatives",
    "ca-certificates",
    "fonts",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "locale.alias",
    "mime.types",
    "nsswitch.conf",
    "resolv.conf",
    "ssl",
    "terminfo",
)
_CGROUP = Path("/sys/fs/cgroup")


class AccountError(Exception):
    """An account cannot be used; the message says why."""


def make_account(name: str, homes: Path) -> pwd.struct_passwd:
    """The learner's Unix account, made with its home if it is not there yet.

    Raises:
        AccountError: an account of this name was there before this server.
    """
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        command = ["groupadd", "--force", "--system", GROUP]
        subprocess.run(command, check=True)
        command = ["useradd", "--no-create-home", "--shell", "/bin/bash"]
        command += ["--home-dir", f"/home/{name}", "--user-group"]
        command += ["--groups", GROUP, name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise AccountError(done.stderr.strip()) from None
        account = pwd.getpwnam(name)
    if GROUP not in (grp.getgrgid(one).gr_name for one in groups_of(account)):
        raise AccountError(
            f"{name} is an account of this machine that the class server has "
            f"not made, so nobody can be called that here. If it is this "
            f"learner's own: usermod --append --groups {GROUP} {name}"
        )
    home = homes / name
    if not home.exists():
        home.mkdir(mode=0o700)
    if home.stat().st_uid != account.pw_uid:
        give(home, account)
    return account


def give(home: Path, account: pwd.struct_passwd) -> None:
    """Lets an account own its home: on a new machine, a backup's has another number,
    which may be anybody's there. Root's first, so that nobody is in it meanwhile."""
    os.chown(home, 0, 0)
    for folder, _, files in os.walk(home, topdown=False):
        for one in (*(os.path.join(folder, file) for file in files), folder):
            os.chown(one, account.pw_uid, account.pw_gid, follow_symlinks=False)


def groups_of(account: pwd.struct_passwd) -> list[int]:
    """The numbers of an account's groups."""
    return os.getgrouplist(account.pw_name, account.pw_gid)


def room(
    account: pwd.struct_passwd,
    home: Path,
    identity: Path,
    exchange: Path | None,
    desk: Path,
) -> list[str]:
    """The command before a learner's own command; root calls it.

    Args:
        account: the learner's.
        home: the folder that the room shows as the account's home.
        identity: a folder for the room's `passwd` and `group`.
        exchange: nbgrader's; None where there is no shared disk.
        desk: settings and the contents of the course.
    """
    identity.mkdir(parents=True, exist_ok=True)
    inside = account.pw_dir
    (identity / "passwd").write_text(
        "root:x:0:0::/:/bin/sh\n"
        f"{account.pw_name}:x:{account.pw_uid}:{account.pw_gid}::{inside}:"
        "/bin/bash\n"
    )
    (identity / "group").write_text(
        f"root:x:0:\n{account.pw_name}:x:{account.pw_gid}:\n"
    )
    binds = [("--ro-bind", "/usr", "/usr")]
    arguments = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        arguments += ["--perms", "1777", "--tmpfs", folder]
    for name in _SYSTEM:
        if os.path.islink(f"/{name}"):
            arguments += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            binds.append(("--ro-bind", f"/{name}", f"/{name}"))
    binds += [("--ro-bind-try", f"/etc/{one}", f"/etc/{one}") for one in _ETC]
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        if not prefix.startswith("/usr"):
            binds.append(("--ro-bind", os.path.realpath(prefix), prefix))
    packages = Path(sys.modules["course_grader"].__file__ or "").parents[1]
    for name in LEARNERS_PACKAGES:
        there = str(packages / name)
        binds.append(("--ro-bind", there, there))
    binds += [
        ("--ro-bind", str(identity / "passwd"), "/etc/passwd"),
        ("--ro-bind", str(identity / "group"), "/etc/group"),
        ("--ro-bind", str(desk), DESK),
        ("--bind", str(home), inside),
    ]
    if exchange is not None:
        binds.append(("--bind", str(exchange), EXCHANGE))
    # bubblewrap makes what is missing on the way for root alone
    parents = {
        str(one) for *_, inside_at in binds for one in Path(inside_at).parents
    } - {"/"}
    for folder in sorted(parents, key=lambda one: one.count("/")):
        if not folder.startswith("/usr"):
            arguments += ["--perms", "0755", "--dir", folder]
    for bind in binds:
        arguments += bind
    arguments += ["--chdir", inside]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
        arguments += ["--cap-add", capability]
    become = ["setpriv", f"--reuid={account.pw_uid}"]
    become += [f"--regid={account.pw_gid}", "--clear-groups"]
    become += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    # bubblewrap ends with its parent, and nothing in the room outlives it; the
    # shell, not the hub, is that parent: a hub that restarts ends no room
    return [
        *("sh", "-c", '"$@"; exit $?', "room"),
        *(shutil.which("bwrap") or "bwrap", *arguments),
        *become,
    ]


def with_systemd() -> bool:
    """Whether systemd runs this machine."""
    return Path("/run/systemd/system").is_dir()


def limits_hold() -> bool:
    """Whether this machine has control groups that this server can make."""
    return with_systemd() or (_CGROUP / "memory" / "cgroup.procs").exists()


def scope(
    name: str, memory_bytes: int, processors: float, tasks: int
) -> list[str]:
    """The command that puts what follows into a control group of systemd's."""
    return [
        *("systemd-run", "--scope", "--quiet", "--collect"),
        f"--unit=course-{name}-{os.urandom(4).hex()}",
        f"--property=MemoryMax={memory_bytes}",
        "--property=MemorySwapMax=0",
        f"--property=CPUQuota={round(100 * processors)}%",
        f"--property=TasksMax={tasks}",
    ]


def group_without_systemd(
    name: str, memory_bytes: int, processors: float, tasks: int
) -> list[Path]:
    """Control groups of the first version, where no systemd makes them.

    Returns:
        The files into which a process writes 0 to be in them; none where this
        machine has none.
    """
    wanted = {
        "memory": {"memory.limit_in_bytes": memory_bytes},
        "cpu": {
            "cpu.cfs_period_us": 100_000,
            "cpu.cfs_quota_us": round(100_000 * processors),
        },
        "pids": {"pids.max": tasks},
    }
    files = []
    for controller, limits in wanted.items():
        folder = _CGROUP / controller / "course" / name
        if not (_CGROUP / controller / "cgroup.procs").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for file, limit in limits.items():
            (folder / file).write_text(str(limit))
        files.append(folder / "cgroup.procs")
    share_processors(_CGROUP / "cpu" / "course")
    return files


def share_processors(rooms: Path) -> None:
    """Gives each learner what one process of the machine gets: by themselves all rooms
    together would get that."""
    if rooms.exists():
        number = sum(one.is_dir() for one in rooms.iterdir())
        (rooms / "cpu.shares").write_text(str(min(1024 * number, 2**18)))


class Room(LocalProcessSpawner):
    """JupyterHub's local processes, each in a room of its own."""

    folder = Unicode(help="Homes and what rooms show.").tag(config=True)
    exchange = Unicode(help="nbgrader's folder; empty for none.").tag(
        config=True
    )
    share = Unicode(help="ngshare's address; empty for none.").tag(config=True)
    tasks = Integer(512, help="Processes and threads.").tag(config=True)

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """The learner's; the account is made here, before it is first asked for."""
        make_account(self.user.name, Path(self.folder, "homes"))
        return super().user_env(env) | desk_environment(
            DESK, teaches(self.user), self.share
        )

    async def start(self) -> Any:
        """Starts the room and the server in it."""
        name = self.user.name
        account = make_account(name, Path(self.folder, "homes"))
        limits = (
            int(self.mem_limit or 2**40),
            float(self.cpu_limit or os.cpu_count() or 1),
            self.tasks,
        )
        self._files: list[Path] = []
        prefix: list[str] = []
        if with_systemd():
            prefix = scope(name, *limits)
        else:
            self._files = group_without_systemd(name, *limits)
        self.shell_cmd = []
        own_exchange = f"{account.pw_dir}/{OWN_EXCHANGE}"
        self.cmd = [
            *prefix,
            *room(
                account,
                Path(self.folder, "homes", name),
                Path(self.folder, "rooms", name),
                Path(self.exchange) if self.exchange else None,
                Path(self.folder, "desk"),
            ),
            *("sh", f"{DESK}/enter.sh"),
            *(EXCHANGE if self.exchange else own_exchange, COURSE_ID),
            *(sys.executable, "-m", "jupyterhub.singleuser"),
        ]
        return await super().start()

    async def stop(self, now: bool = False) -> None:
        """Stops the server, and with it all that runs in the room."""
        await super().stop(now)
        for folder in _CGROUP.glob(f"*/course/{self.user.name}"):
            # what is still there goes at the next stop
            with contextlib.suppress(OSError):
                folder.rmdir()

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """Root's own; the room's command gives root up."""
        files = self._files

        def enter() -> None:
            for file in files:
                file.write_text("0")
            os.chdir("/")

        return enter


class Rehearsal(SimpleLocalProcessSpawner):
    """Everybody on one account: nothing keeps learners apart."""

    folder = Unicode(help="Homes and what rooms show.").tag(config=True)
    exchange = Unicode(help="nbgrader's folder; empty for none.").tag(
        config=True
    )
    share = Unicode(help="ngshare's address; empty for none.").tag(config=True)

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """The learner's, on this account."""
        desk = str(Path(self.folder, "desk"))
        return super().user_env(env) | desk_environment(
            desk, teaches(self.user), self.share
        )

    async def start(self) -> Any:
        """Starts the server."""
        desk = Path(self.folder, "desk")
        own_exchange = str(
            Path(self.folder, "homes", self.user.name, OWN_EXCHANGE)
        )
        self.cmd = [
            *("sh", str(desk / "enter.sh")),
            *(self.exchange or own_exchange, COURSE_ID),
            *(sys.executable, "-m", "jupyterhub.singleuser"),
        ]
        return await super().start()


def teaches(user: Any) -> bool:
    """Whether a hub's user is in the group that teaches."""
    return any(one.name == TEACHING for one in user.groups)


def desk_environment(desk: str, teaching: bool, share: str) -> dict[str, str]:
    """Where a server finds the settings that lie on the desk, and the exchange if
    that is no folder."""
    who = [f"{desk}/instructor"] if teaching else []
    return ({"COURSE_SHARE": share} if share else {}) | {
        "JUPYTER_CONFIG_PATH": os.pathsep.join([*who, f"{desk}/learner"]),
        # JupyterLab's extension that leads to the home
        "JUPYTER_PATH": str(Path(course_home.__file__).parent),
        # short, for sockets' names have at most 107 characters
        "JUPYTER_RUNTIME_DIR": "/tmp/jupyter",
        "JUPYTER_PREFER_ENV_PATH": "0",
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
    }
