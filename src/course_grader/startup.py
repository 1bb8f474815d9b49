"""What commands do before they import anything else.

Importing this loads nothing.
"""

from __future__ import annotations

import gc
import sys

COLLECT_EVERY = 100_000
"""Objects made between two searches for garbage; Python's own number is 700."""


def import_fast() -> None:
    """Makes what is imported from now on come faster.

    A checker of international web addresses is left out: it takes as long to
    import as torch, jsonschema loads it wherever it is installed, nbformat loads
    jsonschema, and no notebook's schema asks for it. Garbage is searched for less
    often: of what an import makes everything stays, and looking at all of it again
    and again takes a quarter of the time."""
    gc.set_threshold(COLLECT_EVERY)
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
