"""Editions: published states of the learner kit, and where their files are.

Links point to an edition and never to a moving head, so that a correction reaches
learners when the instructor publishes the next edition, and not before.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum

from course_grader.course import Course, CourseError

_ADDRESS = re.compile(r"(https?|file)://[^\s\"'\\\\]+")
"""It becomes part of a line of Python, and of what pip is given."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Host(StrEnum):
    """What serves the kit: a repository with tags, or a folder of files."""

    GITHUB = "github"
    GITLAB = "gitlab"
    WEB = "web"


@dataclass(frozen=True)
class Edition:
    """One published state of the kit.

    Attributes:
        address: of the repository, or of the folder that holds the editions.
        host: what serves it.
        name: the tag, or the folder below the address.
        wheel: file name of `course_utils` in it.
    """

    address: str
    host: Host
    name: str
    wheel: str

    @property
    def wheel_url(self) -> str:
        """The address from which pip installs `course_utils`."""
        between = {
            Host.GITHUB: "/raw/",
            Host.GITLAB: "/-/raw/",
            Host.WEB: "/",
        }[self.host]
        return f"{self.address}{between}{self.name}/{self.wheel}"

    def colab(self, path: str) -> str | None:
        """The address that opens a notebook of the edition in Colab, which
        reads public repositories on GitHub alone; None elsewhere."""
        if self.host is not Host.GITHUB:
            return None
        _, _, repository = self.address.partition("://github.com/")
        return (
            "https://colab.research.google.com/github/"
            f"{repository}/blob/{self.name}/{path}"
        )


def edition_at(
    address: str, name: str, wheel: str, host: str | None = None
) -> Edition:
    """The edition of this name at an address.

    Args:
        address: as a person copies it from the browser.
        name: the tag or folder.
        wheel: file name of `course_utils`.
        host: what serves it; guessed from the address if None.

    Raises:
        CourseError: the address or the name is none.
    """
    if not _ADDRESS.fullmatch(address):
        raise CourseError(
            f"{address} is no address of a kit: give one that begins with "
            "https:// or, for a folder of this machine, with file://."
        )
    if not _NAME.fullmatch(name):
        raise CourseError(
            f"{name!r} is no name of an edition: use letters, digits, dots and "
            "hyphens, as in 2026-autumn."
        )
    address = address.rstrip("/").removesuffix(".git")
    server = address.partition("://")[2].partition("/")[0]
    if host is None:
        if server == "github.com":
            host = Host.GITHUB
        else:
            host = Host.GITLAB if "gitlab" in server else Host.WEB
    return Edition(address, Host(host), name, wheel)


def wheel_name(course: Course) -> str:
    """The file name of `course_utils` in a kit."""
    with (course.root / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    return f"course_utils-{version}-py3-none-any.whl"


def edition_of_class(course: Course) -> Edition | None:
    """The published edition that a class works with, to which the chapters point
    that it releases: `[edition]` in `course.toml`. None if it names none.

    Raises:
        CourseError: it lacks something, or the address is none.
    """
    said = course.settings.get("edition")
    if said is None:
        return None
    missing = [one for one in ("address", "name") if not said.get(one)]
    if missing:
        raise CourseError(
            f"course.toml: [edition] lacks {', '.join(missing)}; `course "
            "publish` prints what stands there."
        )
    return edition_at(
        said["address"],
        said["name"],
        wheel_name(course),
        said.get("host"),
    )
