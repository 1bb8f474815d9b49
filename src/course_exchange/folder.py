"""A learner's side where the exchange is a folder: nbgrader's own Submit, less what it
gives to everybody and what it leaves behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nbgrader.exchange.default import ExchangeSubmit


class Submit(ExchangeSubmit):  # type: ignore[misc]
    """Hands in whole or not at all, and for the grader's eyes alone.

    nbgrader leaves a submission open to whoever knows its name. Here its learner and
    the exchange's group, which is the grading account's, may read it and take it away.
    """

    def copy_files(self) -> None:
        """Copies, and shuts the folder: what lies in it may stay as it is."""
        place = Path(self.inbound_path, self.assignment_filename)
        kept = Path(
            self.cache_path, self.assignment_filename.rpartition("+")[0]
        )
        try:
            super().copy_files()
        except BaseException:
            # the disk is full, say: what failed was not handed in
            for half in (place, kept):
                shutil.rmtree(half, ignore_errors=True)
            raise
        os.chmod(place, 0o770)
