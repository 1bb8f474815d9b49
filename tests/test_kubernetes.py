"""What `deploy/kubernetes` says agrees with the project. Nothing of it is run here:
docs/server.md says what was checked otherwise."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from course_exchange.share import MAX_BODY_BYTES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "kubernetes"
sys.path.append(str(ROOT / "deploy"))

from roles import COURSE_ID  # noqa: E402
from rooms import (  # noqa: E402
    LEARNERS_PACKAGES,
    OWN_EXCHANGE,
    desk_environment,
)
from settings import SHARE, SHARE_KEEPER  # noqa: E402


def image(name: str) -> list[list[str]]:
    """The steps of a Containerfile, word by word."""
    text = (FOLDER / f"{name}.Containerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip()]


def steps(name: str, kind: str) -> list[list[str]]:
    return [one[1:] for one in image(name) if one[0] == kind]


def listed(name: str, kind: str) -> Any:
    """A step in JSON's form."""
    (line,) = re.findall(
        rf"^{kind} (\[.*\])$",
        (FOLDER / f"{name}.Containerfile").read_text(),
        flags=re.MULTILINE,
    )
    return json.loads(line)


def values() -> Any:
    return yaml.safe_load((FOLDER / "values.yaml").read_text())


def manifests() -> dict[str, Any]:
    text = (FOLDER / "ngshare.yaml").read_text()
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


@pytest.mark.parametrize("name", ["learner", "ngshare"])
def test_what_is_copied_is_there(name: str) -> None:
    for *sources, _ in steps(name, "COPY"):
        for source in sources:
            # `start.py --desk` makes it
            there = source.replace("build/desk", "deploy/desk")
            assert (ROOT / there).exists(), source


def test_a_learners_image_has_a_learners_packages_and_no_other() -> None:
    copied = {
        Path(source).name
        for *sources, to in steps("learner", "COPY")
        for source in sources
        if to.startswith("/srv/packages/")
    }
    assert copied == set(LEARNERS_PACKAGES)
    everything = (FOLDER / "learner.Containerfile").read_text()
    for secret in ("solutions", "autograde", "course_grader", "COPY . "):
        assert secret not in everything.partition("FROM ")[2]


def test_a_learners_image_installs_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (FOLDER / "learner.txt").read_text()
    wanted = [one for one in text.splitlines() if not one.startswith("#")]
    assert wanted[: len(project["dependencies"])] == project["dependencies"]
    extras = project["optional-dependencies"]
    rest = wanted[len(project["dependencies"]) :]
    assert set(rest) <= {*extras["instructor"], *extras["server"]}
    pinned = (ROOT / "constraints.txt").read_text()
    for one in wanted:
        assert f"\n{re.split('[>=]', one)[0]}==" in pinned


def test_a_learners_image_starts_as_a_room_does() -> None:
    first, script, exchange, course = listed("learner", "ENTRYPOINT")
    assert (first, course) == ("sh", COURSE_ID)
    assert script == "/srv/course/enter.sh"
    assert exchange == f"/home/jovyan/{OWN_EXCHANGE}"
    assert (ROOT / "deploy/desk/enter.sh").is_file()
    said = dict(
        one.split("=", 1) for line in steps("learner", "ENV") for one in line
    )
    wanted = desk_environment("/srv/course", False, "")
    del wanted["PATH"]
    wanted["JUPYTER_PATH"] = "/srv/packages/course_home"
    assert said == {"PYTHONPATH": "/srv/packages", **wanted}


def test_ngshare_is_started_as_on_one_machine() -> None:
    *_, folder, keeper, limit = listed("ngshare", "CMD")
    assert (keeper, int(limit)) == (SHARE_KEEPER, MAX_BODY_BYTES)
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (mount,) = container["volumeMounts"]
    assert mount["mountPath"] == folder
    known = {one["name"]: one for one in container["env"]}
    assert known["JUPYTERHUB_SERVICE_PREFIX"]["value"] == f"/services/{SHARE}/"
    assert json.loads(known["JUPYTERHUB_OAUTH_ACCESS_SCOPES"]["value"]) == [
        f"access:services!service={SHARE}"
    ]


def test_the_names_of_values_and_manifests_agree() -> None:
    hub = values()["hub"]
    assert set(hub["services"]) == {SHARE, SHARE_KEEPER}
    (container,) = manifests()["Deployment"]["spec"]["template"]["spec"][
        "containers"
    ]
    keys = [
        one["valueFrom"]["secretKeyRef"]["key"]
        for one in (*container["env"], *hub["extraEnv"].values())
        if "valueFrom" in one
    ]
    assert keys == [
        f"hub.services.{name}.apiToken" for name in (SHARE, SHARE_KEEPER)
    ]
    (port,) = manifests()["Service"]["spec"]["ports"]
    name = manifests()["Service"]["metadata"]["name"]
    assert hub["services"][SHARE]["url"] == f"http://{name}:{port['port']}"
    scope = f"access:services!service={SHARE}"
    for role in hub["loadRoles"].values():
        assert scope in role["scopes"]
