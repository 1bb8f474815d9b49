"""What chapter 01 states about seeds, generators and determinism, run."""

import contextlib
import functools
import inspect
import os
import random
import shutil
import subprocess
import sys
import threading
import warnings
from multiprocessing import get_start_method

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._inductor import config as compiler
from torch.backends import cudnn
from torch.nn.utils import parameters_to_vector
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)

from course_utils import digit_mlp, digits

BY_CELL = {
    "preview_changes_training": [
        "Under `torch.random.fork_rng()` the numbers are given back, and the run is the same to the last bit.",
    ],
    "noise_repeats": [
        "Each epoch starts new workers.",
    ],
    "start_methods": [
        "With these two the dataset and `worker_init_fn` are pickled: they have to stand at the top level of a module that can be imported, not in another function.",
        'On Linux `multiprocessing_context="fork"` asks for the old way.',
        "Those with loader workers ask for `fork`, so that a dataset defined in a notebook reaches them",
    ],
    "claim_002_02": [
        "PyTorch has code for several kinds of CPU, and an environment variable chooses the plainest.",
    ],
    "sums_by_order": ["A sum of floats depends on the order of its terms."],
    "claim_002_03": [
        "With the same number of threads and deterministic kernels they do. The number of threads decides how a sum is cut up.",
    ],
    "claim_002_04": [
        "A `default_rng()` takes its seed from the operating system. The hashes of strings, and with them the order of a set, follow `PYTHONHASHSEED`, which counts only when Python starts.",
    ],
    "claim_002_05": [
        "`torch.manual_seed` has seeded the GPUs already.",
        "The second line is not needed, and with its own number it does harm: change `fix_seed`, and the GPUs draw as before.",
        "PyTorch's seed reaches the GPUs.",
    ],
    "claim_002_06_14": [
        "But cuDNN is only a part. `put_` passes unseen; the switch stops it.",
    ],
    "claim_002_08": [
        "what you do not name is set to a default, and that of `enabled` is `False`.",
    ],
    "warn_and_fill": [
        "`use_deterministic_algorithms(True, warn_only=True)` warns where the switch alone would stop.",
    ],
    "compiler_and_batch": [
        "`torch.set_deterministic_debug_mode` does not set it.",
    ],
}

BY_SOURCE = {
    "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_inductor/config.py": [
        "`use_deterministic_algorithms(True)` also stops that where the choice would change the numbers",
        "`use_deterministic_algorithms` covers the operations that PyTorch lists, outside of compiled code, and, in the calling thread, the choices of the compiler's tuner that change the numbers.",
    ],
    "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cudnn/Conv_v8.cpp": [
        "cuDNN keeps what it chose for a set of sizes, whatever the flag says later.",
        "A thread keeps the winner for each set of sizes, and uses it from then on, also when the flag is off again. So set the flag before the first convolution.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/randomness.html": [
        "the one keeps cuDNN to deterministic kernels, the other lets every run choose the same of them.",
        "It makes the *choice* deterministic: every run picks the same algorithm, unless it has been tuned for these sizes before. That one may itself be nondeterministic, unless `deterministic = True` forbids it.",
        "The search is made anew for every new set of sizes.",
        "It is *between* runs that the clock may prefer another algorithm, which rounds differently.",
        "On what your loader's workers draw it has some code and a link to another page",
    ],
    "https://docs.pytorch.org/docs/2.6/generated/torch.use_deterministic_algorithms.html": [
        "On a GPU, older versions of PyTorch ask for `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment; set it before the first CUDA call.",
    ],
    "https://docs.pytorch.org/docs/stable/backends.html": [
        "It disables cuDNN, all of it.",
        "`cudnn.benchmark_limit` caps how many algorithms are tried.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices": [
        "On NVIDIA cards since Ampere, convolutions and cuDNN's recurrent layers round float32 inputs to 10 bits by default, matrix products do not.",
        "Such names came with PyTorch 2.9; `allow_tf32` is the older one.",
    ],
    "https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods": [
        "Since Python 3.14 Linux starts workers by `forkserver`; Windows and macOS use `spawn`.",
    ],
}


def states():
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
        np.random.get_state()[2],
    )


def test_a_draw_moves_the_stream():
    """The preview took 64 numbers from the global generator, so the next `randperm` gave another order.

    What draws on the side does so under `fork_rng`, which puts PyTorch's global generators back, and only those.

    A draw on the side moves everything after it.
    """
    orders = {}
    for aside in ("nothing", "drawn", "in fork_rng"):
        torch.manual_seed(3)
        if aside == "drawn":
            torch.randn(64)
        elif aside == "in fork_rng":
            before = states()
            own = torch.Generator()
            state_of_own = own.get_state()
            with torch.random.fork_rng():
                torch.randn(64)
                torch.randn(64, generator=own)
                random.random()
                np.random.rand()
            after = states()
            assert not torch.equal(state_of_own, own.get_state())
            assert before[0] == after[0]
            assert before[1] != after[1]
            assert before[2:] != after[2:]
        orders[aside] = torch.randperm(50).tolist()
    assert orders["nothing"] == orders["in fork_rng"] != orders["drawn"]


@pytest.mark.parametrize("named", [False, True])
def test_several_gpus_are_named(monkeypatch, named):
    """(With several it warns, unless `devices=` names those you use.)"""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.random, "_fork_rng_warned_already", False)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda _: None)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *_: None)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.random.fork_rng(devices=[0] if named else None):
            pass
    assert bool(told) == (not named)


@pytest.mark.parametrize("name", ["enable", "benchmrk"])
def test_a_flag_that_does_nothing(name):
    """There is no flag `enable`. Python adds the attribute, and nobody reads it. A slip of the pen, as in `cudnn.benchmrk`, says just as little."""
    assert not hasattr(cudnn, name)
    before = cudnn.enabled, cudnn.benchmark, cudnn.deterministic
    setattr(cudnn, name, True)
    try:
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == before
    finally:
        delattr(cudnn, name)


def test_what_a_seed_reaches():
    """| dropout, initial weights, a loader's shuffle | the order of a `set` of strings (`PYTHONHASHSEED`, read when Python starts) |

    | `random.random()`, `np.random.rand()`, `torch.rand(3)` | `np.random.default_rng()`, `random.Random()`, `torch.Generator()` made elsewhere |

    It does not reach generators of your own, the order in which threads add, hashes of strings.
    """
    own = np.random.default_rng(), random.Random(), torch.Generator()
    own[2].seed()

    def drawn():
        random.seed(7)
        np.random.seed(7)
        torch.manual_seed(7)
        reached = (
            random.random(),
            np.random.rand(),
            torch.rand(3).tolist(),
            nn.functional.dropout(torch.ones(20)).tolist(),
            nn.Linear(2, 2).weight.tolist(),
            torch.cat(list(DataLoader(range(20), 5, shuffle=True))).tolist(),
        )
        not_reached = (
            own[0].random(),
            own[1].random(),
            torch.rand(1, generator=own[2]).item(),
        )
        return reached, not_reached

    first, second = drawn(), drawn()
    assert first[0] == second[0]
    assert all(a != b for a, b in zip(first[1], second[1], strict=True))


class Drawing(Dataset):
    def __init__(self):
        self.noise = np.random.default_rng(0)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(
            [
                get_worker_info().id,
                torch.rand(()).double().item(),
                random.random(),
                np.random.rand(),
                self.noise.random(),
            ],
            dtype=torch.float64,
        )


def seed_the_noise(worker_id):
    info = get_worker_info()
    assert info.id == worker_id
    info.dataset.noise = np.random.default_rng(info.seed)


@pytest.mark.parametrize("seeded", [False, True])
def test_what_workers_draw(seeded):
    """PyTorch seeds `torch`, `random` and `np.random` in each worker when it starts. A generator held by the dataset it does not know. `worker_init_fn` runs in the worker and can seed it from `get_worker_info()`.

    | base seeds of loader workers | a generator that a dataset holds |

    Workers get copies, but of shared memory; those that are not forked share every tensor, and on Linux by default cannot read a dataset with a `torch.Generator`. A generator that the dataset holds must be seeded in the worker.
    """

    def two_epochs():
        torch.manual_seed(5)
        loader = DataLoader(
            Drawing(),
            2,
            num_workers=2,
            multiprocessing_context="fork",
            worker_init_fn=seed_the_noise if seeded else None,
        )
        return torch.stack([batch[0] for _ in range(2) for batch in loader])

    drawn, again = two_epochs(), two_epochs()
    assert torch.equal(drawn, again)
    assert drawn[:, 0].tolist() == [0, 1, 0, 1]
    for column in (1, 2, 3):  # torch, random, np.random
        assert len(set(drawn[:, column].tolist())) == 4
    assert len(set(drawn[:, 4].tolist())) == (4 if seeded else 1)


@pytest.mark.parametrize("behind", [False, True])
def test_a_generator_behind_a_subset(behind):
    """(Its `dataset` may be a `Subset`, as of `random_split`: a generator set there nobody reads; it belongs to `info.dataset.dataset`.)"""

    def seed_it(worker_id):
        info = get_worker_info()
        owner = info.dataset.dataset if behind else info.dataset
        owner.noise = np.random.default_rng(info.seed)

    part, _ = random_split(Drawing(), [2, 2])
    loader = DataLoader(
        part,
        1,
        num_workers=2,
        multiprocessing_context="fork",
        worker_init_fn=seed_it,
    )
    drawn = [batch[0, 4].item() for _ in range(2) for batch in loader]
    assert len(set(drawn)) == (4 if behind else 1)


class Written(Dataset):
    def __init__(self):
        self.tensor, self.array = torch.zeros(2), np.zeros(2)

    def __len__(self):
        return 2

    def __getitem__(self, index):
        self.tensor[index] = self.array[index] = 7
        return index


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("way", ["fork", "forkserver"])
def test_what_workers_get(way, shared):
    """Each worker gets a copy of the dataset as it is in the main process, generator included (tensors are shared after `share_memory_()`, and where workers are not forked; on Linux a `torch.Generator` by default reaches forked workers only). There it never moves on."""
    dataset = Written()
    if shared:
        dataset.tensor.share_memory_()
    list(DataLoader(dataset, num_workers=1, multiprocessing_context=way))
    copied = way == "fork" and not shared
    assert dataset.tensor.tolist() == [0 if copied else 7] * 2
    assert dataset.array.tolist() == [0, 0]
    if sys.platform == "linux" and not shared:
        dataset.generator = torch.Generator().manual_seed(7)
        loader = DataLoader(dataset, num_workers=1, multiprocessing_context=way)
        if way == "fork":
            assert len(list(loader)) == 2
        else:  # what its state is sent in is gone when the worker looks for it
            with pytest.raises(RuntimeError, match="exited unexpectedly"):
                list(loader)


def is_filled(tensor):
    if tensor.dtype == torch.bool:
        return tensor.all()
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.isnan().all()
    return (tensor == torch.iinfo(tensor.dtype).max).all()


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.int64, torch.uint8, torch.bool),
        *(torch.float32, torch.float16, torch.complex64),
    ],
)
def test_memory_that_nobody_wrote(dtype):
    """While the switch is on, `torch.empty`, outside of compiled code, is filled with NaN, with the largest integer, or with True (a few types, such as those of four bits, raise an error).

    `torch.utils.deterministic.fill_uninitialized_memory = False` turns it off.
    """
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    try:
        assert is_filled(torch.empty(100, dtype=dtype))
        for small in (torch.float4_e2m1fn_x2, torch.int4, torch.uint4):
            with pytest.raises(NotImplementedError):
                torch.empty(100, dtype=small)
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.full((100,), 0, dtype=dtype)  # leaves its memory behind
        assert not is_filled(torch.empty(100, dtype=dtype))
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = before
        torch.use_deterministic_algorithms(False)


def test_the_switch_raises_and_says_so():
    """With the switch on, an operation of PyTorch's list without a deterministic way raises an error and says so, outside of compiled code."""
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="does not have a deterministic"):
            torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2))
        torch.zeros(3).put_(
            torch.tensor([0, 1]), torch.ones(2), accumulate=True
        )
    finally:
        torch.use_deterministic_algorithms(False)
    torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler")
def test_the_switch_and_compiled_code(python):
    """raises an error and says so, outside of compiled code."""
    said = python(
        "import torch\n"
        "torch.use_deterministic_algorithms(True)\n"
        "given = torch.zeros(3), torch.tensor([0, 0]), torch.tensor([1.0, 2.0])\n"
        "put = lambda x, at, values: x.clone().put_(at, values)\n"
        "print(torch.compile(put)(*given).tolist())\n"
        "put(*given)"
    )
    assert said.startswith("[2.0, 0.0, 0.0]")
    assert "does not have a deterministic" in said


def test_the_same_order_without_atomics():
    """On a CPU that order mostly follows from how the work is cut up: from the number of threads, not from which of them is first.

    Kernels that add atomically may do so in another order each time, and no seed fixes it: many on a GPU, and with several threads a few on a CPU, such as the gradient of `x[ids]` in float32.

    On a CPU, uncompiled, `index_add` has one.

    | `torch.rand(3, device="cuda")` on every GPU | the order in which threads add up, above all a GPU's; the number of the CPU's threads |

    To repeat to the last bit, keep seed, machine, versions and number of threads, and use kernels with a fixed order.
    """
    values, where = torch.randn(500_000), torch.randint(8, (500_000,))
    table = torch.zeros(8, requires_grad=True)

    def added():
        return torch.zeros(8).index_add(0, where, values)

    def gradient():
        taken = (table[where] * values).sum()
        return torch.autograd.grad(taken, table)[0]

    def kinds(function, most):
        found = set()
        for _ in range(most):
            torch.manual_seed(0)
            found.add(tuple(function().reshape(-1).tolist()))
            if len(found) > 1:
                break
        return len(found)

    usual = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert kinds(added, 5) == kinds(values.sum, 5) == 1
            if threads == 1:
                assert kinds(gradient, 5) == 1
        # two threads that never ran side by side would add in turns
        if (os.cpu_count() or 1) > 1:
            assert kinds(gradient, 300) > 1
        torch.use_deterministic_algorithms(True)
        assert kinds(gradient, 5) == 1
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(usual)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two threads")
def test_index_add_compiled(python):
    """uncompiled, `index_add` has one."""
    said = python(
        "import torch\n"
        "torch.set_num_threads(2)\n"
        "v, w = torch.randn(1_000_000), torch.randint(8, (1_000_000,))\n"
        "def add(z):\n"
        "    return z.index_add(0, w, v)\n"
        "for one in (add, torch.compile(add)):\n"
        "    found = set()\n"
        "    for n in range(300):\n"
        "        found.add(tuple(one(torch.zeros(8)).tolist()))\n"
        "        if len(found) > 1 or one is add and n > 10:\n"
        "            break\n"
        "    print(len(found))"
    )
    assert said.split() == ["1", "2"]


def test_which_seeds_are_taken():
    """NumPy refuses a seed outside its range by itself, PyTorch and `random` take negative ones."""
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match="Seed must be between"):
            np.random.seed(seed)
    np.random.seed(2**32 - 1)
    torch.manual_seed(-1)
    random.seed(-1)


def test_the_generator_of_a_loader():
    """The `generator` of a `DataLoader` serves its shuffle and the base seeds of its workers.

    Give loaders (and samplers) a generator of their own

    It does not reach a `sampler=` that you pass: give that one of its own, too (a `DistributedSampler` takes a `seed`, and `set_epoch` before each epoch).
    """
    orders = []
    for draws in (0, 5):
        own = torch.Generator().manual_seed(7)
        loader = DataLoader(range(10), 10, shuffle=True, generator=own)
        first = next(iter(loader)).tolist()
        torch.rand(draws)
        orders.append([first, next(iter(loader)).tolist()])
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]

    for kind in (
        functools.partial(WeightedRandomSampler, torch.ones(10), 10),
        functools.partial(SubsetRandomSampler, range(10)),
    ):
        for gives in (True, False):
            orders = []
            for draws in (0, 5):
                own = torch.Generator().manual_seed(7)
                torch.manual_seed(3)
                torch.rand(draws)
                sampler = kind(generator=own if gives else None)
                loader = DataLoader(
                    range(10), 10, sampler=sampler, generator=own
                )
                orders.append([batch.tolist() for batch in loader])
            assert (orders[0] == orders[1]) == gives
    with pytest.raises(TypeError, match="generator"):
        DistributedSampler(range(10), 2, 0, generator=torch.Generator())
    drawn = [list(DistributedSampler(range(10), 2, 0, seed=n)) for n in (3, 4)]
    assert drawn[0] != drawn[1]
    sampler = DistributedSampler(range(10), 2, 0, seed=3)
    assert list(sampler) == list(sampler) == drawn[0]
    sampler.set_epoch(1)
    assert list(sampler) != drawn[0]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_import_the_script(tmp_path, method):
    """A script also starts its loop under `if __name__ == "__main__":`, as workers import it."""
    guard = 'if __name__ == "__main__":\n    '
    loop = (
        "print(len(list(DataLoader(range(2), num_workers=1, "
        f"multiprocessing_context={method!r}))))\n"
    )
    script = tmp_path / "script.py"
    for before in ("", guard):
        script.write_text(
            f"from torch.utils.data import DataLoader\n{before}{loop}"
        )
        ended = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True
        )
        assert (ended.returncode == 0) == bool(before)


@pytest.mark.slow
def test_two_names_for_one_setting():
    """After `"ieee"` there, what reads `allow_tf32` raises an error: `cudnn.flags(...)`, among others, and in 2.13 `torch.export`. Who needs these sets `torch.backends.cudnn.allow_tf32 = False` instead, and passes the same to `flags`, which by default puts TF32 on."""
    export = "torch.export.export(torch.nn.Conv2d(1, 1, 1), (torch.ones(1, 1, 2, 2),))"
    lines = [
        "cudnn.allow_tf32",
        "cudnn.flags(enabled=True, deterministic=True).__enter__()",
        "cudnn.set_flags(_enabled=True)",
    ]
    if torch.__version__.startswith("2.13."):
        lines.append(export)
    setting = "import torch\ncudnn = torch.backends.cudnn\n"
    for line in lines:
        program = f"{setting}cudnn.allow_tf32 = False\n{line}\n"
        subprocess.run([sys.executable, "-c", program], check=True)
        program = f"{setting}cudnn.conv.fp32_precision = 'ieee'\n{line}\n"
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True
        )
        assert "RuntimeError" in ended.stderr
        assert "allow_tf32" in ended.stderr
    for given, inside in (("", True), (", allow_tf32=False", False)):
        program = (
            f"{setting}cudnn.allow_tf32 = False\n"
            f"with cudnn.flags(enabled=True{given}):\n"
            f"    assert cudnn.allow_tf32 == {inside}\n"
            "assert not cudnn.allow_tf32"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


def test_how_the_switch_stands():
    """`torch.are_deterministic_algorithms_enabled()` and `torch.is_deterministic_algorithms_warn_only_enabled()`."""
    for on, warn in ((True, True), (True, False), (False, False)):
        torch.use_deterministic_algorithms(on, warn_only=warn)
        assert torch.are_deterministic_algorithms_enabled() == on
        assert torch.is_deterministic_algorithms_warn_only_enabled() == warn


class Numbered(Dataset):
    """Its own index, and a draw of the worker's start that stays."""

    noise = None

    def __len__(self):
        return 50

    def __getitem__(self, index):
        return index, self.noise


def draw_once(worker_id):
    info = get_worker_info()
    info.dataset.noise = info.seed


def test_when_the_base_seed_is_drawn():
    """Every pass through a loader, even without workers, draws a base seed, with `shuffle=True` before the order: from the loader's generator, else from the global one. With `persistent_workers=True` it is drawn once, so from the second epoch on the order is another one than with workers that end with the epoch.

    `worker_init_fn(worker_id)` runs in the worker when it starts: in every epoch, unless `persistent_workers=True` keeps the workers.
    """

    def three_epochs(persistent_workers, draws=0):
        loader = DataLoader(
            Numbered(),
            50,
            shuffle=True,
            num_workers=1,
            worker_init_fn=draw_once,
            generator=torch.Generator().manual_seed(7),
            multiprocessing_context="fork",
            persistent_workers=persistent_workers,
        )
        torch.rand(draws)
        epochs = [next(iter(list(loader))) for _ in range(3)]
        orders = [order.tolist() for order, _ in epochs]
        return orders, [noise[0].item() for _, noise in epochs]

    orders, seeds = three_epochs(False)
    assert three_epochs(False, draws=3) == (orders, seeds)
    kept_orders, kept_seeds = three_epochs(True)
    assert len(set(seeds)) == 3
    assert len(set(kept_seeds)) == 1
    assert (kept_orders[0], kept_seeds[0]) == (orders[0], seeds[0])
    assert kept_orders[1] != orders[1]
    assert kept_orders[2] != orders[2]

    for own in (False, True):
        for options in (
            {},
            {"batch_size": None},
            {"sampler": range(4)},
            {"num_workers": 1, "multiprocessing_context": "fork"},
        ):
            rng = torch.Generator().manual_seed(7)
            torch.manual_seed(7)
            drawn = torch.randint(9, (3,)).tolist()
            torch.manual_seed(7)
            loader = DataLoader(
                range(4), generator=rng if own else None, **options
            )
            list(loader)
            assert (torch.randint(9, (3,)).tolist() == drawn) == own
            before = torch.Generator().manual_seed(7).get_state()
            assert torch.equal(rng.get_state(), before) != own
    own = torch.Generator().manual_seed(7)
    loader = DataLoader(range(9), 9, shuffle=True, generator=own)
    again = torch.Generator().manual_seed(7)
    torch.empty((), dtype=torch.int64).random_(generator=again)
    (order,) = loader
    assert order.tolist() == torch.randperm(9, generator=again).tolist()


@pytest.mark.parametrize("in_thread", [False, True])
def test_the_flag_of_the_compiler(in_thread):
    """it sets a flag of the compiler, for the calling thread alone."""
    if in_thread and torch.__version__ < "2.13":
        pytest.skip("this torch is older")
    found = []

    def look():
        found.append(compiler.deterministic)
        found.append(torch.are_deterministic_algorithms_enabled())

    torch.use_deterministic_algorithms(True)
    try:
        if in_thread:
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
        else:
            look()
    finally:
        torch.use_deterministic_algorithms(False)
    assert found == [not in_thread, True]


@pytest.mark.skipif(sys.platform != "linux", reason="says what Linux does")
def test_how_linux_starts_workers():
    """`fork` copies the process, classes and functions of a notebook included: Linux does that up to Python 3.13."""
    wanted = "fork" if sys.version_info < (3, 14) else "forkserver"
    assert get_start_method(allow_none=True) in (None, wanted)
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            "import multiprocessing as m; print(m.get_start_method())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == wanted


def test_neighbouring_sums():
    """The bars stand apart: float32 has no number between two of them."""
    terms = torch.randn(20_000)
    sums = {terms[torch.randperm(20_000)].sum().item() for _ in range(200)}
    ordered = np.array(sorted(sums), dtype=np.float32)
    assert len(ordered) > 1
    assert np.array_equal(
        np.nextafter(ordered[:-1], np.float32(np.inf)), ordered[1:]
    )


@pytest.mark.parametrize(("rate", "momentum"), [(0.05, 0.0), (0.5, 0.9)])
def test_what_training_makes_of_rounding(rate, momentum):
    """What training makes of such differences depends on the run. After some hundred small steps they may still be near the last bit. Steps that are nearly too large magnify them, until it is another network."""
    data = digits()

    def weights(seed, backwards):
        """Trained with the same batches, their rows in another order."""
        torch.manual_seed(seed)
        net = digit_mlp()
        sgd = torch.optim.SGD(net.parameters(), lr=rate, momentum=momentum)
        for _ in range(200):
            rows = torch.randperm(512)[:64]
            rows = rows.flip(0) if backwards else rows
            sgd.zero_grad()
            loss = F.cross_entropy(net(data.X_train[rows]), data.y_train[rows])
            loss.backward()
            sgd.step()
        return parameters_to_vector(net.parameters()).detach()

    apart = 0.0
    for seed in range(3):
        one, other = weights(seed, False), weights(seed, True)
        apart = ((one - other).norm() / one.norm()).item()
        if not momentum:
            assert 0 < apart < 1e-5
            return
        if apart > 1e-3:
            return
    assert apart > 1e-3


def test_cudnn_does_nothing_on_a_cpu():
    """nobody reads cuDNN's flags there.

    `torch.backends.cudnn.flags(...)` sets more than three flags: what you do not pass may go to a default of its own (`help(torch.backends.cudnn.flags)` lists all that there is). It knows nothing of the switch.
    """
    convolution, picture = nn.Conv2d(4, 8, 3), torch.randn(2, 4, 9, 9)
    usual = convolution(picture)
    for flag in ("enabled", "benchmark", "deterministic"):
        for value in (True, False):
            before = getattr(cudnn, flag)
            with cudnn.flags(**{flag: value}):
                assert getattr(cudnn, flag) == value
                assert torch.equal(convolution(picture), usual)
                assert flag == "enabled" or not cudnn.enabled
            assert getattr(cudnn, flag) == before
    known = inspect.signature(cudnn.flags).parameters
    assert {"enabled", "benchmark", "deterministic", "allow_tf32"} <= set(known)
    for on in (True, False):
        torch.use_deterministic_algorithms(on)
        with cudnn.flags(deterministic=not on):
            assert torch.are_deterministic_algorithms_enabled() == on
    torch.use_deterministic_algorithms(False)


def test_a_sample_alone_and_in_a_batch():
    """Another number of rows may mean another kernel, which adds in another order. So a sample alone and the same sample in a batch can differ in the last bits, with all seeds and switches set."""
    differ = []
    torch.use_deterministic_algorithms(True)
    try:
        for dtype in (torch.float32, torch.float64):
            for size in (64, 100, 333, 512, 1000):
                matrix = torch.randn(size, size, dtype=dtype)
                rows = torch.randn(64, size, dtype=dtype)
                together, alone = (rows @ matrix)[0], (rows[:1] @ matrix)[0]
                assert torch.allclose(together, alone, atol=1e-3)
                differ.append(not torch.equal(together, alone))
    finally:
        torch.use_deterministic_algorithms(False)
    assert any(differ)


@pytest.mark.parametrize("protected", [False, True])
def test_a_context_manager_from_a_generator(protected):
    """`@contextlib.contextmanager` runs what stands before `yield` on entering, and what stands after it on leaving. After an exception that is true only in a `finally`."""
    seen = []

    @contextlib.contextmanager
    def block():
        seen.append("before")
        if protected:
            try:
                yield
            finally:
                seen.append("after")
        else:
            yield
            seen.append("after")

    with block():
        seen.append("inside")
    assert seen == ["before", "inside", "after"]
    seen.clear()
    with pytest.raises(KeyError), block():
        raise KeyError
    assert seen == (["before", "after"] if protected else ["before"])


def test_precision_by_name():
    """`torch.backends.cudnn.conv.fp32_precision = "ieee"` (and `rnn` for `conv`) asks for full float32 there, `"tf32"` for speed."""
    program = """
import os, torch
cudnn = torch.backends.cudnn
for after in ("nothing", "flags", "allow_tf32"):
    if os.fork():  # each begins with what torch was imported with
        os.wait()
        continue
    if after == "flags":
        with cudnn.flags(enabled=True, deterministic=True):
            pass
    if after == "allow_tf32":
        cudnn.allow_tf32 = True
    for kind in (cudnn.conv, cudnn.rnn):
        print(kind.fp32_precision)
        for name in ("ieee", "tf32"):
            kind.fp32_precision = name
            print(kind.fp32_precision)
        try:
            kind.fp32_precision = "float32"
        except RuntimeError:
            print("refused", flush=True)
    os._exit(0)
"""
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said.split() == ["tf32", "ieee", "tf32", "refused"] * 6


@pytest.mark.gpu
def test_what_cublas_asks_for(python):
    """On a GPU, older versions of PyTorch ask for `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment; set it before the first CUDA call."""
    product = (
        "import torch\n"
        "torch.use_deterministic_algorithms(True)\n"
        "a = torch.ones(64, 64, device='cuda')\n"
        "print((a @ a).sum().item())"
    )
    assert python(product, CUBLAS_WORKSPACE_CONFIG=":4096:8") == "262144.0"
    without = python(product, CUBLAS_WORKSPACE_CONFIG="")
    assert without == "262144.0" or "CUBLAS_WORKSPACE_CONFIG" in without


@pytest.mark.gpu
def test_what_convolutions_round():
    """On NVIDIA cards since Ampere, convolutions and cuDNN's recurrent layers round float32 inputs to 10 bits by default, matrix products do not.

    Such names came with PyTorch 2.9; `allow_tf32` is the older one.
    """
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("the card is older than Ampere")
    images = torch.randn(8, 64, 32, 32, device="cuda")
    kernels = torch.randn(64, 64, 3, 3, device="cuda")

    def off(function, *inputs):
        exact = function(*(one.double() for one in inputs))
        return ((function(*inputs) - exact).norm() / exact.norm()).item()

    conv2d = torch.nn.functional.conv2d
    assert off(conv2d, images, kernels) > 1e-4
    assert off(torch.matmul, images[0, 0], kernels[:32, :32, 0, 0]) < 1e-6
    assert torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        assert off(conv2d, images, kernels) < 1e-5
    finally:
        torch.backends.cudnn.allow_tf32 = True


@pytest.mark.parametrize("power", [1, 3, 8, 24])
def test_one_coin_of_two_libraries(power):
    """NumPy's and the CPU's are of one kind. With one number they draw the same whole numbers of 32 or 64 bits where the range is a power of two, up to 2²⁴: `np.random.randint(2)` and `torch.randint(2, ())` flip one coin."""

    def draws(end):
        np.random.seed(2021)
        torch.manual_seed(2021)
        return [
            (np.random.randint(end), torch.randint(end, ()).item())
            for _ in range(100)
        ]

    assert all(one == other for one, other in draws(2**power))
    assert sum(one == other for one, other in draws(100)) < 10
    assert sum(one == other for one, other in draws(2**30)) < 10


def test_a_sampler_that_draws_at_once():
    """draws a base seed, with `shuffle=True` before the order"""
    generator = torch.Generator()

    class AtOnce(torch.utils.data.Sampler):
        def __iter__(self):
            return iter(torch.randperm(10, generator=generator).tolist())

    first = torch.randperm(10, generator=generator.manual_seed(1)).tolist()
    orders = []
    for options in ({"sampler": AtOnce()}, {"shuffle": True}):
        loader = DataLoader(
            range(10), batch_size=None, generator=generator, **options
        )
        generator.manual_seed(1)
        orders.append([int(one) for one in loader])
    assert orders[0] == first != orders[1]
