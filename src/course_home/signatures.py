"""Which notebooks a learner's server trusts, also where nothing can be written."""

from __future__ import annotations

import sqlite3

from nbformat.sign import SQLiteSignatureStore


class Signatures(SQLiteSignatureStore):  # type: ignore[misc]
    """Jupyter's own file of signatures.

    Jupyter writes into it when a notebook is opened, and answers 500 if it cannot: on
    a full disk nobody could open a notebook. Here what cannot be written is not.
    """

    def check_signature(self, digest: str, algorithm: str) -> bool:
        """Whether a signature is known."""
        try:
            return bool(super().check_signature(digest, algorithm))
        except sqlite3.OperationalError:
            self.db.rollback()
        return self._reads(digest, algorithm)

    def store_signature(self, digest: str, algorithm: str) -> None:
        """Keeps a signature, if there is space for it."""
        try:
            super().store_signature(digest, algorithm)
        except sqlite3.OperationalError as error:
            self.db.rollback()
            self.log.warning("A signature is not kept: %s", error)

    def _reads(self, digest: str, algorithm: str) -> bool:
        known = self.db.execute(
            "SELECT 1 FROM nbsignatures WHERE algorithm = ? AND signature = ?",
            (algorithm, digest),
        )
        return known.fetchone() is not None
