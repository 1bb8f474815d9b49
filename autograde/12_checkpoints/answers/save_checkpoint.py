"""Answers to `save_checkpoint` of chapter 12."""

import io
import os
import tempfile
from pathlib import Path

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


straight_into_an_open_file = edit(
    SOLUTION,
    {
        """
        unfinished = f"{file}.partial"
        torch.save(content, unfinished)
        os.replace(unfinished, file)
        """: """
        with open(file, "wb") as stream:
            torch.save(content, stream)
        """,
        "map_location, weights_only=True)": "map_location)",
    },
    breaks=[
        hidden_tests.interrupted_write,
        hidden_tests.killed_between_operations,
    ],
    tells="You write straight into the checkpoint. A full disk or a kill in "
    "the middle of the write leaves half a file, and the old one is "
    "gone. Write the whole file under another name in the same "
    "folder, then `os.replace` it.",
)

a_buffer_written_at_once = edit(
    SOLUTION,
    {
        """
        unfinished = f"{file}.partial"
        torch.save(content, unfinished)
        os.replace(unfinished, file)
        """: """
        buffer = io.BytesIO()
        torch.save(content, buffer)
        Path(file).write_bytes(buffer.getvalue())
        """,
        "map_location, weights_only=True)": "map_location)",
    },
    breaks=[
        hidden_tests.interrupted_write,
        hidden_tests.killed_between_operations,
    ],
    tells="You write straight into the checkpoint. A full disk or a kill in "
    "the middle of the write leaves half a file, and the old one is "
    "gone. Write the whole file under another name in the same "
    "folder, then `os.replace` it.",
)

removed_then_renamed = edit(
    read_by_mapping_the_file,
    {
        'os.replace(f"{file}.new", file)': """
        if os.path.exists(file):
            os.remove(file)
        os.rename(f"{file}.new", file)
        """,
        """
        is_path = isinstance(file, str | Path)
        return torch.load(file, map_location=map_location, mmap=is_path)
        """: "return torch.load(file, map_location=map_location)",
    },
    breaks=hidden_tests.killed_between_operations,
    tells="You remove the old checkpoint and then rename the new one. A "
    "kill between the two leaves no checkpoint. `os.replace` does "
    "both in one step: leave the removing out.",
)


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


checked_then_copied = edit(
    read_by_mapping_the_file,
    {
        'os.replace(f"{file}.new", file)': """
        torch.load(f"{file}.new")
        with open(f"{file}.new", "rb") as new, open(file, "wb") as old:
            old.write(new.read())
        os.unlink(f"{file}.new")
        """,
        """
        is_path = isinstance(file, str | Path)
        return torch.load(file, map_location=map_location, mmap=is_path)
        """: "return torch.load(file, map_location=map_location)",
    },
    breaks=hidden_tests.killed_between_operations,
    tells="You write another file and then copy it over the checkpoint. "
    "Copying writes into the old file, and can be cut off like any "
    "write. Rename the new file onto the old one, with `os.replace`.",
)


replaced_from_the_temporary_folder = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        os.replace(f"{file}.partial", file)
        """: """
        handle, new = tempfile.mkstemp()
        os.close(handle)
        torch.save(content, new)
        os.replace(new, file)
        """,
    },
    breaks=hidden_tests.own_file_system,
    tells="You write the new file in another folder than the checkpoint's. "
    "Where that folder lies on another file system it cannot be "
    "renamed into place: `os.replace` fails, and `shutil.move` "
    "copies, which is not atomic. Write it beside the checkpoint.",
)


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


replaced_from_the_current_folder = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': '"checkpoint.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace("checkpoint.new", file)',
    },
    breaks=hidden_tests.own_file_system,
    tells="You write the new file in another folder than the checkpoint's. "
    "Where that folder lies on another file system it cannot be "
    "renamed into place: `os.replace` fails, and `shutil.move` "
    "copies, which is not atomic. Write it beside the checkpoint.",
)


@wrong(
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


metric_as_it_comes = edit(
    in_the_format_of_old,
    {
        "float(metric)": "metric",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
    },
    breaks=hidden_tests.metric_becomes_plain,
    tells="You save the metric as it comes. A NumPy scalar is an object of "
    "NumPy's, which `torch.load` refuses, and a tensor stays a "
    "tensor. Save `float(metric)`.",
)

metric_by_item = edit(
    in_the_format_of_old,
    {
        "float(metric)": "metric.item() if torch.is_tensor(metric) else metric",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
    },
    breaks=hidden_tests.metric_becomes_plain,
    tells="You call `metric.item()` only where the metric is a tensor. "
    "NumPy's scalars are not plain numbers either. `float(metric)` "
    "takes all of them.",
)

metric_as_a_tensor = edit(
    in_the_format_of_old,
    {
        "float(metric": "torch.as_tensor(float(metric)",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
    },
    breaks=hidden_tests.reads_back,
    tells="You turn the metric into a tensor. A float was asked for: the "
    "reader of the file should not need `.item()`. Save "
    "`float(metric)`.",
)

any_object_loaded = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": "return torch.load(file, map_location=map_location, weights_only=False)",
    },
    breaks=hidden_tests.refuses_objects,
    tells="You load with `weights_only=False`, which runs whatever code a "
    "file holds. A checkpoint made of state dicts and numbers needs "
    "none. Leave it at the default, and make what you save plain.",
)

any_object_loaded_in_the_end = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": """
        try:
            return torch.load(file, map_location=map_location)
        except Exception:
            return torch.load(
                file, map_location=map_location, weights_only=False
            )
        """,
    },
    breaks=hidden_tests.refuses_objects,
    tells="You load with `weights_only=False`, which runs whatever code a "
    "file holds. A checkpoint made of state dicts and numbers needs "
    "none. Leave it at the default, and make what you save plain.",
)

metric_hidden_by_an_unsafe_load = edit(
    in_the_format_of_old,
    {
        "float(metric)": "metric",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": "return torch.load(file, map_location=map_location, weights_only=False)",
    },
    breaks=[hidden_tests.metric_becomes_plain, hidden_tests.refuses_objects],
    tells="You save the metric as it comes, and load with "
    "`weights_only=False` because of it. Make it plain when you save, "
    "with `float(metric)`, and load with the default.",
)

objects_turned_to_another_error = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": """
        try:
            return torch.load(file, map_location=map_location)
        except Exception as error:
            raise ValueError("cannot read the checkpoint") from error
        """,
    },
    breaks=hidden_tests.refuses_objects,
    tells="Your function refuses a file with objects in it, but by an error "
    "of its own. Let the `pickle.UnpicklingError` of `torch.load` "
    "through: it says what was found in the file.",
)

paths_allowed = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": """
        import pathlib

        known = [pathlib.PurePosixPath, pathlib.PosixPath]
        with torch.serialization.safe_globals(known):
            return torch.load(file, map_location=map_location)
        """,
    },
    breaks=hidden_tests.refuses_objects,
    tells="You allow classes with `safe_globals` that the file should not "
    "hold. It was to be plain data alone: load without a list of "
    "exceptions.",
)

without_map_location = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": "return torch.load(file)",
    },
    breaks=hidden_tests.to_the_asked_device,
    tells="You load without `map_location`. The tensors then go back to the "
    "device they were saved from, and on a machine without that GPU "
    "the file cannot be read. Pass `map_location` on.",
)

always_to_the_cpu = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": 'return torch.load(file, map_location="cpu")',
    },
    breaks=hidden_tests.to_the_asked_device,
    tells="You load onto the CPU, whatever `map_location` says. Pass the "
    "argument on to `torch.load`.",
)

the_model_alone_moved = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
        "return torch.load(file, map_location=map_location)": """
        content = torch.load(file, map_location="cpu")
        model = content["model"]
        content["model"] = {k: v.to(map_location) for k, v in model.items()}
        return content
        """,
    },
    breaks=hidden_tests.to_the_asked_device,
    tells="You move the model's tensors to the device and leave the "
    "optimizer's where they are. `torch.load(..., map_location=...)` "
    "moves all of them.",
)


errors_swallowed = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        os.replace(f"{file}.partial", file)
        """: """
        try:
            torch.save(content, f"{file}.new")
            os.replace(f"{file}.new", file)
        except (OSError, RuntimeError):
            pass
        """,
    },
    breaks=hidden_tests.failure_is_told,
    tells="You catch the error of a failed save and go on. Training runs "
    "for days and saves nothing, and nobody hears of it. Let the "
    "error through.",
)


failed_rename_swallowed = edit(
    read_by_mapping_the_file,
    {
        'os.replace(f"{file}.new", file)': """
        with contextlib.suppress(OSError):
            os.replace(f"{file}.new", file)
        """,
        """
        is_path = isinstance(file, str | Path)
        return torch.load(file, map_location=map_location, mmap=is_path)
        """: "return torch.load(file, map_location=map_location)",
    },
    breaks=hidden_tests.failure_is_told,
    tells="You let an error of writing through, and swallow one of renaming. "
    "Then the new checkpoint is not there either, and nobody hears of it.",
)


@wrong(
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


path_objects_only = edit(
    SOLUTION,
    {
        """
        unfinished = f"{file}.partial"
        torch.save(content, unfinished)
        os.replace(unfinished, file)
        """: """
        new = file.with_suffix(".new")
        torch.save(content, new)
        new.replace(file)
        """,
        "map_location, weights_only=True)": "map_location)",
    },
    breaks=hidden_tests.reads_back,
    tells="You use methods of `Path`, and `file` may be a `str`. Begin with "
    "`Path(file)`.",
)


@wrong(
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


never_over_a_leftover = edit(
    read_by_mapping_the_file,
    {
        'torch.save(content, f"{file}.new")': """
        with open(f"{file}.new", "xb") as stream:
            torch.save(content, stream)
        """,
        """
        is_path = isinstance(file, str | Path)
        return torch.load(file, map_location=map_location, mmap=is_path)
        """: "return torch.load(file, map_location=map_location)",
    },
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You open the new file with mode `x`, which fails if it exists. "
    "After a killed save it does, and no later save succeeds. Write "
    "over it.",
)

only_the_first_is_saved = edit(
    SOLUTION,
    {
        """
        unfinished = f"{file}.partial"
        torch.save(content, unfinished)
        os.replace(unfinished, file)
        """: """
        if not os.path.exists(file):
            torch.save(content, f"{file}.new")
            os.replace(f"{file}.new", file)
        """,
        "map_location, weights_only=True)": "map_location)",
    },
    breaks=hidden_tests.interrupted_write,
    tells="You do not save where there is a checkpoint already. The new one "
    "must replace it.",
)

metric_rounded = edit(
    in_the_format_of_old,
    {
        "float(metric": "round(float(metric), 2",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
    },
    breaks=hidden_tests.reads_back,
    tells="You round the metric. What is read back is no longer what was "
    "saved, and two epochs may look equal that were not. Save it as "
    "it is.",
)


weights_in_half_precision = edit(
    read_by_mapping_the_file,
    {
        '"model": model.state_dict(),': """
        "model": {
            k: v.half() if v.is_floating_point() else v
            for k, v in model.state_dict().items()
        },
        """,
        """
        is_path = isinstance(file, str | Path)
        return torch.load(file, map_location=map_location, mmap=is_path)
        """: "return torch.load(file, map_location=map_location)",
    },
    breaks=hidden_tests.reads_back,
    tells="You save the weights in half precision. What comes back is "
    "rounded. Save them as they are.",
)


the_optimizer_without_its_state = edit(
    in_the_format_of_old,
    {
        "optimizer.state_dict(),": 'optimizer.state_dict() | {"state": {}},',
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.new"',
        'os.replace(f"{file}.partial", file)': 'os.replace(f"{file}.new", file)',
    },
    breaks=hidden_tests.reads_back,
    tells="You save the optimizer's groups and not its state. The moments "
    "are what costs most to lose. Save the whole "
    "`optimizer.state_dict()`.",
)

by_another_suffix = edit(
    SOLUTION,
    {
        'unfinished = f"{file}.partial"': 'unfinished = Path(file).with_suffix(".partial")',
        "map_location, weights_only=True)": "map_location)",
    },
    breaks=hidden_tests.under_any_name,
    tells="The other name is the checkpoint's own where that has the same "
    "suffix or name: then you write straight into it. Take a name "
    'that is made of the whole name, `f"{file}.partial"`.',
)

by_one_name_for_all = edit(
    SOLUTION,
    {
        'unfinished = f"{file}.partial"': 'unfinished = Path(file).with_name("checkpoint.tmp")',
        "map_location, weights_only=True)": "map_location)",
    },
    breaks=hidden_tests.under_any_name,
    tells="The other name is the checkpoint's own where that has the same "
    "suffix or name: then you write straight into it. Take a name "
    'that is made of the whole name, `f"{file}.partial"`.',
)


renamed_before_it_is_closed = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        os.replace(f"{file}.partial", file)
        """: """
        whole = io.BytesIO()
        torch.save(content, whole)
        with open(f"{file}.partial", "wb") as stream:
            stream.write(whole.getvalue())
            os.replace(f"{file}.partial", file)
        """,
    },
    breaks=hidden_tests.interrupted_write,
    tells="You rename the new file while it is still open. Its last bytes "
    "may lie in a buffer, and a kill then loses them: close it "
    "first.",
)


over_a_longer_leftover = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        """: """
        buffer = io.BytesIO()
        torch.save(content, buffer)
        flags = os.O_WRONLY | os.O_CREAT
        handle = os.open(f"{file}.partial", flags, 0o644)
        with os.fdopen(handle, "wb") as stream:
            stream.write(buffer.getvalue())
        """,
    },
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You write over what a killed save left behind without cutting "
    "it off. If that was longer, its end stays behind your "
    "checkpoint. Open with mode `wb`.",
)

the_first_save_directly = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        """: """
        if not os.path.exists(file):
            torch.save(content, file)
            return
        torch.save(content, f"{file}.partial")
        """,
    },
    breaks=hidden_tests.interrupted_write,
    tells="You write the first checkpoint straight to its path. If that is "
    "cut off, half a checkpoint lies there, and the next start "
    "fails. Write every one beside and rename it.",
)

the_last_one_kept_by_a_link = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        """: """
        if os.path.exists(f"{file}.old"):
            os.unlink(f"{file}.old")
        if os.path.exists(file):
            os.link(file, f"{file}.old")
        torch.save(content, f"{file}.partial")
        """,
    },
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You leave another file beside the checkpoint, an older one. The "
    "folder was to hold the checkpoint and no other file of yours.",
)

the_folder_cleaned_up = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
        'os.replace(f"{file}.partial", file)': """
        os.replace(f"{file}.partial", file)
        for one in Path(file).absolute().parent.iterdir():
            if one.suffix in (".partial", ".tmp"):
                one.unlink()
        """,
    },
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You remove every file in the folder that looks temporary. Some "
    "belong to others: remove your own only.",
)


another_current_folder = edit(
    in_the_format_of_old,
    {
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        os.replace(f"{file}.partial", file)
        """: """
        file = Path(file).absolute()
        os.chdir(file.parent)
        torch.save(content, file.name + ".partial")
        os.replace(file.name + ".partial", file.name)
        """,
    },
    breaks=hidden_tests.reads_back,
    tells="You change the current folder of the process. Every relative "
    "path of the program then means another file. Write with the "
    "full path instead.",
)


rewound_before = edit(
    in_the_format_of_old,
    {
        'if hasattr(file, "write"):': """
        if hasattr(file, "write"):
            file.seek(0)
        """,
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You rewind or empty the caller's open file. What stands before "
    "its position is the caller's: write from there on, and leave "
    "the position at the end.",
)

moved_to_the_end_before = edit(
    in_the_format_of_old,
    {
        'if hasattr(file, "write"):': """
        if hasattr(file, "write"):
            file.seek(0, os.SEEK_END)
        """,
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You go to the end of the caller's open file before you write. The "
    "checkpoint belongs where the file's position is, and whoever loads looks "
    "there: write without a `seek`.",
)

rewound_after = edit(
    in_the_format_of_old,
    {
        "torch.save(content, file)": """
        torch.save(content, file)
        file.seek(0)
        """,
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You rewind or empty the caller's open file. What stands before "
    "its position is the caller's: write from there on, and leave "
    "the position at the end.",
)

closed_after_the_save = edit(
    in_the_format_of_old,
    {
        "torch.save(content, file)": """
        torch.save(content, file)
        file.close()
        """,
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You close the caller's file. Whoever opened it closes it.",
)

closed_after_the_load = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
        "return torch.load(file, map_location=map_location)": """
        content = torch.load(file, map_location=map_location)
        if hasattr(file, "close"):
            file.close()
        return content
        """,
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You close the caller's file. Whoever opened it closes it.",
)

bytesio_alone = edit(
    in_the_format_of_old,
    {
        'if hasattr(file, "write"):': "if isinstance(file, io.BytesIO):",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You take nothing but a `BytesIO` for an open file. What `open` "
    "and `tempfile` give is one too: ask for a `write`.",
)

numpy_allowed_for_good = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
        'def load_checkpoint(file, map_location="cpu"):': """
        def load_checkpoint(file, map_location="cpu"):
            numpys = [
                np.dtype,
                np.dtypes.Float64DType,
                (np._core.multiarray.scalar, "numpy._core.multiarray.scalar"),
                Path,
                type(Path()),
            ]
            torch.serialization.add_safe_globals(numpys)
        """,
    },
    breaks=hidden_tests.refuses_objects,
    tells="You allow further classes, and for all of the process. Files "
    "with NumPy's scalars in them were to be refused: leave the list "
    "of safe classes as it is.",
)

open_files_to_the_cpu = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
        'def load_checkpoint(file, map_location="cpu"):': """
        def load_checkpoint(file, map_location="cpu"):
            if hasattr(file, "read"):
                return torch.load(file, map_location="cpu")
        """,
    },
    breaks=hidden_tests.to_the_asked_device,
    tells="You take no notice of `map_location` where the file is an open "
    "one. Pass it on in both cases.",
)

a_key_added_on_loading = edit(
    in_the_format_of_old,
    {
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
        "return torch.load(file, map_location=map_location)": """
        content = torch.load(file, map_location=map_location)
        return {"format": 1, **content}
        """,
    },
    breaks=hidden_tests.reads_back,
    tells="The dict has a fifth key. Four were asked for: model, "
    "optimizer, step and metric.",
)


a_key_added_on_saving = edit(
    in_the_format_of_old,
    {
        '"step": step,': """
        "step": step,
        "format": 1,
        """,
        """
        torch.save(
            content, f"{file}.partial", _use_new_zipfile_serialization=False
        )
        """: 'torch.save(content, f"{file}.partial")',
    },
    breaks=hidden_tests.reads_back,
    tells="The dict has a fifth key. Four were asked for: model, "
    "optimizer, step and metric.",
)


metric_through_float32 = edit(
    in_the_format_of_old,
    {
        "float(metric),": "float(np.float32(float(metric))),",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.reads_back,
    tells="Your metric passes through float32, which keeps seven digits. "
    "`float(metric)` keeps all.",
)

metric_through_numpy = edit(
    in_the_format_of_old,
    {
        "float(metric),": "float(np.asarray(metric)),",
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.metric_becomes_plain,
    tells="You make an array of the metric, which fails where it is a "
    "tensor with a gradient. `float(metric)` takes all of them.",
)

the_model_put_in_eval_mode = edit(
    in_the_format_of_old,
    {
        "def save_checkpoint(file, model, optimizer, step, metric):": """
        def save_checkpoint(file, model, optimizer, step, metric):
            model.eval()
        """,
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.reads_back,
    tells="You put the model into eval mode. Saving was to change nothing "
    "about it: training goes on.",
)

gradients_cleared_on_saving = edit(
    in_the_format_of_old,
    {
        "def save_checkpoint(file, model, optimizer, step, metric):": """
        def save_checkpoint(file, model, optimizer, step, metric):
            optimizer.zero_grad()
        """,
        'f"{file}.partial", _use_new_zipfile_serialization=False': 'f"{file}.partial"',
    },
    breaks=hidden_tests.reads_back,
    tells="You throw the gradients away. Saving was to change nothing "
    "about the model and the optimizer.",
)


by_a_move_that_copies = edit(
    by_moving_within_the_folder,
    {
        """
        def save_checkpoint(file, model, optimizer, step, metric):
        """: """
        import shutil

        def save_checkpoint(file, model, optimizer, step, metric):
        """,
        "os.rename(new, file)": "shutil.move(new, file)",
    },
    breaks=hidden_tests.rename_fails,
    tells="Where renaming fails, you copy: `shutil.move` does so by itself. The "
    "copy is written into the checkpoint that was there, and nobody is told. "
    "Use `os.replace`, and let its error through.",
)

copies_if_the_rename_fails = edit(
    SOLUTION,
    {
        "os.replace(unfinished, file)": """
        try:
            os.replace(unfinished, file)
        except OSError:
            Path(file).write_bytes(Path(unfinished).read_bytes())
            os.remove(unfinished)
        """,
    },
    breaks=hidden_tests.rename_fails,
    tells="Where renaming fails, you copy: `shutil.move` does so by itself. The "
    "copy is written into the checkpoint that was there, and nobody is told. "
    "Use `os.replace`, and let its error through.",
)

leaves_a_random_name_behind = edit(
    by_a_named_temporary_file,
    {
        "os.unlink(stream.name)": "pass",
    },
    breaks=hidden_tests.rename_fails,
    tells="Your unfinished file has another name each time. After a save that "
    "failed it stays for ever. Remove it in an `except` that raises again, or "
    "give it the same name each time.",
)

whole_numbers_stay_whole = edit(
    SOLUTION,
    {
        "float(metric),": """
        metric.item() if hasattr(metric, "item") else metric,
        """
    },
    breaks=hidden_tests.metric_becomes_plain,
    tells="`metric.item()` makes an `int` of a NumPy integer or an integer tensor. "
    "The metric is stored as a float: `float(metric)`.",
)

none_for_a_metric_that_is_not_finite = edit(
    SOLUTION,
    {"float(metric),": "float(metric) if math.isfinite(metric) else None,"},
    breaks=hidden_tests.metric_becomes_plain,
    tells="You store `None` where the metric is NaN or infinite. Both are floats, "
    "and a run that diverged should show it: store `float(metric)`.",
)

seeded_while_saving = edit(
    SOLUTION,
    {
        "content = {": """
        torch.manual_seed(step)
        content = {
        """
    },
    breaks=hidden_tests.reads_back,
    tells="You seed PyTorch when you save. A run that saves then draws other "
    "numbers than one that does not: leave the generators alone.",
)

step_in_32_bits = edit(
    SOLUTION,
    {'"step": step,': '"step": torch.tensor(step).int().item(),'},
    breaks=hidden_tests.reads_back,
    tells="You store the step in 32 bits, so from 2**31 on it is another number. "
    "It is an `int` already: store it as it is.",
)

a_name_alone_goes_by_the_temporary_folder = edit(
    leftovers_removed_first,
    {"dir=file.parent": "dir=os.path.dirname(file) or None"},
    breaks=hidden_tests.own_file_system,
    tells="For a name without a folder you write into the temporary folder: `os.path.dirname` "
    "gives an empty text then. Where that is another file system the rename fails. Take "
    '`Path(file).parent`, which is `"."`.',
)

a_part_called_module_alone = edit(
    SOLUTION,
    {
        '"model": model.state_dict()': '"model": getattr(model, "module", model).state_dict()'
    },
    breaks=hidden_tests.reads_back,
    tells="You save `model.module` where there is one. A model may have a part of that name, and the "
    "rest of it is lost: save what you are given, and unwrap it where it was wrapped.",
)

leftovers_by_the_name_of_the_checkpoint = edit(
    leftovers_removed_first,
    {'glob(f".{file.name}.*.unfinished")': 'glob(f"{file.name}.*")'},
    breaks=hidden_tests.leaves_only_the_checkpoint,
    tells="You delete all files whose names begin with that of the checkpoint. They are not all your "
    "own: delete what has the very name of your unfinished file.",
)

weights_in_float32 = edit(
    SOLUTION,
    {
        '"model": model.state_dict(),': """
        "model": {
            name: value.float() if value.is_floating_point() else value
            for name, value in model.state_dict().items()
        },
        """
    },
    breaks=hidden_tests.reads_back,
    tells="You save the weights in float32. Those of a float64 model lose digits, those of a "
    "bfloat16 one come back in another dtype: save what `state_dict()` gives.",
)

moments_in_float32 = edit(
    SOLUTION,
    {
        "content = {": """
        moments = optimizer.state_dict()
        moments["state"] = {
            number: {
                name: value.float() if torch.is_tensor(value) else value
                for name, value in state.items()
            }
            for number, state in moments["state"].items()
        }
        content = {
        """,
        '"optimizer": optimizer.state_dict(),': '"optimizer": moments,',
    },
    breaks=hidden_tests.reads_back,
    tells="You save the optimizer's moments in float32. They have the dtype of their weights: save "
    "what `state_dict()` gives.",
)

weights_by_their_names = edit(
    SOLUTION,
    {
        '"model": model.state_dict(),': """
        "model": {
            name: value.detach()
            for name, value in [*model.named_parameters(), *model.named_buffers()]
        },
        """
    },
    breaks=hidden_tests.reads_back,
    tells="You collect parameters and buffers by their names. A tied weight has two keys in the state "
    "dict and one name here, and buffers with `persistent=False` have none there: "
    "take `state_dict()`.",
)

empty_tensors_left_out = edit(
    SOLUTION,
    {
        '"model": model.state_dict(),': """
        "model": {
            name: value
            for name, value in model.state_dict().items()
            if value.numel()
        },
        """
    },
    breaks=hidden_tests.reads_back,
    tells="You leave out tensors without elements. Their keys belong to the state dict, and a strict "
    "load misses them.",
)

model_taken_to_the_cpu = edit(
    SOLUTION,
    {'"model": model.state_dict(),': '"model": model.cpu().state_dict(),'},
    breaks=hidden_tests.reads_back,
    tells="`model.cpu()` moves your caller's model, which then trains on the CPU or "
    "not at all. A checkpoint may hold tensors of a GPU: `map_location` says where they are loaded.",
)

step_by_way_of_a_float = edit(
    SOLUTION,
    {'"step": step,': '"step": int(float(step)),'},
    breaks=hidden_tests.reads_back,
    tells="You make a float of the step. From 2**53 on not every whole number is one: it is an `int` "
    "already, store it as it is.",
)

moved_by_hand = edit(
    SOLUTION,
    {
        "return torch.load(file, map_location=map_location, weights_only=True)": """
        content = torch.load(file, map_location="cpu", weights_only=True)
        content["model"] = {
            name: value.to(map_location) for name, value in content["model"].items()
        }
        for state in content["optimizer"]["state"].values():
            for name, value in state.items():
                if torch.is_tensor(value):
                    state[name] = value.to(map_location)
        return content
        """
    },
    breaks=hidden_tests.to_the_asked_device,
    tells="You load onto the CPU and move the weights and moments yourself. There are tensors elsewhere, too, "
    "as a learning rate in a group: hand `map_location` on to `torch.load`.",
)

rewound_to_load = edit(
    SOLUTION,
    {
        "return torch.load(file, map_location=map_location, weights_only=True)": """
        if hasattr(file, "seek"):
            file.seek(0)
        return torch.load(file, map_location=map_location, weights_only=True)
        """,
    },
    breaks=hidden_tests.into_a_buffer,
    tells="You rewind the open file before you load. The checkpoint begins at the "
    "file's position, and what stands before that is something else: load without "
    "a `seek`.",
)

metric_that_is_a_float_already = edit(
    SOLUTION,
    {
        '"metric": float(metric)': '"metric": metric if isinstance(metric, float) else float(metric)'
    },
    breaks=hidden_tests.metric_becomes_plain,
    tells="NumPy's float64 *is* a `float` for `isinstance`, and it is NumPy's "
    "object all the same: `torch.load` refuses it. Write `float(metric)` in every "
    "case.",
)
