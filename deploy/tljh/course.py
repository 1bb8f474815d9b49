"""This course on The Littlest JupyterHub: docs/server.md says how. It is linked into
`/opt/tljh/config/jupyterhub_config.d/`, which JupyterHub of TLJH reads at its end.

Learners keep TLJH's accounts, its login, its limits and its way to start a server. New
are what their servers find there, formgrader and grading as an account of its own.
"""

import sys
import tomllib
from pathlib import Path

COURSE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(COURSE / "deploy"))

from roles import COURSE_ID, TEACHING, course_roles  # noqa: E402

c = get_config()  # noqa: F821  (traitlets provides it)

GRADER = "course-grader"
PORT = 8103
"""Of formgrader, on this machine alone."""
HERE = "/run/course"
"""In a learner's server: what of the course is there."""
hub = tomllib.loads((COURSE / "course.toml").read_text())["hub"]

# Learners' servers. The course's folder is not in them, nor the grading account's.
c.SystemdSpawner.unit_extra_properties = {
    "InaccessiblePaths": str(COURSE),
    "BindReadOnlyPaths": " ".join(
        [
            f"{COURSE}/hub/desk:{HERE}/desk",
            *(
                f"{COURSE}/src/{one}:{HERE}/packages/{one}"
                for one in ("course_utils", "course_exchange", "course_home")
            ),
        ]
    ),
    "BindPaths": f"{COURSE}/class/exchange:{HERE}/exchange",
}
c.Spawner.cmd = [
    *("sh", f"{HERE}/desk/enter.sh", f"{HERE}/exchange", COURSE_ID),
    "jupyterhub-singleuser",
]
c.Spawner.notebook_dir = "~/work"
c.Spawner.default_url = "/course"
c.Spawner.args = ["--KernelManager.transport=ipc"]


def at_home(spawner):
    """What a server is told, an instructor's a little more."""
    teaches = spawner.user.name in hub["instructors"]
    desks = [f"{HERE}/desk/instructor"] if teaches else []
    spawner.environment |= {
        "PYTHONPATH": f"{HERE}/packages",
        "JUPYTER_CONFIG_PATH": ":".join([*desks, f"{HERE}/desk/learner"]),
        "JUPYTER_PATH": f"{HERE}/packages/course_home",
        "JUPYTER_RUNTIME_DIR": "/tmp/jupyter",
        "JUPYTER_PREFER_ENV_PATH": "0",
        "OMP_NUM_THREADS": "1",
    }


c.Spawner.pre_spawn_hook = at_home
c.SystemdSpawner.isolate_tmp = True

# Grading is apart: an account of its own, in services of its own.
to_grade = {
    "COURSE_ROOT": str(COURSE),
    "JUPYTER_CONFIG_PATH": f"{COURSE}/deploy/grading:{COURSE}/autograde",
    "JUPYTER_RUNTIME_DIR": f"{COURSE}/hub/grader/runtime",
    "HOME": f"{COURSE}/hub/grader",
    "PATH": f"{COURSE}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
}
python = f"{COURSE}/.venv/bin/python"
c.JupyterHub.services.extend(
    [
        {
            "name": COURSE_ID,
            "url": f"http://127.0.0.1:{PORT}",
            "command": [
                *(python, "-m", "jupyterhub.singleuser"),
                f"--ServerApp.root_dir={COURSE}",
                "--ServerApp.default_url=/lab?formgrader=true",
                "--KernelManager.transport=ipc",
            ],
            "cwd": str(COURSE),
            "environment": to_grade,
            "user": GRADER,
            "oauth_no_confirm": True,
        },
        {
            "name": "grading",
            "command": [python, str(COURSE / "deploy" / "grading.py")],
            "cwd": str(COURSE),
            "environment": to_grade,
            "user": GRADER,
        },
    ]
)
c.JupyterHub.load_groups = {TEACHING: {"users": hub["instructors"]}}
c.JupyterHub.load_roles.extend(course_roles())
