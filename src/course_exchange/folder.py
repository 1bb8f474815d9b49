"""A learner's side where the exchange is a folder: nbgrader's own Submit, less what it
gives to everybody and what it leaves behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nbgrader.exchange import ExchangeError
from nbgrader.exchange.default import ExchangeSubmit

from course_exchange.disk import has_space


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
        except BaseException as error:
            # what failed was not handed in
            full = isinstance(error, OSError) and self._full()
            for half in (place, kept):
                shutil.rmtree(half, ignore_errors=True)
            if full:
                raise ExchangeError(f"Nothing was handed in: {full}") from None
            raise
        os.chmod(place, 0o770)

    def _full(self) -> str:
        """What to do where a disk is full; empty where none is."""
        if not has_space(Path.home()):
            return (
                "your home is full. Delete what you do not need, then press "
                "Submit again."
            )
        if not has_space(Path(self.inbound_path)):
            return "the exchange is full. Tell your instructor."
        return ""
