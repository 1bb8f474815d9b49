"""The class server without a shared disk: ngshare is the exchange. A day over HTTP, and
what a learner may not do through ngshare's interface; docs/server.md has the page."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
import yaml
from hub import (
    CHAPTER,
    COURSE_ID,
    PATIENCE_S,
    RIGHT,
    Hub,
    Person,
    hand_in,
    shared_hub,
)

from course_exchange.share import Share

VALUES = "deploy/kubernetes/values.yaml"
pytestmark = pytest.mark.slow

ADA, BOB, CARL = "tt-ada", "tt-bob", "tt-carl"
RELEASED = f"{COURSE_ID}.released"
KEEPER = "ngshare-grading"


def ask(
    person: Person,
    method: str,
    path: str,
    form: str = "None",
    token: str = "os.environ['JUPYTERHUB_API_TOKEN']",
    address: str = "os.environ['COURSE_SHARE']",
) -> tuple[int, str]:
    """What ngshare answers to a learner's own program.

    Args:
        person: with a server.
        method: of HTTP.
        path: behind the address, as it stands.
        form: an expression for what is sent.
        token: an expression for the token; "''" is none.
        address: an expression for ngshare's.

    Returns:
        The status, or 0 where the connection was closed, and the text.
    """
    said = person.run(
        textwrap.dedent(f"""
        import base64, json, os, requests
        def files(*pairs):
            return {{"files": json.dumps([
                {{"path": name, "content": base64.b64encode(text.encode()).decode()}}
                for name, text in pairs])}}
        token = {token}
        try:
            answer = requests.request({method!r}, {address} + {path!r}, data={form},
                headers={{"Authorization": "token " + token}} if token else {{}},
                allow_redirects=False, timeout=60)
            print(answer.status_code, answer.text)
        except requests.ConnectionError:
            print(0, "closed")
        """)
    )
    status, _, text = said.partition(" ")
    assert status.isdigit(), said
    return int(status), text


def moments(person: Person) -> list[str]:
    """When this person handed in, as ngshare says."""
    _, text = ask(
        person, "GET", f"/submissions/{COURSE_ID}/{CHAPTER}/{person.name}"
    )
    return [one["timestamp"] for one in json.loads(text)["submissions"]]


def play_the_day(hub: Hub) -> None:
    """Release; two hand in and get feedback."""
    hub.as_grader("release")
    ada, bob = hub.person(ADA).start(), hub.person(BOB).start()
    hand_in((ada, RIGHT), (bob, {"mean": RIGHT["mean"]}))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A class server on the evening of such a day."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with shared_hub(
        base / "share",
        [ADA, BOB, CARL],
        play_the_day,
        'exchange = "ngshare"\n',
    ) as one:
        yield one


@pytest.fixture(scope="module")
def ada(hub: Hub) -> Person:
    return hub.person(ADA).start()


@pytest.fixture(scope="module")
def bob(hub: Hub) -> Person:
    return hub.person(BOB).start()


def collect(hub: Hub, student: str) -> Path:
    """Collects by hand; where that learner's work lies then."""
    hub.as_grader("collect", CHAPTER)
    return hub.course / "class" / "submitted" / student / CHAPTER


# The day


def test_what_was_handed_in_is_graded_and_the_page_is_back(
    hub: Hub, ada: Person
) -> None:
    assert {ADA: 5.0, BOB: 2.0}.items() <= hub.points().items()
    found = ada.run(
        "import glob\n"
        f"print(open(glob.glob('{CHAPTER}/feedback/*/*.html')[0]).read())"
    )
    assert "values are doubled" in found


def test_a_room_shows_no_exchange_and_no_course(hub: Hub, ada: Person) -> None:
    said = ada.run(
        "print(open('/proc/self/mountinfo').read())\n"
        "import os; print(os.listdir('/run'), os.path.exists('/srv'),"
        " os.environ['COURSE_EXCHANGE'])"
    )
    assert f"{hub.course}/class" not in said
    assert f"{hub.course}/hub/share" not in said
    assert f"['course'] False /home/{ADA}/.course/exchange" in said


def test_a_new_edition_takes_nobodys_work_away(hub: Hub, bob: Person) -> None:
    before = moments(bob)
    assert before
    hub.as_grader("release")
    assert moments(bob) == before
    assert [one["assignment_id"] for one in bob.assignments()][:1] == [CHAPTER]
    assert bob.has_feedback()


def test_when_it_is_due_comes_along(hub: Hub, ada: Person) -> None:
    hub.as_grader("due", CHAPTER, "2031-05-06 07:08")
    ada.assignments()
    said = ada.run(
        "import os\n"
        f"print(open(os.environ['COURSE_EXCHANGE'] + '/{COURSE_ID}/due.json').read())"
    )
    assert json.loads(said)[CHAPTER].startswith("2031-05-0")


def test_the_hour_of_a_submission_is_the_servers(hub: Hub, ada: Person) -> None:
    """Whatever the learner's own timestamp.txt says."""
    before = moments(ada)
    ada.run(
        f"open(os.path.expanduser('~/work/{CHAPTER}/timestamp.txt'), 'w')"
        ".write('2001-01-01 00:00:00.000000 UTC')"
    )
    ada.assignments("submit")
    (new,) = set(moments(ada)) - set(before)
    kept = collect(hub, ADA) / "timestamp.txt"
    assert kept.read_text() == f"{new} UTC"
    ada.run(f"os.remove(os.path.expanduser('~/work/{CHAPTER}/timestamp.txt'))")


def test_what_is_too_large_to_hand_in_is_said_and_not_shown_as_handed_in(
    ada: Person,
) -> None:
    before = moments(ada)
    ada.run(f"open('{CHAPTER}/large.bin', 'wb').write(os.urandom(17 * 2**20))")
    answer = ada.post(
        "assignments/submit",
        data={"course_id": COURSE_ID, "assignment_id": CHAPTER},
    ).json()
    ada.run(f"os.remove('{CHAPTER}/large.bin')")
    assert not answer["success"]
    assert "16 MiB" in answer["value"]
    assert moments(ada) == before
    listed = ada.assignments()
    (sent,) = [one for one in listed if one["status"] == "submitted"]
    assert len(sent["submissions"]) <= len(before)


def test_every_attempt_is_collected_where_the_best_counts(
    hub: Hub, bob: Person
) -> None:
    """Also what was handed in between two looks."""
    known = set(moments(bob))
    for answers in (RIGHT, {"mean": "def mean(x):\n    return 0.0"}):
        bob.write(answers)
        bob.assignments("submit")
    new = set(moments(bob)) - known
    assert len(new) == 2
    settings = hub.course / "course.toml"
    before = settings.read_text()
    settings.write_text('attempts = "best"\n' + before)
    try:
        collect(hub, BOB)
    finally:
        settings.write_text(before)
    people = hub.course / "class"
    kept = [
        *(people / "versions" / BOB / CHAPTER).glob("*/timestamp.txt"),
        people / "submitted" / BOB / CHAPTER / "timestamp.txt",
    ]
    assert {f"{one} UTC" for one in new} <= {one.read_text() for one in kept}


# What a learner may not


@pytest.mark.parametrize(
    ("method", "path", "form"),
    [
        # another's submission
        ("GET", f"/submission/{COURSE_ID}/{CHAPTER}/{BOB}", "None"),
        (
            "GET",
            f"/submission/{COURSE_ID}/{CHAPTER}/{BOB}?list_only=true",
            "None",
        ),
        ("GET", f"/submissions/{COURSE_ID}/{CHAPTER}", "None"),
        ("GET", f"/submissions/{COURSE_ID}/{CHAPTER}/{BOB}", "None"),
        ("GET", f"/submissions/{COURSE_ID}/{CHAPTER}/{BOB}?user={BOB}", "None"),
        (
            "GET",
            f"/submission/{COURSE_ID}/{CHAPTER}/{ADA}%2f..%2f{BOB}",
            "None",
        ),
        ("GET", f"/submission/{COURSE_ID}/{CHAPTER}/{ADA}/../{BOB}", "None"),
        # another's feedback, and one's own marks
        (
            "GET",
            f"/feedback/{COURSE_ID}/{CHAPTER}/{BOB}?timestamp=MOMENT",
            "None",
        ),
        (
            "POST",
            f"/feedback/{COURSE_ID}/{CHAPTER}/{ADA}",
            "{'timestamp': 'MOMENT', **files(('x.html', 'full marks'))}",
        ),
        (
            "POST",
            f"/feedback/{COURSE_ID}/{CHAPTER}/{BOB}",
            "{'timestamp': 'MOMENT', **files(('x.html', 'no marks'))}",
        ),
        # what is released
        ("POST", f"/assignment/{RELEASED}/04_more", "files(('x.ipynb', '{}'))"),
        (
            "POST",
            f"/assignment/{COURSE_ID}/04_more",
            "files(('x.ipynb', '{}'))",
        ),
        ("POST", f"/assignment/{RELEASED}/{CHAPTER}", "files(('x', ''))"),
        ("DELETE", f"/assignment/{RELEASED}/{CHAPTER}", "None"),
        ("DELETE", f"/assignment/{COURSE_ID}/{CHAPTER}", "None"),
        ("DELETE", f"/course/{COURSE_ID}", "None"),
        # who teaches, and who learns
        ("POST", "/course/mine", f"{{'instructors': '[\"{ADA}\"]'}}"),
        (
            "POST",
            f"/instructor/{COURSE_ID}/{ADA}",
            "dict(first_name='', last_name='', email='')",
        ),
        ("DELETE", f"/student/{COURSE_ID}/{BOB}", "None"),
        (
            "POST",
            f"/student/{COURSE_ID}/tt-nobody",
            "dict(first_name='', last_name='', email='')",
        ),
        ("GET", f"/student/{COURSE_ID}/{BOB}", "None"),
        ("GET", f"/students/{COURSE_ID}", "None"),
        # ngshare's pages
        ("GET", "/", "None"),
        ("GET", "/initialize-Data6ase?action=dump", "None"),
        ("GET", "/initialize-Data6ase?action=clear", "None"),
        ("GET", "/oauth_callback", "None"),
        ("GET", "/oauth_callback?code=guessed", "None"),
        ("GET", "/favicon.ico", "None"),
    ],
)
def test_ngshare_refuses(
    ada: Person, bob: Person, method: str, path: str, form: str
) -> None:
    (moment, *_) = moments(bob)
    status, text = ask(
        ada,
        method,
        path.replace("MOMENT", moment),
        form.replace("MOMENT", moment),
    )
    assert status in (403, 404), (status, text)
    assert "content" not in text
    assert moment in moments(bob)


@pytest.mark.parametrize(
    "token",
    ["''", "'0' * 32", "os.environ['JUPYTERHUB_API_TOKEN'][:-1]"],
    ids=["none", "guessed", "cut"],
)
def test_who_is_not_known_gets_nothing(ada: Person, token: str) -> None:
    status, text = ask(ada, "GET", f"/assignments/{RELEASED}", token=token)
    assert status == 401, text


@pytest.mark.parametrize("person", ["tt-grace", BOB])
def test_anothers_token_that_was_given_for_something_else_is_nobodys(
    hub: Hub, ada: Person, person: str
) -> None:
    """An instructor who opens a learner's server leaves such a token there."""
    other = hub.person(person)
    made = other.session.post(
        f"{hub.address}/hub/api/users/{person}/tokens",
        json={"scopes": [f"access:servers!user={person}", "read:users!user"]},
        headers={"X-XSRFToken": other.cookie("/hub/")},
        timeout=PATIENCE_S,
    )
    assert made.status_code == 201, made.text
    token = made.json()["token"]
    for path in (
        f"/submissions/{COURSE_ID}/{CHAPTER}/{person}",
        f"/students/{COURSE_ID}",
    ):
        status, text = ask(ada, "GET", path, token=repr(token))
        assert status == 401, text


def test_a_cookie_says_nothing(hub: Hub) -> None:
    """A page that somebody is lured to sends cookies along, and no token."""
    grace = hub.person("tt-grace")
    for path in ("", "courses", f"students/{COURSE_ID}"):
        answer = grace.session.get(
            f"{hub.address}/services/ngshare/{path}", timeout=PATIENCE_S
        )
        assert answer.status_code in (401, 404)
        assert "ngshare-oauth-token" not in grace.session.cookies


def test_nobody_submits_as_another(hub: Hub, ada: Person, bob: Person) -> None:
    before, own = moments(bob), moments(ada)
    for path in (
        f"/submission/{COURSE_ID}/{CHAPTER}?user={BOB}&student_id={BOB}",
        f"/submission/{COURSE_ID}/{CHAPTER}/{BOB}",
    ):
        ask(
            ada,
            "POST",
            path,
            f"{{**files(('{CHAPTER}.ipynb', 'hers')), 'user': '{BOB}',"
            f" 'student_id': '{BOB}'}}",
        )
    assert moments(bob) == before
    assert len(moments(ada)) == len(own) + 1


@pytest.mark.parametrize(
    "name",
    [
        "../../../../etc/cron.d/x",
        "/etc/cron.d/x",
        "..",
        ".",
        "",
        "a/../../b",
        "a/./b",
    ],
)
def test_a_name_that_leads_out_is_refused(ada: Person, name: str) -> None:
    before = moments(ada)
    status, text = ask(
        ada,
        "POST",
        f"/submission/{COURSE_ID}/{CHAPTER}",
        f"files(({name!r}, 'x'))",
    )
    assert status == 400, text
    assert moments(ada) == before


def test_no_body_is_too_large_for_the_server(ada: Person) -> None:
    """It is not read to its end, and everybody else goes on."""
    before = moments(ada)
    status, _ = ask(
        ada,
        "POST",
        f"/submission/{COURSE_ID}/{CHAPTER}",
        "files(('x', 'x' * 40 * 2**20))",
    )
    assert status in (0, 400, 413, 502, 503)
    assert moments(ada) == before


def test_what_is_no_submission_harms_nobody(
    hub: Hub, ada: Person, bob: Person
) -> None:
    for form in (
        "{'files': 'no JSON'}",
        "{'files': '[1]'}",
        "{'files': '{}'}",
        "{'files': '[{\"path\": 1, \"content\": 2}]'}",
        "{'files': '[{\"path\": \"a\"}]'}",
        "{}",
        "files(('x.' + chr(0), 'x'))",
        "files(('x' * 5000, 'x'))",
    ):
        ask(ada, "POST", f"/submission/{COURSE_ID}/{CHAPTER}", form)
    before = moments(bob)
    bob.assignments("submit")
    (new,) = set(moments(bob)) - set(before)
    assert (collect(hub, BOB) / "timestamp.txt").read_text() == f"{new} UTC"


def test_files_that_stand_in_each_others_way_stop_nobodys_collection(
    hub: Hub, ada: Person, bob: Person
) -> None:
    status, text = ask(
        ada,
        "POST",
        f"/submission/{COURSE_ID}/{CHAPTER}",
        "files(('a', 'x'), ('a/b', 'x'), ('b/c', 'x'), ('b', 'x'),"
        " ('e' * 300, 'x'), *((f'n{i}', '') for i in range(1200)))",
    )
    assert status == 200, text
    before = moments(bob)
    bob.assignments("submit")
    (new,) = set(moments(bob)) - set(before)
    assert (collect(hub, BOB) / "timestamp.txt").read_text() == f"{new} UTC"
    # of hers there is an older one that can be graded
    assert (collect(hub, ADA) / f"{CHAPTER}.ipynb").is_file()


def test_a_guessed_moment_brings_nothing(ada: Person, bob: Person) -> None:
    (moment, *_) = moments(bob)
    for when in (moment, "2099-01-01 00:00:00.000000", "' or 1=1 --", ""):
        status, text = ask(
            ada,
            "GET",
            f"/feedback/{COURSE_ID}/{CHAPTER}/{ADA}?timestamp={when}",
        )
        assert status in (400, 404), text


def test_who_is_not_in_the_course_sees_nothing_of_it(
    hub: Hub, ada: Person
) -> None:
    """carl has never had a server, but has a token of his own."""
    carl = hub.person(CARL)
    token = carl.session.post(
        f"{hub.address}/hub/api/users/{CARL}/tokens",
        json={},
        headers={"X-XSRFToken": carl.cookie("/hub/")},
        timeout=PATIENCE_S,
    ).json()["token"]
    for path in (
        f"/assignments/{RELEASED}",
        f"/assignment/{RELEASED}/{CHAPTER}",
    ):
        answer = requests.get(
            f"{hub.address}/services/ngshare{path}",
            headers={"Authorization": f"token {token}"},
            timeout=PATIENCE_S,
        )
        assert answer.status_code == 403


def test_the_graders_token_is_the_graders(hub: Hub, ada: Person) -> None:
    file = hub.course / "hub" / "grader" / "share.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_uid == (hub.course / "class").stat().st_uid
    token = json.loads(file.read_text())["token"]
    said = ada.run(
        f"import glob\nprint(dict(os.environ))\nprint(os.path.exists('{file}'))"
    )
    assert token not in said
    assert said.rstrip().endswith("False")


def test_what_ngshare_keeps_is_its_own(hub: Hub, ada: Person) -> None:
    kept = hub.course / "hub" / "share"
    owner = kept.stat().st_uid
    assert kept.stat().st_mode & 0o077 == 0
    assert owner not in (0, (hub.course / "class").stat().st_uid)
    assert (kept / "ngshare.db").stat().st_uid == owner
    assert (kept / "ngshare.db").stat().st_mode & 0o077 == 0
    said = ada.run(f"print(os.path.exists('{kept}'))")
    assert said.strip() == "False"


def test_its_own_port_asks_the_same(hub: Hub, ada: Person, bob: Person) -> None:
    address = f"'http://127.0.0.1:{hub.port + 4}/services/ngshare'"
    for token, wanted in (
        ("''", 401),
        ("os.environ['JUPYTERHUB_API_TOKEN']", 403),
    ):
        status, text = ask(
            ada,
            "GET",
            f"/submission/{COURSE_ID}/{CHAPTER}/{BOB}",
            token=token,
            address=address,
        )
        assert status == wanted, text


def test_ngshare_hears_this_machine_alone(hub: Hub) -> None:
    with open("/proc/net/tcp") as file:
        rows = [row.split() for row in file.readlines()[1:]]
    heard = {
        row[1].split(":")[0]
        for row in rows
        if row[3] == "0A" and int(row[1].split(":")[1], 16) == hub.port + 4
    }
    assert heard == {"0100007F"}


def test_nobody_has_the_name_of_a_service(hub: Hub) -> None:
    """ngshare goes by names, and a service's has a colon there."""
    with (hub.course / "hub/private/passwords.csv").open() as file:
        assert KEEPER not in {row["id"] for row in csv.DictReader(file)}
    for name in (KEEPER, f"service:{KEEPER}"):
        stranger = Person(hub, name)
        assert stranger.login("12345678").status_code == 403


def test_the_hook_of_the_values_for_kubernetes_enrols(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It speaks to this ngshare as it would to one on a cluster."""
    known = json.loads((hub.course / "hub/grader/share.json").read_text())
    monkeypatch.setenv("COURSE_SHARE", known["url"])
    monkeypatch.setenv("COURSE_SHARE_TOKEN", known["token"])
    text = (Path(__file__).parent.parent / VALUES).read_text()
    space = {"c": SimpleNamespace(Spawner=SimpleNamespace())}
    exec(yaml.safe_load(text)["hub"]["extraConfig"]["enrol"], space)
    learner = SimpleNamespace(user=SimpleNamespace(name="tt-dora"))
    for _ in range(2):  # whoever starts a server again is there already
        asyncio.run(space["c"].Spawner.pre_spawn_hook(learner))
    share = Share(known["url"], known["token"], COURSE_ID)
    for course in (COURSE_ID, RELEASED):
        said = share.ask("GET", "student", course, "tt-dora")
        assert said["username"] == "tt-dora"
