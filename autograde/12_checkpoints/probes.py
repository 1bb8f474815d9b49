"""Drives what the exercises of chapter 12 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. What is killed, cut off or started again is a process of
its own, forked for it, or runs here and its folder is put back to what it was at that
moment. The training run brings its gradients along, by formula: autograd refuses to
run in a fork once a GPU's threads have been started.
"""

import contextlib
import copy
import errno
import functools
import io
import math
import os
import pathlib
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import zipfile
from collections import OrderedDict, defaultdict

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler

# Processes

CHILD_LIMIT_S = 20


def in_child(function):
    """Runs `function()` in a forked process.

    Returns:
        (how, value): how it ended, "returned", "raised" or "killed", and what it
        returned or the name of what it raised.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = ("raised", "")
        try:
            os.close(reader)
            signal.alarm(CHILD_LIMIT_S)
            torch.set_num_threads(1)
            answer = ("returned", function())
        except BaseException as error:
            answer = ("raised", type(error).__name__)
        finally:
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(answer, stream)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        sent = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return pickle.loads(sent) if status == 0 else ("killed", None)


def value_from_child(function):
    """What `function()` returns in a forked process. If it raises there, it is
    run here again, so that the judge sees which line of the learner it was."""
    how, value = in_child(function)
    if how == "returned":
        return value
    function()
    raise RuntimeError("the process that ran this ended early")


def in_this_process(function):
    """Runs `function()` here, where nothing is killed: a fork costs more than most
    of what is done in it. The answer is that of `in_child`."""
    try:
        return "returned", function()
    except BaseException as error:
        return "raised", type(error).__name__


class Killed(BaseException):
    """Ends a run where a signal would: see `until_killed`."""


def until_killed(run, folder):
    """Runs `run(die)` in this process until that calls `die()`, and puts the folder back
    to what it was at that moment, whatever was written on the way out. All that a killed
    process does not leave behind is what Python holds: some cases fork for that.
    The answer is that of `in_child`."""
    kept = folder.with_name("as_it_was")

    def die():
        if not kept.exists():
            shutil.copytree(folder, kept, symlinks=True)
        raise Killed

    how, value = in_this_process(lambda: run(die))
    if not kept.exists():
        return how, value
    shutil.rmtree(folder)
    kept.rename(folder)
    return "killed", None


def die_at_once():
    os.kill(os.getpid(), signal.SIGKILL)


# File operations

WATCHERS = []


def _to_the_watchers(event, arguments):
    for one in WATCHERS:
        one(event, arguments)


@functools.cache
def _begin_to_watch():
    sys.addaudithook(_to_the_watchers)  # which nothing takes away again


@contextlib.contextmanager
def watched(watch):
    """Within it, `watch(event, arguments)` sees what Python is about to do with
    files, as an audit hook does; what it raises, the operation raises."""
    _begin_to_watch()
    WATCHERS.append(watch)
    try:
        yield
    finally:
        WATCHERS.remove(watch)


@contextlib.contextmanager
def files_no_longer_than(limit):
    """Within it, a file that would grow beyond `limit` bytes is an error, as on a full
    disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def die_when_longer_than(limit):
    """From here on this process dies of a file that would grow beyond `limit` bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


# save_checkpoint, load_checkpoint


def with_a_temporary_folder(probe):
    """A probe that finds its temporary folder on the file system of its files,
    as on most machines; `on_its_own_file_system` is about the others."""

    @functools.wraps(probe)
    def probed(save_checkpoint, load_checkpoint, case):
        usual, folder = tempfile.tempdir, os.getcwd()
        safe = torch.serialization.get_safe_globals()
        tempfile.tempdir = os.path.abspath("temporary")
        os.makedirs(tempfile.tempdir, exist_ok=True)
        try:
            return probe(save_checkpoint, load_checkpoint, case)
        finally:
            os.chdir(folder)
            shutil.rmtree(tempfile.tempdir, ignore_errors=True)
            tempfile.tempdir = usual
            # classes that one answer allows must not be allowed for the next
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals(safe)

    return probed


class SmallNet(nn.Sequential):
    """Notes when it is moved or cast: that would be the caller's model.

    An empty buffer is in its state dict, one that is not persistent is not, and a
    weight stands there twice if the case says so.
    """

    def __init__(self, case):
        layers = OrderedDict({"0": nn.Linear(4, 8)})
        layers[case.get("second", "1")] = nn.BatchNorm1d(8)
        if case.get("tied"):
            layers["tied"] = nn.Linear(4, 8)
            layers["tied"].weight = layers["0"].weight
            layers["tied"].bias = layers["0"].bias
        super().__init__(layers)
        self.register_buffer("empty", torch.zeros(0, 3))
        self.register_buffer("scratch", torch.ones(2), persistent=False)
        self.moves = 0

    def _apply(self, *args, **kwargs):
        self.moves += 1
        return super()._apply(*args, **kwargs)


def a_small_net(case):
    return SmallNet(case).to(getattr(torch, case["dtype"]))


@torch.random.fork_rng(devices=[])
def a_run(case, later):
    """A model with its optimizer after a step, or after two, and the number of
    steps that the case gives it."""
    model = a_small_net(case)
    lr = torch.tensor(case["lr"]) if case["lr_in_a_tensor"] else case["lr"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    pairs = list(zip(model.parameters(), case["values"], strict=True))
    with torch.no_grad():
        for parameter, values in pairs:
            parameter.copy_(values)
        model[1].running_mean.copy_(case["values"][1])
    for number in range(1 + later):
        for parameter, values in pairs:
            parameter.grad = (values.cos() + number).to(parameter.dtype)
        optimizer.step()
    return model, optimizer, case["steps"][later]


def contents(loaded):
    return {
        name: loaded[name] for name in ("model", "optimizer", "step", "metric")
    }


@with_a_temporary_folder
def round_trip(save_checkpoint, load_checkpoint, case):
    """Saves, in another process if the case says so, and reads: by the learner's
    function and by `torch.load` with its defaults."""
    model, optimizer, step = a_run(case, later=True)
    path = a_place(case)
    metric = as_number(case["metric"], case["metric_type"])
    before, moves = everything_of(model, optimizer), model.moves
    folder = os.getcwd()

    def save():
        save_checkpoint(path, model, optimizer, step, metric)
        return {
            "same_folder": folder == os.getcwd(),
            "objects_as_before": before == everything_of(model, optimizer),
            "model_not_moved": moves == model.moves,
        }

    saved = value_from_child(save) if case["elsewhere"] else save()
    os.chdir(folder)
    loaded = load_checkpoint(path)
    plain, kept = default_load(path)
    if not plain:
        kept = torch.load(path, weights_only=False)
    with torch.random.fork_rng(devices=[]):
        rebuilt = a_small_net(case)
    rebuilt.load_state_dict(loaded["model"])
    return {
        "default_load_reads_it": plain and isinstance(kept, dict),
        "keys": sorted(loaded),
        "keys_in_file": sorted(kept),
        "types": [type(loaded[one]).__name__ for one in ("step", "metric")],
        **saved,
        **contents(loaded),
    }


def everything_of(model, optimizer):
    """Mode, weights, gradients and moments, as plain numbers."""
    return (
        [module.training for module in model.modules()],
        [value.tolist() for value in model.state_dict().values()],
        [
            None if one.grad is None else one.grad.tolist()
            for one in model.parameters()
        ],
        as_numbers(optimizer.state_dict()),
    )


def as_numbers(value):
    """The same with lists in place of tensors."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: as_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_numbers(one) for one in value]
    return value


def default_load(path):
    """Whether `torch.load` with its defaults reads the file, and what it reads."""
    try:
        return True, torch.load(path)
    except pickle.UnpicklingError:
        return False, None


@with_a_temporary_folder
def through_a_buffer(save_checkpoint, load_checkpoint, case):
    """The same with a file object in the place of a path."""
    model, optimizer, step = a_run(case, later=False)
    header = b"h" * case["header"]
    with {
        "BytesIO": io.BytesIO,
        "file": lambda: open("opened.pt", "w+b"),
        "temporary": tempfile.TemporaryFile,
        "named": tempfile.NamedTemporaryFile,
    }[case["kind"]]() as stream:
        stream.write(header + b"r" * case.get("after", 0))
        stream.seek(len(header))
        save_checkpoint(stream, model, optimizer, step, case["metric"])
        if stream.closed:
            return {"open": False}
        end = stream.tell()
        stream.seek(0)
        whole = stream.read()
        stream.seek(len(header))
        loaded = contents(load_checkpoint(stream))
        return {
            "loaded": loaded,
            "open": not stream.closed,
            "header": whole[: len(header)] == header,
            "at_the_end": end == len(whole),
        }


def as_number(value, kind):
    return {
        "float": float,
        "float64": np.float64,
        "float32": np.float32,
        "int64": np.int64,
        "tensor": torch.tensor,
        "tensor of float64": lambda one: torch.tensor(
            one, dtype=torch.float64, requires_grad=True
        ),
    }[kind](value)


def a_place(case):
    """Where the checkpoint goes: an empty folder, a str or a Path."""
    folder = pathlib.Path("runs")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    place = folder / case["name"]
    if case.get("relative"):
        place = pathlib.Path(case["name"])
        place.unlink(missing_ok=True)
    else:
        place = place.absolute()
    return place if case["as_path"] else str(place)


@with_a_temporary_folder
def cut_off(save_checkpoint, load_checkpoint, case):
    """Saves one checkpoint, then the next while files may not grow beyond a limit,
    and reads what is there.

    Where the limit kills, this is another process, which dies in the middle of a
    write; elsewhere the write fails as on a full disk.
    """
    model, optimizer, step = a_run(case, later=False)
    later, later_optimizer, later_step = a_run(case, later=True)
    path = a_place(case)
    save_checkpoint(path, later, later_optimizer, later_step, 0.5)
    whole = os.path.getsize(path)
    save_checkpoint(path, model, optimizer, step, 0.25)

    def save_later():
        save_checkpoint(path, later, later_optimizer, later_step, 0.5)

    def save_and_die(limit):
        die_when_longer_than(limit)
        save_later()

    found, told, torn = [], [], 0
    for share, kills in case["limits"]:
        if case.get("first") and os.path.exists(path):
            os.unlink(path)
        limit = whole - 1 if share == 1 else int(share * whole)
        if kills:
            how, _ = in_child(lambda: save_and_die(limit))  # noqa: B023
        else:
            with files_no_longer_than(limit):
                how, _ = in_this_process(save_later)
        found.append(what_is_there(load_checkpoint, path))
        torn += found[-1] is None and os.path.exists(path)
        if not kills:
            told.append(how == "raised" or share > 1)
    save_checkpoint(path, model, optimizer, step, 0.25)
    folder = os.path.dirname(os.path.abspath(path))
    second_name = os.path.join(folder, "second_name")
    os.link(path, second_name)
    before = pathlib.Path(second_name).read_bytes()

    with watched(refuses_to_name(path)):
        how, _ = in_this_process(save_later)
    told.append(how == "raised")
    kept = what_is_there(load_checkpoint, path)
    stays = before == pathlib.Path(second_name).read_bytes()
    os.unlink(second_name)
    save_checkpoint(path, model, optimizer, step, 0.25)
    return {
        "found": found,
        "told": told,
        "torn": torn,
        "old_stays": stays and kept is not None and kept[1] == 0.25,
        # a process that was killed may leave some, and how many is its business
        "files": []
        if any(kills for _, kills in case["limits"])
        else sorted(os.listdir(folder)),
    }


def refuses_to_name(path):
    """A watcher under which everything can be written, and renaming a file to
    `path` fails as on a broken disk."""

    def hook(event, arguments):
        if event == "os.rename":
            name = os.path.basename(os.fsdecode(arguments[1]))
            if name == os.path.basename(path):
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    return hook


def what_is_there(load_checkpoint, path):
    """Step, metric and weights as they are read; None if they cannot be."""
    try:
        loaded = load_checkpoint(path)
        weight = torch.as_tensor(loaded["model"]["0.weight"])
        return int(loaded["step"]), float(loaded["metric"]), weight.tolist()
    except Exception:
        return None


FILE_EVENTS = ("open", "os.rename", "os.remove", "os.link", "os.truncate")


@with_a_temporary_folder
def killed_in_between(save_checkpoint, load_checkpoint, case):
    """Saves one checkpoint and then the next, and reads what a kill would have left
    right before each of that save's file operations: what the folder held.

    The earlier file also has a second name (a hard link). Writing into the file
    itself changes what is read under that name; putting another in its place
    does not.
    """
    model, optimizer, step = a_run(case, later=False)
    later, later_optimizer, later_step = a_run(case, later=True)
    path = a_place(case)
    save_checkpoint(path, model, optimizer, step, 0.25)
    folder = pathlib.Path(path).absolute().parent
    second_name = folder / "second_name"
    os.link(path, second_name)
    before = second_name.read_bytes()

    moments = pathlib.Path("moments").absolute()
    shutil.rmtree(moments, ignore_errors=True)
    moments.mkdir()
    renamed = moments / "renamed.pt"
    kept, busy = [], []

    def watch(event, arguments):
        if busy:  # with copies of its own
            return
        names = names_in(arguments, folder)
        if event in FILE_EVENTS and any(
            os.path.dirname(name) == str(folder) for name in names
        ):
            busy.append(event)
            if len(kept) < case["most_operations"]:
                kept.append(moments / str(len(kept)))
                shutil.copytree(folder, kept[-1], symlinks=True)
            if event == "os.rename" and names[1:] == [os.path.abspath(path)]:
                shutil.copyfile(names[0], renamed)
            busy.clear()

    real = torch.save

    def seen_by_the_watch(obj, f, *args, **kwargs):
        watch("open", (f,))  # PyTorch opens it without Python
        real(obj, f, *args, **kwargs)

    torch.save = seen_by_the_watch
    try:
        with watched(watch):
            save_checkpoint(path, later, later_optimizer, later_step, 0.5)
    finally:
        torch.save = real
    there = what_is_there(load_checkpoint, path)
    after = second_name.read_bytes()
    whole_when_renamed = not renamed.exists() or (
        what_is_there(load_checkpoint, renamed) == there
    )
    found = []
    for moment in kept:
        shutil.rmtree(folder)
        moment.rename(folder)
        found.append(what_is_there(load_checkpoint, path))
    return {
        "found": [*found[:1], there],
        "lost": found.count(None),
        "written_into": before != after,
        "whole_when_renamed": whole_when_renamed,
    }


def names_in(arguments, folder):
    """The files that an operation is about, as absolute names. A bare name that is
    not in the current folder is taken as one relative to an opened `folder`."""
    names = []
    for one in arguments[:2]:
        if isinstance(one, str | bytes | os.PathLike):
            name = os.fsdecode(one)
            bare = not os.path.dirname(name) and not os.path.exists(name)
            inside = os.path.join(folder, name)
            names.append(inside if bare else os.path.abspath(name))
    return names


@with_a_temporary_folder
def on_its_own_file_system(save_checkpoint, load_checkpoint, case):
    """Saves where every other folder lies on another file system: a file cannot
    be moved in from there, only copied."""
    model, optimizer, step = a_run(case, later=False)
    later, later_optimizer, later_step = a_run(case, later=True)
    path = a_place(case)
    save_checkpoint(path, model, optimizer, step, 0.25)
    folder = os.path.dirname(os.path.abspath(path))
    second_name = os.path.join(folder, "second_name")
    os.link(path, second_name)
    before = pathlib.Path(second_name).read_bytes()

    here, elsewhere = folder + os.sep, tempfile.tempdir + os.sep

    def refuse(event, arguments):
        if event in ("os.rename", "os.link") and not all(
            name.startswith(here) and not name.startswith(elsewhere)
            for name in names_in(arguments, folder)
        ):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def save_there():
        save_checkpoint(path, later, later_optimizer, later_step, 0.5)

    with watched(refuse):
        how, _ = in_this_process(save_there)
    found = what_is_there(load_checkpoint, path)
    after = pathlib.Path(second_name).read_bytes()
    os.unlink(second_name)
    return {"found": found, "how": how, "written_into": before != after}


@with_a_temporary_folder
def what_is_left(save_checkpoint, load_checkpoint, case):
    """Saves twice; the second time beside what a killed process left behind."""
    model, optimizer, step = a_run(case, later=False)
    later, later_optimizer, later_step = a_run(case, later=True)
    path = a_place(case)
    folder = os.path.dirname(os.path.abspath(path))
    others = ("best.pt.partial", "notes.tmp", "notes.new", "notes.old")
    others += (f"{os.path.basename(path)}.best",)
    for name in others:
        pathlib.Path(folder, name).write_text(name)
    save_checkpoint(path, later, later_optimizer, later_step, 0.5)
    usual_size = os.path.getsize(path)
    save_checkpoint(path, model, optimizer, step, 0.25)
    after_two = sorted(set(os.listdir(folder)) - set(others))
    wide = nn.Linear(64, 64)

    def killed(limit):
        die_when_longer_than(limit)
        save_checkpoint(path, wide, optimizer, step, 0.25)

    found, longer = [], False
    for limit in case["left"]:
        in_child(lambda: killed(limit))  # noqa: B023
        save_checkpoint(path, later, later_optimizer, later_step, 0.5)
        found.append(what_is_there(load_checkpoint, path))
        longer |= os.path.getsize(path) > usual_size + 1000
    kept = [pathlib.Path(folder, name) for name in others]
    return {
        "files": after_two,
        "others": all(
            one.is_file() and one.read_text() == one.name for one in kept
        ),
        "found": found,
        "longer": longer,
    }


@with_a_temporary_folder
def under_the_other_name(save_checkpoint, load_checkpoint, case):
    """Saves onto a path which has the very name that the unfinished file had when
    another checkpoint was saved."""
    model, optimizer, step = a_run(case, later=False)
    later, later_optimizer, later_step = a_run(case, later=True)
    path = a_place(case)
    folder = os.path.dirname(os.path.abspath(path))
    save_checkpoint(path, model, optimizer, step, 0.25)

    seen = []

    def watch(event, arguments):
        if event == "os.rename":
            source, target = names_in(arguments, folder)
            if target == os.path.abspath(path):
                seen.append(source)

    with watched(watch):
        save_checkpoint(path, model, optimizer, step, 0.25)
    path = seen[-1] if seen else os.path.join(folder, "unfinished.pt")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    path = pathlib.Path(path) if case["as_path"] else path
    save_checkpoint(path, model, optimizer, step, 0.25)
    second_name = os.path.join(folder, "second_name")
    os.link(path, second_name)
    before = pathlib.Path(second_name).read_bytes()
    save_checkpoint(path, later, later_optimizer, later_step, 0.5)
    return {
        "written_into": before != pathlib.Path(second_name).read_bytes(),
        "found": what_is_there(load_checkpoint, path),
    }


@with_a_temporary_folder
def load_with_a_path_in_it(save_checkpoint, load_checkpoint, case):
    """Loads a file that somebody else wrote: with code in it, if the case says so."""
    model, optimizer, step = a_run(case, later=False)
    path = a_place(case)
    saved = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "metric": case["metric"],
    }
    if case["holds"]:
        saved["config"] = {
            "path": pathlib.PurePosixPath("data"),
            "array": np.ones(2),
            "defaultdict": defaultdict(dict),
            "scalar": np.float64(0.5),
            "this system's path": pathlib.Path("data"),
        }[case["holds"]]
    torch.save(saved, path)
    return contents(load_checkpoint(path))


@with_a_temporary_folder
def elsewhere(save_checkpoint, load_checkpoint, case):
    """Loads with a `map_location`; the file may come from a machine with a GPU."""
    model, optimizer, step = a_run(case, later=False)
    path = a_place(case)
    save_checkpoint(path, model, optimizer, step, case["metric"])
    if case["from_gpu"]:
        say_it_was_on_a_gpu(path)
    file = path
    if case.get("opened"):
        file = io.BytesIO(pathlib.Path(path).read_bytes())
    if case["map_location"] is None:
        loaded = contents(load_checkpoint(file))
    else:
        loaded = contents(load_checkpoint(file, case["map_location"]))
    moments = loaded["optimizer"]["state"][0]
    return {
        "model": loaded["model"],
        "exp_avg": moments["exp_avg"],
        "lr": loaded["optimizer"]["param_groups"][0]["lr"],
        "step": loaded["step"],
    }


GPU_THAT_NOBODY_HAS = b"cuda:63"


def say_it_was_on_a_gpu(path):
    """Rewrites a checkpoint so that its tensors say they were on a GPU."""
    there = GPU_THAT_NOBODY_HAS
    on_gpu = b"X" + len(there).to_bytes(4, "little") + there
    if not zipfile.is_zipfile(path):  # the format before PyTorch 1.6
        old = pathlib.Path(path)
        content = old.read_bytes().replace(b"X\x03\x00\x00\x00cpu", on_gpu)
        old.write_bytes(content)
        return
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            if name.endswith("/data.pkl"):
                content = content.replace(b"X\x03\x00\x00\x00cpu", on_gpu)
            archive.writestr(name, content)


# train


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(3, width)
        self.dropout = nn.Dropout(0.4)
        self.head = nn.Linear(width, 1)
        # Buffers, of which one does not fit into float32.
        self.register_buffer("center", torch.zeros(3))
        self.register_buffer("num_batches_tracked", torch.tensor(2**40 + 1))
        # and one that no state dict has
        self.register_buffer("scratch", torch.ones(2), persistent=False)

    def forward(self, x):
        return self.head(self.dropout(self.hidden(x - self.center)))

    @torch.no_grad()
    def loss_and_gradients(self, x, y):
        """Mean squared error, and its gradients in the order of the parameters."""
        self.num_batches_tracked += 1
        # another tensor, and not the old one with other numbers
        self.center = self.center.lerp(x.mean(0), 0.1)
        x = x - self.center
        hidden = self.hidden(x)
        kept = self.dropout(torch.ones_like(hidden))
        features = hidden * kept
        error = self.head(features) - y
        up = 2 * error / len(x)
        down = up @ self.head.weight * kept
        gradients = (down.T @ x, down.sum(0), up.T @ features, up.sum(0))
        return error.square().mean(), gradients


SCHEDULERS = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.6),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 1 / (1 + n)),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 14),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.2, total_steps=40),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o,
        [
            lr_scheduler.LinearLR(o, 0.1, total_iters=2),
            lr_scheduler.CosineAnnealingLR(o, 9),
        ],
        [2],
    ),
    "CosineAnnealingWarmRestarts": lambda o: (
        lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2)
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(
        o, factor=0.7, patience=0, threshold=0.5
    ),
}


class Job:
    """A training run as the chapter's `Job`, which notes what happens in it.

    Attributes:
        dies_after: steps after which this process is killed, inside the next.
        die: kills it.
        interrupted: the name of the exception by which it dies, as at Ctrl-C,
            and not by a signal.
        finished: batches that must not come again in its first `left` steps: those
            of the epoch that it begins in.
        log: what each step of this process saw and drew.
    """

    def __init__(self, case):
        self.case = case
        self.num_epochs = case["num_epochs"]
        self.num_samples = len(case["x"])
        self.batch_size = case["batch_size"]
        self.dies_after = None
        self.die = die_at_once
        self.interrupted, self.raised = None, False
        self.finished, self.left = [], 0
        self.log = {"rates": [], "scales": [], "draws": [], "batches": []}
        self.scaler = None

    def __repr__(self):
        case, ends = self.case, self.dies_after
        facts = {
            f"{self.num_epochs} epochs of {self.num_samples} samples, "
            f"{self.batch_size} in a batch": True,
            case["scheduler"]: True,
            "`hidden.bias` is frozen": case.get("frozen"),
            f"every loss is {case.get('loss')}": "loss" in case,
            f"ended inside step {0 if ends is None else ends + 1} of this call"
            + f" by {self.interrupted or 'a signal'}": ends is not None,
        }
        return f"Job({', '.join(fact for fact, so in facts.items() if so)})"

    @property
    def steps_per_epoch(self):
        return -(-self.num_samples // self.batch_size)

    def make_model(self):
        model = Net(self.case["width"])
        model.hidden.bias.requires_grad_(not self.case.get("frozen"))
        return model.to(self.case["x"].dtype)

    def make_optimizer(self, model):
        groups = [
            {"params": list(model.hidden.parameters())},
            {"params": list(model.head.parameters()), "weight_decay": 0.3},
        ]
        return torch.optim.AdamW(groups, lr=self.case["lr"])

    def make_scheduler(self, optimizer):
        return SCHEDULERS[self.case["scheduler"]](optimizer)

    def make_scaler(self):
        if self.case["scale"] is None:  # as in a run that needs none
            return torch.amp.GradScaler("cpu", enabled=False)
        return torch.amp.GradScaler(
            "cpu", init_scale=self.case["scale"], growth_interval=4
        )

    def step(self, model, optimizer, scheduler, scaler, indices):
        batch = [int(index) for index in indices]
        if batch in self.finished and len(self.log["batches"]) < self.left:
            raise RuntimeError("this batch was finished before the restart")
        noise, size = 0.1 * np.random.uniform(-1, 1), random.uniform(0.9, 1.1)
        if "pairs" in self.case:  # of which the second is kept for later
            noise = 0.1 * np.random.standard_normal()
            size = 1 + 0.1 * random.gauss(0, 1)
        sign = random.choice((-1.0, 1.0)) * size
        model.train()
        loss, gradients = model.loss_and_gradients(
            self.case["x"][indices] * sign + noise, self.case["y"][indices]
        )
        scale = scaler.scale(torch.ones(()))
        for parameter, gradient in zip(
            model.parameters(), gradients, strict=True
        ):
            if parameter.requires_grad:
                parameter.grad = gradient * scale
        rates = [group["lr"] for group in optimizer.param_groups]
        scaler.step(optimizer)
        scaler.update()
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            # of the steps alone: a wrong draw is not a wrong learning rate
            scheduler.step(math.sin(int(model.num_batches_tracked)))
        else:
            scheduler.step()
        if len(self.log["batches"]) == self.dies_after:
            if self.interrupted:
                self.raised = True
                raise INTERRUPTIONS[self.interrupted]
            self.die()
        self.log["rates"].append(rates)
        self.log["scales"].append(scaler.get_scale())
        self.log["draws"].append([noise, sign, torch.rand(()).item()])
        self.log["batches"].append(batch)
        self.scaler = scaler
        if "loss" in self.case:
            return self.case["loss"]
        return loss.item() / 3  # a float that float32 does not hold


class Interrupted(KeyboardInterrupt):
    """Ends a step in the middle, as Ctrl-C does."""


class Failed(RuntimeError, IndexError):
    """Ends a step in the middle, as an error in it does: a RuntimeError where memory
    is not there, an IndexError where an embedding has no such row."""


INTERRUPTIONS = {"Interrupted": Interrupted, "Failed": Failed}


def seed_all(seed):
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def never_stopped(case):
    """The run that no checkpoint interrupts, as the chapter's `train_in_one_go`."""
    job = Job(case)
    seed_all(case["seed"])
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    parts = (optimizer, job.make_scheduler(optimizer), job.make_scaler())
    losses = []
    for _ in range(job.num_epochs):
        order = torch.randperm(job.num_samples)
        for indices in order.split(job.batch_size):
            losses.append(job.step(model, *parts, indices))
    return report(job, model, losses)


def report(job, model, losses):
    return {
        "kinds": [
            type(losses).__name__,
            # a list without losses is not one of another kind
            sorted({"float", *(type(loss).__name__ for loss in losses)}),
        ],
        "losses": [float(loss) for loss in losses],
        "weights": {
            name: value.detach().clone()
            for name, value in model.state_dict().items()
        },
        "modes": [module.training for module in model.modules()],
        "steps": len(job.log["batches"]),
        **job.log,
        "scaler": None if job.scaler is None else job.scaler.state_dict(),
        "draws_after": [
            torch.rand(()).item(),
            np.random.standard_normal(),
            random.random(),
        ],
    }


def resumed(train, case):
    """Trains in processes that are killed at the case's stops, one after the
    other, and then here to the end. If the case forks, these are processes of their
    own, and the last one has not begun the run. Where an exception ends a run, the next
    one begins in the same process, as in a notebook.

    Every process is seeded differently, as processes are: what must go on cannot
    come from a seed. Unless the case says that it stays, the checkpoint is moved
    into another folder in between, and no other file with it.
    """
    num_steps = case["num_epochs"] * Job(case).steps_per_epoch
    finished = []
    if case.get("finished_raise"):
        finished = never_stopped(case)["batches"]
    folder = pathlib.Path("processes").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / "0" / "training.pt"
    path.parent.mkdir(parents=True)

    def start(path, seed, begins_at, dies_at, die=die_at_once):
        job = Job(case)
        job.die = die
        if dies_at is not None:
            job.dies_after = dies_at - begins_at
            job.interrupted = case.get("interrupted")
        if case.get("finished_raise"):
            begun = begins_at % job.steps_per_epoch
            job.finished = finished[begins_at - begun : begins_at]
            job.left = job.steps_per_epoch - begun
        seed_all(seed)
        try:
            model, losses = train(job, path)
        except (Interrupted, Failed):
            return None
        # a run that left out the step did not swallow what is raised there
        return {
            **report(job, model, losses),
            "survived": job.raised or job.interrupted is None,
        }

    begins_at, survived = 0, 0
    for number, stop in enumerate(case["stops"]):
        seed = case["seed"] + 1000 * number
        process = functools.partial(start, path, seed, begins_at, stop)
        if case["forks"]:
            how, ended = in_child(process)
        else:
            how, ended = until_killed(process, folder)
        if how == "raised":
            start(path, seed, begins_at, None)
            # it ended by another exception than the one that was raised
            survived += "interrupted" in case
        if how == "returned" and ended is not None and stop < num_steps:
            survived += ended["survived"]
        begins_at = stop
        if not case.get("stays"):
            path = moved(path, folder / str(number + 1))
    if case.get("perturb"):
        perturb(path, case["perturb"])
    seed = case["seed"] if not case["stops"] else case["seed"] + 77
    last = start(path, seed, begins_at, None)
    return {
        **last,
        "survived": survived,
        "default_load_reads_it": "perturb" not in case
        or (path.exists() and default_load(path)[0]),
    }


def moved(path, folder):
    """Where a checkpoint is after it was moved into a new folder, if it exists."""
    folder.mkdir()
    if path.exists():
        path.rename(folder / path.name)
    return folder / path.name


def perturb(path, factor):
    """Multiplies all weights and moments in a checkpoint by a factor."""

    def changed(value):
        if isinstance(value, torch.Tensor):
            counts = value.is_floating_point() and value.dim() > 0
            return value * factor if counts else value
        if isinstance(value, dict):
            return type(value)((k, changed(v)) for k, v in value.items())
        if type(value) in (list, tuple):
            return type(value)(changed(one) for one in value)
        return value

    if not path.exists():
        return
    try:
        saved = torch.load(path)
    except pickle.UnpicklingError:
        return
    torch.save(changed(saved), path)


# strip_prefix


def odd(number, value):
    """A tensor that is not contiguous, one without elements, or a number."""
    return (value.repeat(3, 1).t(), value.new_empty(0, 3), value[0])[number % 3]


def in_dtype(value, dtype):
    """The values in this dtype, with all the digits that it has."""
    if dtype == "int64":
        return (value.double() * 2**40).long()
    if dtype == "float64":
        return value.double() / 3
    return value.to(getattr(torch, dtype))


def a_state_dict(case):
    state_dict = OrderedDict(
        (key, in_dtype(value, case["dtype"]))
        for key, value in case["state_dict"].items()
    )
    if case["odd"]:
        for number, (key, value) in enumerate(state_dict.items()):
            state_dict[key] = odd(number, value)
    for value in state_dict.values():
        if case["learns"]:
            value.requires_grad_()
    state_dict._metadata = OrderedDict(
        ("".join(key.rpartition(".")[:1]), {"version": 2})
        for key in case["state_dict"]
    )
    return state_dict


def stripped(strip_prefix, case):
    given = a_state_dict(case)
    if case["plain_dict"]:
        given = dict(given)
    if case["prefix"] is None:
        made = strip_prefix(given)
    else:
        made = strip_prefix(given, case["prefix"])
    return {
        "keys": {str(key) for key in made},
        "values": {str(key): value for key, value in made.items()},
    }


def callers_dict(strip_prefix, case):
    given = a_state_dict(case)
    before = copy.deepcopy(given)
    made = strip_prefix(given, case["prefix"])
    return {
        "same_keys": list(given) == list(before),
        "same_metadata": getattr(given, "_metadata", None) == before._metadata,
        "new": made is not given,
        "types": sorted({type(value).__name__ for value in made.values()}),
        "keys": {str(key) for key in made},
        "given_after": {k: value.detach() for k, value in given.items()},
        "learns": all(
            v.requires_grad == case["learns"] for v in given.values()
        ),
    }


WRAPPERS = {
    "DataParallel": lambda model: nn.DataParallel(model),
    "Wrapper": lambda model: Wrapper(model),
    "AveragedInDataParallel": lambda model: nn.DataParallel(Wrapper(model)),
}


class Wrapper(nn.Module):
    """A model whose own child is called `module`."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


def wrapped_model(strip_prefix, case):
    """Loads the state dict of a wrapped model into one without the wrapper."""

    def made():
        layers = OrderedDict(
            module_list=nn.ModuleList([nn.Linear(3, 4)]),
            norm=nn.BatchNorm1d(4),
        )
        model = nn.Module()
        for name, layer in layers.items():
            model.add_module(name, layer)
        model.forward = lambda x: model.norm(model.module_list[0](x))
        return model

    source = made()
    with torch.no_grad():
        source.module_list[0].weight.copy_(case["weight"])
        source.norm.running_mean.copy_(case["mean"])
    if case["wrapper"] == "AveragedInDataParallel":
        target, wrapped = Wrapper(made()), nn.DataParallel(Wrapper(source))
        final = target.module
    else:
        target = final = made()
        wrapped = WRAPPERS[case["wrapper"]](source)
    target.load_state_dict(strip_prefix(wrapped.state_dict()))
    final.eval()
    return {"out": final.forward(case["x"]).detach()}


# load_across_versions


class FrozenBatchNorm(nn.Module):
    """Batch normalization with fixed statistics, and so without a counter."""

    def __init__(self, features):
        super().__init__()
        for name, start in (
            ("weight", torch.ones),
            ("bias", torch.zeros),
            ("running_mean", torch.zeros),
            ("running_var", torch.ones),
        ):
            self.register_buffer(name, start(features))

    def forward(self, x):
        scale = self.weight / (self.running_var + 1e-5).sqrt()
        return (x - self.running_mean) * scale + self.bias


class Counted(nn.Module):
    """A module of nobody's library with a counter of its own."""

    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.register_buffer("running_sum", torch.zeros(features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.register_buffer("num_batches_tracked_once", torch.tensor(0))

    def forward(self, x):
        if self.training:
            self.num_batches_tracked += 1
            self.running_sum += x.detach().sum(0)
        return x * self.scale


class Positions(nn.Module):
    """Adds a buffer that no `state_dict()` has."""

    def __init__(self, features):
        super().__init__()
        places = torch.arange(features) / 10
        self.register_buffer("places", places, persistent=False)

    def forward(self, x):
        return x + self.places


def a_net(kind, momentum=0.1):
    if kind == "narrow":
        return nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1))
    if kind == "shared":  # a weight of two layers
        norm = nn.BatchNorm1d(4, momentum=momentum)
        first, second = nn.Linear(4, 4), nn.Linear(4, 4)
        second.weight = first.weight
        layers = nn.Linear(3, 4), norm, first, Positions(4), second
        return nn.Sequential(*layers)
    if kind == "other counters":
        return nn.Sequential(
            nn.Linear(3, 4),
            Counted(4),
            nn.SyncBatchNorm(4, momentum=momentum).eval(),
            nn.Linear(4, 2),
        )
    if kind == "norm alone":
        return nn.BatchNorm1d(3, momentum=momentum)
    if kind == "frozen alone":
        return FrozenBatchNorm(3)
    if kind == "frozen":
        return nn.Sequential(
            nn.Linear(3, 4),
            FrozenBatchNorm(4),
            nn.Linear(4, 2),
            FrozenBatchNorm(2),
        )
    if kind == "half frozen":
        return nn.Sequential(
            nn.Linear(3, 4),
            FrozenBatchNorm(4),
            nn.Linear(4, 2),
            nn.BatchNorm1d(2, momentum=momentum),
        )
    width = 5 if kind == "wider" else 4
    return nn.Sequential(
        nn.Linear(3, width),
        nn.BatchNorm1d(width, momentum=momentum),
        nn.Linear(width, 2),
        nn.BatchNorm1d(2, momentum=momentum),
    )


def a_file(case):
    """A state dict as the case's model left it, then altered."""
    source = a_net(case["source"], case["momentum"])
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.copy_(parameter + case["shift"])
        for _ in range(case["batches_seen"]):
            trained(source)(case["x"])
        for name, buffer in source.named_buffers():
            if "running" in name:
                buffer += case["shift"].abs()
            else:
                buffer += case["count"]
    state_dict = copy.deepcopy(source.state_dict())
    for key in list(state_dict):
        if any(key.endswith(one) for one in case["without"]):
            del state_dict[key]
    for key in case["with_extra"]:
        state_dict[key] = torch.tensor(3)
    if case["cut"]:
        state_dict[case["cut"]] = state_dict[case["cut"]][:1]
    if case["folded"]:
        state_dict[case["folded"]] = state_dict[case["folded"]].unsqueeze(0)
    if case["squeezed"]:
        state_dict[case["squeezed"]] = state_dict[case["squeezed"]].squeeze()
    if case["repeated"]:
        state_dict[case["repeated"]] = state_dict[case["repeated"]].repeat(3)
    if case["prefix"]:
        state_dict = OrderedDict(
            (case["prefix"] + key, value) for key, value in state_dict.items()
        )
    elif not case["metadata"]:
        state_dict = OrderedDict(state_dict)
    return source, state_dict


def loaded_across(load_across_versions, case):
    """Loads the file into a model that has been trained a little already."""
    source, state_dict = a_file(case)
    target = a_net(case["target"], case["momentum"])
    with torch.no_grad():
        for _ in range(case["target_seen"]):
            trained(target)(2 * case["x"])
    # As in fine-tuning: a part is frozen, one is in eval mode, one has gradients.
    modules = list(target.modules())
    last = modules[-1].eval()
    modules[len(modules) // 2].requires_grad_(False)
    for parameter in last.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = copy.deepcopy(state_dict)
    settings = settings_of(target)
    parameters = [id(one) for one in target.parameters()]
    filled, left_out = load_across_versions(target, state_dict)
    same_settings = settings == settings_of(target)
    state = {
        name: value.detach().clone()
        for name, value in target.state_dict().items()
    }
    with torch.no_grad():
        out = target.eval()(case["x"])
        trained(target)(case["x"])
    return {
        "list of counters set to 0": sorted(filled),
        "list of counters left out": sorted(left_out),
        "types": [type(filled).__name__, type(left_out).__name__],
        "state": state,
        "out": out,
        "out_of_source": source.eval()(case["x"]).detach(),
        "state_after_a_batch": {
            name: value.detach().clone()
            for name, value in target.state_dict().items()
        },
        "callers_keys": list(state_dict) == list(before),
        "callers_values": all(
            torch.equal(state_dict.get(key, torch.empty(0)), value)
            for key, value in before.items()
        ),
        "callers_metadata": getattr(state_dict, "_metadata", None)
        == getattr(before, "_metadata", None),
        "same_parameters": parameters == [id(p) for p in target.parameters()],
        "same_settings": same_settings,
    }


def trained(model):
    """In training mode, but for what needs a GPU there."""
    model.train()
    for module in model.modules():
        if isinstance(module, nn.SyncBatchNorm):
            module.eval()
    return model


def settings_of(model):
    return (
        [module.training for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
        [
            None if parameter.grad is None else parameter.grad.tolist()
            for parameter in model.parameters()
        ],
    )


def refused_or_loaded(load_across_versions, case):
    """The same, and by which errors the file is refused if it is."""
    try:
        return loaded_across(load_across_versions, case)
    except NotImplementedError:
        raise
    except Exception as error:
        return {"refused": [one.__name__ for one in type(error).__mro__]}


# best_weights


def an_epoch(model, shift):
    """Changes weights and buffers in place, as an epoch of training does."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(shift.mean()).mul_(1.01)
        model.train()(shift.to(parameter.dtype))


class Averaged(nn.Module):
    """Holds its running mean in a buffer, and puts a new tensor there each time."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


def a_watched_model(case):
    """Linear and BatchNorm; after very many batches, and in float64, if asked; in
    bfloat16; with a layer that stands there twice; with a frozen bias; with a buffer
    that is a new tensor after each batch."""
    layers = [nn.Linear(3, 4), nn.BatchNorm1d(4)]
    if case["averaged"]:
        layers.append(Averaged())
    if case["tied"]:
        layers += [nn.Linear(4, 4)] * 2
    model = nn.Sequential(*layers)
    if case["precise"]:
        model.double()[1].num_batches_tracked.fill_(2**40 + 1)
    if case["coarse"]:
        model.bfloat16()
    model[0].bias.requires_grad_(not case["frozen"])
    return model


def state_of(model):
    return {
        name: value.detach().clone()
        for name, value in model.state_dict().items()
    }


def kept_best(BestWeights, case):
    """Trains, keeps the best, trains on, restores."""
    model = a_watched_model(case)
    before = [id(one) for one in model.parameters()]
    learn = [one.requires_grad for one in model.parameters()]
    keeper = keeper_of(BestWeights, model, case)
    answers, later, modes, shown = [], [], [], torch.zeros(())
    metric_before, metrics = keeper.metric, []
    for metric, shift in zip(case["metrics"], case["shifts"], strict=True):
        an_epoch(model, shift)
        if case["metric_type"] == "tensor":
            # one tensor, as an accumulator that is filled anew each epoch
            shown.fill_(metric)
            answers.append(keeper.update(shown))
        else:
            answers.append(keeper.update(metric))
        metrics.append(keeper.metric)
        modes.append(model.training)
    an_epoch(model, case["shifts"][0])
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    keeper.restore()
    restored_mode = model.training
    metrics.append(keeper.metric)
    gradients = [
        one.grad is not None and bool((one.grad == 1).all())
        for one in model.parameters()
    ]
    restored = state_of(model)
    # Training goes on from what was restored, and is undone a second time.
    an_epoch(model, case["shifts"][0])
    drifted = state_of(model)
    if case["twice"]:
        # not the best, and so nothing to keep
        later = [keeper.update(case["metrics"][0])]
        keeper.restore()
    restored_again = state_of(model)
    if case["twice"]:
        an_epoch(model, case["shifts"][1])
        later.append(keeper.update(-2.0 if case["mode"] == "min" else 2.0))
        an_epoch(model, case["shifts"][2])
        keeper.restore()
    return {
        "answers": [bool(answer) for answer in answers],
        "answer_types": sorted({type(answer).__name__ for answer in answers}),
        "metric_before": metric_before,
        "metric": metrics,
        "restored": restored,
        "restored_parameters": {
            name: restored[name] for name, _ in model.named_parameters()
        },
        "drifted": drifted,
        "restored_again": restored_again,
        "answers_later": [bool(answer) for answer in later],
        "restored_later": state_of(model),
        "same_parameters": before == [id(one) for one in model.parameters()],
        "still_trains": learn == [p.requires_grad for p in model.parameters()],
        "modes_updated": modes,
        "mode_restored": restored_mode,
        "same_gradients": all(gradients),
    }


def keeper_of(BestWeights, model, case):
    if case["mode"] is None:
        return BestWeights(model)
    return BestWeights(model, mode=case["mode"])


def several_kept(BestWeights, case):
    """Three objects at once: the largest and the smallest metric of one model,
    and the largest of another, which hears of the metrics in reverse."""
    model, other = a_watched_model(case), a_watched_model(case)
    largest = BestWeights(model, mode="max")
    smallest = BestWeights(model, mode="min")
    others = BestWeights(other, mode="max")
    for metric, reverse, shift in zip(
        case["metrics"], case["metrics"][::-1], case["shifts"], strict=True
    ):
        an_epoch(model, shift)
        an_epoch(other, shift + 1)
        largest.update(metric)
        smallest.update(metric)
        others.update(reverse)
    restored = {}
    for name, keeper, of in (
        ("largest", largest, model),
        ("smallest", smallest, model),
        ("others", others, other),
    ):
        keeper.restore()
        restored[name] = of[0].weight.detach().clone()
    return {
        "restored": restored,
        "metrics": [largest.metric, smallest.metric, others.metric],
    }


def nothing_kept(BestWeights, case):
    """Restores where there may be nothing to restore."""
    model = a_watched_model(case)
    keeper = keeper_of(BestWeights, model, case)
    for metric in case["metrics"]:
        an_epoch(model, case["shifts"][0])
        keeper.update(metric)
    an_epoch(model, case["shifts"][1])
    keeper.restore()
    return {"restored": state_of(model)}
