"""What commands do before they import anything else.

Importing this loads nothing.
"""

from __future__ import annotations

import sys


def skip_slow_imports() -> None:
    """Leaves out a checker of international web addresses: it takes as long to
    import as torch, jsonschema loads it wherever it is installed, nbformat loads
    jsonschema, and no notebook's schema asks for it."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
