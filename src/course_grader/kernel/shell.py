"""An IPython shell that hands its outputs over as notebook outputs.

Learner cells mean here what they mean in Jupyter (magics, `display`, figures,
top-level `await`), without ZMQ, threads or a front end: that is what makes a
forked copy of it start in milliseconds.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any as AnyTrait
from traitlets.config import Config

from course_grader.kernel.limits import CUT_HERE, Limits


class Outputs:
    """The outputs of the cell that runs, in nbformat's terms."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.entries: list[dict[str, Any]] = []
        self.stream_chars = 0

    def add(self, output: dict[str, Any]) -> None:
        if len(self.entries) < self.limits.outputs:
            self.entries.append(output)

    def write(self, name: str, text: str) -> None:
        room = self.limits.output_chars - self.stream_chars
        if room <= 0:
            return
        self.stream_chars += len(text)
        if len(text) > room:
            text = text[:room] + CUT_HERE
        last = self.entries[-1] if self.entries else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.add({"output_type": "stream", "name": name, "text": text})


class _Stream:
    """A text stream that writes into the current cell's outputs."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, shell: CellShell, name: str) -> None:
        self.shell, self.name = shell, name

    def write(self, text: str) -> int:
        self.shell.outputs.write(self.name, str(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1 if self.name == "stdout" else 2


class _Hook(DisplayHook):
    shell: Any

    def write_format_data(
        self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None
    ) -> None:
        self.shell.outputs.add(
            {
                "output_type": "execute_result",
                "execution_count": self.prompt_count,
                "data": _plain_mime(format_dict, self.shell.limits),
                "metadata": {},
            }
        )

    def write_output_prompt(self) -> None:
        return None

    def finish_displayhook(self) -> None:
        return None


class _Publisher(DisplayPublisher):
    shell: Any

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: Any = None,
        **kwargs: Any,
    ) -> None:
        self.shell.outputs.add(
            {
                "output_type": "display_data",
                "data": _plain_mime(data, self.shell.limits),
                "metadata": {},
            }
        )

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.entries.clear()


def _plain_mime(data: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Texts and images only; bytes become base64 text as notebooks hold them."""
    kept = {}
    for mime, value in data.items():
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode()
        if isinstance(value, str) and len(value) <= limits.figure_chars:
            kept[mime] = value
    return kept


class CellShell(InteractiveShell):
    """Runs cells and collects what they show."""

    displayhook_class = _Hook
    display_pub_class = _Publisher
    limits = AnyTrait()
    outputs = AnyTrait()

    def __init__(self, limits: Limits, **kwargs: Any) -> None:
        super().__init__(limits=limits, outputs=Outputs(limits), **kwargs)

    def enable_gui(self, gui: Any = None) -> None:
        return None

    def init_sys_modules(self) -> None:
        super().init_sys_modules()
        sys.modules["__main__"] = self.user_module

    def ask_exit(self) -> None:
        return None

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        self.outputs.add(
            {
                "output_type": "error",
                "ename": str(getattr(etype, "__name__", etype)),
                "evalue": str(evalue)[:2000],
                "traceback": [
                    str(line)[: self.limits.output_chars] for line in stb
                ],
            }
        )

    def run(self, source: str) -> tuple[list[dict[str, Any]], bool]:
        """Runs one cell.

        Returns:
            (outputs, ok): the cell's outputs in nbformat's terms, and whether
            it ran to its end.
        """
        self.outputs = Outputs(self.limits)
        sys.stdout, sys.stderr = (
            _Stream(self, "stdout"),
            _Stream(self, "stderr"),
        )
        try:
            result = self.run_cell(source, store_history=True)
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        return self.outputs.entries, bool(result.success)


def make_shell(limits: Limits) -> CellShell:
    """The shell of this process, without history file, threads or colours.

    Args:
        limits: of what a cell may show.
    """
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autoindent = False
    shell: CellShell = CellShell.instance(config=config, limits=limits)
    return shell
