"""Frames over a socket: a JSON header and a blob, each of known length.

Used on the judge's side and on the learner's. The reader decides how much it
accepts and how long it waits.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
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


def header_of(head: bytes) -> dict[str, Any]:
    """A frame's header as it was meant.

    Raises:
        ChannelClosed: it is malformed.
    """
    try:
        header = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise ChannelClosed("a frame that is no JSON was sent") from error
    if not isinstance(header, dict):
        raise ChannelClosed("a frame without named fields was sent")
    return header


class _Wait:
    """How long one frame may take to come."""

    def __init__(
        self, timeout_s: float, more_s: Callable[[float], float]
    ) -> None:
        self.ends = time.monotonic() + timeout_s
        self.more_s = more_s

    def left_s(self) -> float:
        """Seconds until its end, which may be put off.

        Raises:
            DeadlinePassed: there are none.
        """
        left = self.ends - time.monotonic()
        if left <= 0:
            left = self.more_s(-left)
            if left <= 0:
                raise DeadlinePassed("no answer in time")
            self.ends = time.monotonic() + left
        return left


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
        self,
        timeout_s: float | None = None,
        more_s: Callable[[float], float] = lambda late_s: 0.0,
    ) -> tuple[dict[str, Any], bytes]:
        """Waits for one frame.

        Args:
            timeout_s: for how long; for ever if None.
            more_s: asked when that has passed, and by how much; says for how many
                seconds to go on.

        Raises:
            DeadlinePassed: nothing complete came in time.
            ChannelClosed: the connection ended or the frame is malformed.
        """
        head, blob = self.receive_bytes(timeout_s, more_s)
        return header_of(head), blob

    def receive_bytes(
        self,
        timeout_s: float | None = None,
        more_s: Callable[[float], float] = lambda late_s: 0.0,
    ) -> tuple[bytes, bytes]:
        """Waits for one frame, as `receive` does: its header as it was sent, for
        `header_of`, and its blob."""
        wait = None if timeout_s is None else _Wait(timeout_s, more_s)
        head_bytes, blob_bytes = _LENGTHS.unpack(
            self._exactly(_LENGTHS.size, wait)
        )
        if head_bytes > MAX_HEADER_BYTES or blob_bytes > MAX_BLOB_BYTES:
            raise ChannelClosed("a frame larger than allowed was sent")
        return self._exactly(head_bytes, wait), self._exactly(blob_bytes, wait)

    def _exactly(self, size: int, wait: _Wait | None) -> bytes:
        pieces = bytearray()
        try:
            while len(pieces) < size:
                if wait is not None:
                    self.socket.settimeout(wait.left_s())
                try:
                    piece = self.socket.recv(min(size - len(pieces), 2**20))
                except TimeoutError:
                    continue
                if not piece:
                    raise ChannelClosed("the other side is gone")
                pieces += piece
        except DeadlinePassed:
            raise
        except OSError as error:
            raise ChannelClosed("the other side is gone") from error
        finally:
            if wait is not None:
                self.socket.settimeout(None)
        return bytes(pieces)

    def close(self) -> None:
        self.socket.close()
