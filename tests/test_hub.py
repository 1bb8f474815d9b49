"""The class server: a day over HTTP, and what a learner may not do. The hub, the proxy,
the accounts and the rooms are real; docs/server.md is the page about them."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from hub import (
    CHAPTER,
    COURSE_ID,
    PATIENCE_S,
    RIGHT,
    Hub,
    Person,
    hand_in,
    shared_hub,
    stop_server,
    submitted_name,
    until,
)

ADA, BOB, CARL = "tt-ada", "tt-bob", "tt-carl"
INBOUND = f"/srv/exchange/{COURSE_ID}/inbound"
OUTBOUND = f"/srv/exchange/{COURSE_ID}/outbound/{CHAPTER}"
SECRET = "bob's own words"


def malice(hub: Hub) -> str:
    """What ada does before anybody has handed in, as a cell: submissions in bob's
    and carl's names, and one of her own that points to everything she wants."""
    course = hub.course
    return textwrap.dedent(f"""
        import os, shutil
        work = os.path.expanduser("~/work/{CHAPTER}")
        for name in ("{BOB}", "{CARL}"):
            forged = f"{INBOUND}/{{name}}+{CHAPTER}+2099-01-01 12:00:00.000000 UTC"
            shutil.copytree(work, forged)
            os.chmod(forged, 0o755)
        os.makedirs(f"{{work}}/extra", exist_ok=True)
        for number, path in enumerate((
            "{course}/class/gradebook.db",
            "{course}/hub/private/passwords.csv",
            "{course}/autograde/{CHAPTER}/hidden_tests.py",
            "{course}/hub/homes/{BOB}/work",
            "/etc/shadow",
        )):
            os.symlink(path, f"{{work}}/extra/{{number}}.ipynb")
        os.mkfifo(f"{{work}}/extra/fifo")
        # nbgrader's Submit follows links, so she lays them there by hand
        own = f"{INBOUND}/{ADA}+{CHAPTER}+2020-01-01 12:00:00.000000 UTC"
        shutil.copytree(work, own, symlinks=True,
                        ignore=lambda folder, names: {{"fifo"}} & set(names))
        os.mkfifo(f"{{own}}/fifo")
        os.chmod(own, 0o755)
        shutil.rmtree(f"{{work}}/extra")
        # and one whose notebook is now a file, now a link, for as long as it takes
        race = f"{INBOUND}/{ADA}+{CHAPTER}+2020-01-02 12:00:00.000000 UTC"
        shutil.copytree(work, race)
        os.chmod(race, 0o755)
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", '''
        import os, time
        os.chdir("%s")
        kept = "{CHAPTER}.ipynb"
        end = time.monotonic() + 40
        while time.monotonic() < end:
            os.symlink("{course}/class/gradebook.db", "link")
            os.rename(kept, "kept")
            os.rename("link", kept)
            os.rename("kept", kept)
            time.sleep(0.001)
        '''.replace("\\n        ", "\\n") % race])
        print("laid out")
        """)


def play_the_day(hub: Hub) -> None:
    """Release, then malice, then two learners hand in; both get feedback."""
    hub.as_grader("release")
    ada, bob = hub.person(ADA).start(), hub.person(BOB).start()
    assert "laid out" in ada.run(malice(hub))
    bob.run(f"open('secret.txt', 'w').write({SECRET!r})")
    hand_in((ada, RIGHT), (bob, {"mean": RIGHT["mean"]}))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A class server on the evening of such a day."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with shared_hub(base / "hub", [ADA, BOB, CARL], play_the_day) as one:
        yield one


@pytest.fixture(scope="module")
def ada(hub: Hub) -> Person:
    return hub.person(ADA).start()


@pytest.fixture(scope="module")
def bob(hub: Hub) -> Person:
    return hub.person(BOB).start()


@pytest.fixture(scope="module")
def grace(hub: Hub) -> Person:
    return hub.person("tt-grace")


def collected(hub: Hub, student: str) -> Path:
    return hub.course / "class" / "submitted" / student / CHAPTER


# The day


def test_make_hub_says_three_lines(hub: Hub) -> None:
    address, teacher, learner, *_ = hub.first.splitlines()
    assert address == f"Address: {hub.address}"
    words = hub.passwords
    assert (
        teacher == f"First instructor: tt-grace, password {words['tt-grace']}"
    )
    assert learner == f"First learner: {ADA}, password {words[ADA]}"


def test_a_learner_lands_on_the_courses_page_with_the_chapters(
    ada: Person,
) -> None:
    answer = ada.session.get(f"{ada.hub.address}/hub/home", timeout=PATIENCE_S)
    assert answer.ok
    landed = ada.session.get(ada.home, timeout=PATIENCE_S)
    assert landed.url == f"{ada.home}course"
    assert f'href="{ada.home.removeprefix(ada.hub.address)}lab/tree/' in (
        landed.text
    )
    listed = ada.get("api/contents/").json()["content"]
    assert CHAPTER in {one["name"] for one in listed}
    # JupyterLab's menu leads back
    assert "course-home" in ada.get("lab").text


def test_what_was_handed_in_is_graded_and_the_page_is_back(
    hub: Hub, ada: Person
) -> None:
    assert hub.points() == {ADA: 5.0, BOB: 2.0}
    found = ada.run(
        "import glob\n"
        f"print(open(glob.glob('{CHAPTER}/feedback/*/*.html')[0]).read())"
    )
    assert "values are doubled" in found
    home = ada.get("course").text
    assert "<b>5</b> <span>of 5 points</span>" in home
    assert "handed in 20" in home
    report = ada.get(f"course/reports/{CHAPTER}").text
    assert "values are doubled" in report


def test_two_instructors_have_formgrader_at_once(hub: Hub) -> None:
    pages = f"{hub.address}/services/{COURSE_ID}/formgrader"
    for name in ("tt-grace", "tt-alan"):
        one = hub.person(name)
        first = one.session.get(f"{pages}/gradebook", timeout=PATIENCE_S)
        assert first.ok
        assert first.url == f"{pages}/gradebook"
        listed = one.session.get(f"{pages}/api/assignments", timeout=PATIENCE_S)
        (chapter,) = listed.json()
        assert chapter["name"] == CHAPTER
        assert chapter["num_submissions"] == 2


def test_a_mark_by_hand_says_whose_hand(hub: Hub) -> None:
    pages = f"{hub.address}/services/{COURSE_ID}"
    for name in ("tt-grace", "tt-alan"):
        one = hub.person(name)
        one.session.get(f"{pages}/formgrader/gradebook", timeout=PATIENCE_S)
        listed = one.session.get(
            f"{pages}/formgrader/api/submitted_notebooks/{CHAPTER}/{CHAPTER}",
            timeout=PATIENCE_S,
        ).json()
        (notebook,) = [row["id"] for row in listed if row["student"] == BOB]
        comments = one.session.get(
            f"{pages}/formgrader/api/comments?submission_id={notebook}",
            timeout=PATIENCE_S,
        ).json()
        written = one.session.put(
            f"{pages}/formgrader/api/comment/{comments[0]['id']}",
            json={"manual_comment": f"seen by {name}"},
            headers={"X-XSRFToken": one.cookie(f"/services/{COURSE_ID}/")},
            timeout=PATIENCE_S,
        )
        assert written.ok, written.text
        trail = (hub.course / "class" / "marks.jsonl").read_text()
        last = json.loads(trail.splitlines()[-1])
        assert (last["account"], last["student"]) == (name, BOB)
        assert last["after"] == f"seen by {name}"


def test_an_instructor_types_course_in_the_service(grace: Person) -> None:
    service = f"{grace.hub.address}/services/{COURSE_ID}/"
    grace.session.get(f"{service}lab", timeout=PATIENCE_S)
    listed = grace.session.get(f"{service}api/contents/", timeout=PATIENCE_S)
    assert "class" in {one["name"] for one in listed.json()["content"]}


@pytest.mark.slow
def test_an_instructors_own_server_lists_the_course(grace: Person) -> None:
    grace.start()
    listed = grace.get("formgraders").json()
    assert listed["success"], listed
    (course,) = listed["value"]
    assert course["course_id"] == COURSE_ID
    assert f"/services/{COURSE_ID}/lab" in course["url"]


# What a learner may not: by code in a kernel

ATTEMPTS = {
    "another's home": "os.listdir(os.path.expanduser('~/../{bob}'))",
    "another's home by its place": "os.listdir('{course}/hub/homes/{bob}')",
    "another's work": "os.listdir('{course}/hub/homes/{bob}/work')",
    "the course's folder": "os.listdir('{course}')",
    "hidden tests": "open('{course}/autograde/{chapter}/hidden_tests.py').read()",
    "solutions": "open('{course}/solutions/{chapter}/{chapter}.py').read()",
    "the real course's solutions": "os.listdir('{root}/solutions')",
    "the grader's code": "__import__('course_grader')",
    "the gradebook": "open('{course}/class/gradebook.db', 'rb').read()",
    "another's submission": "os.listdir('{course}/class/submitted/{bob}')",
    "another's feedback": "os.listdir('{course}/class/feedback/{bob}')",
    "the grading account's home": "os.listdir('{course}/hub/grader')",
    "the hub's database": "open('{course}/hub/private/jupyterhub.sqlite').read()",
    "first passwords": "open('{course}/hub/private/passwords.csv').read()",
    "the roster": "open('{course}/class/roster.csv').read()",
    "the machine's accounts": "open('/etc/shadow').read()",
    "writing to what is released": "open('{outbound}/{chapter}.ipynb', 'a')",
    "adding to what is released": "open('{outbound}/more', 'w')",
    "replacing what is released": "os.rename('{outbound}', '{outbound}.old')",
    "replacing the exchange": "os.rename('{exchange}', '{exchange}.old')",
    "listing what others handed in": "os.listdir('{inbound}')",
    "listing feedback": "os.listdir('{exchange}/feedback')",
    "guessing the name of a submission": (
        "os.stat('{inbound}/' + '{submission}'.rpartition('+')[0])"
    ),
    "reading a submission by its name": "os.listdir('{inbound}/{submission}')",
    "taking a submission away by its name": (
        "os.rename('{inbound}/{submission}', os.path.expanduser('~/taken'))"
    ),
    "renaming a submission": (
        "os.rename('{inbound}/{submission}', '{inbound}/{submission}.old')"
    ),
    "writing into a submission": (
        "open('{inbound}/{submission}/{chapter}.ipynb', 'a')"
    ),
    "emptying a submission": (
        "os.remove('{inbound}/{submission}/{chapter}.ipynb')"
    ),
    "a hard link to a submission": (
        "os.link('{inbound}/{submission}/{chapter}.ipynb', '{inbound}/mine')"
    ),
    "the settings of one's room": "open('/run/course/enter.sh', 'a')",
    "the Python of all": "open(os.__file__, 'a')",
    "course_utils of all": "open(__import__('course_utils').__file__, 'a')",
    "becoming root": "os.setuid(0)",
    "becoming another": "os.setuid({bob_uid})",
    "a process of the hub": "os.kill({hub_pid}, 0)",
    "the hub's environment": "open('/proc/{hub_pid}/environ').read()",
    "the machine's devices": "os.listdir('/dev/disk')",
    "mounting": (
        "subprocess.run(['mount', '-t', 'tmpfs', 'x', '/mnt'], check=True)"
    ),
    "su": "subprocess.run(['su', '-c', 'true'], check=True, stdin=-3)",
}


@pytest.mark.parametrize(
    "attempt", ATTEMPTS, ids=lambda one: one.replace(" ", "-")
)
def test_a_learner_has_no_way_to(hub: Hub, ada: Person, attempt: str) -> None:
    known = {
        "ada": ADA,
        "bob": BOB,
        "bob_uid": os.lstat(hub.course / "hub" / "homes" / BOB).st_uid,
        "chapter": CHAPTER,
        "course": hub.course,
        "exchange": f"/srv/exchange/{COURSE_ID}",
        "hub_pid": hub.pid,
        "inbound": INBOUND,
        "outbound": OUTBOUND,
        "root": Path(__file__).resolve().parent.parent,
        "submission": submitted_name(hub.folder, BOB),
    }
    said = ada.run(
        "import os, subprocess\n"
        "try:\n"
        f"    print('done:', {ATTEMPTS[attempt].format(**known)})\n"
        "except (OSError, ImportError, subprocess.CalledProcessError) as error:\n"
        "    print('refused:', error)\n"
    )
    assert said.startswith("refused:"), said


def test_nobody_watches_the_exchange(ada: Person) -> None:
    said = ada.run(
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "watch = libc.inotify_init()\n"
        f"print(watch >= 0, libc.inotify_add_watch(watch, b'{INBOUND}', 0x180))"
    )
    assert said.split() == ["True", "-1"]


def test_a_room_shows_the_learners_own_processes_alone(ada: Person) -> None:
    said = ada.run(
        "import glob, os\n"
        "seen = [open(one, 'rb').read() for one in glob.glob('/proc/[0-9]*/cmdline')]\n"
        "print(len(seen), b'jupyterhub_idle_culler' in b''.join(seen))\n"
        "print(any(b'singleuser' in one for one in seen))"
    )
    number, others, own = said.split()
    assert int(number) < 12
    assert others == "False"
    assert own == "True"


def test_no_environment_that_a_learner_sees_holds_a_secret(
    hub: Hub, ada: Person
) -> None:
    said = ada.run(
        "import glob\n"
        "for one in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try:\n"
        "        print(open(one, 'rb').read().replace(b'\\0', b'\\n').decode())\n"
        "    except PermissionError:\n"
        "        print('closed')\n"
    )
    private = hub.course / "hub" / "private"
    assert f"JUPYTERHUB_USER={ADA}" in said
    assert "CONFIGPROXY" not in said
    assert "COURSE_ROOT" not in said
    assert (private / "proxy_token").read_text() not in said
    assert str(hub.course) not in said


def test_a_room_has_no_rights_of_root(ada: Person) -> None:
    said = ada.run("print(open('/proc/self/status').read())")
    fields = dict(line.split(":\t", 1) for line in said.strip().splitlines())
    assert fields["NoNewPrivs"] == "1"
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[kind], 16) == 0, kind


# What a learner may not: over the network, from a kernel and from a browser


def test_a_kernels_channels_are_no_ports(ada: Person, bob: Person) -> None:
    code = (
        "import json\n"
        "from ipykernel.connect import get_connection_file\n"
        "known = json.load(open(get_connection_file()))\n"
        "print(known['transport'], known['ip'] + '-1')"
    )
    transport, socket_of_bob = bob.run(code).split()
    assert transport == "ipc"
    said = ada.run(
        "import os, socket\n"
        f"one = socket.socket(socket.AF_UNIX)\n"
        "try:\n"
        f"    one.connect({socket_of_bob!r}); print('connected')\n"
        "except FileNotFoundError:\n"
        "    print('not there')"
    )
    assert said.strip() == "not there"


def test_no_port_opens_anothers_server(
    hub: Hub, ada: Person, bob: Person
) -> None:
    """With the token of her own server, on every port of the class server and on
    those that bob's and the grading account's programs listen on."""
    others = [
        os.lstat(hub.course / "hub" / "homes" / BOB).st_uid,
        os.lstat(hub.course / "class").st_uid,
    ]
    said = ada.run(
        "import os, requests\n"
        "rows = [one.split() for one in open('/proc/net/tcp').readlines()[1:]]\n"
        "ports = {int(row[1].split(':')[1], 16) for row in rows"
        f" if row[3] == '0A' and int(row[7]) in {others}}}\n"
        f"print(len(ports)); ports |= set(range({hub.port}, {hub.port + 4}))\n"
        "token = {'Authorization': 'token ' + os.environ['JUPYTERHUB_API_TOKEN']}\n"
        "for port in ports:\n"
        f"    for who in ('user/{BOB}', 'services/{COURSE_ID}'):\n"
        "        try:\n"
        "            answer = requests.get(f'http://127.0.0.1:{port}/{who}/api/contents',"
        " headers=token, timeout=5, allow_redirects=False)\n"
        "            if answer.ok and 'content' in answer.text: print('open', port)\n"
        "        except requests.RequestException:\n"
        "            break  # nothing there speaks HTTP\n"
    )
    assert int(said.split()[0]) >= 2  # other class servers may have the numbers
    assert "open" not in said


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/users"),
        ("GET", f"/users/{BOB}"),
        ("POST", f"/users/{BOB}/tokens"),
        ("POST", f"/users/{BOB}/server"),
        ("DELETE", f"/users/{BOB}/server"),
        ("PATCH", f"/users/{ADA}"),
        ("POST", f"/groups/formgrade-{COURSE_ID}/users"),
        ("GET", "/proxy"),
        ("POST", "/shutdown"),
    ],
)
def test_the_token_of_a_learners_server_does_not(
    hub: Hub, ada: Person, method: str, path: str
) -> None:
    said = ada.run(
        "import os, requests\n"
        "token = {'Authorization': 'token ' + os.environ['JUPYTERHUB_API_TOKEN']}\n"
        "answer = requests.request("
        f"'{method}', os.environ['JUPYTERHUB_API_URL'] + '{path}', headers=token,"
        f" json={{'admin': True, 'users': ['{ADA}']}})\n"
        "print(answer.status_code)"
    )
    assert said.strip() in ("403", "404")


def test_the_proxys_own_interface_is_closed(hub: Hub, ada: Person) -> None:
    said = ada.run(
        "import requests\n"
        f"print(requests.get('http://127.0.0.1:{hub.port + 2}/api/routes').status_code)"
    )
    assert said.strip() == "403"


@pytest.mark.parametrize(
    "path",
    [
        f"/services/{COURSE_ID}/formgrader/gradebook",
        f"/services/{COURSE_ID}/api/contents/class",
        f"/services/{COURSE_ID}/formgrader/api/submissions/{CHAPTER}",
        f"/user/{BOB}/api/contents/",
        f"/user/{BOB}/files/secret.txt",
        "/hub/admin",
        f"/hub/change-password/{BOB}",
    ],
)
def test_a_learners_browser_is_not_let_to(hub: Hub, path: str) -> None:
    one = hub.person(ADA)
    answer = one.session.get(hub.address + path, timeout=PATIENCE_S)
    assert answer.status_code in (403, 404)
    assert SECRET not in answer.text


def test_nobody_logs_in_without_their_password(hub: Hub) -> None:
    stranger = Person(hub, BOB)
    assert stranger.login(hub.passwords[ADA]).status_code == 403
    nobody = Person(hub, "tt-nobody")
    assert nobody.login("12345678").status_code == 403
    page = requests.get(f"{hub.address}/user/{BOB}/lab", timeout=PATIENCE_S)
    assert "/hub/login" in page.url


def test_a_learner_changes_the_password(hub: Hub) -> None:
    carl = hub.person(CARL)
    page = f"{hub.address}/hub/change-password"
    assert carl.session.get(page, timeout=PATIENCE_S).ok
    first = hub.passwords[CARL]
    form = {
        "old_password": first,
        "new_password": "a much better one",
        "new_password_confirmation": "a much better one",
        "_xsrf": carl.cookie("/hub/"),
    }
    assert carl.session.post(page, data=form, timeout=PATIENCE_S).ok
    try:
        assert Person(hub, CARL).login(first).status_code == 403
        assert Person(hub, CARL).login("a much better one").status_code == 302
    finally:
        form["old_password"] = "a much better one"
        form["new_password"] = form["new_password_confirmation"] = first
        carl.session.post(page, data=form, timeout=PATIENCE_S)
    assert Person(hub, CARL).login(first).status_code == 302


# What a learner may not: through the exchange


def test_nothing_handed_in_under_anothers_name_counts(hub: Hub) -> None:
    log = (hub.course / "class" / "grading.log").read_text()
    log = " ".join(log.split())  # lines are as wide as a terminal
    for name in (BOB, CARL):
        assert f"it belongs to the account {ADA}, not to {name}" in log
    assert not collected(hub, CARL).exists()
    assert hub.points()[BOB] == 2.0


def test_links_and_pipes_in_a_submission_bring_nothing(hub: Hub) -> None:
    versions = hub.course / "class" / "versions" / ADA
    kept = [
        one
        for folder in (collected(hub, ADA), versions)
        for one in folder.rglob("*")
    ]
    assert kept
    for one in kept:
        assert one.is_dir() or one.is_file(), one
        assert not one.is_symlink(), one
        if one.is_file():
            content = one.read_bytes()
            assert b"SQLite format" not in content, one
            assert b"def doubles(draw)" not in content, one


def test_what_is_handed_in_is_the_learners_and_what_is_graded_the_graders(
    hub: Hub,
) -> None:
    inbound = hub.course / "class" / "exchange" / COURSE_ID / "inbound"
    homes = hub.course / "hub" / "homes"
    for name in (ADA, BOB):
        handed_in = inbound / submitted_name(hub.folder, name)
        assert handed_in.stat().st_uid == (homes / name).stat().st_uid
        assert (homes / name).stat().st_mode & 0o777 == 0o700
    grader = (hub.course / "class").stat().st_uid
    assert grader not in (
        0,
        *((homes / one).stat().st_uid for one in (ADA, BOB)),
    )
    assert (hub.course / "class" / "gradebook.db").stat().st_uid == grader
    assert (hub.course / "class" / "gradebook.db").stat().st_mode & 0o077 == 0


# What a learner may not: outlive, and take more


@pytest.mark.slow
def test_nothing_outlives_a_server_that_is_stopped(hub: Hub) -> None:
    carl = hub.person(CARL).start()
    carl.run(
        "import subprocess\n"
        "subprocess.Popen(['setsid', 'nohup', 'sleep', '98761'])\n"
        "subprocess.Popen('(sleep 98762 &) &', shell=True)"
    )
    until(lambda: len(sleeping()) == 2, "the processes did not start")
    stop_server(hub, CARL)
    until(lambda: not sleeping(), "a process outlived its server")
    again = hub.person(CARL).start()
    assert "Traceback" not in again.run("print('back')")
    stop_server(hub, CARL)


def sleeping() -> list[str]:
    """Processes of the test above, wherever they run."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = one.read_bytes()
        except OSError:
            continue
        if command.startswith((b"sleep\x0098761", b"sleep\x0098762")):
            found.append(one.parent.name)
    return found


def with_control_groups() -> bool:
    """Whether limits can be tried: systemd or the first version's groups."""
    return (
        Path("/run/systemd/system").is_dir()
        or Path("/sys/fs/cgroup/memory/cgroup.procs").exists()
    )


limited = pytest.mark.skipif(
    not with_control_groups(),
    reason="no control groups here, so no limits on a learner's server",
)


@limited
def test_a_learner_gets_no_more_memory(bob: Person) -> None:
    said = bob.run(
        "import subprocess, sys\n"
        "take = 'import mmap; one = mmap.mmap(-1, 2**31)\\n'"
        "'for at in range(0, 2**31, 4096): one[at] = 1'\n"
        "print(subprocess.run([sys.executable, '-c', take]).returncode)"
    )
    assert said.strip() == "-9"


@limited
def test_a_learner_gets_no_more_processes(bob: Person) -> None:
    said = bob.run(
        "import subprocess\n"
        "started = []\n"
        "try:\n"
        "    for _ in range(300): started.append(subprocess.Popen(['sleep', '600']))\n"
        "    print('all')\n"
        "except BlockingIOError:\n"
        "    print('refused')\n"
        "for one in started: one.kill()\n"
        "for one in started: one.wait()\n"
    )
    assert said.strip() == "refused"


@limited
def test_a_learner_gets_no_more_processors(bob: Person) -> None:
    """Two busy processes for a while use one processor's time, not two."""
    said = bob.run(
        "import os, subprocess, sys, time\n"
        "busy = 'import time; e = time.monotonic() + 3\\nwhile time.monotonic() < e: pass'\n"
        "started = time.monotonic()\n"
        "running = [subprocess.Popen([sys.executable, '-c', busy]) for _ in range(2)]\n"
        "used = sum(sum(os.wait4(one.pid, 0)[2][:2]) for one in running)\n"
        "print(used / (time.monotonic() - started))"
    )
    assert float(said) < 1.2
