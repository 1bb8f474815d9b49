"""Whether something can still be written: the disk may be full, or what a learner may
have of it."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

_TRIED = 2**16
"""Bytes. A notebook is no larger, most often."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


def has_space(folder: Path) -> bool:
    """Whether there is space for a small file.

    It is tried, for a quota by account is not in what a file system says of itself.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIED))
            file.flush()
            os.fsync(file.fileno())  # some file systems say it no sooner
    except OSError as error:
        return error.errno not in _FULL
    return True
