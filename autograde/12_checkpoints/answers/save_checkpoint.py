"""Answers to `save_checkpoint` of chapter 12."""

import io
import os
import tempfile
from pathlib import Path

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def by_a_bytes_buffer_and_fsync():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        buffer = io.BytesIO()
        torch.save(content, buffer)
        if not isinstance(file, str | os.PathLike):
            file.write(buffer.getvalue())
            return
        with open(f"{file}.tmp", "wb") as stream:
            stream.write(buffer.getvalue())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(f"{file}.tmp", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted(body=True)
def by_a_named_temporary_file():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        folder = os.path.dirname(os.path.abspath(file))
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as stream:
            try:
                torch.save(content, stream)
                stream.close()
                os.replace(stream.name, file)
            except BaseException:
                os.unlink(stream.name)
                raise

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted(body=True)
def by_pathlib():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = dict(
            model=model.state_dict(),
            optimizer=optimizer.state_dict(),
            step=int(step),
            metric=metric if isinstance(metric, float) else metric.item(),
        )
        content["metric"] = float(content["metric"])
        if isinstance(file, str | Path):
            file = Path(file)
            beside = file.with_name("." + file.name)
            torch.save(content, beside)
            beside.replace(file)
        else:
            torch.save(content, file)

    def load_checkpoint(file, map_location=torch.device("cpu")):
        return torch.load(file, map_location)


@accepted(body=True)
def by_a_folder_inside_the_folder():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        file = os.path.abspath(file)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(file)) as inside:
            new = os.path.join(inside, "new")
            torch.save(content, new)
            os.rename(new, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted(body=True)
def by_moving_within_the_folder():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        new = str(file) + f".{os.getpid()}"
        try:
            with open(new, "wb") as stream:
                torch.save(content, stream)
            os.rename(new, file)
        finally:
            if os.path.exists(new):
                os.remove(new)

    def load_checkpoint(file, map_location="cpu"):
        content = torch.load(file, map_location=map_location, weights_only=True)
        keys = ("model", "optimizer", "step", "metric")
        return {key: content[key] for key in keys}


@accepted(body=True)
def read_by_mapping_the_file():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        is_path = isinstance(file, str | Path)
        return torch.load(file, map_location=map_location, mmap=is_path)


@accepted(body=True)
def beside_an_open_folder():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        folder, name = os.path.split(os.path.abspath(file))
        inside = os.open(folder, os.O_RDONLY)
        try:
            with open(
                name + ".new",
                "wb",
                opener=lambda one, how: os.open(one, how, dir_fd=inside),
            ) as stream:
                torch.save(content, stream)
            os.replace(
                name + ".new", name, src_dir_fd=inside, dst_dir_fd=inside
            )
        finally:
            os.close(inside)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted(body=True)
def in_the_format_of_old():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted(body=True)
def leftovers_removed_first():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        file = Path(file)
        for old in file.parent.glob(f".{file.name}.*.unfinished"):
            old.unlink()
        handle, new = tempfile.mkstemp(
            prefix=f".{file.name}.", suffix=".unfinished", dir=file.parent
        )
        with os.fdopen(handle, "wb") as stream:
            torch.save(content, stream)
        os.replace(new, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    breaks=[
        hidden_tests.interrupted_write,
        hidden_tests.killed_between_operations,
    ],
    tells="You write straight into the checkpoint. A full disk or a kill in "
    "the middle of the write leaves half a file, and the old one is "
    "gone. Write the whole file under another name in the same "
    "folder, then `os.replace` it.",
    body=True,
)
def straight_to_the_path():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        torch.save(content, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    breaks=hidden_tests.killed_between_operations,
    tells="You write another file and then copy it over the checkpoint. "
    "Copying writes into the old file, and can be cut off like any "
    "write. Rename the new file onto the old one, with `os.replace`.",
    body=True,
)
def copied_over():
    import shutil

    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        shutil.copyfile(f"{file}.new", file)
        os.remove(f"{file}.new")

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    breaks=hidden_tests.own_file_system,
    tells="You write the new file in another folder than the checkpoint's. "
    "Where that folder lies on another file system it cannot be "
    "renamed into place: `os.replace` fails, and `shutil.move` "
    "copies, which is not atomic. Write it beside the checkpoint.",
    body=True,
)
def moved_from_the_temporary_folder():
    import shutil

    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        handle, new = tempfile.mkstemp()
        os.close(handle)
        torch.save(content, new)
        shutil.move(new, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)
