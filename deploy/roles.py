"""Which groups there are, and what they and people's own servers may ask the hub, in
the terms of JupyterHub 5 and later. The Littlest JupyterHub reads it too, with a
Python of its own: so it needs nothing but Python."""

from __future__ import annotations

from typing import Any

COURSE_ID = "pytorch_training_tricks"
TEACHING = f"formgrade-{COURSE_ID}"
"""The group that nbgrader's service of this name is open to."""
LEARNING = f"nbgrader-{COURSE_ID}"
_KNOW_THE_COURSE = [
    f"read:services!service={COURSE_ID}",
    f"list:services!service={COURSE_ID}",
]


def course_roles(*shared: str) -> list[dict[str, Any]]:
    """The roles of who teaches and of a person's own server.

    Args:
        shared: scopes that learners' servers have besides.
    """
    return [
        {
            "name": "teaching",
            "groups": [TEACHING],
            "scopes": [
                f"access:services!service={COURSE_ID}",
                *_KNOW_THE_COURSE,
            ],
        },
        {
            # what a person's own server may ask the hub: nbgrader's list of courses
            "name": "server",
            "scopes": [
                "users:activity!user",
                "access:servers!server",
                "read:users:name!user",
                "read:users:groups!user",
                *_KNOW_THE_COURSE,
                *shared,
            ],
        },
    ]
