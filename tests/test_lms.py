"""Canvas and Moodle over their web interfaces, against stand-ins that answer as
their published schemas say."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from commands import course_says, environment, put, run_course
from nbgrader.api import Gradebook

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.classroom.lms import TOKEN, TRIES, open_system
from course_grader.classroom.nbgrader_api import open_classroom
from course_grader.classroom.term import read_extensions
from course_grader.course import Course, CourseError

SECRET = "token-of-the-test"
DUE = "2026-11-20T17:00:00Z"


class StandIn(ThreadingHTTPServer):
    """A web server that remembers what it was asked."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.files: list[bytes] = []
        self.trouble: list[int] = []
        """Codes that the next requests get, in place of an answer."""
        self.refused: list[tuple[str, str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *more: Any) -> None:
        pass

    def answer(self, tree: Any, code: int = 200, **headers: str) -> None:
        body = json.dumps(tree).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.server.trouble and (code := self.server.trouble.pop(0)):
            self.body()
            self.server.refused.append((self.command, self.path))
            tree = {"errors": [{"message": "busy"}]}
            self.answer(tree, code, **{"Retry-After": "0"})
            return False
        return True

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def form(self, body: bytes) -> dict[str, Any]:
        text = parse_qs(body.decode("utf-8", "replace"))
        return {name: values[0] for name, values in text.items()}


class CanvasHandler(Handler):
    """https://canvas.instructure.com/doc/api: two pages of users, one assignment."""

    USERS = (
        {
            "id": 1815,
            "sortable_name": "Lovelace, Ada",
            "login_id": "ada",
            "email": "ada@example.org",
        },
        {"id": 1900, "sortable_name": "Ó Hara, Bob", "login_id": "bob"},
    )

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        if self.headers.get("Authorization") != f"Bearer {SECRET}":
            self.answer({"errors": [{"message": "Invalid access token."}]}, 401)
        elif path.path == "/api/v1/courses/7":
            self.answer({"id": 7, "name": "Tricks"})
        elif path.path == "/api/v1/courses/7/search_users":
            page = int(parse_qs(path.query).get("page", ["1"])[0])
            link = f"{self.server.address}/api/v1/courses/7/search_users?page=2"
            more = {"Link": f'<{link}>; rel="next"'} if page == 1 else {}
            self.answer([self.USERS[page - 1]], **more)
        elif path.path == "/api/v1/courses/7/assignments/77":
            self.answer({"id": 77, "course_id": 7, "due_at": DUE})
        elif path.path == "/api/v1/courses/7/assignments/77/submissions":
            self.answer(
                [
                    {
                        "user_id": 1815,
                        "submitted_at": "2026-11-20T16:59:00Z",
                        "late": False,
                        "cached_due_date": DUE,
                    },
                    {
                        "user_id": 1900,
                        "submitted_at": "2026-11-21T17:30:00Z",
                        "late": True,
                        "cached_due_date": "2026-11-23T17:30:00Z",
                    },
                    {"user_id": 5, "submitted_at": None, "late": False},
                ]
            )
        elif found := re.fullmatch(
            "/api/v1/courses/7/assignments/77/submissions/(\\d+)", path.path
        ):
            self.answer(
                {"user_id": int(found[1]), "assignment_id": 77, "course_id": 7}
            )
        else:
            self.answer({"errors": [{"message": "not found"}]}, 404)

    def do_PUT(self) -> None:
        self.server.asked.append(("PUT", self.path, self.form(self.body())))
        self.answer({"user_id": 1815, "assignment_id": 77, "course_id": 7})

    def do_POST(self) -> None:
        body = self.body()
        if self.path == "/upload":
            self.server.files.append(body)
            self.answer({"id": 4, "url": "https://files.example.edu/4"})
            return
        self.server.asked.append(("POST", self.path, self.form(body)))
        self.answer(
            {
                "upload_url": f"{self.server.address}/upload",
                "upload_params": {"content_type": "text/html"},
            }
        )


class MoodleHandler(Handler):
    """Moodle's REST server: one address, the function in the form."""

    def do_POST(self) -> None:
        body = self.body()
        if self.path == "/webservice/upload.php":
            self.server.files.append(body)
            self.answer([{"itemid": 99, "filename": "page.html"}])
            return
        form = self.form(body)
        self.server.asked.append(("POST", form["wsfunction"], form))
        if form["wstoken"] != SECRET:
            self.answer(
                {"exception": "moodle_exception", "message": "Invalid token"}
            )
            return
        self.answer(
            {
                "core_enrol_get_enrolled_users": [
                    {
                        "id": 11,
                        "username": "ada",
                        "firstname": "Ada",
                        "lastname": "Lovelace",
                        "email": "ada@example.org",
                        "roles": [{"shortname": "student"}],
                    },
                    {
                        "id": 12,
                        "username": "teacher",
                        "roles": [{"shortname": "editingteacher"}],
                    },
                ],
                "mod_assign_get_assignments": {
                    "courses": [
                        {
                            "id": 7,
                            "assignments": [
                                {"id": 5, "cmid": 77, "duedate": 1795194000}
                            ],
                        }
                    ]
                },
                "mod_assign_get_submissions": {
                    "assignments": [
                        {
                            "assignmentid": 5,
                            "submissions": [
                                {
                                    "userid": 11,
                                    "status": "submitted",
                                    "timemodified": 1795193940,
                                },
                                {
                                    "userid": 13,
                                    "status": "new",
                                    "timemodified": 1,
                                },
                            ],
                        }
                    ]
                },
                "mod_assign_get_user_flags": {
                    "assignments": [
                        {
                            "assignmentid": 5,
                            "userflags": [
                                {"userid": 11, "extensionduedate": 0},
                                {"userid": 13, "extensionduedate": 1795366800},
                            ],
                        }
                    ]
                },
                "mod_assign_save_grade": None,
            }[form["wsfunction"]]
        )


@pytest.fixture
def canvas() -> Iterator[StandIn]:
    server = StandIn(CanvasHandler)
    yield server
    server.shutdown()


@pytest.fixture
def moodle() -> Iterator[StandIn]:
    server = StandIn(MoodleHandler)
    yield server
    server.shutdown()


def settings(course: Course, kind: str, address: str) -> None:
    with course.settings_file.open("a") as file:
        file.write(
            f'[lms]\nkind = "{kind}"\naddress = "{address}"\ncourse = 7\n'
            'assignments = { "03" = 77 }\n'
        )


@pytest.mark.filterwarnings("ignore:Canvas may respond unexpectedly")
@pytest.mark.parametrize("kind", ["canvas", "moodle"])
def test_both_say_who_when_and_take_marks(
    mini: Course,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    server: StandIn = request.getfixturevalue(kind)
    settings(mini, kind, server.address)
    monkeypatch.setenv(TOKEN, SECRET)
    system = open_system(Course(mini.root))
    people = {one.id: one for one in system.students()}
    assert "teacher" not in people
    assert people["ada"].last_name == "Lovelace"
    user = people["ada"].lms_user_id
    due = system.due(77)
    assert due is not None
    assert due.isoformat() == "2026-11-20T17:00:00+00:00"
    handed = system.handed_in(77)[user]
    assert handed.at is not None
    assert handed.at.isoformat() == "2026-11-20T16:59:00+00:00"
    assert not handed.late
    other, more_time = {
        "canvas": ("1900", timedelta(days=3, minutes=30)),
        "moodle": ("13", timedelta(days=2)),
    }[kind]
    assert system.handed_in(77)[other].due == due + more_time

    page = tmp_path / "03_mini.html"
    page.write_text("<p>well done</p>")
    system.give(77, user, 4.5, page)
    assert b"<p>well done</p>" in server.files[0]
    if kind == "canvas":
        puts = [form for verb, _, form in server.asked if verb == "PUT"]
        assert puts[0] == {"submission[posted_grade]": "4.5"}
        assert puts[1] == {"comment[file_ids][]": "4"}
    else:
        _, function, form = server.asked[-1]
        assert function == "mod_assign_save_grade"
        assert form["assignmentid"] == "5"
        assert form["grade"] == "4.5"
        assert form["plugindata[files_filemanager]"] == "99"


@pytest.mark.filterwarnings("ignore:Canvas may respond unexpectedly")
@pytest.mark.parametrize("kind", ["canvas", "moodle"])
def test_a_wrong_token_is_a_sentence_without_it(
    mini: Course,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    settings(mini, kind, request.getfixturevalue(kind).address)
    monkeypatch.setenv(TOKEN, "wrong-token")
    with pytest.raises(CourseError, match="refuses") as refused:
        open_system(Course(mini.root)).students()
    assert "wrong-token" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "token", "said"),
    [
        ("", SECRET, "lacks kind, address, course"),
        ('[lms]\nkind = "canvas"\n', SECRET, "lacks address, course"),
        (
            '[lms]\nkind = "canvas"\naddress = "http://a.b"\ncourse = 7\n',
            SECRET,
            "does not begin with https",
        ),
        (
            '[lms]\nkind = "blackboard"\naddress = "https://a"\ncourse = 7\n',
            SECRET,
            '"canvas" or "moodle"',
        ),
        (
            '[lms]\nkind = "moodle"\naddress = "https://a"\ncourse = 7\n',
            "",
            TOKEN,
        ),
    ],
)
def test_what_is_missing_is_said(
    mini: Course,
    written: str,
    token: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mini.settings_file.open("a") as file:
        file.write(written)
    monkeypatch.setenv(TOKEN, token)
    with pytest.raises(CourseError, match=said):
        open_system(Course(mini.root))


def test_nobody_is_there(mini: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(mini, "moodle", "http://127.0.0.1:9")
    monkeypatch.setenv(TOKEN, SECRET)
    with pytest.raises(CourseError, match="cannot be reached"):
        open_system(Course(mini.root)).students()


def test_roster_and_due_dates_come_by_the_command(
    released: Course, canvas: StandIn
) -> None:
    mini = released
    settings(mini, "canvas", canvas.address)
    known = environment(activated=False) | {TOKEN: SECRET}
    done = run_course(mini.root, "lms", env=known)
    assert done.returncode == 0, done.stderr
    assert "2 learners are on the roster." in done.stdout
    assert "03_mini is due 2026-11-20" in done.stdout
    with Gradebook(f"sqlite:///{mini.people}/gradebook.db") as gradebook:
        assert {one.id: one.lms_user_id for one in gradebook.students} == {
            "ada": "1815",
            "bob": "1900",
        }
    # bob has an extension there
    assert "bob has until 2026-11-23" in done.stdout
    assert "ada has until" not in done.stdout
    assert read_extensions(open_classroom(mini).coursedir) == {
        ("bob", "03_mini"): pytest.approx(3 + 1 / 48)
    }
    again = run_course(mini.root, "lms", env=known)
    assert "bob has until" not in again.stdout
    # and nothing goes out unasked
    done = run_course(mini.root, "lms", "03", env=known)
    assert done.returncode == 0, done.stderr
    assert "Nothing was sent." in done.stdout
    assert canvas.asked == []


@pytest.mark.filterwarnings("ignore:Canvas may respond unexpectedly")
@pytest.mark.parametrize("kind", ["canvas", "moodle"])
def test_a_busy_system_is_asked_again(
    mini: Course,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    server: StandIn = request.getfixturevalue(kind)
    settings(mini, kind, server.address)
    monkeypatch.setenv(TOKEN, SECRET)
    system = open_system(Course(mini.root))
    server.trouble = [429, 503]
    assert "ada" in {one.id for one in system.students()}
    assert len(server.refused) == 2

    # a mark is set once, and refused as busy at first
    user = {one.id: one.lms_user_id for one in system.students()}["ada"]
    server.trouble = [429, 0, 429]
    system.give(77, user, 4.5, None)
    given = [
        form
        for verb, path, form in server.asked
        if verb == "PUT" or path == "mod_assign_save_grade"
    ]
    assert len(given) == 1

    # it never recovers: a sentence, after as many tries as are said
    server.refused.clear()
    server.trouble = [503] * 20
    with pytest.raises(CourseError, match="503"):
        system.students()
    assert len(server.refused) == TRIES


@pytest.mark.filterwarnings("ignore:Canvas may respond unexpectedly")
def test_a_comment_is_not_sent_twice_where_canvas_fails(
    mini: Course,
    canvas: StandIn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have taken it, and said so to nobody."""
    settings(mini, "canvas", canvas.address)
    monkeypatch.setenv(TOKEN, SECRET)
    system = open_system(Course(mini.root))
    page = tmp_path / "03_mini.html"
    page.write_text("<p>well done</p>")
    # assignment, submission, mark, name of the file, the file, the comment
    canvas.trouble = [0, 0, 0, 0, 0, 502]
    with pytest.raises(CourseError, match="502"):
        system.give(77, "1815", 4.5, page)
    assert [verb for verb, _ in canvas.refused] == ["PUT"]


@pytest.mark.filterwarnings("ignore:Canvas may respond unexpectedly")
def test_marks_that_were_half_sent_are_finished(
    released: Course, canvas: StandIn
) -> None:
    """Whoever has mark and page gets neither again; a changed mark goes alone."""
    mini, root = released, released.root
    settings(mini, "canvas", canvas.address)
    known = environment(activated=False) | {TOKEN: SECRET}
    assert run_course(root, "lms", env=known).returncode == 0
    grading, _, released = build_chapter(mini, "03_mini")
    right = {one.id: one.source for one in grading.chapter.exercises}
    for student in ("ada", "bob"):
        put(root, student, answered(grading, released, right))
    course_says(root, "grade", "03")
    course_says(root, "feedback", "03")

    def send() -> tuple[int, str, list[str]]:
        canvas.asked.clear()
        done = run_course(root, "lms", "03", "--send", env=known)
        marks = [
            path.rpartition("/")[2]
            for verb, path, form in canvas.asked
            if verb == "PUT" and "submission[posted_grade]" in form
        ]
        return done.returncode, done.stdout, marks

    # course, then six requests for ada; bob's mark is refused, and ada's stays
    canvas.trouble = [0] * 9 + [400]
    code, said, marks = send()
    assert (code, marks) == (1, ["1815"]), said
    assert "bob: not sent. Canvas refuses" in said
    code, said, marks = send()
    assert (code, marks) == (0, ["1900"])
    assert "ada: 5 points, there already" in said
    assert "2 marks are there." in said
    assert send()[2] == []

    with Gradebook(f"sqlite:///{mini.people}/gradebook.db") as gradebook:
        grade = gradebook.find_grade("mean_hidden", "03_mini", "03_mini", "ada")
        grade.extra_credit = 1
        gradebook.db.commit()
    files = len(canvas.files)
    assert send()[2] == ["1815"]
    assert len(canvas.files) == files
    course_says(root, "forget", "ada", "--yes")
    assert "ada" not in (mini.people / "sent.json").read_text()
