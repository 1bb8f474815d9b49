"""The answer bank of chapter 12: checkpoints."""

import contextlib
import copy
import io
import math
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import torch

from course_grader.bank import accepted, wrong

from . import hidden_tests

# save_checkpoint


@accepted("save_checkpoint", body=True)
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


@accepted("save_checkpoint", body=True)
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
            except BaseException:
                os.unlink(stream.name)
                raise
        os.replace(stream.name, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted("save_checkpoint", body=True)
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


@accepted("save_checkpoint", body=True)
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


@accepted("save_checkpoint", body=True)
def by_moving_within_the_folder():
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
        new = str(file) + f".{os.getpid()}"
        try:
            with open(new, "wb") as stream:
                torch.save(content, stream)
            shutil.move(new, file)
        finally:
            if os.path.exists(new):
                os.remove(new)

    def load_checkpoint(file, map_location="cpu"):
        content = torch.load(file, map_location=map_location, weights_only=True)
        keys = ("model", "optimizer", "step", "metric")
        return {key: content[key] for key in keys}


@wrong(
    "save_checkpoint",
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
    "save_checkpoint",
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
def straight_into_an_open_file():
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
        with open(file, "wb") as stream:
            torch.save(content, stream)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
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
def a_buffer_written_at_once():
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
        buffer = io.BytesIO()
        torch.save(content, buffer)
        Path(file).write_bytes(buffer.getvalue())

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.killed_between_operations,
    tells="You remove the old checkpoint and then rename the new one. A "
    "kill between the two leaves no checkpoint. `os.replace` does "
    "both in one step: leave the removing out.",
    body=True,
)
def removed_then_renamed():
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
        if os.path.exists(file):
            os.remove(file)
        os.rename(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
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
    "save_checkpoint",
    breaks=hidden_tests.killed_between_operations,
    tells="You write another file and then copy it over the checkpoint. "
    "Copying writes into the old file, and can be cut off like any "
    "write. Rename the new file onto the old one, with `os.replace`.",
    body=True,
)
def checked_then_copied():
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
        torch.load(f"{file}.new")
        with open(f"{file}.new", "rb") as new, open(file, "wb") as old:
            old.write(new.read())
        os.unlink(f"{file}.new")

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.own_file_system,
    tells="You write the new file in another folder than the checkpoint's. "
    "Where that folder lies on another file system it cannot be "
    "renamed into place: `os.replace` fails, and `shutil.move` "
    "copies, which is not atomic. Write it beside the checkpoint.",
    body=True,
)
def replaced_from_the_temporary_folder():
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
        os.replace(new, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
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


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.own_file_system,
    tells="You write the new file in another folder than the checkpoint's. "
    "Where that folder lies on another file system it cannot be "
    "renamed into place: `os.replace` fails, and `shutil.move` "
    "copies, which is not atomic. Write it beside the checkpoint.",
    body=True,
)
def replaced_from_the_current_folder():
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
        torch.save(content, "checkpoint.new")
        os.replace("checkpoint.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You saved the model and the optimizer themselves. Such a file "
    "needs your classes, wherever it is read, and `torch.load` "
    "refuses it unless told to run any code in it. Save their "
    "`state_dict()`.",
    body=True,
)
def whole_objects():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model,
            "optimizer": optimizer,
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location, weights_only=False)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.metric_becomes_plain,
    tells="You save the metric as it comes. A NumPy scalar is an object of "
    "NumPy's, which `torch.load` refuses, and a tensor stays a "
    "tensor. Save `float(metric)`.",
    body=True,
)
def metric_as_it_comes():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": metric,
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.metric_becomes_plain,
    tells="You call `metric.item()` only where the metric is a tensor. "
    "NumPy's scalars are not plain numbers either. `float(metric)` "
    "takes all of them.",
    body=True,
)
def metric_by_item():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": metric.item() if torch.is_tensor(metric) else metric,
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You turn the metric into a tensor. A float was asked for: the "
    "reader of the file should not need `.item()`. Save "
    "`float(metric)`.",
    body=True,
)
def metric_as_a_tensor():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": torch.as_tensor(float(metric)),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.refuses_objects,
    tells="You load with `weights_only=False`, which runs whatever code a "
    "file holds. A checkpoint made of state dicts and numbers needs "
    "none. Leave it at the default, and make what you save plain.",
    body=True,
)
def any_object_loaded():
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
        return torch.load(file, map_location=map_location, weights_only=False)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.refuses_objects,
    tells="You load with `weights_only=False`, which runs whatever code a "
    "file holds. A checkpoint made of state dicts and numbers needs "
    "none. Leave it at the default, and make what you save plain.",
    body=True,
)
def any_object_loaded_in_the_end():
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
        try:
            return torch.load(file, map_location=map_location)
        except Exception:
            return torch.load(
                file, map_location=map_location, weights_only=False
            )


@wrong(
    "save_checkpoint",
    breaks=[hidden_tests.metric_becomes_plain, hidden_tests.refuses_objects],
    tells="You save the metric as it comes, and load with "
    "`weights_only=False` because of it. Make it plain when you save, "
    "with `float(metric)`, and load with the default.",
    body=True,
)
def metric_hidden_by_an_unsafe_load():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": metric,
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location, weights_only=False)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.refuses_objects,
    tells="Your function refuses a file with objects in it, but by an error "
    "of its own. Let the `pickle.UnpicklingError` of `torch.load` "
    "through: it says what was found in the file.",
    body=True,
)
def objects_turned_to_another_error():
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
        try:
            return torch.load(file, map_location=map_location)
        except Exception as error:
            raise ValueError("cannot read the checkpoint") from error


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.refuses_objects,
    tells="You allow classes with `safe_globals` that the file should not "
    "hold. It was to be plain data alone: load without a list of "
    "exceptions.",
    body=True,
)
def paths_allowed():
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
        import pathlib

        known = [pathlib.PurePosixPath, pathlib.PosixPath]
        with torch.serialization.safe_globals(known):
            return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.to_the_asked_device,
    tells="You load without `map_location`. The tensors then go back to the "
    "device they were saved from, and on a machine without that GPU "
    "the file cannot be read. Pass `map_location` on.",
    body=True,
)
def without_map_location():
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
        return torch.load(file)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.to_the_asked_device,
    tells="You load onto the CPU, whatever `map_location` says. Pass the "
    "argument on to `torch.load`.",
    body=True,
)
def always_to_the_cpu():
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
        return torch.load(file, map_location="cpu")


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.to_the_asked_device,
    tells="You move the model's tensors to the device and leave the "
    "optimizer's where they are. `torch.load(..., map_location=...)` "
    "moves all of them.",
    body=True,
)
def the_model_alone_moved():
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
        content = torch.load(file, map_location="cpu")
        model = content["model"]
        content["model"] = {k: v.to(map_location) for k, v in model.items()}
        return content


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.failure_is_told,
    tells="You catch the error of a failed save and go on. Training runs "
    "for days and saves nothing, and nobody hears of it. Let the "
    "error through.",
    body=True,
)
def errors_swallowed():
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
        try:
            torch.save(content, f"{file}.new")
            os.replace(f"{file}.new", file)
        except (OSError, RuntimeError):
            pass

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.failure_is_told,
    tells="You let an error of writing through, and swallow one of renaming. "
    "Then the new checkpoint is not there either, and nobody hears of it.",
    body=True,
)
def failed_rename_swallowed():
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
        with contextlib.suppress(OSError):
            os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.into_a_buffer,
    tells="You treat every file as a path. An open file, such as a "
    "`BytesIO`, has a `write` method: give it to `torch.save` as it "
    "is.",
    body=True,
)
def paths_only():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You use methods of `Path`, and `file` may be a `str`. Begin with "
    "`Path(file)`.",
    body=True,
)
def path_objects_only():
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
        new = file.with_suffix(".new")
        torch.save(content, new)
        new.replace(file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You leave a second file beside the checkpoint after every save. "
    "A long run fills the disk with them. Rename the new file, and "
    "keep no other.",
    body=True,
)
def a_copy_left_beside():
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
        os.replace(f"{file}.new", file)
        shutil.copyfile(file, f"{file}.{step}")

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You open the new file with mode `x`, which fails if it exists. "
    "After a killed save it does, and no later save succeeds. Write "
    "over it.",
    body=True,
)
def never_over_a_leftover():
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
        with open(f"{file}.new", "xb") as stream:
            torch.save(content, stream)
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.interrupted_write,
    tells="You do not save where there is a checkpoint already. The new one "
    "must replace it.",
    body=True,
)
def only_the_first_is_saved():
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
        if not os.path.exists(file):
            torch.save(content, f"{file}.new")
            os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted("save_checkpoint", body=True)
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


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You round the metric. What is read back is no longer what was "
    "saved, and two epochs may look equal that were not. Save it as "
    "it is.",
    body=True,
)
def metric_rounded():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": round(float(metric), 2),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You save the weights in half precision. What comes back is "
    "rounded. Save them as they are.",
    body=True,
)
def weights_in_half_precision():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": {
                k: v.half() if v.is_floating_point() else v
                for k, v in model.state_dict().items()
            },
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
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You save the optimizer's groups and not its state. The moments "
    "are what costs most to lose. Save the whole "
    "`optimizer.state_dict()`.",
    body=True,
)
def the_optimizer_without_its_state():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict() | {"state": {}},
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.new")
        os.replace(f"{file}.new", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@accepted("save_checkpoint", body=True)
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


@accepted("save_checkpoint", body=True)
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


@accepted("save_checkpoint", body=True)
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
    "save_checkpoint",
    breaks=hidden_tests.under_any_name,
    tells="The other name is the checkpoint's own where that has the same "
    "suffix or name: then you write straight into it. Take a name "
    'that is made of the whole name, `f"{file}.partial"`.',
    body=True,
)
def by_another_suffix():
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
        unfinished = Path(file).with_suffix(".partial")
        torch.save(content, unfinished)
        os.replace(unfinished, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.under_any_name,
    tells="The other name is the checkpoint's own where that has the same "
    "suffix or name: then you write straight into it. Take a name "
    'that is made of the whole name, `f"{file}.partial"`.',
    body=True,
)
def by_one_name_for_all():
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
        unfinished = Path(file).with_name("checkpoint.tmp")
        torch.save(content, unfinished)
        os.replace(unfinished, file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.interrupted_write,
    tells="You rename the new file while it is still open. Its last bytes "
    "may lie in a buffer, and a kill then loses them: close it "
    "first.",
    body=True,
)
def renamed_before_it_is_closed():
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
        whole = io.BytesIO()
        torch.save(content, whole)
        with open(f"{file}.partial", "wb") as stream:
            stream.write(whole.getvalue())
            os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You write over what a killed save left behind without cutting "
    "it off. If that was longer, its end stays behind your "
    "checkpoint. Open with mode `wb`.",
    body=True,
)
def over_a_longer_leftover():
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
        buffer = io.BytesIO()
        torch.save(content, buffer)
        flags = os.O_WRONLY | os.O_CREAT
        handle = os.open(f"{file}.partial", flags, 0o644)
        with os.fdopen(handle, "wb") as stream:
            stream.write(buffer.getvalue())
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.interrupted_write,
    tells="You write the first checkpoint straight to its path. If that is "
    "cut off, half a checkpoint lies there, and the next start "
    "fails. Write every one beside and rename it.",
    body=True,
)
def the_first_save_directly():
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
        if not os.path.exists(file):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You leave another file beside the checkpoint, an older one. The "
    "folder was to hold the checkpoint and no other file of yours.",
    body=True,
)
def the_last_one_kept_by_a_link():
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
        if os.path.exists(f"{file}.old"):
            os.unlink(f"{file}.old")
        if os.path.exists(file):
            os.link(file, f"{file}.old")
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You remove every file in the folder that looks temporary. Some "
    "belong to others: remove your own only.",
    body=True,
)
def the_folder_cleaned_up():
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
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)
        for one in Path(file).absolute().parent.iterdir():
            if one.suffix in (".partial", ".tmp"):
                one.unlink()

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You change the current folder of the process. Every relative "
    "path of the program then means another file. Write with the "
    "full path instead.",
    body=True,
)
def another_current_folder():
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
        file = Path(file).absolute()
        os.chdir(file.parent)
        torch.save(content, file.name + ".partial")
        os.replace(file.name + ".partial", file.name)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.into_a_buffer,
    tells="You rewind or empty the caller's open file. What stands before "
    "its position is the caller's: write from there on, and leave "
    "the position at the end.",
    body=True,
)
def rewound_before():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            file.seek(0)
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.into_a_buffer,
    tells="You rewind or empty the caller's open file. What stands before "
    "its position is the caller's: write from there on, and leave "
    "the position at the end.",
    body=True,
)
def rewound_after():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            file.seek(0)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.into_a_buffer,
    tells="You close the caller's file. Whoever opened it closes it.",
    body=True,
)
def closed_after_the_save():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            file.close()
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.into_a_buffer,
    tells="You close the caller's file. Whoever opened it closes it.",
    body=True,
)
def closed_after_the_load():
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
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        content = torch.load(file, map_location=map_location)
        if hasattr(file, "close"):
            file.close()
        return content


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.into_a_buffer,
    tells="You take nothing but a `BytesIO` for an open file. What `open` "
    "and `tempfile` give is one too: ask for a `write`.",
    body=True,
)
def bytesio_alone():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if isinstance(file, io.BytesIO):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.refuses_objects,
    tells="You allow further classes, and for all of the process. Files "
    "with NumPy's scalars in them were to be refused: leave the list "
    "of safe classes as it is.",
    body=True,
)
def numpy_allowed_for_good():
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
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        numpys = [
            np.dtype,
            np.dtypes.Float64DType,
            (np._core.multiarray.scalar, "numpy._core.multiarray.scalar"),
            Path,
            type(Path()),
        ]
        torch.serialization.add_safe_globals(numpys)
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.to_the_asked_device,
    tells="You take no notice of `map_location` where the file is an open "
    "one. Pass it on in both cases.",
    body=True,
)
def open_files_to_the_cpu():
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
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        if hasattr(file, "read"):
            return torch.load(file, map_location="cpu")
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="The dict has a fifth key. Four were asked for: model, "
    "optimizer, step and metric.",
    body=True,
)
def a_key_added_on_loading():
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
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        content = torch.load(file, map_location=map_location)
        return {"format": 1, **content}


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="The dict has a fifth key. Four were asked for: model, "
    "optimizer, step and metric.",
    body=True,
)
def a_key_added_on_saving():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "format": 1,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="Your metric passes through float32, which keeps seven digits. "
    "`float(metric)` keeps all.",
    body=True,
)
def metric_through_float32():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(np.float32(float(metric))),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.metric_becomes_plain,
    tells="You make an array of the metric, which fails where it is a "
    "tensor with a gradient. `float(metric)` takes all of them.",
    body=True,
)
def metric_through_numpy():
    def save_checkpoint(file, model, optimizer, step, metric):
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(np.asarray(metric)),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You put the model into eval mode. Saving was to change nothing "
    "about it: training goes on.",
    body=True,
)
def the_model_put_in_eval_mode():
    def save_checkpoint(file, model, optimizer, step, metric):
        model.eval()
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


@wrong(
    "save_checkpoint",
    breaks=hidden_tests.reads_back,
    tells="You throw the gradients away. Saving was to change nothing "
    "about the model and the optimizer.",
    body=True,
)
def gradients_cleared_on_saving():
    def save_checkpoint(file, model, optimizer, step, metric):
        optimizer.zero_grad()
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "metric": float(metric),
        }
        if hasattr(file, "write"):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        os.replace(f"{file}.partial", file)

    def load_checkpoint(file, map_location="cpu"):
        return torch.load(file, map_location=map_location)


# train


@accepted("train")
def by_one_key_for_each(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@accepted("train")
def scheduler_loaded_first_and_atomic(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        scheduler.load_state_dict(saved["scheduler"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        unfinished = path.with_suffix(".partial")
        torch.save(saved, unfinished)
        unfinished.replace(path)
    return model, losses


@accepted("train")
def by_the_order_and_a_position(job, path):
    def draw_states(states=None):
        if states is None:
            kind, keys, position, has_gauss, gauss = np.random.get_state()
            rest = [position, has_gauss, gauss]
            return [
                torch.get_rng_state(),
                random.getstate(),
                keys.tolist(),
                rest,
            ]
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        keys = np.array(states[2], dtype=np.uint32)
        np.random.set_state(("MT19937", keys, *states[3]))

    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, order = [], None
    per_epoch = math.ceil(job.num_samples / job.batch_size)
    if path.exists():
        states, order, losses, random_states = torch.load(path).values()
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
        draw_states(random_states)
    for step in range(len(losses), job.num_epochs * per_epoch):
        if step % per_epoch == 0:
            order = torch.randperm(job.num_samples)
        start = step % per_epoch * job.batch_size
        indices = order[start : start + job.batch_size]
        losses.append(job.step(*parts, indices))
        states = [part.state_dict() for part in parts]
        content = dict(zip("abcd", (states, order, losses, draw_states())))
        torch.save(content, path)
    return model, losses


@accepted("train")
def order_drawn_again_from_its_random_state(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    first_epoch, first_batch, losses, resumed = 0, 0, [], None
    if path.exists():
        resumed = torch.load(path)
        first_epoch, first_batch = resumed["epoch"], resumed["batch"]
        losses = resumed["losses"]
        model.load_state_dict(resumed["model"])
        optimizer.load_state_dict(resumed["optimizer"])
        scheduler.load_state_dict(resumed["scheduler"])
        scaler.load_state_dict(resumed["scaler"])
        torch.set_rng_state(resumed["before_the_order"])
    for epoch in range(first_epoch, job.num_epochs):
        before_the_order = torch.get_rng_state()
        batches = torch.randperm(job.num_samples).split(job.batch_size)
        if resumed:
            torch.set_rng_state(resumed["torch"])
            state = (*resumed["numpy"],)
            state = (state[0], state[1].numpy(), *state[2:])
            np.random.set_state(state)
            random.setstate(resumed["python"])
            resumed = None
        for batch, indices in enumerate(batches):
            if epoch == first_epoch and batch < first_batch:
                continue
            parts = model, optimizer, scheduler, scaler
            losses.append(job.step(*parts, indices))
            name, keys, *rest = np.random.get_state()
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(),
                    "epoch": epoch,
                    "batch": batch + 1,
                    "losses": losses,
                    "before_the_order": before_the_order,
                    "torch": torch.get_rng_state(),
                    "numpy": [name, torch.from_numpy(keys), *rest],
                    "python": random.getstate(),
                },
                path,
            )
    return model, losses


@accepted("train")
def all_parts_under_one_roof(job, path):
    class Run:
        def __init__(self):
            self.model = job.make_model()
            self.optimizer = job.make_optimizer(self.model)
            self.scheduler = job.make_scheduler(self.optimizer)
            self.scaler = job.make_scaler()
            self.todo = torch.empty(0, dtype=torch.int64)
            self.epochs_left = job.num_epochs
            self.losses = torch.empty(0, dtype=torch.float64)

        def parts(self):
            return self.model, self.optimizer, self.scheduler, self.scaler

        def state_dict(self):
            numpy = np.random.get_state(legacy=False)
            numpy["state"]["key"] = numpy["state"]["key"].tolist()
            return {
                "parts": [part.state_dict() for part in self.parts()],
                "todo": self.todo,
                "epochs_left": self.epochs_left,
                "losses": self.losses,
                "random": [torch.get_rng_state(), numpy, random.getstate()],
            }

        def load_state_dict(self, state):
            for part, own in zip(self.parts(), state["parts"], strict=True):
                part.load_state_dict(own)
            self.todo, self.losses = state["todo"], state["losses"]
            self.epochs_left = state["epochs_left"]
            of_torch, of_numpy, of_python = state["random"]
            key = np.array(of_numpy["state"]["key"], dtype=np.uint32)
            of_numpy["state"]["key"] = key
            torch.set_rng_state(of_torch)
            np.random.set_state(of_numpy)
            random.setstate(of_python)

        def one_step(self):
            if not len(self.todo):
                self.todo = torch.randperm(job.num_samples)
                self.epochs_left -= 1
            batch = self.todo[: job.batch_size]
            self.todo = self.todo[job.batch_size :].clone()
            loss = torch.tensor(
                [job.step(*self.parts(), batch)], dtype=torch.float64
            )
            self.losses = torch.cat([self.losses, loss])

    run = Run()
    if path.is_file():
        run.load_state_dict(torch.load(path, weights_only=True))
    while len(run.todo) or run.epochs_left:
        run.one_step()
        torch.save(run.state_dict(), path)
    return run.model, run.losses.tolist()


@wrong(
    "train",
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="You write checkpoints and never read one: after a kill the run "
    "begins again. If `path` exists, load it before the first step.",
)
def starts_over(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if False:
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.only_the_rest,
    tells="You write the checkpoint before the step and not after it, so "
    "the last finished step is made again after every restart. Save "
    "once the step is done, without its batch among those to come.",
)
def saved_before_the_step(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.only_the_rest,
    tells="You save only at the end of an epoch. A run that dies within one "
    "makes its steps again, or starts over if it was the first. Save "
    "after every step, with what is left of the epoch.",
)
def saved_once_an_epoch(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        if not left:
            torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="After a restart you go on with the next epoch, and the samples "
    "that were left of the old one are never used. Save which batches "
    "are still to come.",
)
def goes_on_with_the_next_epoch(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        epoch, losses = saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="After a restart you begin the epoch again in which the run died, "
    "so some samples are used twice. Save which batches are still to "
    "come.",
)
def repeats_the_epoch(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        epoch, losses = saved["epoch"] - 1, saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="You count the batches, but draw the order of the samples anew "
    "after a restart. Within an epoch that is another order: some "
    "samples come twice, some never. Save the order, or the random "
    "state from before it was drawn.",
)
def order_drawn_anew(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        number_left = len(left)
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
        if number_left:
            order = torch.randperm(job.num_samples)
            left = list(order.split(job.batch_size))[-number_left:]
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="You restore the random state from before the epoch's order was "
    "drawn, and then draw the order. That gives the right order, but "
    "dropout goes on with numbers it has used before. Set the random "
    "state of the last step after the order is drawn.",
)
def draws_of_the_epoch_repeated(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
        before = saved["torch"]
        torch.randperm(job.num_samples)
    while left or epoch < job.num_epochs:
        if not left:
            before = torch.get_rng_state()
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": before,
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.losses_and_weights, hidden_tests.from_the_file],
    tells="The optimizer's state is missing. AdamW then starts again with "
    "empty moments and step count, and its first steps after the "
    "restart are far too large. Save and load "
    "`optimizer.state_dict()`.",
)
def without_the_optimizer(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.learning_rates, hidden_tests.losses_and_weights],
    tells="The scheduler's state is missing. It counts from 0 again, and "
    "its schedule starts over. Save and load "
    "`scheduler.state_dict()`.",
)
def without_the_scheduler(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.learning_rates,
    tells="You set `scheduler.last_epoch` by hand. It is a counter, not the "
    "state: some schedulers hold more, such as SequentialLR and "
    "ReduceLROnPlateau. Load `scheduler.state_dict()`.",
)
def last_epoch_by_hand(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.last_epoch = len(saved["losses"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.learning_rates, hidden_tests.losses_and_weights],
    tells="You set `scheduler.last_epoch` to the number of the last "
    "finished step, counted from 0. The schedule is then one step "
    "behind, and some schedulers hold more than that counter. Load "
    "`scheduler.state_dict()`.",
)
def last_epoch_one_behind(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.last_epoch = len(saved["losses"]) - 1
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.learning_rates, hidden_tests.losses_and_weights],
    tells="You step the new scheduler as often as the old one was stepped. "
    "It changes the learning rates that came with the optimizer a "
    "second time, and ReduceLROnPlateau would need the losses. Load "
    "`scheduler.state_dict()`.",
)
def schedule_run_through_again(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        for _ in saved["losses"]:
            scheduler.step()
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.loss_scale,
    tells="The scaler's state is missing. Its scale starts again where it "
    "once began, and steps are skipped or gradients lost until it has "
    "found its place. Save and load `scaler.state_dict()`.",
)
def without_the_scaler(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.loss_scale,
    tells="You restore the scale, but not the scaler's growth counter: the "
    "scale grows at other steps. Load the whole "
    "`scaler.state_dict()`.",
)
def scale_without_its_counter(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scale = {"scale": saved["scaler"]["scale"]}
        scaler.load_state_dict(scaler.state_dict() | scale)
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="No random state is restored. Dropout and the orders of later "
    "epochs are then drawn from the new process's seed. Save the "
    "states of `torch`, `np.random` and `random`.",
)
def without_random_states(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="You restore PyTorch's random state alone. A step may also draw "
    "from `np.random` and `random`, as augmentations do. Save all "
    "three.",
)
def random_state_of_torch_alone(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="NumPy's random state is missing. Save `np.random.get_state()`, "
    "with its array as a list or tensor.",
)
def without_numpys_random_state(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="The random state of Python's own `random` is missing. Save "
    "`random.getstate()`.",
)
def without_pythons_random_state(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="PyTorch's random state is missing, so dropout and the order of "
    "later epochs differ. Save `torch.get_rng_state()`.",
)
def without_torchs_random_state(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="You restore the random states before the model is made. Making "
    "it draws numbers, so the run goes on a few draws too late. Make "
    "everything first, set the random states last.",
)
def random_states_set_too_early(job, path):
    if path.exists():
        torch.set_rng_state(torch.load(path)["torch"])
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.learning_rates,
    tells="You load the optimizer before you make the scheduler. Making a "
    "scheduler sets learning rates of the optimizer, over those you "
    "have just loaded. Make all parts first, then load them.",
)
def optimizer_loaded_before_the_scheduler_is_made(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    if path.exists():
        optimizer.load_state_dict(torch.load(path)["optimizer"])
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.losses_and_weights,
    tells="You return the losses since the restart alone. Those from before "
    "belong in the checkpoint too.",
)
def losses_since_the_restart(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch = saved["left"], saved["epoch"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.from_the_file,
    tells="You save NumPy's random state with its array and load with "
    "`weights_only=False`. `torch.load` with its defaults cannot read "
    "that file. Make a list or a tensor of the array.",
)
def with_an_array_in_the_file(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys, *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, keys, *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.uninterrupted,
    tells="You seed the generators at the start of your function. Every run "
    "then is the same run, and a resumed one repeats its draws unless "
    "the states are restored. Leave seeding to the caller.",
)
def seeded_at_the_start(job, path):
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.only_the_rest,
    tells="You delete the checkpoint at the end. A finished run that is "
    "called once more then trains all over again. Keep the file.",
)
def removed_when_finished(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    path.unlink(missing_ok=True)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.uninterrupted,
    tells="Your checkpoint draws a random number, for a file name perhaps, "
    "and so moves PyTorch's generator: the run is no longer the one "
    "without checkpoints. Take names that need no draw.",
)
def a_draw_for_the_file_name(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        unfinished = path.with_suffix(f".{torch.randint(1000, ()).item()}")
        torch.save(saved, unfinished)
        unfinished.replace(path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="You keep the random states in a file of their own. When the "
    "checkpoint is moved without it the run goes on with other draws, "
    "and a kill between the two writes leaves two that do not belong "
    "together. Put everything into one file.",
)
def random_states_in_a_second_file(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        second = path.with_suffix(".random")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        if second.exists():
            states = torch.load(second)
            name, keys, *rest = states["numpy"]
            np.random.set_state((name, keys.numpy(), *rest))
            random.setstate(states["python"])
            torch.set_rng_state(states["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        states = {
            name: saved.pop(name) for name in ("numpy", "python", "torch")
        }
        torch.save(saved, path)
        torch.save(states, path.with_suffix(".random"))
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.losses_and_weights,
    tells="You write the weights into the checkpoint once and then never "
    "again. Write all of it after every step.",
)
def the_weights_of_the_first_step(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        if path.exists():
            saved["model"] = torch.load(path)["model"]
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.losses_and_weights,
    tells="You keep the losses as a tensor, in float32 or rounded. Python "
    "floats are float64, and what comes back is no longer, bit for "
    "bit, what `job.step` returned. Keep a list, or a float64 tensor.",
)
def losses_in_float32(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = (
            saved["left"],
            saved["epoch"],
            saved["losses"].tolist(),
        )
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": torch.tensor(losses).mul(1 / 3).mul(3),
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="You save only after every second step. A run that dies in "
    "between makes a step again, or starts over. Save after every "
    "step.",
)
def saved_every_second_step(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        if len(losses) % 2 == 0 or not left and epoch == job.num_epochs:
            torch.save(saved, path)
    return model, losses


@wrong(
    "train",
    breaks=[hidden_tests.losses_and_weights, hidden_tests.from_the_file],
    tells="You save the weights in half precision. The run goes on from "
    "rounded ones, and is another run. Save them as they are.",
)
def weights_halved_to_save_space(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": {k: v.half() for k, v in model.state_dict().items()},
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@accepted("train")
def with_a_checkpoint_before_the_first_step(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    if not path.exists():
        name, keys, *rest = np.random.get_state()
        saved = {
            "parts": [part.state_dict() for part in parts],
            "losses": losses,
            "epoch": epoch,
            "left": left,
            "numpy": (name, keys.tolist(), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@accepted("train")
def with_states_from_other_functions(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        of_numpy = saved["numpy"]
        keys = np.array(of_numpy["state"]["key"], dtype=np.uint32)
        of_numpy["state"]["key"] = keys
        np.random.set_state(of_numpy)
        random.setstate(saved["python"])
        torch.default_generator.set_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            of_numpy = np.random.get_state(legacy=False)
            of_numpy["state"]["key"] = of_numpy["state"]["key"].tolist()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": of_numpy,
                "python": random.getstate(),
                "torch": torch.default_generator.get_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="The random state of `random` has three parts, and you drop the "
    "last: `gauss` draws pairs and keeps the second for later. Save "
    "`random.getstate()` as it is.",
)
def without_the_half_pair_of_python(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": (*random.getstate()[:2], None),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="You keep the numbers and the position of NumPy's random state "
    "and drop the rest: `standard_normal` draws pairs and keeps the "
    "second for later. Save all of `np.random.get_state()`.",
)
def without_the_half_pair_of_numpy(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), rest[0]),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.order_and_draws,
    tells="A finished run returns before the random states are set. What "
    "is drawn after `train` is then not what would have been drawn. "
    "Set them first.",
)
def back_at_once_when_finished(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        if epoch == job.num_epochs - 1 and not left:
            return model, losses
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.interrupted_step,
    tells="You save when a step is interrupted. Half a step has then "
    "changed weights, random states or the scheduler, and the step "
    "is made again on top. Save after whole steps only.",
)
def saved_when_interrupted(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            now = left[0]
            try:
                losses.append(job.step(*parts, now))
            except BaseException:
                name, keys, *rest = np.random.get_state()
                saved = {
                    "parts": [part.state_dict() for part in parts],
                    "losses": losses,
                    "epoch": epoch,
                    "left": left,
                    "numpy": (name, keys.tolist(), *rest),
                    "python": random.getstate(),
                    "torch": torch.get_rng_state(),
                }
                torch.save(saved, path)
                raise
            left.pop(0)
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.interrupted_step,
    tells="You save when a step is interrupted. Half a step has then "
    "changed weights, random states or the scheduler, and the step "
    "is made again on top. Save after whole steps only.",
)
def saved_in_the_end_in_any_case(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            try:
                losses.append(job.step(*parts, left[0]))
                left.pop(0)
            finally:
                name, keys, *rest = np.random.get_state()
                saved = {
                    "parts": [part.state_dict() for part in parts],
                    "losses": losses,
                    "epoch": epoch,
                    "left": left,
                    "numpy": (name, keys.tolist(), *rest),
                    "python": random.getstate(),
                    "torch": torch.get_rng_state(),
                }
                torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.other_sizes,
    tells="You run three epochs, as the job of the notebook does. Another "
    "job has another number: ask it.",
)
def three_epochs_always(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < 3:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.other_sizes,
    tells="You cut the order into equal parts. The batches of "
    "`train_in_one_go` have `job.batch_size` samples each, and the "
    "last has what is left: use `split`.",
)
def in_equal_parts(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            number = -(-job.num_samples // job.batch_size)
            left = list(torch.randperm(job.num_samples).chunk(number))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.other_sizes,
    tells="You drop the last batch of an epoch if it is shorter. "
    "`train_in_one_go` trains on it.",
)
def the_last_batch_dropped(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        left = [one for one in left if len(one) == job.batch_size]
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.losses_and_weights,
    tells="You save the model's parameters and not its buffers, such as "
    "running statistics. Save its `state_dict()`.",
)
def parameters_without_buffers(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["parts"][0], strict=False)
        for part, state in zip(parts[1:], saved["parts"][1:], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [
                    {k: p.detach() for k, p in model.named_parameters()},
                    *(part.state_dict() for part in parts[1:]),
                ],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.losses_and_weights,
    tells="You save the model's tensors as float32. Counters and float64 "
    "weights do not fit into that: save each in its own dtype.",
)
def everything_in_float32(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [
                    {k: v.float() for k, v in model.state_dict().items()},
                    *(part.state_dict() for part in parts[1:]),
                ],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    "train",
    breaks=hidden_tests.uninterrupted,
    tells="You return the losses as a tensor or tuple. `train_in_one_go` "
    "returns a list of floats.",
)
def losses_in_a_tensor(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, torch.tensor(losses, dtype=torch.float64)


@wrong(
    "train",
    breaks=hidden_tests.uninterrupted,
    tells="You return the losses as a tensor or tuple. `train_in_one_go` "
    "returns a list of floats.",
)
def losses_in_a_tuple(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, tuple(losses)


@wrong(
    "train",
    breaks=hidden_tests.other_sizes,
    tells="A run of one epoch gets no checkpoint. It too may be killed: "
    "save after every step.",
)
def a_short_run_without_checkpoints(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    if job.num_epochs == 1 and not path.exists():
        for indices in torch.randperm(job.num_samples).split(job.batch_size):
            losses.append(job.step(*parts, indices))
        return model, losses
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


# strip_prefix


@accepted("strip_prefix")
def by_slicing(state_dict, prefix="module."):
    from collections import OrderedDict

    made = OrderedDict()
    for key, value in state_dict.items():
        made[key[len(prefix) :] if key.startswith(prefix) else key] = value
    return made


@accepted("strip_prefix")
def by_the_library_on_a_deep_copy(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    made = copy.deepcopy(state_dict)
    consume_prefix_in_state_dict_if_present(made, prefix)
    return made


@accepted("strip_prefix")
def by_the_library_on_a_plain_dict(state_dict, prefix="module."):
    made = dict(state_dict)
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(made, prefix)
    return made


@accepted("strip_prefix")
def by_a_regular_expression(state_dict, prefix="module."):
    import re

    start = re.compile("^" + re.escape(prefix))
    return {start.sub("", k): v.clone() for k, v in state_dict.items()}


@accepted("strip_prefix")
def by_one_replacement_at_the_start(state_dict, prefix="module."):
    made = {}
    for key in state_dict:
        new = (
            key.replace(prefix, "", 1) if key[: len(prefix)] == prefix else key
        )
        made[new] = state_dict[key]
    return made


@accepted("strip_prefix")
def renamed_in_a_copy_with_metadata(state_dict, prefix="module."):
    from collections import OrderedDict

    made = state_dict.copy()
    for key in list(made):
        made[key.removeprefix(prefix)] = made.pop(key)
    if hasattr(state_dict, "_metadata"):
        made._metadata = OrderedDict(
            (key.removeprefix(prefix), value)
            for key, value in state_dict._metadata.items()
        )
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.only_the_first,
    tells="You remove the prefix wherever it occurs in a key, so "
    "`block.module.weight` loses a part of its name. Remove it only "
    "at the start: `key.removeprefix(prefix)`.",
)
def replaced_everywhere(state_dict, prefix="module."):
    return {key.replace(prefix, ""): v for key, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.only_the_first,
    tells="You remove the first occurrence of the prefix, which need not "
    "stand at the start of the key. Use `key.removeprefix(prefix)`.",
)
def first_occurrence_replaced(state_dict, prefix="module."):
    return {key.replace(prefix, "", 1): v for key, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.false_friends,
    tells="`lstrip` removes all leading characters that occur in the "
    "prefix, in any order: it turns `module.model.fc` into `fc`. Use "
    "`removeprefix`.",
)
def stripped_by_characters(state_dict, prefix="module."):
    return {key.lstrip(prefix): v for key, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.false_friends,
    tells="`lstrip` removes all leading characters that occur in the "
    "prefix, in any order: it turns `module.model.fc` into `fc`. Use "
    "`removeprefix`.",
)
def guarded_but_stripped_by_characters(state_dict, prefix="module."):
    return {
        key.lstrip(prefix) if key.startswith(prefix) else key: v
        for key, v in state_dict.items()
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.false_friends,
    tells="You look for the prefix without its dot, so "
    "`module_list.0.weight` is cut as well. The dot belongs to the "
    "prefix.",
)
def without_the_dot(state_dict, prefix="module."):
    word = prefix.rstrip(".")
    return {
        key[len(prefix) :] if key.startswith(word) else key: v
        for key, v in state_dict.items()
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.false_friends,
    tells="In a regular expression a dot stands for any character, so "
    "`module_list` matches `module.`. Escape the prefix with "
    "`re.escape`, or use `removeprefix`.",
)
def with_any_character_for_the_dot(state_dict, prefix="module."):
    import re

    return {re.sub("^" + prefix, "", k): v for k, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You cut the length of the prefix from every key, also from those "
    "that do not have it. Ask `key.startswith(prefix)` first, or use "
    "`removeprefix`.",
)
def every_key_cut(state_dict, prefix="module."):
    return {key[len(prefix) :]: v for key, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You drop the first part of every key, whatever it is called: "
    "`fc.weight` becomes `weight`. Drop it only where it is the "
    "prefix.",
)
def first_part_dropped(state_dict, prefix="module."):
    return {key.partition(".")[2]: v for key, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You look at one key and treat all others like it. A state dict "
    "may have keys of both kinds: decide for each.",
)
def first_key_decides(state_dict, prefix="module."):
    if not any(not key.startswith(prefix) for key in list(state_dict)[:1]):
        return {key[len(prefix) :]: v for key, v in state_dict.items()}
    return dict(state_dict)


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You strip the prefix only if every key has it. A state dict may "
    "have keys of both kinds: decide for each.",
)
def all_or_nothing(state_dict, prefix="module."):
    if all(key.startswith(prefix) for key in state_dict):
        return {key.removeprefix(prefix): v for key, v in state_dict.items()}
    return dict(state_dict)


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You return only the keys that had the prefix. The others belong "
    "to the state dict too, unchanged.",
)
def others_dropped(state_dict, prefix="module."):
    return {
        key.removeprefix(prefix): v
        for key, v in state_dict.items()
        if key.startswith(prefix)
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.only_the_first,
    tells="You strip the prefix as often as it stands at the start. One "
    "wrapper adds it once: a second one may belong to the model. "
    "Strip it once.",
)
def stripped_until_none_is_left(state_dict, prefix="module."):
    made = {}
    for key, value in state_dict.items():
        while prefix and key.startswith(prefix):
            key = key.removeprefix(prefix)
        made[key] = value
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.other_prefixes,
    tells="You cut seven characters, the length of `module.`, whatever the "
    "prefix is. Take `len(prefix)`, or `removeprefix`.",
)
def seven_characters(state_dict, prefix="module."):
    return {
        k[7:] if k.startswith(prefix) else k: v for k, v in state_dict.items()
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.other_prefixes,
    tells="You strip `module.` whatever prefix was asked for. Use the "
    "argument.",
)
def module_alone(state_dict, prefix="module."):
    return {k.removeprefix("module."): v for k, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.other_prefixes,
    tells="You strip all wrappers' prefixes that you know. Only `prefix` "
    "was asked for: strip that one, and leave the decision about "
    "others to the caller.",
)
def every_known_wrapper(state_dict, prefix="module."):
    made = {}
    for key, value in state_dict.items():
        for one in ("module.", "_orig_mod.", prefix):
            key = key.removeprefix(one)
        made[key] = value
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.only_the_first,
    tells="You keep what stands behind the last occurrence of the prefix. "
    "Only the one at the start goes.",
)
def everything_before_the_last(state_dict, prefix="module."):
    return {key.split(prefix)[-1]: v for key, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="You rename the keys in the caller's own dict, who may still need "
    "them. Make a new dict.",
)
def in_place(state_dict, prefix="module."):
    for key in list(state_dict):
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    return state_dict


@wrong(
    "strip_prefix",
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="`consume_prefix_in_state_dict_if_present` works in place: you "
    "changed the caller's dict and its metadata. Give it a "
    "`copy.deepcopy`.",
)
def in_place_by_the_library(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    consume_prefix_in_state_dict_if_present(state_dict, prefix)
    return state_dict


@wrong(
    "strip_prefix",
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="A shallow copy shares `_metadata` with the original, and the "
    "library's function renames entries in there too. Use "
    "`copy.deepcopy`, or build a plain dict.",
)
def library_on_a_shallow_copy(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    made = copy.copy(state_dict)
    consume_prefix_in_state_dict_if_present(made, prefix)
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You return what `consume_prefix_in_state_dict_if_present` "
    "returns, which is None: it works in place. Return the dict that "
    "you gave it.",
)
def what_the_library_returns(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    made = copy.deepcopy(state_dict)
    return consume_prefix_in_state_dict_if_present(made, prefix)


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You change the dict while you iterate over it, which raises a "
    "RuntimeError. Iterate over a list of its keys, or build a new "
    "dict.",
)
def renamed_while_iterating(state_dict, prefix="module."):
    made = copy.deepcopy(state_dict)
    for key in made:
        if key.startswith(prefix):
            made[key.removeprefix(prefix)] = made.pop(key)
    return made


@accepted("strip_prefix")
def by_partition_in_a_dict_of_the_same_kind(state_dict, prefix="module."):
    made = type(state_dict)()
    for key, value in state_dict.items():
        head, found, tail = key.partition(prefix) if prefix else (key, "", "")
        made[tail if found and not head else key] = value
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.false_friends,
    tells="You take no notice of capitals. `Module.fc` is another name than "
    "`module.fc`: compare as they are written.",
)
def whatever_the_capitals(state_dict, prefix="module."):
    import re

    start = re.compile("^" + re.escape(prefix), re.IGNORECASE)
    return {start.sub("", key): value for key, value in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You change the values' dtype. Counters and masks are no floats: "
    "hand the tensors on as they are.",
)
def values_made_floats(state_dict, prefix="module."):
    return {
        key.removeprefix(prefix): value.detach().float()
        for key, value in state_dict.items()
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="You wrap the values as parameters. A state dict holds plain "
    "tensors: hand them on as they are.",
)
def values_made_parameters(state_dict, prefix="module."):
    return {
        key.removeprefix(prefix): torch.nn.Parameter(value, requires_grad=False)
        for key, value in state_dict.items()
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.other_prefixes,
    tells="You split at the prefix, which fails if it is empty. "
    "`removeprefix` has no such corner.",
)
def an_empty_prefix_fails(state_dict, prefix="module."):
    made = {}
    for key, value in state_dict.items():
        head, found, tail = key.partition(prefix)
        made[tail if found and not head else key] = value
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.other_prefixes,
    tells="You put a dot behind the prefix. A prefix may be any string: take "
    "it as it comes.",
)
def a_dot_put_behind(state_dict, prefix="module."):
    prefix = prefix.rstrip(".") + "."
    return {k.removeprefix(prefix): v for k, v in state_dict.items()}


@wrong(
    "strip_prefix",
    breaks=hidden_tests.other_prefixes,
    tells="You keep a key that is the prefix and nothing more. It begins with "
    "the prefix too, and loses it.",
)
def a_key_never_left_empty(state_dict, prefix="module."):
    return {
        k.removeprefix(prefix) or k: value for k, value in state_dict.items()
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.all_some_or_none,
    tells="You drop `n_averaged`. Which keys the model has no place for is the "
    "caller's to decide: every key without the prefix stays as it is.",
)
def the_averages_counter_dropped(state_dict, prefix="module."):
    return {
        k.removeprefix(prefix): value
        for k, value in state_dict.items()
        if k != "n_averaged"
    }


@wrong(
    "strip_prefix",
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="You take the `_metadata` away from the caller's dict. It was to "
    "stay as it was.",
)
def metadata_taken_away(state_dict, prefix="module."):
    made = {k.removeprefix(prefix): v for k, v in state_dict.items()}
    if hasattr(state_dict, "_metadata"):
        del state_dict._metadata
    return made


@wrong(
    "strip_prefix",
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="Where no key has the prefix you return the caller's own dict. A new "
    "one was asked for: whoever changes it does not expect to change the file.",
)
def the_same_dict_if_nothing_is_to_do(state_dict, prefix="module."):
    if not any(key.startswith(prefix) for key in state_dict):
        return state_dict
    return {k.removeprefix(prefix): v for k, v in state_dict.items()}


# load_across_versions


@accepted("load_across_versions")
def by_reading_the_report(model, state_dict):
    def counters(names):
        return [n for n in names if n.split(".")[-1] == "num_batches_tracked"]

    known = {k: v for k, v in state_dict.items()}
    filled = counters(model.state_dict().keys() - known.keys())
    result = model.load_state_dict(known, strict=False)
    if set(result.missing_keys) - set(filled):
        raise RuntimeError("missing keys")
    left_out = counters(result.unexpected_keys)
    if len(left_out) < len(result.unexpected_keys):
        raise RuntimeError("unexpected keys")
    for name in filled:
        model.get_buffer(name).zero_()
    return filled, left_out


@accepted("load_across_versions")
def counters_set_to_zero_first(model, state_dict):
    from collections import OrderedDict

    def is_counter(name):
        return ("." + name).endswith(".num_batches_tracked")

    names = set(model.state_dict())
    file = OrderedDict(
        (name, value)
        for name, value in state_dict.items()
        if name in names or not is_counter(name)
    )
    missing = [name for name in names if is_counter(name) and name not in file]
    for name in missing:
        file[name] = model.get_buffer(name).fill_(0)
    model.load_state_dict(file)
    return sorted(missing), sorted(state_dict.keys() - file.keys())


@accepted("load_across_versions")
def by_setdefault(model, state_dict):
    adapted, filled, left_out = dict(state_dict), [], []
    mine = model.state_dict()
    for name, value in mine.items():
        last = name.split(".")[-1]
        if last == "num_batches_tracked" and name not in adapted:
            filled.append(name)
            adapted.setdefault(name, torch.zeros_like(value))
    for name in state_dict:
        last = name.split(".")[-1]
        if last == "num_batches_tracked" and name not in mine:
            left_out.append(name)
            del adapted[name]
    model.load_state_dict(adapted)
    return filled, left_out


@accepted("load_across_versions")
def with_a_counter_of_one_dimension(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.zeros(1)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@accepted("load_across_versions")
def module_by_module(model, state_dict):
    adapted = copy.deepcopy(state_dict)
    filled = []
    for name, module in model.named_modules():
        counter = f"{name}.num_batches_tracked".lstrip(".")
        if getattr(module, "num_batches_tracked", None) is not None:
            if counter not in adapted:
                adapted[counter] = torch.zeros((), dtype=torch.long)
                filled.append(counter)
    own = model.state_dict()
    left_out = [
        name
        for name in state_dict
        if name.rpartition(".")[2] == "num_batches_tracked" and name not in own
    ]
    for name in left_out:
        adapted.pop(name)
    model.load_state_dict(adapted, strict=True)
    return filled, left_out


@accepted("load_across_versions")
def checked_by_hand_and_copied(model, state_dict):
    own = model.state_dict()
    filled, left_out = [], []
    for name in own.keys() | state_dict.keys():
        if name.split(".")[-1] == "num_batches_tracked":
            if name not in state_dict:
                filled.append(name)
            elif name not in own:
                left_out.append(name)
        elif name not in own or name not in state_dict:
            raise KeyError(name)
        elif own[name].shape != state_dict[name].shape:
            raise ValueError(name)
    with torch.no_grad():
        for name, tensor in own.items():
            if name in filled:
                tensor.zero_()
            else:
                tensor.copy_(state_dict[name])
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=[hidden_tests.missing_counters, hidden_tests.left_over_counters],
    tells="You leave it all to `load_state_dict`. It refuses counters that "
    "are left over, and missing ones too if the file has metadata; "
    "without metadata it keeps the model's own count. Compare the "
    "keys and put the counters right first.",
)
def as_pytorch_does(model, state_dict):
    model.load_state_dict(state_dict)
    return [], []


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You load with `strict=False` and look at nothing: a file with a "
    "wrong prefix loads not a single weight, and nobody hears of it. "
    "Let only the counters differ.",
)
def anything_goes(model, state_dict):
    result = model.load_state_dict(state_dict, strict=False)
    names = model.state_dict().keys() - state_dict.keys()
    filled = [n for n in names if n.endswith("num_batches_tracked")]
    for name in filled:
        model.get_buffer(name).zero_()
    extra = result.unexpected_keys
    return filled, [n for n in extra if n.endswith("num_batches_tracked")]


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You look at what is missing and not at what is left over. A key "
    "that the model does not know means that the file is for another "
    "model. Raise for both.",
)
def only_missing_keys_checked(model, state_dict):
    result = model.load_state_dict(dict(state_dict), strict=False)
    missing = model.state_dict().keys() - state_dict.keys()
    filled = [n for n in missing if n.endswith("num_batches_tracked")]
    if len(filled) < len(missing):
        raise RuntimeError("keys are missing")
    for name in filled:
        model.get_buffer(name).zero_()
    extra = result.unexpected_keys
    return filled, [n for n in extra if n.endswith("num_batches_tracked")]


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You look at what is left over and not at what is missing. "
    "Weights that the file does not have keep their random start. "
    "Raise for both.",
)
def only_left_over_keys_checked(model, state_dict):
    result = model.load_state_dict(dict(state_dict), strict=False)
    missing = model.state_dict().keys() - state_dict.keys()
    filled = [n for n in missing if n.endswith("num_batches_tracked")]
    extra = result.unexpected_keys
    left_out = [n for n in extra if n.endswith("num_batches_tracked")]
    if len(left_out) < len(extra):
        raise RuntimeError("keys are left over")
    for name in filled:
        model.get_buffer(name).zero_()
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You treat `running_mean` and `running_var` like the counter. "
    "Without them a trained BatchNorm layer gives other outputs in "
    "eval mode. Only the counter may be missing or left over.",
)
def all_statistics_let_go(model, state_dict):
    own = model.state_dict()
    loose = {
        n
        for n in own.keys() | state_dict.keys()
        if n.split(".")[-1]
        in ("num_batches_tracked", "running_mean", "running_var")
    }
    filled = [n for n in loose - state_dict.keys() if n.endswith("tracked")]
    left_out = [n for n in loose - own.keys() if n.endswith("tracked")]
    adapted = {
        n: v for n, v in state_dict.items() if n in own or n not in loose
    }
    for name in loose - state_dict.keys():
        adapted[name] = torch.tensor(0) if name in filled else own[name]
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="Your function loads whatever fits and passes over the rest in "
    "silence, by a filter or by catching the error. A file for "
    "another model then loads a part or nothing. Raise where anything "
    "but a counter does not fit.",
)
def matching_shapes_only(model, state_dict):
    own = model.state_dict()
    fits = {
        n: v
        for n, v in state_dict.items()
        if n in own and v.shape == own[n].shape
    }
    filled = [n for n in own if n.endswith("tracked") and n not in state_dict]
    left_out = [n for n in state_dict if n.endswith("tracked") and n not in own]
    for name in filled:
        fits[name] = torch.tensor(0)
    model.load_state_dict(fits, strict=False)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="Your function loads whatever fits and passes over the rest in "
    "silence, by a filter or by catching the error. A file for "
    "another model then loads a part or nothing. Raise where anything "
    "but a counter does not fit.",
)
def errors_caught(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    try:
        model.load_state_dict(adapted)
    except RuntimeError:
        pass
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You take a `module.` prefix off by yourself. This function was "
    "to report a wrong prefix, not to guess: raise.",
)
def prefix_taken_off(model, state_dict):
    state_dict = {k.removeprefix("module."): v for k, v in state_dict.items()}
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="You fill in the counter as a Python number, which "
    "`load_state_dict` refuses. A counter is an int64 tensor without "
    "dimensions: `torch.tensor(0)`.",
)
def counter_as_a_number(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = 0
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You load with `assign=True`. The model then holds the caller's "
    "tensors, which training changes, and its optimizer holds "
    "parameters that nobody uses any more. Leave `assign` out.",
)
def assigned(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted, assign=True)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="Your filled-in counter is a float. A counter is an int64 tensor "
    "without dimensions: `torch.tensor(0)`. And with `assign=True` "
    "the model holds the caller's tensors: leave it out.",
)
def float_counter_assigned(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0.0)
    model.load_state_dict(adapted, assign=True)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="A missing counter keeps the count that the model had. That count "
    "belongs to weights that have just been replaced. Set it to 0.",
)
def counter_from_the_model(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = own[name]
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="A missing counter keeps the count that the model had. That count "
    "belongs to weights that have just been replaced. Set it to 0.",
)
def counter_left_to_pytorch(model, state_dict):
    from collections import OrderedDict

    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = None
    for name in filled:
        del adapted[name]
    model.load_state_dict(OrderedDict(adapted))
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.files_that_fit,
    tells="You set every counter to 0, also those that the file has. Fill "
    "in only the missing ones.",
)
def counters_all_zero(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    for name in counters & own.keys():
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.files_that_fit,
    tells="You leave all counters of the file out, also those that the "
    "model has. With `momentum=None` the count decides how much the "
    "next batch weighs. Load them where both have them.",
)
def counters_never_loaded(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    for name in counters & own.keys():
        adapted[name] = own[name]
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="You fill a missing counter with 1. Nothing is known about its "
    "batches: set it to 0.",
)
def counter_of_one(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(1)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.counter_without_a_dot,
    tells="You look for `.num_batches_tracked` with a dot before it. A "
    "BatchNorm layer that is itself the model has the key without "
    "one. Compare the last part of the key.",
)
def counters_behind_a_dot(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.endswith(".num_batches_tracked")
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.left_over_counters,
    tells="You fill in missing counters, but refuse a file that has one too "
    "many. A frozen BatchNorm has none, and its files come from "
    "models that do. Leave it out.",
)
def left_over_refused(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if True}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You put the counters right in the caller's own dict. Make a new "
    "one.",
)
def callers_dict_changed(model, state_dict):
    own = model.state_dict()
    filled = [n for n in own if n.endswith("tracked") and n not in state_dict]
    left_out = [n for n in state_dict if n.endswith("tracked") and n not in own]
    for name in filled:
        state_dict[name] = torch.tensor(0)
    for name in left_out:
        del state_dict[name]
    model.load_state_dict(state_dict)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=[hidden_tests.missing_counters, hidden_tests.left_over_counters],
    tells="You return the two lists the wrong way round: first what was "
    "filled in, then what was left out.",
)
def lists_swapped(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(left_out), sorted(filled)


@wrong(
    "load_across_versions",
    breaks=[hidden_tests.missing_counters, hidden_tests.left_over_counters],
    tells="You load the right things and report nothing. Return the names "
    "of the counters that were filled in and of those left out.",
)
def nothing_reported(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return [], []


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="You report counters that both sides have as filled in. Name only "
    "those that the file did not have.",
)
def everything_reported(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(counters & own.keys()), sorted(left_out)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You return sets. Two lists were asked for: use `sorted` or `list`.",
)
def returned_as_sets(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.files_that_fit,
    tells="You load into a copy of the model. The caller's own model stays "
    "as it was. Load into the one you were given.",
)
def into_a_copy(model, state_dict):
    model = copy.deepcopy(model)
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@accepted("load_across_versions")
def sorted_backwards_and_with_metadata(model, state_dict):
    state = copy.copy(state_dict)
    for name in model.state_dict().keys() - state_dict.keys():
        if name.rpartition(".")[2] == "num_batches_tracked":
            state[name] = torch.zeros((), dtype=torch.long)
    for name in state_dict.keys() - model.state_dict().keys():
        if name.rpartition(".")[2] == "num_batches_tracked":
            del state[name]
    model.load_state_dict(state)
    filled = sorted(state.keys() - state_dict.keys(), reverse=True)
    return filled, sorted(state_dict.keys() - state.keys(), reverse=True)


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You take every key for a counter that ends in "
    "`num_batches_tracked`, also `my_num_batches_tracked`. Compare "
    "the last part of the key, between the dots, as a whole.",
)
def counters_by_the_end_of_the_key(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.endswith("num_batches_tracked")
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You take every key for a counter that has `num_batches_tracked` "
    "somewhere in it. Compare the last part of the key, between the "
    "dots, as a whole.",
)
def counters_anywhere_in_the_key(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if "num_batches_tracked" in name
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.missing_counters,
    tells="You fill in the counters of some classes of layers only. Other "
    "modules have counters too: go by the key, not by the class.",
)
def counters_of_batch_norm_alone(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    norms = {
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d)
    }
    filled = [name for name in filled if name.rpartition(".")[0] in norms]
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.everything_else_raises,
    tells="You copy the values by hand, and `copy_` broadcasts: a bias of "
    "one number fills a whole layer. Compare the shapes, or let "
    "`load_state_dict` do it.",
)
def copied_by_hand_with_broadcasting(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    if adapted.keys() != own.keys():
        raise KeyError("other keys than the model's")
    with torch.no_grad():
        for name, value in adapted.items():
            own[name].copy_(value)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You take the `_metadata` away from the caller's state dict. It "
    "was to stay as it was: build a new dict.",
)
def metadata_taken_from_the_file(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    if hasattr(state_dict, "_metadata"):
        del state_dict._metadata
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You write another version into the caller's `_metadata`, which "
    "a new dict shares. It was to stay as it was: copy it deeply, or "
    "leave it out.",
)
def metadata_made_old(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    for one in getattr(state_dict, "_metadata", {}).values():
        one["version"] = 1
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You change the model's mode. Loading weights is no business of "
    "`train` and `eval`: leave that to the caller.",
)
def put_in_eval_mode(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    model.eval()
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You change which parameters are trainable. The caller may have "
    "frozen some, and not others: leave `requires_grad` as it was.",
)
def frozen_while_loading(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    model.requires_grad_(True)
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You throw the model's gradients away. Only its weights and "
    "buffers were to change.",
)
def gradients_thrown_away(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    model.zero_grad()
    return filled, left_out


@wrong(
    "load_across_versions",
    breaks=hidden_tests.files_that_fit,
    tells="Your counters pass through float32, which holds whole numbers "
    "up to 16777216 exactly. Leave them int64.",
)
def counters_through_floats(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict({k: v.float() for k, v in adapted.items()})
    return filled, left_out


# best_weights


@accepted("best_weights")
class ByClones:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = {
            k: v.detach().clone() for k, v in self.model.state_dict().items()
        }
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@accepted("best_weights")
class ByTheBytesOfAFile:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = io.BytesIO()
        torch.save(self.model.state_dict(), self.weights)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.weights.seek(0)
        self.model.load_state_dict(torch.load(self.weights))


@accepted("best_weights")
class ByATemporaryFile:
    def __init__(self, model, mode="max"):
        self.model, self.sign = model, 1 if mode == "max" else -1
        self.metric, self.file = None, tempfile.TemporaryFile()

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        if self.metric is not None:
            if value * self.sign <= self.metric * self.sign:
                return False
        self.metric = value
        self.file.seek(0)
        self.file.truncate()
        torch.save(self.model.state_dict(), self.file)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.file.seek(0)
        self.model.load_state_dict(torch.load(self.file))


@accepted("best_weights")
class ByACopyOfTheModel:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.best = copy.deepcopy(self.model)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.best.state_dict())


@accepted("best_weights")
class ByCopyingTensorByTensor:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        live = [*self.model.parameters(), *self.model.buffers()]
        self.weights = [(one, one.detach().clone()) for one in live]
        return True

    def restore(self):
        if not self.weights:
            raise RuntimeError("nothing kept")
        with torch.no_grad():
            for live, kept in self.weights:
                live.copy_(kept)


@accepted("best_weights")
class ByAHistory:
    def __init__(self, model, mode="max"):
        self.model, self.best_of = model, {"max": max, "min": min}[mode]
        self.history, self.weights = [], None
        self.metric = None

    def update(self, metric):
        value = float(metric)
        if not value == value:
            return False
        self.history.append(value)
        self.metric = self.best_of(self.history)
        if self.history.index(self.metric) < len(self.history) - 1:
            return False
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class KeepsTheStateDict:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = self.model.state_dict()
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class KeepsAShallowCopy:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = self.model.state_dict().copy()
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class KeepsCopyDotCopy:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.copy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class KeepsDetachedTensors:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = {
            k: v.detach() for k, v in self.model.state_dict().items()
        }
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class KeepsTensorsMovedToTheCpu:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = {k: v.cpu() for k, v in self.model.state_dict().items()}
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class KeepsTheModelItself:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = self.model
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights.state_dict())


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the parameters and not the buffers. BatchNorm's running "
    "statistics then stay those of the last epoch. A `state_dict()` "
    "has both.",
)
class KeepsParametersOnly:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = {
            k: v.detach().clone() for k, v in self.model.named_parameters()
        }
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights, strict=False)


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You copy the weights one epoch too late, after the model has "
    "trained on. The metric belongs to the model as it is when "
    "`update` is called: copy then.",
)
class KeepsAtTheNextUpdate:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None
        self.pending = False

    def update(self, metric):
        value = float(metric)
        if self.pending:
            self.weights = copy.deepcopy(self.model.state_dict())
            self.pending = False
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric, self.pending = value, True
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        if self.pending:
            self.weights = copy.deepcopy(self.model.state_dict())
            self.pending = False
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights of every epoch, and so of the last. Keep "
    "them only if the metric is the best so far.",
)
class KeepsTheLast:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        self.weights = copy.deepcopy(self.model.state_dict())
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the first weights and never replace them. Copy the "
    "weights each time the metric is the best so far.",
)
class KeepsTheFirst:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        if self.weights is None:
            self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.which_is_best],
    tells='You have the modes the wrong way round: with `"max"` the largest '
    "metric is the best.",
)
class WithModesSwapped:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value < self.metric if self.mode == "max" else value > self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.which_is_best,
    tells="You take the largest metric, whatever the mode says. With "
    '`mode="min"`, as for a loss, the smallest is the best.',
)
class AlwaysTheLargest:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        if self.metric is not None and value <= self.metric:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.earlier_of_equals,
    tells="Of two equal metrics you keep the later. The earlier was to "
    "stay: compare with `>` and `<`, not with `>=` and `<=`.",
)
class TakesALaterEqual:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value >= self.metric if self.mode == "max" else value <= self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.which_is_best,
    tells="Your best metric begins at 0. A run whose metrics are all "
    "negative never has a best. Begin with None and take the first "
    "metric, whatever its size.",
)
class BeginsAtZero:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None
        self.best = 0.0 if mode == "max" else float("inf")

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = value > self.best if self.mode == "max" else value < self.best
        if not better:
            return False
        self.metric = self.best = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.nothing_to_restore,
    tells="With nothing kept your `restore` does nothing, and the caller "
    "believes that the best weights are back. Raise a RuntimeError.",
)
class ShowsInfinityBeforeTheFirst:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is not None:
            self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.nothing_to_restore,
    tells="You keep the weights from before training as the first best, so "
    "`restore` has something to load where no metric ever counted. "
    "Raise a RuntimeError there.",
)
class RestoresTheStart:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric = None
        self.weights = copy.deepcopy(model.state_dict())

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.nan_is_never_best,
    tells="You take the first metric even if it is NaN, and nothing "
    "compares as better than NaN: it stays the best for ever. Turn "
    "NaN away before you compare.",
)
class TakesAFirstNan:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.nan_is_never_best,
    tells="You ask whether the metric is *not worse*. Every comparison with "
    "NaN is false, so a NaN is never worse and becomes the best. Turn "
    "NaN away before you compare.",
)
class TakesAnyNan:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        worse = self.metric is not None and (
            value <= self.metric if self.mode == "max" else value >= self.metric
        )
        if worse:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.nan_is_never_best,
    tells="A NaN resets what you have kept, or ends it. Metrics after it "
    "still count, and the best so far stays the best: ignore the NaN.",
)
class StopsAtNan:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            self.metric = None
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.nan_is_never_best,
    tells="You raise at a NaN. It was to be passed over: return False and "
    "keep what you have.",
)
class RaisesAtNan:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            raise ValueError("the metric is NaN")
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.restored_twice,
    tells="You restore with `assign=True`. The model then trains on your "
    "snapshot itself, and its optimizer still holds the old "
    "parameters. Leave `assign` out: the values are copied into the "
    "parameters that are there.",
)
class AssignsTheSnapshot:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights, assign=True)


@wrong(
    "best_weights",
    breaks=hidden_tests.restored_twice,
    tells="You replace the model's parameters by new ones. Its optimizer "
    "still holds the old: it would train tensors that nobody uses. "
    "Load the state dict into the parameters that are there.",
)
class AssignsACopyOfTheSnapshot:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(copy.deepcopy(self.weights), assign=True)


@wrong(
    "best_weights",
    breaks=hidden_tests.restored_twice,
    tells="Your second `restore` fails or finds nothing: the snapshot was "
    "given away at the first. Keep it.",
)
class RestoresOnce:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)
        self.weights = None


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)
class RestoresACopy:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.best = copy.deepcopy(self.model)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.model = self.best


@wrong(
    "best_weights",
    breaks=hidden_tests.metric_in_a_tensor,
    tells="You keep the metric tensor itself. The caller fills it anew, and "
    "your best follows: nothing is ever better than it. Keep "
    "`float(metric)`.",
)
class KeepsTheMetricTensor:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = metric
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.restored_twice,
    tells="After `restore` the model is in eval mode. It was to get its "
    "weights back and stay in the mode it was in.",
)
class RestoresInEvalMode:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)
        self.model.eval()


@wrong(
    "best_weights",
    breaks=hidden_tests.restored_twice,
    tells="After `restore` the parameters no longer require gradients, so "
    "training cannot go on. Leave `requires_grad` as it is.",
)
class FreezesTheRestored:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.requires_grad_(False)
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.which_is_best,
    tells="`update` returns nothing. It was to say, True or False, whether "
    "this is the best so far.",
)
class AnswersNothing:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights in half precision. What `restore` brings "
    "back is rounded, not the weights of that epoch. Keep them in "
    "their own dtype.",
)
class KeepsHalfPrecision:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = {
            k: v.half() if v.is_floating_point() else v.clone()
            for k, v in self.model.state_dict().items()
        }
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@wrong(
    "best_weights",
    breaks=hidden_tests.which_is_best,
    tells="You compare with the metric of the epoch before, not with the "
    "best so far. A small recovery then replaces the best weights.",
)
class ComparesWithTheLastEpoch:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None
        self.last = None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        last, self.last = self.last, value
        better = last is None or (
            value > last if self.mode == "max" else value < last
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@accepted("best_weights")
class ByTwoLists:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        live = self.model.state_dict()
        self.weights = list(live), [one.clone() for one in live.values()]
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(dict(zip(*self.weights)))


@wrong(
    "best_weights",
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights in float32. A model in float64 and a "
    "counter of batches come back with other numbers: keep each "
    "tensor in its own dtype.",
)
class KeepsFloat32:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        if self.metric is not None:
            ahead = value > self.metric
            if self.mode == "min":
                ahead = value < self.metric
            if not ahead:
                return False
        self.metric = value
        self.kept = {
            key: tensor.float().clone()
            for key, tensor in self.model.state_dict().items()
        }
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


@wrong(
    "best_weights",
    breaks=hidden_tests.infinite_metrics,
    tells="Your best metric begins at infinity with its sign turned. A "
    "first metric that is infinite itself is no better and is not "
    "kept. The first is the best so far, whatever its size.",
)
class BeginsAtInfinity:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None
        self.top = -math.inf if mode == "max" else math.inf

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        ahead = value > self.top
        if self.mode == "min":
            ahead = value < self.top
        if not ahead:
            return False
        self.metric = self.top = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


@wrong(
    "best_weights",
    breaks=hidden_tests.infinite_metrics,
    tells="You pass over infinite metrics as over NaN. Only NaN is never "
    "the best.",
)
class PassesOverInfinity:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if not math.isfinite(value):
            return False
        if self.metric is not None:
            ahead = value > self.metric
            if self.mode == "min":
                ahead = value < self.metric
            if not ahead:
                return False
        self.metric = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


@wrong(
    "best_weights",
    breaks=hidden_tests.infinite_metrics,
    tells="You subtract the best from the metric. Infinity less infinity "
    "is NaN, and a comparison with it comes out as you did not "
    "expect: compare the two numbers.",
)
class ByTheDifference:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        if self.metric is not None:
            sign = 1 if self.mode == "max" else -1
            if sign * (value - self.metric) <= 0:
                return False
        self.metric = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


@wrong(
    "best_weights",
    breaks=hidden_tests.which_is_best,
    tells="You ask for an improvement by some least amount. Any metric "
    "that is better is better, by however little.",
)
class WantsMoreThanALittle:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        if self.metric is not None:
            ahead = value > self.metric + 1e-9
            if self.mode == "min":
                ahead = value < self.metric - 1e-9
            if not ahead:
                return False
        self.metric = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


@wrong(
    "best_weights",
    breaks=hidden_tests.nan_is_never_best,
    tells="Your `update` returns None for a NaN. True or False was asked for.",
)
class AnswersNothingToNan:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return None
        if self.metric is not None:
            ahead = value > self.metric
            if self.mode == "min":
                ahead = value < self.metric
            if not ahead:
                return False
        self.metric = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


@wrong(
    "best_weights",
    breaks=hidden_tests.several_at_once,
    tells="Your snapshots lie in one place for all objects of the class, "
    "so that one object overwrites what another kept. Keep them in "
    "`self`.",
)
class KeepsByTheModelsId:
    store = {}

    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        if self.metric is not None:
            ahead = value > self.metric
            if self.mode == "min":
                ahead = value < self.metric
            if not ahead:
                return False
        self.metric = value
        self.kept = self.store[id(self.model)] = copy.deepcopy(
            self.model.state_dict()
        )
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.store[id(self.model)])


@wrong(
    "best_weights",
    breaks=hidden_tests.several_at_once,
    tells="Your snapshots lie in one place for all objects of the class, "
    "so that one object overwrites what another kept. Keep them in "
    "`self`.",
)
class KeepsInOneFile:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        if self.metric is not None:
            ahead = value > self.metric
            if self.mode == "min":
                ahead = value < self.metric
            if not ahead:
                return False
        self.metric = value
        self.kept = Path(tempfile.gettempdir()) / "best_weights.pt"
        torch.save(self.model.state_dict(), self.kept)
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(torch.load(self.kept))
