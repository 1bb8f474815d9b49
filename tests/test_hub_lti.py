"""Login to the class server from an LMS: a small platform that signs launches, with a key
set and a page that authorizes, as LTI 1.3 has it."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from hub import (
    COURSE_ID,
    PATIENCE_S,
    Hub,
    end_everything,
    needed,
    start_hub,
    until,
)

pytestmark = pytest.mark.slow

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
LEARNER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"
TEACHER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"
CLIENT = "the-class-server"


class Platform:
    """An LMS, as far as a launch goes. `people` maps a login hint to claims."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(
            public_exponent=65537, key_size=2048
        )
        self.people: dict[str, dict[str, Any]] = {}
        self.signs_with = self.key
        self.says: dict[str, Any] = {}
        platform = self

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlparse(self.path)
                if asked.path == "/jwks":
                    self.answer("application/json", platform.key_set())
                else:
                    query = {k: v[0] for k, v in parse_qs(asked.query).items()}
                    self.answer("text/html", platform.form(query))

            def answer(self, kind: str, text: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def key_set(self) -> str:
        """Its public keys."""
        public = json.loads(
            jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key())
        )
        return json.dumps({"keys": [public | {"kid": "1", "use": "sig"}]})

    def form(self, query: dict[str, str]) -> str:
        """The page that carries the signed launch back."""
        now = int(time.time())
        claims = {
            "iss": self.address,
            "aud": query["client_id"],
            "iat": now,
            "exp": now + 300,
            "nonce": query["nonce"],
            f"{CLAIM}version": "1.3.0",
            f"{CLAIM}message_type": "LtiResourceLinkRequest",
            f"{CLAIM}deployment_id": "1",
            f"{CLAIM}target_link_uri": "http://127.0.0.1/hub",
            f"{CLAIM}resource_link": {"id": "the link"},
            **self.people[query["login_hint"]],
            **self.says,
        }
        signed = jwt.encode(
            claims, self.signs_with, algorithm="RS256", headers={"kid": "1"}
        )
        return (
            f'<form method="post" action="{html.escape(query["redirect_uri"])}">'
            f'<input name="state" value="{html.escape(query["state"])}">'
            f'<input name="id_token" value="{signed}"></form>'
        )

    def launch(self, hub: Hub, hint: str) -> tuple[requests.Session, int]:
        """What a browser does when somebody presses the link in the LMS; the
        status of the last answer before the hub's own pages."""
        browser = requests.Session()
        page = browser.get(
            f"{hub.address}/hub/lti13/oauth_login",
            params={
                "iss": self.address,
                "login_hint": hint,
                "target_link_uri": f"{hub.address}/hub",
                "client_id": CLIENT,
            },
            timeout=PATIENCE_S,
        )
        assert page.url.startswith(self.address), page.text
        (action,) = re.findall(r'action="([^"]*)"', page.text)
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
        answer = browser.post(
            html.unescape(action),
            data={name: html.unescape(value) for name, value in fields.items()},
            allow_redirects=False,
            timeout=PATIENCE_S,
        )
        return browser, answer.status_code


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    made = Platform()
    made.people = {
        "ada": {
            "sub": "4b9f1d2e-77aa-4a3c-9d0e-0123456789ab",
            "given_name": "Ada",
            "family_name": "Lovelace",
            "email": "ada@example.edu",
            f"{CLAIM}roles": [LEARNER],
            f"{CLAIM}custom": {"lms_user_id": "1815"},
        },
        "eve": {
            "sub": "Eve of an LMS without numbers, whose name is long",
            "given_name": "Eve",
            "family_name": "Nobody, Esq.",
            "email": "eve@example.edu",
            f"{CLAIM}roles": [LEARNER],
        },
        "grace": {
            "sub": "1906",
            "given_name": "Grace",
            "family_name": "Hopper",
            f"{CLAIM}roles": [TEACHER],
        },
    }
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module")
def hub(platform: Platform) -> Iterator[Hub]:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    made = start_hub(
        folder,
        [],
        "[hub.lti]\n"
        f'issuer = "{platform.address}"\n'
        f'authorize_url = "{platform.address}/authorize"\n'
        f'jwks_url = "{platform.address}/jwks"\n'
        f'client_id = "{CLIENT}"\n',
        passwords=False,
    )
    yield made
    end_everything(made)


def who(hub: Hub, browser: requests.Session) -> dict[str, Any]:
    """Whom the hub takes a browser for."""
    answer = browser.get(f"{hub.address}/hub/api/user", timeout=PATIENCE_S)
    return answer.json() if answer.ok else {}


def test_a_learner_comes_with_the_lmss_number(
    hub: Hub, platform: Platform
) -> None:
    browser, status = platform.launch(hub, "ada")
    assert status == 302
    assert who(hub, browser)["name"] == "u1815"
    again, _ = platform.launch(hub, "ada")
    assert who(hub, again)["name"] == "u1815"
    service = f"{hub.address}/services/{COURSE_ID}/formgrader/gradebook"
    assert browser.get(service, timeout=PATIENCE_S).status_code == 403


def test_names_of_a_launch_are_the_rosters_and_the_gradebooks(
    hub: Hub, platform: Platform
) -> None:
    for hint in ("ada", "eve"):
        platform.launch(hub, hint)
    roster = (hub.course / "class" / "roster.csv").read_text()
    assert "u1815,Ada,Lovelace,ada@example.edu,1815" in roster
    assert roster.count("u1815") == 1
    (row,) = [one for one in roster.splitlines() if ",Eve," in one]
    eve = row.partition(",")[0]
    assert re.fullmatch("u[0-9a-f]{20}", eve)

    def known() -> bool:
        database = hub.course / "class" / "gradebook.db"
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as opened:
            rows = opened.execute("SELECT id FROM student").fetchall()
        return {("u1815",), (eve,)} <= set(rows)

    hub.as_grader("release")
    until(known, "the gradebook does not know the roster")


def test_an_instructor_of_the_lms_teaches_here(
    hub: Hub, platform: Platform
) -> None:
    browser, _ = platform.launch(hub, "grace")
    assert who(hub, browser)["name"] == "u1906"
    service = f"{hub.address}/services/{COURSE_ID}/formgrader/gradebook"
    assert browser.get(service, timeout=PATIENCE_S).ok
    assert "u1906" not in (hub.course / "class" / "roster.csv").read_text()


@pytest.mark.parametrize(
    "says",
    [
        {"aud": "another-tool"},
        {"iss": "http://another.example.edu"},
        {"exp": 1_000_000_000},
        {"nonce": "of another launch"},
        {f"{CLAIM}version": "1.1.0"},
    ],
    ids=lambda says: next(iter(says)).rpartition("/")[2],
)
def test_a_launch_that_is_not_right_is_refused(
    hub: Hub, platform: Platform, says: dict[str, Any]
) -> None:
    platform.says = says
    try:
        browser, status = platform.launch(hub, "ada")
    finally:
        platform.says = {}
    assert status in (400, 401)
    assert who(hub, browser) == {}


def test_a_launch_that_another_has_signed_is_refused(
    hub: Hub, platform: Platform
) -> None:
    platform.signs_with = rsa.generate_private_key(
        public_exponent=65537, key_size=2048
    )
    try:
        browser, status = platform.launch(hub, "grace")
    finally:
        platform.signs_with = platform.key
    assert status == 400
    assert who(hub, browser) == {}
