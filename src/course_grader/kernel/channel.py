"""Frames over a socket: a JSON header and a blob, each of known length.

Used on the judge's side and on the learner's. The reader decides how much it
accepts and how long it waits.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

MAX_HEADER_BYTES = 16 * 2**20
MAX_BLOB_BYTES = 256 * 2**20
"""What one frame may hold: larger answers are refused before memory is taken."""

_LENGTHS = struct.Struct(">QQ")


class ChannelClosed(ConnectionError):
    """The other side is gone, or sent what is no frame."""


class DeadlinePassed(TimeoutError):
    """The other side did not answer in time."""


def frame(header: dict[str, Any], blob: bytes = b"") -> bytes:
    """One frame as it is sent."""
    head = json.dumps(header).encode()
    return _LENGTHS.pack(len(head), len(blob)) + head + blob


class Channel:
    """One end of a private connection between the judge and one process."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def send(
        self,
        header: dict[str, Any],
        blob: bytes = b"",
        timeout_s: float | None = None,
    ) -> None:
        """Sends one frame.

        Raises:
            DeadlinePassed: not all of it was taken within `timeout_s`.
            ChannelClosed: the other side is gone.
        """
        self.send_frames(frame(header, blob), timeout_s)

    def send_frames(
        self, frames: bytes, timeout_s: float | None = None
    ) -> None:
        """Sends whole frames, as `frame` makes them.

        Raises:
            DeadlinePassed: not all of it was taken within `timeout_s`, however
                busily the other side reads.
            ChannelClosed: the other side is gone.
        """
        try:
            # for all of the bytes together, not for each piece
            self.socket.settimeout(timeout_s and max(timeout_s, 1e-3))
            self.socket.sendall(frames)
            self.socket.settimeout(None)
        except TimeoutError as error:
            raise DeadlinePassed("not read in time") from error
        except OSError as error:
            raise ChannelClosed("the other side is gone") from error

    def receive(
        self, timeout_s: float | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """Waits for one frame.

        Raises:
            DeadlinePassed: nothing complete came within `timeout_s`.
            ChannelClosed: the connection ended or the frame is malformed.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        head_bytes, blob_bytes = _LENGTHS.unpack(
            self._exactly(_LENGTHS.size, deadline)
        )
        if head_bytes > MAX_HEADER_BYTES or blob_bytes > MAX_BLOB_BYTES:
            raise ChannelClosed("a frame larger than allowed was sent")
        head = self._exactly(head_bytes, deadline)
        blob = self._exactly(blob_bytes, deadline)
        try:
            header = json.loads(head)
        except (ValueError, RecursionError) as error:
            raise ChannelClosed("a frame that is no JSON was sent") from error
        if not isinstance(header, dict):
            raise ChannelClosed("a frame without named fields was sent")
        return header, blob

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        pieces = bytearray()
        try:
            while len(pieces) < size:
                if deadline is not None:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise DeadlinePassed("no answer in time")
                    self.socket.settimeout(left)
                piece = self.socket.recv(min(size - len(pieces), 2**20))
                if not piece:
                    raise ChannelClosed("the other side is gone")
                pieces += piece
        except DeadlinePassed:
            raise
        except TimeoutError as error:
            raise DeadlinePassed("no answer in time") from error
        except OSError as error:
            raise ChannelClosed("the other side is gone") from error
        finally:
            if deadline is not None:
                self.socket.settimeout(None)
        return bytes(pieces)

    def close(self) -> None:
        self.socket.close()
