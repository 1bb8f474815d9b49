"""`make release`: the version and its changes, or one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from release import with_changes, with_version  # type: ignore[import-not-found]

PYPROJECT = '[project]\nname = "x"\nversion = "0.9.1"\n'
CHANGES = (
    "# Changes\n\n## Next\n\n- One thing.\n\n## 0.9.1 · 2026-01-01\n\n- Old.\n"
)


def test_the_version_is_set() -> None:
    assert with_version(PYPROJECT, "0.10.0") == PYPROJECT.replace(
        "0.9.1", "0.10.0"
    )


@pytest.mark.parametrize(
    ("version", "says"),
    [("next", "is no version"), ("0.9.1", "after"), ("0.8.9", "after")],
)
def test_a_version_that_does_not_follow_is_refused(
    version: str, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        with_version(PYPROJECT, version)


def test_changes_move_under_the_version() -> None:
    assert with_changes(CHANGES, "0.10.0", "2026-12-01") == CHANGES.replace(
        "## Next\n", "## Next\n\n## 0.10.0 · 2026-12-01\n"
    )


@pytest.mark.parametrize(
    "text", ["# Changes\n", CHANGES.replace("- One thing.\n", "")]
)
def test_a_release_without_changes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="says nothing"):
        with_changes(text, "0.10.0", "2026-12-01")
