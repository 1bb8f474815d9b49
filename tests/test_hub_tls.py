"""The class server behind a web server that holds the certificate, by the very
lines of `docs/server.md`."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hub import (
    RIGHT,
    ROOT,
    Hub,
    Person,
    end_everything,
    free_ports,
    needed,
    start_hub,
    until,
)

pytestmark = pytest.mark.slow

ADA = "tt-ada"
CADDY = """{{
    admin off
    http_port {http}
    skip_install_trust
}}
"""
NGINX = """user root; daemon off; pid {folder}/pid; error_log {folder}/log;
events {{}}
http {{
access_log off;
client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
"""


@dataclass
class Behind(Hub):
    """A class server as it is seen through the web server.

    Attributes:
        front: the port of the web server.
    """

    front: int = 0

    @property
    def address(self) -> str:
        return f"https://localhost:{self.front}"


def written(name: str) -> str:
    """The lines that the page gives for this web server."""
    page = (ROOT / "docs" / "server.md").read_text()
    said = page[page.index("**TLS.**") : page.index("**Logs.**")]
    caddy, nginx = re.findall(r"```\n(.*?)```", said, re.DOTALL)
    return {"caddy": caddy, "nginx": nginx}[name]


def command_of(name: str, hub: Hub, folder: Path, front: int) -> list[str]:
    """Writes the settings of a web server, and how it is started with them."""
    ours = written(name).replace("127.0.0.1:8000", f"127.0.0.1:{hub.port}")
    settings = folder / "settings"
    if name == "caddy":
        ours = ours.replace("class.example.edu", f"localhost:{front}")
        settings.write_text(CADDY.format(http=front + 1) + ours)
        return ["caddy", "run", "--adapter=caddyfile", f"--config={settings}"]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-subj", "/CN=localhost", "-days", "2"),
            *("-keyout", folder / "key", "-out", folder / "certificate"),
        ],
        check=True,
        capture_output=True,
    )
    for said, here in (
        ("listen 443", f"listen {front}"),
        ("class.example.edu", "localhost"),
        ("/etc/ssl/class.pem", f"{folder}/certificate"),
        ("/etc/ssl/class.key", f"{folder}/key"),
    ):
        assert said in ours
        ours = ours.replace(said, here)
    settings.write_text(NGINX.format(folder=folder) + ours + "}\n")
    return ["nginx", "-p", str(folder), "-c", str(settings)]


@contextmanager
def behind(name: str, hub: Hub) -> Iterator[Behind]:
    """The hub behind this web server."""
    front = free_ports(2)
    with tempfile.TemporaryDirectory() as place:
        command = command_of(name, hub, Path(place), front)
        server = subprocess.Popen(
            command,
            env={"HOME": place, "PATH": "/usr/sbin:/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: listens(front), f"{name} does not start")
            yield Behind(hub.folder, hub.port, hub.first, hub.pid, front)
        finally:
            server.terminate()
            server.communicate()


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    one = start_hub(folder, [ADA])
    try:
        one.as_grader("release")
        yield one
    finally:
        end_everything(one)


@pytest.mark.parametrize("name", ["caddy", "nginx"])
def test_a_learner_works_and_hands_in_behind(name: str, hub: Hub) -> None:
    if shutil.which(name, path="/usr/sbin:/usr/bin") is None:
        pytest.skip(f"no {name} on this machine")
    with behind(name, hub) as front:
        ada = Person(front, ADA)
        # its certificate is one of its own, whatever the environment trusts
        ada.session.verify = ada.session.trust_env = False

        assert ada.login().status_code == 302
        ada.start()
        assert ada.run("print(6 * 7)") == "42\n"
        # more than a web server takes by itself
        answer = ada.session.put(
            f"{ada.home}api/contents/big.txt",
            json={
                "type": "file",
                "format": "text",
                "content": "x" * 30_000_000,
            },
            headers={"X-XSRFToken": ada.cookie(f"/user/{ADA}/")},
        )
        assert answer.status_code in (200, 201)
        before = len(submissions(ada))
        ada.write(RIGHT)
        ada.assignments("submit")
        assert len(submissions(ada)) == before + 1


def listens(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def submissions(person: Person) -> list[object]:
    return [
        two
        for one in person.assignments()
        if one["status"] == "submitted"
        for two in one["submissions"]
    ]
