"""Canvas and Moodle over their web interfaces: roster, due dates and hand-in times in,
marks and feedback out.

`[lms]` in `course.toml` says where; the token is never in a file of the course:

    [lms]
    kind = "canvas"                      # or "moodle"
    address = "https://canvas.example.edu"
    course = 1234                        # the course's number there
    assignments = { "03" = 777 }         # the numbers of the chapters' assignments

The token stands in the environment variable COURSE_LMS_TOKEN.

Sources: Canvas LMS REST API (Users, Assignments, Submissions, Submission Comments);
the submissions' `cached_due_date` is what its overrides for learners, sections and
groups come to; Moodle web services `core_enrol_get_enrolled_users`,
`mod_assign_get_assignments`, `mod_assign_get_submissions`,
`mod_assign_get_user_flags`, `mod_assign_save_grade` and its file upload.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import requests
from canvasapi import Canvas
from canvasapi.exceptions import CanvasException
from requests.adapters import HTTPAdapter
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry

from course_grader.classroom.collect_names import Student
from course_grader.course import Course, CourseError

TOKEN = "COURSE_LMS_TOKEN"
PATIENCE_S = 60
"""How long one answer of the system is waited for."""
TRIES = 5
"""How often it is asked where it says that it is busy."""


@dataclass(frozen=True)
class Handed:
    """When one learner handed in.

    Attributes:
        at: in UTC; None if nothing was handed in.
        late: the system marks it as late.
        due: when it is due for this learner, in UTC; None if the system says
            nothing of this one.
    """

    at: datetime | None
    late: bool
    due: datetime | None = None


class System(Protocol):
    """What a learning management system is asked. Users are its own numbers, as
    the roster has them in `lms_user_id`."""

    def students(self) -> list[Student]:
        """Who takes the course."""

    def due(self, assignment: int) -> datetime | None:
        """When an assignment is due, in UTC."""

    def handed_in(self, assignment: int) -> dict[str, Handed]:
        """When each learner handed in, and until when this one may, by user."""

    def give(
        self, assignment: int, user: str, points: float, page: Path | None
    ) -> None:
        """Sets a learner's mark, and sends a page of feedback."""


def open_system(course: Course) -> System:
    """The system that `[lms]` in `course.toml` names.

    Raises:
        CourseError: something is missing in `[lms]`, or the token is.
    """
    said: Mapping[str, Any] = course.settings.get("lms", {})
    missing = [
        name for name in ("kind", "address", "course") if not said.get(name)
    ]
    if missing:
        raise CourseError(
            f"course.toml: [lms] lacks {', '.join(missing)}. docs/term.md "
            "shows what stands there."
        )
    token = os.environ.get(TOKEN, "")
    if not token:
        raise CourseError(
            f"The environment variable {TOKEN} is empty: put your token of "
            f"{said['address']} there."
        )
    address = str(said["address"]).rstrip("/")
    if not address.startswith(("https://", "http://localhost", "http://127.")):
        raise CourseError(
            f"{address} does not begin with https://: a token would travel "
            "where others can read it."
        )
    if said["kind"] == "canvas":
        return _CanvasSystem(address, token, int(said["course"]))
    return _MoodleSystem(address, token, int(said["course"]))


def assignments(course: Course) -> dict[str, int]:
    """The numbers of the chapters' assignments, by chapter.

    Raises:
        CourseError: `course.toml` names none.
    """
    said = course.settings.get("lms", {}).get("assignments", {})
    if not said:
        raise CourseError(
            'course.toml: [lms] needs assignments = { "03" = 777 }: the number '
            "of each chapter's assignment, as its web address has it."
        )
    return {course.chapter(name): number for name, number in said.items()}


class _Retry(Retry):
    """Asks once more where a system has too much to do (429), and where it failed
    (5xx) if asking twice does no harm. Waits as long as the system says, to a
    limit."""

    harmless: frozenset[str] = frozenset({"GET"})

    def is_retry(
        self, method: str, status_code: int, has_retry_after: bool = False
    ) -> bool:
        if not self.total:
            return False
        failed = status_code in (500, 502, 503, 504)
        return status_code == 429 or (failed and method in self.harmless)

    def _is_method_retryable(self, method: str) -> bool:
        return method in self.harmless

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        said = super().get_retry_after(response)
        return None if said is None else min(said, PATIENCE_S)


class _EverythingAgain(_Retry):
    """Of a system whose every request may be made twice: Moodle's, which read by
    POST, set a mark, or fill a new draft area."""

    harmless = frozenset({"GET", "POST"})


class _Patient(HTTPAdapter):
    """Waits for an answer, but not for ever."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """One request, as requests asks for it; without a limit, with ours."""
        return super().send(
            request, stream, timeout or PATIENCE_S, verify, cert, proxies
        )


def _session(retry: type[_Retry]) -> requests.Session:
    session = requests.Session()
    adapter = _Patient(
        max_retries=retry(
            total=TRIES - 1, backoff_factor=0.5, raise_on_status=False
        )
    )
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


class _CanvasSystem:
    def __init__(self, address: str, token: str, course: int) -> None:
        canvas = Canvas(address, token)
        # canvasapi has no setting for it, and waits for ever
        canvas._Canvas__requester._session = _session(_Retry)
        with _said("Canvas"):
            self.course = canvas.get_course(course)

    def students(self) -> list[Student]:
        with _said("Canvas"):
            found = self.course.get_users(
                enrollment_type=["student"], include=["email"], per_page=100
            )
            return [_canvas_student(one) for one in found]

    def due(self, assignment: int) -> datetime | None:
        with _said("Canvas"):
            one = self.course.get_assignment(assignment)
        return _iso(getattr(one, "due_at", None))

    def handed_in(self, assignment: int) -> dict[str, Handed]:
        with _said("Canvas"):
            one = self.course.get_assignment(assignment)
            return {
                str(found.user_id): Handed(
                    _iso(getattr(found, "submitted_at", None)),
                    bool(getattr(found, "late", False)),
                    _iso(getattr(found, "cached_due_date", None)),
                )
                for found in one.get_submissions(per_page=100)
            }

    def give(
        self, assignment: int, user: str, points: float, page: Path | None
    ) -> None:
        with _said("Canvas"):
            one = self.course.get_assignment(assignment).get_submission(user)
            one.edit(submission={"posted_grade": points})
            if page is not None and not one.upload_comment(page)[0]:
                raise CourseError(f"Canvas does not take the page of {user}.")


class _MoodleSystem:
    def __init__(self, address: str, token: str, course: int) -> None:
        self.address, self.token, self.course = address, token, course
        self.session = _session(_EverythingAgain)
        self.assignments: dict[int, dict[str, Any]] = {}

    def students(self) -> list[Student]:
        found = self._ask(
            "core_enrol_get_enrolled_users", {"courseid": self.course}
        )
        return [
            Student(
                id=one.get("username") or f"moodle{one['id']}",
                first_name=one.get("firstname", ""),
                last_name=one.get("lastname", ""),
                email=one.get("email", ""),
                lms_user_id=str(one["id"]),
            )
            for one in found
            if any(
                role.get("shortname") == "student"
                for role in one.get("roles", [])
            )
        ]

    def due(self, assignment: int) -> datetime | None:
        return _seconds(self._assignment(assignment).get("duedate"))

    def handed_in(self, assignment: int) -> dict[str, Handed]:
        asked = {"assignmentids[0]": self._assignment(assignment)["id"]}
        found = self._ask("mod_assign_get_submissions", asked)
        at = {
            str(one["userid"]): _seconds(one.get("timemodified"))
            for group in found["assignments"]
            for one in group["submissions"]
            if one.get("status") == "submitted"
        }
        found = self._ask("mod_assign_get_user_flags", asked)
        due = {
            str(one["userid"]): _seconds(one.get("extensionduedate"))
            for group in found["assignments"]
            for one in group["userflags"]
        }
        return {
            user: Handed(at.get(user), False, due.get(user))
            for user in {**at, **due}
        }

    def give(
        self, assignment: int, user: str, points: float, page: Path | None
    ) -> None:
        data: dict[str, Any] = {
            "assignmentid": self._assignment(assignment)["id"],
            "userid": user,
            "grade": points,
            "attemptnumber": -1,
            "addattempt": 0,
            "workflowstate": "",
            "applytoall": 0,
        }
        if page is not None:
            data["plugindata[files_filemanager]"] = self._upload(page)
        self._ask("mod_assign_save_grade", data)

    def _assignment(self, number: int) -> dict[str, Any]:
        """The assignment of this number, its own or that in its web address."""
        if number not in self.assignments:
            found = self._ask(
                "mod_assign_get_assignments", {"courseids[0]": self.course}
            )
            for course in found["courses"]:
                for one in course["assignments"]:
                    self.assignments[one["id"]] = one
                    self.assignments.setdefault(one.get("cmid"), one)
        if number not in self.assignments:
            raise CourseError(
                f"Moodle's course {self.course} has no assignment {number}."
            )
        return self.assignments[number]

    def _upload(self, page: Path) -> int:
        """The number of a draft area that holds the page."""
        with _said("Moodle"), page.open("rb") as file:
            answer = self.session.post(
                f"{self.address}/webservice/upload.php",
                data={"token": self.token, "filearea": "draft", "itemid": 0},
                files={"file_1": (page.name, file, "text/html")},
            )
            return int(self._checked(answer)[0]["itemid"])

    def _ask(self, function: str, data: Mapping[str, Any]) -> Any:
        with _said("Moodle"):
            answer = self.session.post(
                f"{self.address}/webservice/rest/server.php",
                data={
                    "wstoken": self.token,
                    "wsfunction": function,
                    "moodlewsrestformat": "json",
                    **data,
                },
            )
            return self._checked(answer)

    @staticmethod
    def _checked(answer: requests.Response) -> Any:
        answer.raise_for_status()
        tree = answer.json()
        # Moodle answers 200, and says in the text what went wrong
        if isinstance(tree, dict) and ("exception" in tree or "error" in tree):
            said = tree.get("message") or tree.get("error")
            raise CourseError(f"Moodle refuses: {said}")
        return tree


@contextmanager
def _said(name: str) -> Iterator[None]:
    """Turns what goes wrong on the way into a sentence without the token."""
    try:
        yield
    except CanvasException as error:
        raise CourseError(f"{name} refuses: {_short(error)}") from error
    except requests.ConnectionError as error:
        raise CourseError(
            f"{name} cannot be reached at the address of [lms] in course.toml."
        ) from error
    except requests.Timeout as error:
        raise CourseError(
            f"{name} does not answer within {PATIENCE_S} seconds; try again."
        ) from error
    except requests.HTTPError as error:
        code = 0 if error.response is None else error.response.status_code
        why = (
            "it has too much to do, or is broken; try again later"
            if code == 429 or code >= 500
            else "is the address right?"
        )
        raise CourseError(f"{name} answers {code}: {why}") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CourseError(
            f"{name} answers what is not understood here ({_short(error)})."
        ) from error


def _short(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}…"


def _canvas_student(one: Any) -> Student:
    last, _, first = getattr(one, "sortable_name", "").partition(", ")
    return Student(
        id=getattr(one, "login_id", None) or f"canvas{one.id}",
        first_name=first,
        last_name=last,
        email=getattr(one, "email", None) or "",
        lms_user_id=str(one.id),
    )


def _iso(text: str | None) -> datetime | None:
    return None if not text else datetime.fromisoformat(text).astimezone(UTC)


def _seconds(moment: int | None) -> datetime | None:
    return datetime.fromtimestamp(moment, UTC) if moment else None
