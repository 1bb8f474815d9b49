"""The add-on to The Littlest JupyterHub: what it sets, held to what the class server does.
TLJH itself is not here; docs/server.md says what was tried with it by hand."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets.config import Config

from course_grader.course import Course

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"


@pytest.fixture
def config(mini: Course) -> Any:
    """What the file sets, after TLJH's own list of services."""
    course = mini.root
    with mini.settings_file.open("a") as file:
        file.write('[hub]\ninstructors = ["grace"]\n')
    place = course / "deploy" / "tljh" / "course.py"
    place.parent.mkdir(parents=True)
    shutil.copy(DEPLOY / "roles.py", course / "deploy")
    text = (DEPLOY / "tljh" / "course.py").read_text()
    place.write_text(text)
    made = Config()
    given = {"get_config": lambda: made, "__file__": str(place)}
    exec(compile(text, str(place), "exec"), given)
    return made


def added(lazy: Any) -> list[dict[str, Any]]:
    """What the file adds to a list of TLJH's."""
    return list(lazy.get_value([]))


def test_no_learners_server_shows_the_course(mini: Course, config: Any) -> None:
    unit = config.SystemdSpawner.unit_extra_properties
    assert unit["InaccessiblePaths"] == str(mini.root)
    shown = [
        one.partition(":")[0].removeprefix(f"{mini.root}/")
        for one in f"{unit['BindReadOnlyPaths']} {unit['BindPaths']}".split()
    ]
    sys.path.insert(0, str(DEPLOY))
    from rooms import LEARNERS_PACKAGES

    packages = [f"src/{one}" for one in LEARNERS_PACKAGES]
    assert sorted(shown) == sorted(["hub/desk", "class/exchange", *packages])


@pytest.mark.parametrize("name", ["ada", "grace"])
def test_a_server_is_told_what_it_is_told_on_the_class_server(
    config: Any, name: str
) -> None:
    sys.path.insert(0, str(DEPLOY))
    from rooms import desk_environment

    spawner = SimpleNamespace(user=SimpleNamespace(name=name), environment={})
    config.Spawner.pre_spawn_hook(spawner)
    wanted = desk_environment("/run/course/desk", name == "grace", "")
    del wanted["PATH"]  # TLJH's own
    wanted["JUPYTER_PATH"] = "/run/course/packages/course_home"
    wanted["PYTHONPATH"] = "/run/course/packages"
    assert spawner.environment == wanted


def test_grading_is_an_account_of_its_own_and_instructors_alone_open_it(
    config: Any,
) -> None:
    services = added(config.JupyterHub.services)
    assert {one["user"] for one in services} == {"course-grader"}
    (group,) = config.JupyterHub.load_groups
    assert config.JupyterHub.load_groups[group]["users"] == ["grace"]
    roles = {one["name"]: one for one in added(config.JupyterHub.load_roles)}
    assert roles["teaching"]["groups"] == [group]
    access = "access:services!service=pytorch_training_tricks"
    assert access in roles["teaching"]["scopes"]
    assert access not in roles["server"]["scopes"]
