"""Importing the package is cheap and knows nothing about grading."""

import subprocess
import sys

import pytest

import course_utils

HEAVY = {"torch", "numpy", "matplotlib", "IPython", "ipywidgets", "sklearn"}


def modules_after(code):
    """The top-level modules that a fresh Python has loaded after `code`."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}\nimport sys\nprint(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_loads_nothing_heavy():
    code = "import course_utils; from course_utils import expect, visible_check"
    assert not modules_after(code) & HEAVY


def test_a_visible_check_of_plain_numbers_loads_nothing_heavy():
    code = (
        "from course_utils import expect, visible_check\n"
        "with visible_check('count'):\n"
        "    expect('the count', [1, 2.0], [1, 2.0])"
    )
    assert not modules_after(code) & HEAVY


def test_nothing_in_it_imports_the_grader():
    code = "from course_utils import *"
    loaded = modules_after(code)
    assert {"torch", "matplotlib"} <= loaded
    assert "course_grader" not in loaded


def test_every_public_name_is_there():
    for name in course_utils.__all__:
        assert getattr(course_utils, name) is not None
    assert set(course_utils.__all__) <= set(dir(course_utils))


def test_a_name_that_is_not_there():
    with pytest.raises(ImportError, match="nothing"):
        from course_utils import nothing  # noqa: F401
