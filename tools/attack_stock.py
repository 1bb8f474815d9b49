"""Runs the attacks of `tests/attacks.py` against stock nbgrader and writes the
table of `docs/attacks.md`.

Stock means nbgrader's own defaults, and hidden tests as its manual shows them:
asserts between BEGIN HIDDEN TESTS and END HIDDEN TESTS. The attacks run for real,
so everything happens in a bubblewrap sandbox of its own with little memory and no
network; inside it nbgrader is as exposed as it always is. What our grader does is
asserted by `tests/test_attacks.py`, for each attack, at every change.
"""

import argparse
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from attacks import (  # noqa: E402
    ATTACKS,
    HONEST,
    LOOT,
    ON_OURS,
    Attack,
    hand_in,
)

BIN = Path(sys.executable).parent
CHAPTER = "03_mini"
WAIT_S = 150
"""How long a run of two submissions may take before it counts as stuck."""
CELL_TIMEOUT_S = 15
"""nbgrader's default of 30 s, halved: it changes no outcome."""
MEMORY_BYTES = 6 * 2**30

SETTINGS = f"""c = get_config()
c.CourseDirectory.course_id = "attacked"
c.CourseDirectory.root = "/mnt"
c.ExecutePreprocessor.timeout = {CELL_TIMEOUT_S}
"""

GRADE_DOUBLE = """### BEGIN HIDDEN TESTS
_x = torch.tensor([1.5, -2.25, 4.125])
torch.testing.assert_close(double(_x, 3), _x * 8)
assert torch.equal(_x, torch.tensor([1.5, -2.25, 4.125]))
try:
    double(_x, -1)
except ValueError:
    pass
else:
    raise AssertionError("negative times must be refused")
### END HIDDEN TESTS"""
GRADE_MEAN = """### BEGIN HIDDEN TESTS
_x = torch.tensor([1.5, -2.25, 4.125, 8.0])
assert abs(mean(_x) - 2.84375) < 1e-6
### END HIDDEN TESTS"""


@dataclass(frozen=True)
class Outcome:
    """What stock nbgrader did with one attack.

    Attributes:
        points: what the attacker got; None if there is no mark.
        next_points: what the honest learner graded after it got.
        loot: whether what it was after stands in what stock wrote.
        stuck: the run had to be ended.
    """

    points: float | None
    next_points: float | None
    loot: bool
    stuck: bool

    def words(self) -> str:
        """The outcome as the table says it."""
        said = []
        if self.points:
            said.append(f"gives it {self.points:g} of 5 points")
        if self.loot:
            said.append("hands it over")
        if self.stuck:
            said.append("waits without end")
        if self.points is None:
            said.append("leaves no mark")
        if self.next_points != 5:
            said.append("grades nobody after it")
        return ", ".join(said) or "no harm"


def metadata(grade_id: str, **more: object) -> dict[str, object]:
    plain = {"grade": False, "locked": False, "solution": False, "task": False}
    return {
        "nbgrader": {"schema_version": 3, "grade_id": grade_id, **plain, **more}
    }


def source() -> nbformat.NotebookNode:
    """The small chapter as an instructor writes it for stock nbgrader."""
    code = nbformat.v4.new_code_cell
    cells = [
        code(
            "import torch\nfrom torch import Tensor",
            metadata=metadata("imports", locked=True),
        ),
        code(
            "def double(x, times=1):\n    ### BEGIN SOLUTION\n"
            "    if times < 0:\n        raise ValueError\n"
            "    return x * 2**times\n    ### END SOLUTION",
            metadata=metadata("double", solution=True),
        ),
        code(
            GRADE_DOUBLE,
            metadata=metadata(
                "double_hidden", grade=True, locked=True, points=3
            ),
        ),
        code(
            "def mean(x):\n    ### BEGIN SOLUTION\n"
            "    return float(x.mean())\n    ### END SOLUTION",
            metadata=metadata("mean", solution=True),
        ),
        code(
            GRADE_MEAN,
            metadata=metadata("mean_hidden", grade=True, locked=True, points=2),
        ),
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell{number}"
    return nbformat.v4.new_notebook(cells=cells)


def walled(folder: Path, command: list[str]) -> tuple[int | None, str]:
    """Runs a command with `folder` as /mnt in a sandbox of its own: its exit
    code, None if it did not end."""
    bwrap = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/dev/shm",
        "--tmpfs",
        str(Path.home()),
    ]
    for place in {sys.prefix, sys.base_prefix}:
        bwrap += ["--ro-bind", place, place]
    bwrap += ["--bind", str(folder), "/mnt", "--chdir", "/mnt"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**28, 2**28))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    environment = {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(Path.home()),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "STOCK_SECRET": "hunter2",
    }
    process = subprocess.Popen(
        [*bwrap, *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=limit,
        text=True,
        errors="replace",
    )
    try:
        said, _ = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, ""
    return process.returncode, said


# Services for the attacks that look for some, then nbgrader as ever.
GRADE = f"""
import os, socket, subprocess, sys, threading
def serve(family, kind, address):
    one = socket.socket(family, kind)
    one.bind(address)
    if kind == socket.SOCK_STREAM:
        one.listen(8)
    def answer():
        while True:
            if kind == socket.SOCK_STREAM:
                one.accept()[0].close()
            else:
                one.sendto(b"answer", one.recvfrom(100)[1])
    threading.Thread(target=answer, daemon=True).start()
serve(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 9753))
serve(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 9753))
serve(socket.AF_UNIX, socket.SOCK_STREAM, "/tmp/service")
serve(socket.AF_UNIX, socket.SOCK_STREAM, "\\0stock-service")
open("/dev/shm/stock-shared", "w").write("the instructor's")
code = subprocess.run(["nbgrader", "autograde", "{CHAPTER}"]).returncode
if "feedback" in sys.argv:
    subprocess.run(["nbgrader", "generate_feedback", "{CHAPTER}"])
sys.stdout.flush()
os._exit(code)
"""
WORDS = {
    "SECRET_FILE": "/mnt/secret.txt",
    "SECRET_ENV": "STOCK_SECRET",
    "PORT": "9753",
    "UNIX": "/tmp/service",
    "ABSTRACT": "stock-service",
    "SHM": "stock-shared",
}


def release(folder: Path) -> nbformat.NotebookNode:
    """Makes a course with the chapter in `folder`; what learners get."""
    (folder / "source" / CHAPTER).mkdir(parents=True)
    nbformat.write(source(), folder / "source" / CHAPTER / f"{CHAPTER}.ipynb")
    (folder / "nbgrader_config.py").write_text(SETTINGS)
    (folder / "secret.txt").write_text("the instructor's own")
    code, said = walled(folder, ["nbgrader", "generate_assignment", CHAPTER])
    if code != 0:
        sys.exit(f"nbgrader does not make the assignment:\n{said[-3000:]}")
    path = folder / "release" / CHAPTER / f"{CHAPTER}.ipynb"
    return nbformat.read(path, as_version=4)


def attack_stock(
    attack: Attack, template: Path, released: nbformat.NotebookNode
) -> Outcome:
    """Grades the attack, and an honest learner after it."""
    with tempfile.TemporaryDirectory(prefix="stock-") as place:
        folder = Path(place) / "course"
        shutil.copytree(template, folder)
        attackers = ["mallory", "mallory-2"] if attack.twice else ["mallory"]
        for student, what in [
            *((one, attack) for one in attackers),
            ("zoe", HONEST),
        ]:
            hand_in(
                what, released, folder / "submitted" / student / CHAPTER, WORDS
            )
        # a page is slow to make, and outputs stand in the notebook already
        pages = ["feedback"] if attack.harm != LOOT else []
        code, _ = walled(folder, [sys.executable, "-c", GRADE, *pages])
        marks = points(folder / "gradebook.db")
        written = [
            *(folder / "autograded").rglob("*.ipynb"),
            *(folder / "feedback").rglob("*.html"),
        ]
        seen = "\n".join(
            shown(path) for path in written if "mallory" in str(path)
        )
        return Outcome(
            marks.get("mallory"),
            marks.get("zoe"),
            re.search(attack.harm, seen) is not None,
            code is None,
        )


def shown(path: Path) -> str:
    """What a graded file shows besides the learner's own code."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".html":
        return text
    notebook = json.loads(text)
    return "\n".join(
        json.dumps(one)
        for cell in notebook["cells"]
        for one in cell.get("outputs", [])
    )


def points(gradebook: Path) -> dict[str, float]:
    """Points by student, of those that have been graded."""
    query = """
        select submitted_assignment.student_id, sum(grade.auto_score)
        from grade
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment
            on submitted_notebook.assignment_id = submitted_assignment.id
        where grade.auto_score is not null
        group by submitted_assignment.student_id
    """
    with sqlite3.connect(gradebook) as database:
        return dict(database.execute(query).fetchall())


def table(outcomes: Iterable[tuple[Attack, Outcome]]) -> str:
    lines = ["| kind | attack | tries | stock nbgrader |", "|---|---|---|---|"]
    lines += [
        f"| {attack.kind} | `{attack.name}` | {attack.tries} | {outcome.words()} |"
        for attack, outcome in outcomes
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "attacks.md")
    parser.add_argument("--only", nargs="*", help="names of attacks")
    arguments = parser.parse_args()
    if shutil.which("bwrap") is None:
        sys.exit(
            "This runs real attacks and needs bubblewrap: `apt-get install bubblewrap`."
        )
    chosen = [
        one
        for one in ATTACKS
        if not arguments.only or one.name in arguments.only
    ]
    with tempfile.TemporaryDirectory(prefix="stock-") as place:
        template = Path(place) / "course"
        template.mkdir()
        released = release(template)
        honest = attack_stock(HONEST, template, released)
        if honest.points != 5 or honest.next_points != 5:
            sys.exit(f"an honest learner should get 5 points: {honest}")
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            done = []
            for attack, outcome in zip(
                chosen,
                threads.map(
                    lambda one: attack_stock(one, template, released), chosen
                ),
                strict=True,
            ):
                print(f"{attack.name}: {outcome.words()}", flush=True)
                done.append((attack, outcome))
    harmed = [one for one in done if one[1].words() != "no harm"]
    by_kind = {
        kind: (
            sum(attack.kind == kind for attack, _ in harmed),
            sum(attack.kind == kind for attack, _ in done),
        )
        for kind in dict.fromkeys(attack.kind for attack in chosen)
    }
    summary = ", ".join(
        f"{kind} {some} of {all_}" for kind, (some, all_) in by_kind.items()
    )
    text = (
        HEAD.format(
            count=len(done),
            on_ours=len(ON_OURS),
            harmed=len(harmed),
            summary=summary,
            nbgrader=version("nbgrader"),
            hidden="stand" if honest.loot else "do not stand",
        )
        + table(done)
        + "\n"
    )
    if not arguments.only:
        arguments.to.write_text(text, encoding="utf-8")
        print(f"\n{arguments.to}")


HEAD = """# Attacks

`tests/attacks.py` holds {count} attacks on a grader. `tests/test_attacks.py` hands each
in to ours (the slow ones in `make test-all`), and asserts that it earns no points, that nothing of what it
was after is in any file that a learner or an instructor gets, that no file of the course
changed, and that an honest learner graded after it gets full marks. All {count} hold.

The last column says what stock nbgrader {nbgrader} does with the same attacks on the same
exercises, with hidden tests as its manual shows them. It is written by
`.venv/bin/python tools/attack_stock.py`, which anyone with bubblewrap can run. Harm was
done by {harmed} of {count}: {summary}.
"No harm" means no undeserved points, nothing handed over, a mark for the attacker and full marks for the next learner.
Beyond the table: hidden tests {hidden} in the feedback file that stock nbgrader gives to
an honest learner.

A broken file that was handed in by an honest learner counts as harm where it gets no mark:
ours grades it, or gives zero points and one sentence. Archives, and folders that people
upload, have tests of their own (`tests/test_collect_*.py`), and so have 500 honest but
damaged notebooks (`tests/test_repair.py`).

A second list in the same file, `ON_OURS`, holds {on_ours} attacks that know this grader: forged answers,
frames, calls and outputs, a hidden case kept for what feedback shows of another one, answers of odd types, what its
judge, repair and pages read, and the walls of its rooms. Its
tests are the same; stock nbgrader has nothing that they could be tried on.

"""

if __name__ == "__main__":
    main()
