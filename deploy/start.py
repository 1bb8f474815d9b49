"""`make hub`: makes what the class server needs, says where it is, starts it.

`start.py --desk FOLDER` writes alone what lies on a learner's desk, for an image
(deploy/kubernetes). `start.py --prepare` makes folders and the grading account for
another hub (deploy/tljh), and starts none.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from people import initial_passwords
from rooms import limits_hold
from settings import (
    ROSTER,
    TEMPLATE,
    Settings,
    exists,
    grading_home,
    learners,
    read_settings,
    separate_accounts,
    share_account,
)

from course_grader.chapter.contents import contents
from course_grader.course import Course, CourseError, find_course
from course_grader.needs import need_program
from course_home.contents import write_contents

HERE = Path(__file__).resolve().parent


def write_settings(course: Course) -> bool:
    """Writes `[hub]` with two example instructors and learners into `course.toml`,
    where it has none; whether it did."""
    if "hub" in course.settings:
        return False
    with course.settings_file.open("a", encoding="utf-8") as file:
        file.write(TEMPLATE)
    roster = course.people / "roster.csv"
    if not roster.exists():
        roster.parent.mkdir(exist_ok=True)
        roster.write_text(ROSTER, encoding="utf-8")
    return True


def install_proxy() -> None:
    """JupyterHub's proxy, by npm, once.

    Raises:
        CourseError: it cannot be had.
    """
    proxy = HERE / "proxy"
    if (proxy / "node_modules" / ".package-lock.json").exists():
        return
    npm = Path(sys.prefix, "bin", "npm")
    environment = os.environ | {
        "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"
    }
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=proxy,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CourseError(
            "configurable-http-proxy cannot be installed from the npm registry: "
            + (done.stderr or done.stdout).strip()[-400:]
        )


def install_share() -> None:
    """ngshare, by pip, once, and again when other versions are asked for. It has a
    Python of its own: deploy/share/requirements.txt says why.

    Raises:
        CourseError: it cannot be had.
    """
    share = HERE / "share"
    wanted = (share / "requirements.txt").read_text()
    there = share / ".venv" / "installed.txt"
    if there.exists() and there.read_text() == wanted:
        return
    pip = [str(share / ".venv/bin/python"), "-m", "pip", "install", "--quiet"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(share / ".venv")],
        [*pip, "--requirement", str(share / "requirements.txt")],
    ):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            raise CourseError(
                "ngshare cannot be installed by pip: "
                + (done.stderr or done.stdout).strip()[-400:]
            )
    there.write_text(wanted)


def make_folders(course: Course, settings: Settings) -> None:
    """Everything of the server that lies in files, with who may read it."""
    folder = course.root / settings.folder
    for name, mode in (
        ("", 0o711),
        ("private", 0o700),
        ("homes", 0o711),
        ("rooms", 0o711),
        ("grader", 0o700),
        ("share", 0o700),
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(mode)
    write_desk(course, folder / "desk")
    course.people.mkdir(mode=0o755, exist_ok=True)
    exchange = course.people / "exchange"
    if not exchange.exists():
        exchange.mkdir()
        exchange.chmod(0o1777)


def write_desk(course: Course, desk: Path) -> None:
    """What a learner's server finds on its desk: settings, and what its home shows of
    the chapters."""
    # in place: rooms that outlived the last hub look at this very folder
    shutil.copytree(HERE / "desk", desk, dirs_exist_ok=True)
    write_contents(desk / "contents.json", contents(course))
    for path in [desk, *desk.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def make_account(name: str, home: Path) -> pwd.struct_passwd:
    """An account for a service."""
    if not exists(name):
        command = ["useradd", "--system", "--user-group", "--no-create-home"]
        subprocess.run([*command, "--home-dir", str(home), name], check=True)
    return pwd.getpwnam(name)


def need_open_python(account: pwd.struct_passwd) -> None:
    """Whether another account can run this Python: one below `/root`, say, it cannot.

    Raises:
        CourseError: it cannot.
    """
    try:
        subprocess.run(
            [sys.executable, "-c", ""],
            cwd="/",
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        raise CourseError(
            f"The account {account.pw_name} cannot run {sys.executable}: this "
            f"folder and the Python that it was made with, {sys.base_prefix}, "
            "must lie where everybody may pass, as /srv and /usr are. "
            "Where they do: rm -r .venv, then make hub PYTHON=/usr/bin/python3"
        ) from None


def make_share_account(course: Course, settings: Settings) -> None:
    """The account that keeps what learners hand in over HTTP: whoever breaks into
    ngshare is not yet the one who grades."""
    home = course.root / settings.folder / "share"
    account = make_account(share_account(settings), home)
    os.chown(home, account.pw_uid, account.pw_gid)


def make_grading_account(
    course: Course, settings: Settings
) -> pwd.struct_passwd:
    """The account that owns `class/`; what learners put into the exchange stays
    theirs."""
    account = make_account(
        settings.grading_account, grading_home(course, settings)
    )
    folders = [grading_home(course, settings)]
    if course.people.stat().st_uid != account.pw_uid:
        folders.append(course.people)
    for folder in folders:
        for path, inner, files in os.walk(folder):
            if Path(path).name == "inbound":
                inner.clear()
                files.clear()
            for one in (path, *(os.path.join(path, file) for file in files)):
                os.chown(
                    one, account.pw_uid, account.pw_gid, follow_symlinks=False
                )
    return account


def words(course: Course, settings: Settings) -> list[str]:
    """The three lines: address, first instructor, first learner."""
    private = course.root / settings.folder / "private" / "passwords.csv"
    host = settings.address or socket.getfqdn()
    names = learners(course, settings)
    if settings.lti:
        lms = settings.lti["issuer"]
        return [
            f"Address: http://{host}:{settings.port}",
            f"First instructor: whom {lms} sends as one",
            f"First learner: whom {lms} sends",
        ]
    teacher = settings.instructors[0]
    if settings.class_password:
        word = 3 * initial_passwords(private, ["instructors"])["instructors"]
        learner = f"any name, password {settings.class_password}"
    else:
        passwords = initial_passwords(private, [*settings.instructors, *names])
        word = passwords[teacher]
        learner = (
            f"{names[0]}, password {passwords[names[0]]}"
            if names
            else "nobody is on the roster yet"
        )
    return [
        f"Address: http://{host}:{settings.port}",
        f"First instructor: {teacher}, password {word}",
        f"First learner: {learner}",
    ]


def warnings(settings: Settings, course: Course) -> list[str]:
    """What somebody should know who believes that this is a class's server."""
    said = []
    if not separate_accounts():
        said.append(
            "This is a rehearsal: everybody runs on your account, and nothing "
            "keeps learners from each other's files or from the grading. Start "
            "it as root for a class."
        )
    elif not limits_hold():
        said.append(
            "This machine has neither systemd nor control groups of the first "
            "version, so nothing limits a learner's memory and processors."
        )
    if settings.class_password:
        said.append(
            "With a class password anybody may log in under anybody's name: for "
            "a workshop, not for marks."
        )
    return said


def main() -> None:
    """Prepares, says, and becomes JupyterHub."""
    course = find_course()
    os.umask(0o022)
    if sys.argv[1:2] == ["--desk"]:
        # for an image: deploy/kubernetes
        return write_desk(course, Path(sys.argv[2]))
    if write_settings(course):
        print(
            f"{course.settings_file} has a new part, [hub], with example people:"
            " yours go there and into class/roster.csv."
        )
        course = Course(course.root)
    settings = read_settings(course)
    apart = separate_accounts()
    if sys.argv[1:2] == ["--prepare"]:
        make_folders(course, settings)
        make_grading_account(course, settings)
        return None
    lacking = need_program("bwrap")
    if lacking and apart:
        raise CourseError(lacking)
    install_proxy()
    if settings.exchange == "ngshare":
        install_share()
    make_folders(course, settings)
    if apart:
        need_open_python(make_grading_account(course, settings))
        make_share_account(course, settings)
    for line in [*words(course, settings), *warnings(settings, course)]:
        print(line, flush=True)
    command = [sys.executable, "-m", "jupyterhub"]
    command += ["--config", str(HERE / "jupyterhub_config.py")]
    os.chdir(course.root)
    os.environ["COURSE_ROOT"] = str(course.root)
    os.execv(command[0], command)


if __name__ == "__main__":
    try:
        main()
    except CourseError as error:
        sys.exit(f"make hub: {error}")
