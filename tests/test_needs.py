"""A machine that lacks something hears what, why, and the command for it."""

import os
import socket
import sys
from pathlib import Path

import pytest

from course_grader import needs


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine that has the programs named, and no others."""

    def with_programs(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CONDA_PREFIX", raising=False)
        monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)

    return with_programs


@pytest.mark.parametrize("name", ["dot", "bwrap"])
def test_nothing_is_said_of_a_program_that_is_there(machine, name):
    machine(name)
    assert needs.need_program(name) is None


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "`sudo apt-get install graphviz`"),
        ("dnf", "`sudo dnf install graphviz`"),
        ("pacman", "`sudo pacman -S graphviz`"),
        ("zypper", "`sudo zypper install graphviz`"),
        ("apk", "`sudo apk add graphviz`"),
        ("brew", "`brew install graphviz`"),
        ("winget", "`winget install Graphviz.Graphviz`"),
    ],
)
def test_a_missing_program_comes_with_this_machines_command(
    machine, manager, command
):
    machine(manager)
    assert needs.need_program("dot") == (
        "`dot` (graphviz) is not installed, so graphs are drawn in a plainer "
        f"way: install it with {command}."
    )


def test_a_conda_environment_is_asked_before_the_system(machine, monkeypatch):
    machine("conda", "apt-get")
    monkeypatch.setenv("CONDA_PREFIX", sys.prefix)
    said = needs.need_program("dot")
    assert "`conda install --channel conda-forge graphviz`" in said


def test_root_needs_no_sudo(machine, monkeypatch):
    machine("apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    assert "`apt-get install graphviz`" in needs.need_program("dot")


def test_a_machine_without_a_package_manager_hears_the_package(machine):
    machine()
    assert "the package graphviz" in needs.need_program("dot")


def test_the_sandbox_of_a_machine_that_is_not_linux(machine, monkeypatch):
    machine("brew")
    monkeypatch.setattr(sys, "platform", "darwin")
    said = needs.need_program("bwrap")
    assert "exists on Linux only" in said
    assert "brew" not in said


@pytest.fixture
def taken_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_port_comes_with_one_that_a_server_can_have(taken_port):
    said = needs.need_port(taken_port)
    assert f"Port {taken_port} is taken" in said
    port = needs.free_port(taken_port)
    assert port != taken_port
    assert f"`course lab --port {port}`" in said
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))


def test_a_free_port_is_kept(taken_port):
    port = needs.free_port(taken_port)
    assert needs.free_port(port) == port
    assert needs.need_port(port) is None


def test_the_report_says_each_need_that_is_not_met(machine):
    machine("dot", "apt-get")
    found = {need.name: need.missing for need in needs.report()}
    assert found["Graphviz"] is None
    assert found["bubblewrap"] == needs.need_program("bwrap")
    assert "port 8888" in found
