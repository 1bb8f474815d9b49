"""Who may log in, and who of them teaches."""

from __future__ import annotations

import csv
import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import bcrypt
from jupyterhub.auth import Authenticator
from jupyterhub.authenticators.shared import SharedPasswordAuthenticator
from jupyterhub.handlers.login import LoginHandler
from ltiauthenticator.lti13.auth import LTI13Authenticator
from nativeauthenticator import NativeAuthenticator
from nativeauthenticator.orm import UserInfo
from roles import LEARNING, TEACHING
from settings import NAME
from traitlets import Set, Unicode

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
ROSTER_COLUMNS = ["id", "first_name", "last_name", "email", "lms_user_id"]


def initial_passwords(path: Path, names: list[str]) -> dict[str, str]:
    """Everybody's first password; new ones are made and added to the file.

    Args:
        path: a CSV file that its owner alone may read.
        names: who must be in it.
    """
    known: dict[str, str] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            known = {row["id"]: row["password"] for row in csv.DictReader(file)}
    new = {one: secrets.token_urlsafe(9) for one in names if one not in known}
    if new or not path.exists():
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with open(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
            if not known:
                file.write("id,password\n")
            file.writelines(f"{one},{word}\n" for one, word in new.items())
    return known | new


def standing(name: str, teaches: bool) -> dict[str, Any]:
    """A person as the hub wants to know them."""
    groups = [TEACHING, LEARNING] if teaches else [LEARNING]
    return {"name": name, "groups": groups, "admin": teaches}


class _Class(Authenticator):
    """What ways with passwords have in common: the hub's groups follow
    `instructors` at each login and every few minutes afterwards."""

    instructors = Set(help="Their names.").tag(config=True)

    async def authenticate(self, handler: Any, data: Any) -> Any:
        """Who it is; None if the password is wrong."""
        found = await super().authenticate(handler, data)
        if not found:
            return None
        name = found if isinstance(found, str) else found["name"]
        return standing(name, name in self.instructors)

    async def refresh_user(self, user: Any, handler: Any = None) -> Any:
        """What is true of a person now; False where it is nobody of ours."""
        if not await self.is_ours(user.name):
            return False
        return standing(user.name, user.name in self.instructors)

    async def is_ours(self, name: str) -> bool:
        """Whether somebody who logged in once still may."""
        allowed = self.allowed_users
        return name in allowed or name in self.instructors


class RosterAuthenticator(_Class, NativeAuthenticator):
    """Those on the roster, each with a password of their own."""

    passwords = Unicode(help="The file of first passwords.").tag(config=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = sorted(self.allowed_users | self.instructors)
        known = {one.username for one in UserInfo.all_users(self.db)}
        words = initial_passwords(Path(self.passwords), names)
        for name in names:
            if name not in known:
                # few rounds: the word is random, and a class logs in at once
                hashed = bcrypt.hashpw(words[name].encode(), bcrypt.gensalt(6))
                person = UserInfo(
                    username=name, password=hashed, is_authorized=True
                )
                self.db.add(person)
        self.db.commit()

    def get_handlers(self, app: Any) -> list[Any]:
        """Pages for changing passwords. The login page is JupyterHub's own: that of
        nativeauthenticator 1.3 fails under JupyterHub 6."""
        pages = super().get_handlers(app)
        kept = [one for one in pages if one[0].startswith("/change-password")]
        return [("/login", LoginHandler), *kept]


class ClassPasswordAuthenticator(_Class, SharedPasswordAuthenticator):
    """Whoever knows the class's password, under the name that they give."""

    async def is_ours(self, name: str) -> bool:
        """Everybody who once knew the password."""
        return True


class LaunchAuthenticator(LTI13Authenticator):
    """Those whom an LMS sends, by LTI 1.3; each launch goes into the roster."""

    roster = Unicode(help="The CSV file.").tag(config=True)
    grading_account = Unicode(help="Who may read it.").tag(config=True)

    async def authenticate(self, handler: Any, data: Any = None) -> Any:
        """Who it is, from the claims of a launch whose signature is right."""
        name = name_of(data)
        teaches = any(
            role.endswith("/membership#Instructor")
            for role in data.get(f"{CLAIM}roles", ())
        )
        if not teaches:
            given, family, mail = (
                str(data.get(key, ""))
                for key in ("given_name", "family_name", "email")
            )
            row = [name, given, family, mail, lms_id(data)]
            keep_in_roster(Path(self.roster), row, self.grading_account)
        return standing(name, teaches)


def lms_id(claims: dict[str, Any]) -> str:
    """The LMS's number of a person, where a custom parameter says it; else `sub`,
    which every launch has."""
    custom = claims.get(f"{CLAIM}custom") or {}
    return str(custom.get("lms_user_id") or claims["sub"])


def name_of(claims: dict[str, Any]) -> str:
    """The id of a person here: an LMS's is no Unix account's name, often."""
    known = lms_id(claims)
    plain = f"u{known.lower()}"
    if NAME.fullmatch(plain):
        return plain
    return f"u{hashlib.sha256(known.encode()).hexdigest()[:20]}"


def keep_in_roster(path: Path, row: list[str], reader: str) -> None:
    """Adds a person to the roster, or replaces what it said of them.

    Args:
        path: the CSV file; made if there is none.
        row: id, first name, last name, e-mail address, id in the LMS.
        reader: the account that grades; empty where there is but one.
    """
    rows: list[list[str]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
    if row in rows:
        return
    rows = [one for one in rows if one and one[0] != row[0]] + [row]
    part = path.with_name(f".{path.name}.part")
    with open(part, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([ROSTER_COLUMNS, *rows])
    part.chmod(0o640)
    if reader:
        shutil.chown(part, group=reader)
    part.replace(path)
