# %% [markdown] reading_minutes=25 builds_on="Python and a first training loop in PyTorch; no GPU is needed"
r"""
# 00 · Start here

How this course works, in five minutes. Then the ground that every training script stands on: what
is in this machine, which GPUs a program sees, and how models and tensors get onto one of them.
Sections 1 to 3 take about ten minutes and end in a trained model.

**After this chapter you can**

- work through a chapter, check your answers and hand them in;
- report versions and devices with code that raises on no machine;
- choose GPUs for a program, and say which card `cuda:0` then is;
- move models and nested batches, and make new tensors where they are needed.
"""

# %% setup="imports"
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few things
more.
"""

# %%
import shutil
import subprocess
import sys
from itertools import takewhile
from unittest import mock

from course_utils import (
    PALETTE,
    beside_reference,
    describe_machine,
    digits,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · How this course works

**Run** a chapter from the top, cell by cell (*Shift+Enter*) or with *Run → Run All Cells*. On Linux
it goes through, whether you have answered anything or not. (On a Mac or on Windows, where nobody has run it yet, a cell may stop: go on with the next one.) Move the widgets, change cells, add your own:
nothing outside an exercise is graded. On a machine without a GPU every chapter runs on the CPU.

**Read** a sentence as it was tried: on PyTorch 2.13, with code that is not compiled unless it names `torch.compile`. *Here* means: on the
machine that built the course, a CPU. What no CPU can show has a source, in the course's list of statements.

**Answer** where a cell says `# YOUR CODE HERE`: put your code in the place of that line and of the
`raise` below it. The text above the cell says what to write; *All that is checked* and the hints fold open in it.
Each exercise is *core*, *more* or *hard*. Short of time? Do the core ones.

**Check** by running the cell below your answer. It says one of three things:

| it says | it means |
|---|---|
| `to_device: not attempted` | the `raise NotImplementedError()` still stands, or your cell has not been run since the kernel started |
| `to_device: try again · the device of x is 'cpu', expected 'meta'` | what was seen, and what was expected |
| `to_device: 4 of 4 visible checks pass; hidden ones count` | what is visible is right; the hidden ones ask for more |

**Validate** (the button above the notebook, in a class) runs the whole notebook in a new kernel and stops
where a visible check does. On a notebook with an unanswered exercise it fails, as it should.

**Submit.** Save first.

- With an *Nbgrader* menu: *Nbgrader → Assignment List*, *Submit* beside the chapter. You may submit again:
  the newest one counts. The same page brings your feedback.
- Otherwise, hand in the notebook file. In Colab that is *File → Download → Download .ipynb*.
- Alone, with the whole project: `.venv/bin/course grade 00 --from work/00_start_here/00_start_here.ipynb
  --to report` writes the report that a class would get.

Hidden checks then look at everything that *All that is checked* names. Each is worth a part of the exercise's points,
so half an answer gets marks too. The report says what was checked, what was seen, and what to do about it.
Where it is graded, your code runs on a CPU, on one thread, with PyTorch's settings at their defaults.

<details><summary>Help: a cell says that a name is not defined</summary>

The cells above have not been run since the kernel started. *Run → Run All Above Selected Cell*.
</details>
<details><summary>Help: it worked, and now it does not</summary>

A deleted cell's functions live on until the kernel restarts. *Kernel → Restart Kernel and Run All Cells* shows
what a grader will see.
</details>
<details><summary>Help: I deleted a cell of an exercise</summary>

*Edit → Undo Cell Operation*, or take the cell from a fresh copy of the chapter. Answers in moved or split cells
are found; keep the names of the functions.
</details>
"""

# %% [markdown]
r"""
## 2 · The problem, seen going wrong

Four slips from scripts that worked on the machine they were written on.

`attempt` calls a function and returns its result, or the error it raised.
"""

# %%
away = torch.device("meta") if device.type == "cpu" else device


def attempt(function):
    try:
        return function()
    except Exception as error:
        return error


# %% [markdown]
r"""
`away` is a second device. Without a GPU it is *meta*, which every machine has: tensors there have a shape
and a dtype, and no values. As a rule, one operation does not take tensors of two devices. (Allowed, among others: in arithmetic a CPU tensor without dimensions, an index on the CPU, and `copy_`, but not out of *meta*.) *meta* is less strict than a GPU: addition, `cat` and
a `Linear` with a bias raise there, and so does a matrix times a vector, but not `+=`, products of two matrices, convolutions and `nn.Embedding`.

### A report that stops the notebook

A popular first cell prints versions and the name of GPU 0.
"""

# %% cell="claim_002_01"
versions = torch.__version__, torch.version.cuda
answer = attempt(lambda: torch.cuda.get_device_name(0))
print("torch and CUDA:", *versions)
print("name of GPU 0: ", repr(answer)[:75])

has_gpu = torch.cuda.is_available()
assert isinstance(answer, str if has_gpu else Exception)
built_for = torch.version.cuda or torch.version.hip
assert built_for is not None or not has_gpu

# %% [markdown]
r"""
On a build for the CPU the version is None and the name raises. The report was meant for exactly such a
machine: one where something is not as expected.

On a build for AMD's ROCm, `torch.cuda` drives the AMD cards, and `"cuda"` is the name of their devices. There `torch.version.cuda`
is None and `torch.version.hip` has the version. So ask `torch.cuda.is_available()`, never `torch.version.cuda`, whether
there is a GPU. (From PyTorch's documentation; no such card is here.)

### A move that goes nowhere
"""

# %% cell="claim_004_04"
torch.manual_seed(0)
model, x = nn.Linear(3, 2), torch.randn(4, 3)
model.to(away)
x.to(away)
print("model on", model.weight.device, "and x on", x.device)

failed = attempt(lambda: model(x))
moved = attempt(lambda: model(x.to(away)))
print(f"{type(failed).__name__}: {str(failed)[:70]} ...")
assert isinstance(failed, RuntimeError)
assert moved.device.type == away.type

# %% [markdown]
r"""
Two lines that look alike. The model has moved, `x` has not: a tensor's `.to` returns another tensor, which
nobody kept.

### Layers that stay behind
"""


# %%
class Forgetful(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = nn.ModuleList([nn.Linear(3, 3)])
        self.in_a_list = [nn.Linear(3, 3)]
        self.register_buffer("mean", torch.zeros(3))
        self.std = torch.ones(3)


# %% cell="left_behind"
forgetful = Forgetful().to(away)
for name, tensor in {
    "layer in an nn.ModuleList": forgetful.known[0].weight,
    "layer in a Python list": forgetful.in_a_list[0].weight,
    "buffer": forgetful.mean,
    "tensor as an attribute": forgetful.std,
}.items():
    print(f"{name:26} {tensor.device}")

assert forgetful.std.device.type == "cpu" != forgetful.mean.device.type
assert len(list(forgetful.parameters())) == 2

# %% [markdown]
r"""
A module moves what it *owns*: parameters, buffers, submodules. A Python list hides its layers, from
`.to`, from `parameters()` and so from the optimizer: on a CPU this model would train without a word, and the
hidden layer would not learn. A tensor that is only an attribute stays where it was born.

### GPU 10, which became GPU 1

A shell line to list the indices of the GPUs takes the second word of each line of `nvidia-smi -L`, and of that
the first character (`cut -d ' ' -f 2 | cut -c 1`). In Python that is:
"""

# %% cell="claim_002_19"
listed = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-6a1f)
GPU 9: NVIDIA A100-SXM4-40GB (UUID: GPU-03c7)
GPU 10: NVIDIA A100-SXM4-40GB (UUID: GPU-b2e8)
GPU 11: NVIDIA A100-SXM4-40GB (UUID: GPU-94d0)"""
indices = [row.split(" ")[1][0] for row in listed.splitlines()]
print("0, 9, 10 and 11 become", ", ".join(indices))
assert indices == ["0", "9", "1", "1"]

# %% [markdown]
r"""
Up to ten GPUs that goes well, if none is cut into slices (MIG). The job that was meant for the eleventh lands on GPU 1, which is somebody else's.

## 3 · The trick, in its shortest correct form

**Which GPUs?** Said outside of the program, before it starts:

```
CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,0 python train.py
```

The program sees two GPUs. Physical GPU 2 is its `cuda:0`, physical GPU 0 its `cuda:1`; the others do not
exist for it. CUDA by itself counts the fastest card first and `nvidia-smi` by the slot on the bus: with the first
variable both count alike.

**Which device?** Asked once, at the top. Everything else follows it:
"""

# %% cell="shortest_form"
torch.manual_seed(0)
place = torch.device("cuda" if torch.cuda.is_available() else "cpu")

net = nn.Linear(3, 2).to(place)  # first the model moves,
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # then this

X = torch.randn(4, 3).to(place)  # a tensor: keep what is returned
noise = torch.randn_like(X)  # born beside X, in its dtype
net(X + noise).sum().backward()
optimizer.step()

# %% [markdown]
r"""
**Born in the right place.** A tensor made inside a model takes device and dtype from one that is already there:
"""

# %% cell="born_in_place"
X = torch.empty(4, 3, device=away, dtype=torch.bfloat16)
for how, made in {
    "torch.zeros(4)": torch.zeros(4),
    "X.new_zeros(4)": X.new_zeros(4),
    "torch.zeros_like(X)": torch.zeros_like(X),
    "device=X.device": torch.zeros(4, device=X.device),
    "... and dtype=X.dtype": torch.zeros(4, device=X.device, dtype=X.dtype),
}.items():
    print(f"{how:22} {made.device!s:7} {made.dtype}")

# %% [markdown]
r"""
There is a context too: under `with torch.device(X.device):` most functions that make a tensor of sizes or numbers
(`torch.zeros`, `torch.tensor`, the layers of `nn`) make it there. It does not reach all: not `torch.Tensor(3)`, `torch.normal`, `torch.from_numpy`, nor what is
made like a tensor on the CPU (`zeros_like`, `clone`). It sets no dtype. And it reaches too far: under it a loop over a `DataLoader` may raise, on *meta* nearly always, on a GPU with `shuffle=True`, a `generator=` of its own or forked workers. Look at *whose* dtype you take: `tokens.new_zeros(4)` of integer token ids is a state of
integers. For a state of the model, ask a weight of the model.
"""

# %% cell="not_under_the_context"
other = torch.ones(3)
with torch.device(away):
    for how, made in {
        "torch.tensor([1.0])": torch.tensor([1.0]),
        "nn.Linear(2, 2)": nn.Linear(2, 2).weight,
        "torch.Tensor(3)": torch.Tensor(3),
        "torch.zeros_like(other)": torch.zeros_like(other),
    }.items():
        print(f"{how:24} {made.device}")
        follows = how.startswith(("torch.tensor", "nn"))
        assert (made.device.type == away.type) == follows

mixed = torch.ones(3, device=away) * torch.tensor(2.0)
picked = mixed[torch.tensor([0, 2])]
assert mixed.device.type == picked.device.type == away.type

# %% [markdown]
r"""
**What is in this machine?** `describe_machine()` of `course_utils` answers without raising:
"""

# %% cell="this_machine"
for what, found in describe_machine().items():
    print(f"{what:8} {found}")

# %% [markdown]
r"""
`cuda` is what this PyTorch was *built* with, `cudnn` the library that it runs with. Neither says anything about the driver.

### All of it: a model, trained

Handwritten digits, 8 by 8 pixels each, and a small network that learns to read them. The device is asked for once, at
the top of this chapter. The model moves first, then the optimizer is made, and each tensor's move is kept.
"""

# %% cell="first_model"
torch.manual_seed(0)
reader = nn.Sequential(
    nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
).to(device)
adam = torch.optim.Adam(reader.parameters(), lr=0.003)

data = digits()
images, classes = data.X_train.to(device), data.y_train.to(device)
unseen, answers = data.X_test.to(device), data.y_test.to(device)

losses = []
for _ in range(20):  # epochs
    order = torch.randperm(len(images), device=device)
    for rows in order.split(64):
        loss = nn.functional.cross_entropy(reader(images[rows]), classes[rows])
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())

with torch.no_grad():
    guesses = reader(unseen).argmax(1)
correct = (guesses == answers).float().mean().item()
print(
    f"{correct:.1%} of {len(answers)} digits it has never seen are read right"
)
assert correct > 0.9

# %% figure="The loss of the first model, and what it reads"
figure, (left, right) = new_figure(1, 2)
left.plot(losses)
left.set(xlabel="step", ylabel="loss of the batch (nats)", ylim=(0, None))
left.set_title(f"It learns: {correct:.0%} read right")
tiles = nn.functional.pad(unseen[:12].reshape(3, 4, 8, 8), (4, 1, 1, 1))
right.imshow(tiles.transpose(1, 2).reshape(30, 52).cpu(), cmap="binary")
for place, guess in enumerate(guesses[:12].tolist()):
    row, column = divmod(place, 4)
    right.text(13 * column, 10 * row + 5, guess, color=PALETTE[1], va="center")
right.axis("off")
right.set_title("In colour: what it reads")
figure

# %% [markdown]
r"""
The chapters that follow are about what goes wrong in such a loop without a word. The rest of this one is about GPUs: which
of them a program sees, what a move costs, and what people say about both.

## 4 · See it: the numbers that a program sees

A machine with four GPUs, 0 to 3. Choose a value of `CUDA_VISIBLE_DEVICES`. The reading is PyTorch's own (a private
function that needs no GPU); we add that there are only four cards.
"""


# %%
def as_pytorch_reads(setting):
    """What PyTorch makes of CUDA_VISIBLE_DEVICES; None: it is not set."""
    with mock.patch.dict(os.environ):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        if setting is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = setting
        return torch.cuda._parse_visible_devices()


# %% cell="visible_figure"
def visible_figure(setting="2,0"):
    text = {"not set": None, "empty": ""}.get(setting, setting)
    seen = list(takewhile(lambda gpu: gpu < 4, as_pytorch_reads(text)))
    figure, axes = new_figure(figsize=(5, 2.6))
    for gpu in range(4):
        colour = PALETTE[0] if gpu in seen else "0.75"
        axes.text(0, -gpu, f"GPU {gpu}", color=colour, ha="right", va="center")
    for number, gpu in enumerate(seen):
        axes.plot([0.08, 0.92], [-gpu, -number], "o-", color=PALETTE[number])
        axes.text(1, -number, f"cuda:{number}", va="center")
    axes.set(xlim=(-0.4, 1.4), ylim=(-3.5, 0.5))
    axes.axis("off")
    first = f", and cuda:0 is GPU {seen[0]}" if seen else ""
    axes.set_title(f"With {setting}: {len(seen)} of 4 GPUs{first}")
    return figure


settings = ["not set", "empty", "0", "0,1", "2,0", "3", "2,0,-1,1", "1,7,0"]
explore(visible_figure, setting=[*settings, "3,3"])

# %% [markdown]
r"""
- The list is an order: `2,0` is not `0,2`.
- The first entry that is no GPU ends the list. `2,0,-1,1` shows two GPUs, `1,7,0` one.
- A GPU named twice leaves none. An empty list too: a good way to try a script without one.
- With `3` there is one GPU, and its name is `cuda:0`. `cuda:3` does not exist.

## 5 · Measure it on this machine

What does a move cost? We copy float32 numbers from the CPU to your device. Without a GPU that is a copy in
memory: `copy=True` asks for one, where a plain `.to(device)` would have nothing to do.
"""

# %% cell="measure_moves"
num_bytes = [2**k for k in range(10, 27, 2)]
seconds = []
for size in num_bytes:
    payload = torch.ones(size // 4)

    def move(payload=payload):
        return payload.to(device, copy=True)

    seconds.append(measure_time(move, repeats=9).median_s)

rate = num_bytes[-1] / seconds[-1] / 1e9
line_chart(
    {"": [one * 1e6 for one in seconds]},
    x=num_bytes,
    log_x=True,
    log_y=True,
    title=f"A move: {seconds[0] * 1e6:.0f} µs for 1 KiB, {rate:.2g} GB/s for 64 MiB",
    xlabel="size (bytes)",
    ylabel="time of a move (µs)",
)

# %% cell="measure_pieces"
torch.manual_seed(0)
pieces = list(torch.randn(512, 64))
one_by_one = measure_time(lambda: [one.to(device, copy=True) for one in pieces])
together = measure_time(lambda: torch.stack(pieces).to(device, copy=True))
print("512 rows, each by itself:", one_by_one)
print("stacked, then moved once:", together)
beside_reference("00_start_here/move_64_MiB_ms", seconds[-1] * 1e3, unit="ms")

# %% [markdown]
r"""
The curve is flat at its left end: every move has a fixed price, and a small one pays little else. So move a batch,
not its rows, and make on the device what can be made there. Pinned memory makes large moves faster (chapter 13).

## 6 · Folklore check

Popular claims, run against the PyTorch that is installed here. What needs a GPU to be seen rests on NVIDIA's
documentation, and says so.

### Choosing GPUs

> **"With the variable at "0", only GPU 0 is left, called `/gpu:0`."**
> *Half right.*

Only GPU 0 is left. The name is TensorFlow's.
"""

# %% cell="claim_000_01"
for name in ("/gpu:0", "gpu:0", "cuda:0"):
    outcome = attempt(lambda name=name: torch.device(name))
    print(f"{name:7} {str(outcome)[:50]}")
    assert isinstance(outcome, torch.device) == (name == "cuda:0")
assert as_pytorch_reads("0") == [0]

# %% [markdown]
r"""
> **"The list "0,1" shows two GPUs and prefers 0 to 1."**
> *Half right.* **"The numbers that a program sees are a renumbering."** *Correct.*

The list hides and renumbers; `cuda` without a number then means the first (until `torch.cuda.set_device` chooses another). Nothing spreads work over the two:
the second stays idle until a script uses it. With "2,1", `cuda:0` is physical GPU 2, in CUDA's own order (section 3).
"""

# %% cell="claim_000_02"
print('"0,1" is read as ', as_pytorch_reads("0,1"))
print('"2,1" is read as ', as_pytorch_reads("2,1"))
print('"2,0,-1,1" as    ', as_pytorch_reads("2,0,-1,1"))

assert as_pytorch_reads("0,1") == [0, 1]
assert as_pytorch_reads("2,1").index(2) == 0
assert as_pytorch_reads("2,0,-1,1") == [2, 0]

# %% [markdown] cell="claim_000_03"
r"""
> **"Set it in the code, before everything that concerns the network."**
> *Half right.*

The line to stay ahead of is CUDA's own start, and it comes early: one `torch.cuda.is_available()` is enough to freeze the
list, unless PyTorch asks the driver's management library instead (`PYTORCH_NVML_BASED_CUDA_CHECK=1`). PyTorch
1.12.0 froze it at `import torch`. If it must be in the code, make it the first lines, above every other import. (Not
to be seen without a GPU.)
"""

# %% [markdown]
r"""
> **"Set it on the command line, before `python`."**
> *Correct.*

Then no line of the program can come too early. From Python the same is `env=` of a new process, as exercise 2 has it.
"""

# %% cell="claim_002_25"
tell = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
told = subprocess.run(
    [sys.executable, "-c", tell],
    env={**os.environ, "CUDA_VISIBLE_DEVICES": "2,0"},
    capture_output=True,
    text=True,
)
print("the new process sees", told.stdout.strip())
assert told.stdout.strip() == "2,0"

# %% [markdown]
r"""
> **"`os.environ["CUDA_VISIBLE_DEVICES"] = "0"`."** *Half right:* as text only, and in time.
> **"`os.environ.setdefault(...)` keeps programs and users apart."** *Half right.*

`setdefault` leaves a value that is already there. That respects what the user or the scheduler has chosen, and surprises whoever meant to
override it. And the variable is a filter of one process, not a lock: two users can still choose the same GPU.
"""

# %% cell="claim_001_36"
with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "3"}):
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
    kept = os.environ["CUDA_VISIBLE_DEVICES"]
    refused = attempt(lambda: os.environ.__setitem__("CUDA_VISIBLE_DEVICES", 0))
print("after setdefault:", kept)
print("the number 0:    ", refused)
assert kept == "3"
assert isinstance(refused, TypeError)

# %% [markdown]
r"""
### Moving models and data

> **"Choose `cuda:0` if there is one, else the CPU, and write `.to(device)` everywhere."**
> *Correct* in a single process. Newer, and not for CUDA alone: `torch.accelerator.current_accelerator`. Ask it to look:
> without `check_available=True` it names what this PyTorch was *built* for, and a build for CUDA on a
> machine without a GPU then fails at the first `.to`.
"""

# %% cell="claim_001_33"
found = torch.accelerator.current_accelerator(check_available=True)
target = torch.device("cpu") if found is None else found
print("accelerator:", found)

on_target = nn.Linear(3, 2).to(target)(torch.ones(4, 3).to(target))
assert on_target.device.type == target.type

# %% [markdown]
r"""
> **"A tensor's `.to` and `.cuda()` are not in place: assign the result. They return a copy."**
> *Correct*, but for the copy: where nothing changes you get the same tensor back.
"""

# %% cell="claim_001_34"
t = torch.ones(2, 2)
doubled = t.to(torch.float64)
print("t is still", t.dtype, "| t.to('cpu') is t:", t.to("cpu") is t)

assert t.dtype == torch.float32
assert doubled.dtype == torch.float64
assert t.to("cpu") is t
assert t.to("cpu", copy=True) is not t
assert t.to("meta").is_meta
assert not t.is_meta

# %% [markdown]
r"""
> **"A module's `.to` and `.cuda()` work in place; `model = model.cuda()` and `model.cuda()` are the same."**
> *Correct.*

The module itself is returned, and by default its parameters stay the same objects, so an optimizer that holds them holds the
moved ones. (*Meta* puts new ones in their place, two for a shared one, unless
`torch.__future__.set_swap_module_params_on_conversion(True)`.) The optimizer's state does not move: Adam's moments, made at the first step, stay in the old dtype and on the old device. So move first and make the optimizer then. Buffers are new objects after a move: one that two modules shared has become two. Integer buffers keep their dtype.
"""

# %% cell="claim_001_35"
norm = nn.BatchNorm1d(3)
weight = norm.weight
returned = norm.to(torch.float64)
print(
    "counter:", norm.num_batches_tracked.dtype, "mean:", norm.running_mean.dtype
)

assert returned is norm
assert norm.weight is weight
assert norm.num_batches_tracked.dtype == torch.int64
assert norm.double() is norm

late = nn.Linear(2, 2)
adam = torch.optim.Adam(late.parameters())
late(torch.ones(1, 2)).sum().backward()
adam.step()
late.double()
assert adam.state[late.weight]["exp_avg"].dtype == torch.float32
assert norm.to("meta").weight is not weight

# %% [markdown]
r"""
> **"`input.new_zeros(...)` inherits device and dtype."**
> *Correct*, the integers of token ids too.
"""

# %% cell="claim_004_09"
half = torch.empty(2, device=away, dtype=torch.bfloat16)
tokens = torch.tensor([5, 2])
print("of token ids:", tokens.new_zeros(2).dtype)

assert half.new_zeros(7).device.type == away.type
assert half.new_zeros(7).dtype == torch.bfloat16
assert tokens.new_zeros(2).dtype == torch.int64

# %% [markdown]
r"""
> **"`torch.device("cuda")` selects the one GPU; it shows `device(type="cuda")`."**
> *Half right.*

It means the *current* CUDA device, whichever that is: its index is None. The second half is how Python displays the object. A post
that names it `device` and shows that line misleads: who runs the line calls the object, and a device cannot be called.
"""

# %% cell="claim_002_22"
current = torch.device("cuda")
called = attempt(lambda: current(type="cuda"))
print("printed:", current, "| shown:", repr(current), "| index:", current.index)
print(type(called).__name__, "·", called)

assert current.index is None
assert str(current) == "cuda"
assert isinstance(called, TypeError)

# %% [markdown] cell="claim_nvidia_smi"
r"""
### nvidia-smi

None of this can be run without an NVIDIA card; it rests on NVIDIA's manuals.

> **"`nvidia-smi` is a command line over NVML, to watch and manage GPUs."** *Correct.*

Its table is made for eyes and changes between versions. For programs: `nvidia-smi --query-gpu=index,name,memory.used
--format=csv,noheader`. The *CUDA Version* in the table's head is the newest that the driver supports. It is neither the toolkit on the
disk nor what PyTorch was built with.

> **"The lower table lists memory by process."** *Correct.* In a container it is often empty, even of its own processes.

> **"Memory in use and GPU utilisation are different things."** *Correct.* Utilisation is the share of time in which *some*
> kernel ran. At 100 % most of the chip may be idle, and a process that waits holds its memory at 0 %.

> **"`nvidia-smi -L` prints index, model and UUID."** *Correct.* `CUDA_VISIBLE_DEVICES` takes UUIDs too, and these do not
> depend on any order.

> **"Get the indices with two `cut`s."** *Wrong* from index 10 on, as section 2 shows, and where cards are cut into slices (MIG). `--query-gpu=index` asks for them.

> **"Turn on persistence mode with `-pm 1`."** *Outdated.* It still works; NVIDIA calls it near its end of life and
> recommends the daemon `nvidia-persistenced`.

> **"With two cards in four slots, take slots 0 and 3, for the cooling."** *Half right*, for one case and its fans. How the cards are
> linked usually matters more: `nvidia-smi topo -m`.
"""

# %% cell="nvidia_smi_here"
smi = shutil.which("nvidia-smi")
if smi is None:
    print("no nvidia-smi on this machine")
else:
    print(subprocess.run([smi, "-L"], capture_output=True, text=True).stdout)

# %% [markdown]
r"""
## 7 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not attempted*, *try again* or how many
pass. These visible checks are few. When your notebook is graded, hidden ones look at everything that folds open under *All that
is checked*.

Each exercise is judged separately, on the CPU; where a second device is needed, it is *meta*. What the set-up cell imports is
there; what else you need you import in the cell itself. Keep the names and the order of the arguments.
"""

# %% [markdown] task="quiz" title="A quiz to begin with" level="core" minutes=6 builds_on="sections 2 to 6"
r"""
Write `quiz()`, which answers the six questions below with a dict of one letter each, so that you know what has stayed.

```python
>>> sorted(quiz())
['assigned', 'busy', 'current', 'left_behind', 'numbers', 'versions']
```

- Each question counts by itself. Capital letters are fine.

**`current`** `torch.device("cuda").index` is
(a) 0. (b) None: the current device, whichever that is. (c) an error on a machine without a GPU. (d) the number of GPUs.

**`numbers`** After `CUDA_VISIBLE_DEVICES=3,1` the card that `nvidia-smi` calls GPU 3 (both count by the bus) is
(a) `cuda:3`. (b) `cuda:1`. (c) `cuda:0`. (d) hidden.

**`assigned`** Of which line has the result to be assigned, or it has no effect?
(a) `model.to(device)`. (b) `batch.to(device)`. (c) both. (d) neither.

**`left_behind`** What does `model.to(device)` leave where it was?
(a) A buffer. (b) The weight of a frozen layer. (c) The layers in an `nn.ModuleList`. (d) The layers in a Python list.

**`busy`** `nvidia-smi` shows a utilisation of 100 %. Then
(a) the memory is full. (b) every part of the chip is at work. (c) at each moment of the interval some kernel ran.
(d) no other process can start.

**`versions`** `torch.version.cuda` is the version of CUDA that
(a) the driver supports at most. (b) this PyTorch was built with. (c) is installed on the disk. (d) the card needs.

<details><summary>Hint 1: current, versions</summary>

Try them in a cell of your own.
</details>
<details><summary>Hint 2: numbers</summary>

Section 4 has a figure with a menu.
</details>
"""


# %% exercise="quiz"
def quiz() -> dict[str, str]:
    """One letter for each of current, numbers, assigned, left_behind,
    busy and versions."""
    ### BEGIN SOLUTION
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }
    ### END SOLUTION


# %% check="quiz"
with visible_check("quiz"):
    given = quiz()
    expect("the number of answers", len(given), 6)
    letters = [str(letter).strip().lower() for letter in given.values()]
    expect("letters from a to d", set(letters) <= set("abcd"), True)

# %% grade="quiz" points=3

# %% [markdown] task="choose_gpus" title="Choosing GPUs" level="more" minutes=20 builds_on="sections 3 and 4"
r"""
Write `env_for`, `physical_ids` and `cuda_name`, which say what GPUs a new process sees and what it calls them; they work on
text and numbers, and need no GPU.

```python
>>> env_for([2, 0], environ={})
{'CUDA_DEVICE_ORDER': 'PCI_BUS_ID', 'CUDA_VISIBLE_DEVICES': '2,0'}
>>> physical_ids("2,0,-1,1", num_gpus=4)
[2, 0]
>>> cuda_name(0, "2,0", num_gpus=4)
'cuda:1'
```

- `env_for(gpus, environ, override)` returns a new dict: all of `environ`, with `CUDA_VISIBLE_DEVICES` naming the GPUs in the
  order given, and `CUDA_DEVICE_ORDER` as `"PCI_BUS_ID"` unless `environ` has one. Every value is a string.
- With `override=False` a `CUDA_VISIBLE_DEVICES` that `environ` already has stays.
- A negative number, or a GPU named twice, raises a `ValueError` in `env_for`.
- `physical_ids(visible, num_gpus)` stops before the first entry that is none of the numbers 0 to `num_gpus - 1`. A GPU named
  twice before that leaves none: `[]`. `visible` is None where the variable is not set: then all are seen.
- `cuda_name` raises a `ValueError` for a GPU that the program does not see.

<details><summary>Hint 1: a new dict</summary>

`dict(environ)` copies what any mapping holds, `os.environ` too. `copy.copy(os.environ)` does not: it goes on writing to the
real environment.
</details>
<details><summary>Hint 2: is the entry a number?</summary>

`"12".isdecimal()` is true; `"-1"`, `""` and `"x"` are not decimal.
</details>
<details><summary>Hint 3: from the card to its name</summary>

`[2, 0].index(0)` is 1, and raises a `ValueError` where there is nothing to find.
</details>
"""


# %% exercise="choose_gpus"
def env_for(
    gpus: Sequence[int | str],
    environ: Mapping[str, str],
    override: bool = True,
) -> dict[str, str]:
    """The environment of a new process that is to see these GPUs.

    Raises:
        ValueError: a negative number, or a GPU named twice.
    """
    ### BEGIN SOLUTION
    names = [str(gpu) for gpu in gpus]
    if len(set(names)) < len(names):
        raise ValueError(f"a GPU is named twice in {names}")
    if any(name.startswith("-") for name in names):
        raise ValueError(f"a GPU is negative in {names}")
    ours = dict(environ)
    ours.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if override or "CUDA_VISIBLE_DEVICES" not in ours:
        ours["CUDA_VISIBLE_DEVICES"] = ",".join(names)
    return ours
    ### END SOLUTION


def physical_ids(visible: str | None, num_gpus: int) -> list[int]:
    """The physical GPUs behind cuda:0, cuda:1, ..."""
    ### BEGIN SOLUTION
    if visible is None:
        return list(range(num_gpus))
    ids: list[int] = []
    for entry in visible.split(","):
        number = entry.strip()
        if not number.isdecimal() or int(number) >= num_gpus:
            break
        if int(number) in ids:
            return []
        ids.append(int(number))
    return ids
    ### END SOLUTION


def cuda_name(gpu: int, visible: str | None, num_gpus: int) -> str:
    """What a program calls this physical GPU, as "cuda:1".

    Raises:
        ValueError: the program does not see it.
    """
    ### BEGIN SOLUTION
    return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"
    ### END SOLUTION


# %% check="choose_gpus"
with visible_check("choose_gpus"):
    before = {"HOME": "/root"}
    env = env_for([1], before)
    expect("the variable", env["CUDA_VISIBLE_DEVICES"], "1")
    expect("the caller's environment", before, {"HOME": "/root"})
    expect("the cards behind the text 1,0", physical_ids("1,0", 2), [1, 0])
    expect("the name of GPU 1 under 1,0", cuda_name(1, "1,0", 2), "cuda:0")

# %% grade="choose_gpus" points=10

# %% [markdown] task="to_device" title="A batch of anything" level="more" minutes=15 builds_on="section 3"
r"""
Write `to_device(batch, device)`, which returns a batch with every tensor in it moved, so that a loop needs one line for
the nested batches of most loaders.

```python
>>> batch = {"x": torch.ones(2), "more": [torch.zeros(3), "text"]}
>>> moved = to_device(batch, "meta")
>>> moved["x"].device, moved["more"][0].device, moved["more"][1]
(device(type='meta'), device(type='meta'), 'text')
```

- Dicts, `OrderedDict`s, lists, tuples and named tuples are gone through, as deep as they are nested, and keep their type.
- Anything else but a tensor comes back as the same object, even if it has a `.to`.
- Tensors keep shape, dtype, values and `requires_grad`, and a gradient finds its way back through the move.
- `batch` stays as it was.

<details><summary>Hint 1: one case for each kind</summary>

`isinstance`, one kind after the other, with a last line that returns what is left. For the items of a container, the function calls itself.
</details>
<details><summary>Hint 2: named tuples</summary>

A named tuple is a tuple, and wants its items one by one: `type(batch)(*items)`. It has an attribute `_fields`, a plain tuple has not.
</details>
<details><summary>Help: RecursionError with text</summary>

`"a"[0]` is `"a"`, which has an item 0 too. Ask for `list` and `tuple`, not for everything that can be gone through.
</details>
"""


# %% exercise="to_device"
def to_device(batch: Any, device: torch.device | str) -> Any:
    """The batch with its tensors on the device; the caller's stays as it is."""
    ### BEGIN SOLUTION
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        items = ((key, to_device(one, device)) for key, one in batch.items())
        return type(batch)(items)
    if isinstance(batch, list | tuple):
        moved = [to_device(one, device) for one in batch]
        named = hasattr(batch, "_fields")
        return type(batch)(*moved) if named else type(batch)(moved)
    return batch
    ### END SOLUTION


# %% check="to_device"
with visible_check("to_device"):
    batch = {"x": torch.ones(2), "more": [torch.zeros(3), "text"]}
    got = to_device(batch, "meta")
    expect("the device of x", str(got["x"].device), "meta")
    expect("the device of more[0]", str(got["more"][0].device), "meta")
    expect("more[1]", got["more"][1], "text")
    expect("the caller's x", str(batch["x"].device), "cpu")

# %% grade="to_device" points=8

# %% [markdown] task="token_rnn" title="A model that can be moved" level="more" minutes=20 builds_on="sections 2 and 3"
r"""
Write the module `TokenRNN(num_tokens, width, num_layers)`, a small recurrent network that works wherever it is moved and
in whatever dtype it is cast to.

```python
>>> rnn = TokenRNN(num_tokens=5, width=3, num_layers=2)
>>> tokens = torch.tensor([[0, 4, 1, 1], [2, 2, 3, 0]])
>>> rnn(tokens).shape, rnn.decay
(torch.Size([2, 3]), tensor([0.5000, 0.7500, 1.0000]))
>>> rnn.to("meta")(tokens.to("meta")).device
device(type='meta')
```

- It reads the tokens one after the other. The embedding of a token is the first $x$; each layer $l$ in turn makes
  $h_l \leftarrow \tanh\big(\mathrm{layer}_l(x + \mathrm{decay} \cdot h_l)\big)$, and its new $h_l$ is the $x$ of the next layer.
- Each call begins with zeros for all $h_l$ and returns the last layer's state after the last token: (N, width) for tokens
  (N, T). Without any token (T = 0) that is the zeros.
- `embed` is an `nn.Embedding(num_tokens, width)`; `layers` holds `num_layers` times `nn.Linear(width, width)`, named
  `layers.0.weight` and so on in `state_dict()`. There are no other parameters.
- `decay` is an attribute, the tensor `torch.linspace(0.5, 1, width)`. It is not trained.
- After `.to(...)`, `.double()`, `.bfloat16()` and the like, of the module or of a larger one that holds it, all of it is there,
  and the result has the device and dtype of the weights.

<details><summary>Hint 1: what a module knows</summary>

`nn.ModuleList` for the layers, `self.register_buffer("decay", ...)` for a tensor that belongs to the module and is not trained.
</details>
<details><summary>Hint 2: the zeros</summary>

`self.embed.weight.new_zeros(...)` has the device and dtype that the weights have *now*. Tokens are integers, and what the constructor saw may be out of date.
</details>
<details><summary>Help: Tensor on device cpu is not on the expected device meta, or meta and cpu the other way round</summary>

Something was made in `forward` without a device, or does not move with the module.
</details>
"""


# %% exercise="token_rnn"
class TokenRNN(nn.Module):
    """A recurrent network over token ids, with a state per layer."""

    def __init__(self, num_tokens: int, width: int, num_layers: int):
        super().__init__()
        ### BEGIN SOLUTION
        self.embed = nn.Embedding(num_tokens, width)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        ### END SOLUTION

    def forward(self, tokens: Tensor) -> Tensor:  # (N, T) -> (N, width)
        ### BEGIN SOLUTION
        rows, width = tokens.shape[0], self.embed.embedding_dim
        start = self.embed.weight.new_zeros(rows, width)
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * state[i]))
                state[i] = x
        return state[-1]
        ### END SOLUTION


# %% check="token_rnn"
with visible_check("token_rnn"):
    rnn = TokenRNN(num_tokens=5, width=3, num_layers=2)
    ids = torch.tensor([[0, 4, 1, 1], [2, 2, 3, 0]])
    expect("the shape", tuple(rnn(ids).shape), (2, 3))
    expect("the parameters", len(list(rnn.parameters())), 5)
    got = rnn.to("meta")(ids.to("meta"))
    expect("the device after a move", str(got.device), "meta")

# %% grade="token_rnn" points=10

# %% [markdown] task="know_your_gpus" title="A report that never raises" level="more" minutes=16 builds_on="sections 2, 3 and 6"
r"""
Write `machine_report()`, which raises on no machine, and `list_gpus(listing)`, which reads what `nvidia-smi -L` prints, so that
a log can say where a run took place.

```python
>>> sorted(machine_report())
['cuda', 'cudnn', 'gpus', 'torch']
>>> list_gpus("GPU 0: Tesla T4 (UUID: GPU-6a1f)\nGPU 10: NVIDIA H200 (UUID: GPU-b2e8)\n")
[(0, 'Tesla T4', 'GPU-6a1f'), (10, 'NVIDIA H200', 'GPU-b2e8')]
```

- `"torch"` is the version of PyTorch as text, `"cuda"` that of the CUDA it was built with, text or None.
- `"cudnn"` is what `torch.backends.cudnn.version()` returns, or None where that raises a `RuntimeError`.
- `"gpus"` is a list of the names of all GPUs that `torch.cuda` sees. It is empty where `torch.cuda.is_available()` is False,
  whatever `torch.cuda.device_count()` says.
- Call the functions of `torch.cuda` under their full names, and anew each time: the checks put other machines in their place.
- `list_gpus` returns tuples `(index, name, uuid)`, the index an int, for the lines that begin with `GPU `, in their order.

<details><summary>Hint 1: the order of the questions</summary>

First `is_available()`, and only then what needs a driver.
</details>
<details><summary>Hint 2: taking a line apart</summary>

From the outside to the inside: `line.split(": ", 1)` cuts once, at the first; `text.rsplit(" (UUID: ", 1)` once, at the last. Or one
regular expression, with `re.match`.
</details>
"""


# %% exercise="know_your_gpus"
def machine_report() -> dict[str, Any]:
    """`torch`, `cuda`, `cudnn` and `gpus` of this machine."""
    ### BEGIN SOLUTION
    try:
        cudnn = torch.backends.cudnn.version()
    except RuntimeError:
        cudnn = None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "cudnn": cudnn,
        "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
    }
    ### END SOLUTION


def list_gpus(listing: str) -> list[tuple[int, str, str]]:
    """(index, name, UUID) of each GPU in the output of `nvidia-smi -L`."""
    ### BEGIN SOLUTION
    pattern = r"^GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
    found = [re.match(pattern, line) for line in listing.splitlines()]
    return [(int(m[1]), m[2], m[3]) for m in found if m]
    ### END SOLUTION


# %% check="know_your_gpus"
with visible_check("know_your_gpus"):
    report = machine_report()
    expect("the keys", sorted(report), ["cuda", "cudnn", "gpus", "torch"])
    expect("the version of PyTorch", report["torch"], str(torch.__version__))
    got = list_gpus("GPU 0: Tesla T4 (UUID: GPU-1f)\n")
    expect("one GPU", got, [(0, "Tesla T4", "GPU-1f")])

# %% grade="know_your_gpus" points=8

# %% [markdown]
r"""
## 8 · Recap

- `CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,0 python train.py`: said before the program starts. It hides, orders and renumbers; an entry that is no GPU ends the list, one named twice empties it.
- Ask `is_available()` before you ask a GPU for anything. A report is for machines that are not as expected.
- `x = x.to(device)` for tensors, `model.to(device)` for modules; then the optimizer.
- A module moves its parameters, buffers and submodules. Lists and plain tensors stay: `nn.ModuleList`, `register_buffer`.
- New tensors take device and dtype from one that is there: `new_zeros`, `zeros_like`, or `device=` and `dtype=` both. Not from the token ids.
- *meta* is a second device on every machine, for a first test of device handling. A GPU may refuse what *meta* lets pass,
  and takes what *meta* refuses because it has no values: `x[mask]`, `.item()`.

**Primary sources**

- PyTorch: [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html),
  [Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to),
  [Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html),
  [torch.accelerator](https://docs.pytorch.org/docs/stable/accelerator.html),
  [the meta device](https://docs.pytorch.org/docs/stable/meta.html).
- NVIDIA: [environment variables](https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html) of the CUDA
  programming guide, [nvidia-smi](https://docs.nvidia.com/deploy/nvidia-smi/index.html),
  [driver persistence](https://docs.nvidia.com/deploy/driver-persistence/index.html).
- nbgrader: [for students](https://nbgrader.readthedocs.io/en/stable/user_guide/highlights.html).
"""
