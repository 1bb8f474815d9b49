"""Drives what the exercises of chapter 13 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. Loaders are described by facts (sizes of batches, samples
seen), never by the order itself, which is the learner's to choose.
"""

import builtins
import contextlib
import enum
import gc
import inspect
import itertools
import multiprocessing
import pathlib
import random
import sys
import time
import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info
from torch.utils.data._utils import worker as torchs_worker

SEED = 20241114  # not one that anybody writes
# what a worker's NumPy is seeded with; not to be seen from outside
of_seeds = getattr(torchs_worker, "_generate_state", None)
SEEDED_AGAIN = pathlib.Path("a worker was seeded again")
OTHERS_SEEDED_AGAIN = pathlib.Path("NumPy or Python was seeded in a worker")


class Samples(Dataset):
    """Numbered samples of a form: a value, a pair or a dict; or values that are
    looked up in a dict by their number."""

    def __init__(self, values, form="value"):
        self.values, self.form, self.num_read = values, form, 0
        if form == "looked up":
            self.values = dict(enumerate(values))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        self.num_read += 1
        worker = get_worker_info()
        if worker is not None and torch.initial_seed() != worker.seed:
            SEEDED_AGAIN.touch()
        if worker is not None and self.num_read == 1 and not as_seeded(worker):
            OTHERS_SEEDED_AGAIN.touch()
        value = self.values[index]
        if self.form == "pair":
            return value, int(index)
        if self.form == "dict":
            return {"x": value, "index": int(index)}
        return value


def as_seeded(worker):
    """Whether Python and NumPy are, in this worker, as PyTorch has seeded them."""
    of_python = random.Random(worker.seed).getstate() == random.getstate()
    if of_seeds is None:
        return of_python
    keys = of_seeds(worker.seed - worker.id, worker.id)
    of_numpy = np.random.RandomState(keys).get_state()[1]
    return of_python and bool((of_numpy == np.random.get_state()[1]).all())


def values_of(batch, form="value"):
    """The values of a batch, or None if it is not collated as PyTorch does."""
    if form == "pair":
        batch = batch[0] if isinstance(batch, list | tuple) else None
    elif form == "dict":
        batch = batch["x"] if isinstance(batch, dict) else None
    if not isinstance(batch, torch.Tensor) or batch.dim() != 1:
        return None
    return batch.tolist()


@contextlib.contextmanager
def workers_ended():
    """Ends the workers that outlive the epochs of the loaders that the block
    puts into the list."""
    loaders = []
    try:
        yield loaders
    finally:
        for loader in loaders:
            batches = getattr(loader, "_iterator", None)
            if hasattr(batches, "_shutdown_workers"):
                batches._shutdown_workers()


@contextlib.contextmanager
def forked_workers():
    """Workers by fork, ended when the block ends; no warnings about them."""
    usual = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    try:
        with workers_ended() as loaders, warnings.catch_warnings():
            # about the number of cores, of threads
            warnings.simplefilter("ignore")
            yield loaders
    finally:
        multiprocessing.set_start_method(usual, force=True)


def gone_through(loader, form="value"):
    """The batches of one epoch as lists of values. Its workers have ended, if
    they do not stay; an exception of the loader is let through."""
    batches = iter(loader)
    try:
        return [values_of(batch, form) for batch in batches]
    finally:
        end_workers_of(batches, loader)


def end_workers_of(batches, loader):
    """Ends those that do not stay from epoch to epoch."""
    end_workers = getattr(batches, "_shutdown_workers", None)
    if end_workers and not getattr(loader, "persistent_workers", False):
        end_workers()


@contextlib.contextmanager
def as_in_another_process():
    """Lets `hash` of texts be another one, as it is in each new Python process."""
    own_hash = builtins.hash

    def hash_of(value):
        if isinstance(value, tuple):
            return own_hash(tuple(map(hash_of, value)))
        salted = isinstance(value, str | bytes)
        return own_hash((value, "salt") if salted else value)

    builtins.hash = hash_of
    try:
        yield
    finally:
        builtins.hash = own_hash


LARGE_SEED = 2**28
"""Of it a generator sees nothing where it is shifted: it takes 32 bits."""


def other_seeds(case):
    """Seeds that are to give other orders: one that is drawn, and, where the seed is 0,
    those that people write in its place and a large one."""
    instead = (1, 42, LARGE_SEED) if case["seed"] == 0 else ()
    return [case["other_seed"], *instead]


def seeds_differ(case, epochs, others):
    """Whether no epoch has the order that it has with another seed: for all but the
    large seed, and for that one."""
    differ = {True: True, False: True}
    for seed, other in zip(other_seeds(case), others, strict=True):
        pairs = zip(epochs, other, strict=True)
        differ[seed == LARGE_SEED] &= all(one != two for one, two in pairs)
    return {"seeds differ": differ[False], "a large one differs": differ[True]}


def flat(batches):
    return [value for batch in batches for value in batch or []]


def length_of(loader):
    return len(loader) if hasattr(loader, "__len__") else -1


def about(loader, values, num_epochs, form="value"):
    """Facts about some epochs of a loader over these (distinct) values."""
    epochs = [gone_through(loader, form) for _ in range(num_epochs)]
    known = set(values.tolist())
    orders = [flat(epoch) for epoch in epochs]
    return {
        "is a DataLoader": isinstance(loader, DataLoader),
        "batches": length_of(loader),
        "collated": all(b is not None for epoch in epochs for b in epoch),
        "sizes": [[len(batch or []) for batch in epoch] for epoch in epochs],
        "twice": any(len(set(one)) < len(one) for one in orders),
        "foreign": any(value not in known for one in orders for value in one),
        "num_seen": [len(set(one) & known) for one in orders],
    }


# make_loaders


def two_loaders(make_loaders, case, **changes):
    case = {**case, **changes}
    form = case["form"]
    arguments = [
        Samples(case["train"], form),
        Samples(case["validation"], form),
        case["batch_size"],
        case["seed"],
    ]
    if case["tail"] is not None:  # None: the one that the signature gives
        arguments.append(case["tail"])
    return make_loaders(*arguments)


def training_epochs(make_loaders, case):
    train, _ = two_loaders(make_loaders, case)
    return about(train, case["train"], case["num_epochs"], case["form"])


def validation_epochs(make_loaders, case):
    """What the validation loader hands out, in its order."""
    train, validation = two_loaders(make_loaders, case)
    if case["train_first"]:
        gone_through(train, case["form"])
    epochs = [gone_through(validation, case["form"]) for _ in range(2)]
    return {
        "is a DataLoader": isinstance(validation, DataLoader),
        "collated": all(b is not None for epoch in epochs for b in epoch),
        "batches": length_of(validation),
        "sizes": [[len(batch or []) for batch in epoch] for epoch in epochs],
        "values": [flat(epoch) for epoch in epochs],
    }


def refused_or_not(make_loaders, case):
    """When a ValueError comes, if one does, and the sizes if none does."""
    try:
        train, _ = two_loaders(make_loaders, case)
    except ValueError:
        return {"when": "at once", "sizes": []}
    try:
        sizes = [len(batch) for batch in gone_through(train)]
    except ValueError:
        return {"when": "later", "sizes": []}
    return {"when": "never", "sizes": sizes}


def network_trained(make_loaders, case):
    """A network with batch normalization: an epoch of training, an epoch of
    validation. A batch of one would end it in a ValueError."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)
        model = nn.Sequential(*layers).double()
    train, validation = two_loaders(make_loaders, case)
    failed = None
    rows = {"train": [], "validation": []}
    try:
        for mode, loader in (("train", train), ("validation", validation)):
            model.train(mode == "train")
            for batch in gone_through(loader):
                X = torch.tensor(batch, dtype=torch.float64).view(-1, 1)
                model(X.expand(-1, 2))
                rows[mode].append(len(batch))
    except ValueError:
        failed = mode
    return {
        "failed": failed,
        "steps": int(model[1].num_batches_tracked),
        "rows": [sum(rows[mode]) for mode in ("train", "validation")],
    }


def reading(make_loaders, case):
    """How many samples were read, and handed out, at each stage."""
    train_set = Samples(case["train"], case["form"])
    validation_set = Samples(case["validation"], case["form"])
    given = [] if case["tail"] is None else [case["tail"]]
    train, validation = make_loaders(
        train_set, validation_set, case["batch_size"], case["seed"], *given
    )
    read = [[train_set.num_read, validation_set.num_read]]
    handed_out, at_first = [], []
    for _ in range(case["num_epochs"]):
        for samples, loader in (
            (train_set, train),
            (validation_set, validation),
        ):
            num_samples, ahead = handed_out_by(loader, samples, case["form"])
            handed_out.append(num_samples)
            at_first.append(ahead)
        read.append([train_set.num_read, validation_set.num_read])
    return {"read": read, "handed out": handed_out, "at first": at_first}


def handed_out_by(loader, samples, form):
    """How many samples one epoch hands out, and how many were read when its
    first batch came."""
    before, num_samples, at_first = samples.num_read, 0, 0
    batches = iter(loader)
    try:
        for batch in batches:
            if num_samples == 0:
                at_first = samples.num_read - before
            num_samples += len(values_of(batch, form) or [])
    finally:
        end_workers_of(batches, loader)
    return num_samples, at_first


def order_of_training(make_loaders, case):
    """Facts about the order of the samples, from several runs."""

    def run(
        global_seed, validate, disturb, measure=False, beside=False, **changes
    ):
        with torch.random.fork_rng(devices=[]):
            kept = random.getstate(), np.random.get_state()
            torch.manual_seed(global_seed)
            random.seed(global_seed)
            np.random.seed(global_seed)
            train, validation = two_loaders(make_loaders, case, **changes)
            if beside:
                later, _ = two_loaders(
                    make_loaders, case, seed=case["other_seed"]
                )
            epochs = []
            for _ in range(case["num_epochs"]):
                if disturb:
                    torch.rand(3), random.random(), np.random.rand(3)
                if measure:
                    length_of(train)
                epochs.append(flat(gone_through(train, case["form"])))
                if beside:
                    gone_through(later, case["form"])
                if validate:
                    gone_through(validation, case["form"])
            random.setstate(kept[0])
            np.random.set_state(kept[1])
        return epochs

    plain = run(case["global_seed"], False, False)
    as_given = case["train"].tolist()
    distinct = {tuple(epoch) for epoch in plain}
    lone = len(as_given) % case["batch_size"] == 1
    other_size = len(as_given) - 1 if lone else len(as_given)
    others = [
        run(case["global_seed"], False, False, seed=seed)
        for seed in other_seeds(case)
    ]
    with as_in_another_process():
        again = run(case["global_seed"], False, False)
    return {
        "shuffled": all(one != as_given[: len(one)] for one in plain),
        "epochs differ": len(distinct) == len(plain),
        "again": again == plain,
        "other global seed": run(case["global_seed"] + 1, False, False)
        == plain,
        "others draw": run(case["global_seed"], False, True) == plain,
        "with validation": run(case["global_seed"], True, False) == plain,
        "measured": run(case["global_seed"], False, False, True) == plain,
        "beside others": run(case["global_seed"], False, False, beside=True)
        == plain,
        "places change": len(plain) < 9
        or all(len(set(place)) > 1 for place in zip(*plain, strict=False)),
        "others left out": len(plain) < 9
        or len(plain[0]) == len(as_given)
        or len({frozenset(epoch) for epoch in plain}) > 1,
        **seeds_differ(case, plain, others),
        "spread": spread(plain, as_given),
        "neighbours change": len(as_given) < 12
        or not same_neighbours(plain[0], plain[1]),
        # a "drop" of another size leaves others out, and a lone sample may
        # take a way of its own
        "batch size": case["tail"] != "merge"
        or run(case["global_seed"], False, False, batch_size=other_size)
        == plain,
        # what a "drop" leaves is the learner's to choose
        "seen": sorted(set(plain[0])) if case["tail"] == "merge" else [],
    }


def same_neighbours(one, other):
    """Whether nearly all that follow each other in one epoch do so in another."""
    pairs = {frozenset(pair) for pair in itertools.pairwise(other)}
    kept = sum(frozenset(pair) in pairs for pair in itertools.pairwise(one))
    return kept > 0.8 * len(one)


def spread(epochs, as_given):
    """Whether the first places of the epochs hold samples from all over: a
    rotation or a shuffled order of ready batches would not."""
    places = {value: place for place, value in enumerate(as_given)}
    neighbours = sum(
        abs(places[one] - places[two]) == 1
        for epoch in epochs
        for one, two in itertools.pairwise(epoch)
        if one in places and two in places
    )
    return neighbours < 0.4 * sum(len(epoch) - 1 for epoch in epochs)


class GlobalSeeds:
    """Notes whether this thread seeds global generators or puts them back."""

    def __init__(self):
        self.seen = False

    def _trace(self, frame, event, what):
        if event == "c_call" and what.__self__ is torch.default_generator:
            self.seen |= what.__name__ in ("manual_seed", "seed", "set_state")
        elif event == "c_call" and what.__self__ is random._inst:
            self.seen |= what.__name__ in ("seed", "setstate")

    def _noted(self, function):
        def call(*args, **kwargs):
            self.seen = True
            return function(*args, **kwargs)

        return call

    def __enter__(self):
        self.before = sys.getprofile(), np.random.seed, np.random.set_state
        # NumPy's functions are not among those that a profile shows
        np.random.seed = self._noted(np.random.seed)
        np.random.set_state = self._noted(np.random.set_state)
        sys.setprofile(self._trace)
        return self

    def __exit__(self, *error):
        profile, np.random.seed, np.random.set_state = self.before
        sys.setprofile(profile)


def seed_left_alone(make_loaders, case):
    """Whether global generators are seeded, by making or by going through."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        python, numpy_state = random.getstate(), np.random.get_state()[1].copy()
        found, sizes = [], []
        with GlobalSeeds() as seeds:
            train, validation = two_loaders(make_loaders, case)
            found.append(seeds_kept(python, numpy_state))
            batches = iter(train)
            try:
                for batch in batches:  # the training loop draws, too
                    found.append(seeds_kept(python, numpy_state))
                    sizes.append(len(batch))
            finally:
                end_workers_of(batches, train)
            gone_through(validation)
        found.append(seeds_kept(python, numpy_state))
        of_torch, of_others = zip(*found, strict=True)
        return {
            "torch": all(of_torch),
            "others": all(of_others),
            "put back": seeds.seen,
            "sizes": sizes,
        }


def seeds_kept(python, numpy_state):
    """Whether PyTorch's seed is still `SEED`, and Python and NumPy are in these
    states."""
    others = random.getstate() == python
    same = bool((np.random.get_state()[1] == numpy_state).all())
    return torch.initial_seed() == SEED, others and same


# bytes_ahead

Example = namedtuple("Example", ["x", "y"])
"""A sample with names."""


class Kind(enum.IntEnum):
    CAT = 0
    DOG = 1


def sample_of(node):
    """The sample that a case describes. A node is a pair (kind, what)."""
    kind, what = node
    if kind == "tensor":
        return what
    if kind == "empty":  # of a shape and a dtype; its values do not matter
        shape, dtype = what
        return torch.empty(shape, dtype=getattr(torch, dtype))
    if kind == "twice":
        both = sample_of(what)
        return both, both
    if kind == "expanded":
        tensor, size = what
        return tensor.unsqueeze(0).expand(size, *tensor.shape)
    if kind == "slice":
        tensor, size = what
        return tensor[:size]
    if kind == "strided":
        return what.t()[::2]
    if kind == "array":
        return what.numpy()
    if kind == "array view":
        return what.numpy()[::2]
    if kind == "member":  # a number with a name
        return Kind(what)
    if kind == "scalar":
        value, dtype = what
        return getattr(np, dtype)(value)
    if kind == "list":
        return [sample_of(one) for one in what]
    if kind == "tuple":
        return tuple(sample_of(one) for one in what)
    if kind == "named":
        return Example(*(sample_of(one) for one in what))
    if kind == "dict":
        return {name: sample_of(one) for name, one in what.items()}
    if kind == "numbered":  # a dict whose keys are numbers
        return {number: sample_of(one) for number, one in enumerate(what, 7)}
    if kind == "ordered":
        return OrderedDict((k, sample_of(one)) for k, one in what.items())
    return what  # a number or a string


def looks_of(sample):
    """What can be said of a sample without its values, as plain data."""
    if isinstance(sample, torch.Tensor):
        places = tuple(sample.shape), sample.stride(), sample.data_ptr()
        return [*places, sample.requires_grad]
    if isinstance(sample, np.ndarray):
        return [sample.shape, sample.strides, sample.ctypes.data]
    if isinstance(sample, dict):
        return [[key, looks_of(one)] for key, one in sample.items()]
    if isinstance(sample, list | tuple):
        return [looks_of(one) for one in sample]
    return repr(sample)


def bytes_of_batches(bytes_ahead, case):
    sample = sample_of(case["sample"])
    arguments = [sample, case["batch_size"], case["num_workers"]]
    if "prefetch_factor" in case:
        arguments.append(case["prefetch_factor"])
    before = looks_of(sample)
    num_bytes = bytes_ahead(*arguments)
    return {"bytes": num_bytes, "kept": looks_of(sample) == before}


# fitting_loader


def fitting(fitting_loader, case, **changes):
    """The learner's loader over the case's values."""
    case = {**case, **changes}
    given = {}
    for name in ("num_workers", "prefetch_factor"):
        if case[name] is not None:  # None: the one that the signature gives
            given[name] = case[name]
    return fitting_loader(
        Samples(case["values"], case["form"]),
        case["batch_size"],
        case["batch_bytes"],
        case["free_bytes"],
        torch.device(case["device"]),
        case["seed"],
        **given,
    )


def chosen(fitting_loader, case):
    """What the loader is set to; it is not gone through."""
    with forked_workers():
        return chosen_as_it_is(fitting_loader, case)


def chosen_as_it_is(fitting_loader, case):
    loader = fitting(fitting_loader, case)
    if not isinstance(loader, DataLoader):
        return {"is a DataLoader": False}
    batch_size = loader.batch_size
    if batch_size is None:  # a batch sampler of the learner's
        batch_size = len(list(next(iter(loader.batch_sampler))))
    return {
        "is a DataLoader": True,
        "batch_size": batch_size,
        "workers": loader.num_workers,
        "prefetch": loader.prefetch_factor,
        "stay": loader.persistent_workers,
        "pinned": loader.pin_memory,
        "left to PyTorch": loader.multiprocessing_context is None,
        "functions of a module": not any(
            "<" in getattr(function, "__qualname__", "")  # lambda, locals
            for function in (loader.worker_init_fn, loader.collate_fn)
        ),
    }


def ways_of_starting(fitting_loader, case):
    """Whether the loader, or the program, is told how to start workers."""
    usual = multiprocessing.get_start_method(allow_none=True)
    kept = []
    try:
        for method in ("spawn", "fork"):
            multiprocessing.set_start_method(method, force=True)
            facts = chosen_as_it_is(fitting_loader, case)
            kept.append(multiprocessing.get_start_method() == method)
    finally:
        multiprocessing.set_start_method(usual, force=True)
    return {**facts, "program kept": all(kept)}


def epochs_without_workers(fitting_loader, case):
    """Facts about some epochs of a loader that has no room for workers."""
    with workers_ended() as loaders:
        loader = fitting(fitting_loader, case)
        loaders.append(loader)
        facts = about(loader, case["values"], case["num_epochs"], case["form"])
    with torch.random.fork_rng(devices=[]):
        epochs = [
            orders_of(fitting_loader, case, seed)
            for seed in (case["seed"], *other_seeds(case))
        ]
        with as_in_another_process():
            again = orders_of(
                fitting_loader, case, case["seed"], beside_others=True
            )
        cut, roomy = (
            orders_of(fitting_loader, case, case["seed"], **changes)
            for changes in (
                {"batch_size": case["batch_size"] + 1},
                {
                    "batch_bytes": case["batch_bytes"] + 1,
                    "free_bytes": 5 * case["free_bytes"] + 10**9,
                    "num_workers": 0,
                    "prefetch_factor": 7,
                },
            )
        )
    as_given = case["values"].tolist()
    facts["shuffled"] = as_given not in epochs[0]
    distinct = {tuple(one) for one in epochs[0]}
    facts["epochs differ"] = len(distinct) == len(epochs[0])
    facts["again"] = epochs[0] == again
    facts["cut otherwise"] = epochs[0] == cut
    facts["more room"] = epochs[0] == roomy
    facts |= seeds_differ(case, epochs[0], epochs[1:])
    facts["spread"] = spread(epochs[0], as_given)
    return facts


def orders_of(fitting_loader, case, seed, beside_others=False, **changes):
    """Those of a loader's epochs. Beside others the global seed is another one, and a
    loader that is made later is gone through between the epochs."""
    global_seed = 2 if beside_others else 1
    torch.manual_seed(global_seed)
    epochs = []
    with workers_ended() as loaders:
        loader = fitting(fitting_loader, case, seed=seed, **changes)
        loaders.append(loader)
        later = None
        if beside_others:
            later = fitting(fitting_loader, case, seed=case["other_seed"])
            loaders.append(later)
        for _ in range(case["num_epochs"]):
            torch.rand(global_seed)  # others draw, too
            epochs.append(flat(gone_through(loader, case["form"])))
            if later is not None:
                gone_through(later, case["form"])
    return epochs


def reading_alone(fitting_loader, case):
    """How many samples were read, and handed out, at each stage."""
    samples = Samples(case["values"], case["form"])
    loader = fitting_loader(
        samples,
        case["batch_size"],
        case["batch_bytes"],
        case["free_bytes"],
        torch.device(case["device"]),
        case["seed"],
        0,
    )
    read, handed_out, at_first = [samples.num_read], [], []
    with workers_ended() as loaders:
        loaders.append(loader)
        for _ in range(case["num_epochs"]):
            num_samples, ahead = handed_out_by(loader, samples, case["form"])
            handed_out.append(num_samples)
            at_first.append(ahead)
            read.append(samples.num_read)
    return {"read": read, "handed out": handed_out, "at first": at_first}


def batches_by_workers(fitting_loader, case):
    """The batches of some epochs, for several numbers of workers."""
    seen, workers, in_order = [], [], []
    for num_workers in case["numbers_of_workers"]:
        with (
            forked_workers() as loaders,
            torch.random.fork_rng(devices=[]),
        ):
            torch.manual_seed(num_workers)
            loader = fitting(fitting_loader, case, num_workers=num_workers)
            loaders.append(loader)
            epochs = [
                gone_through(loader, case["form"])
                for _ in range(case["num_epochs"])
            ]
            workers.append(getattr(loader, "num_workers", None))
            in_order.append(getattr(loader, "in_order", True))
        seen.append(epochs)
    return {
        "workers": workers,
        "in order": all(in_order),
        "shuffled": [
            case["values"].tolist() not in map(flat, epochs) for epochs in seen
        ],
        "first epoch alike": all(one[0] == seen[0][0] for one in seen),
        "alike": all(one == seen[0] for one in seen),
        "samples": sorted(flat(seen[0][0])),
    }


def loader_seed_left_alone(fitting_loader, case):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        python, numpy_state = random.getstate(), np.random.get_state()[1].copy()
        SEEDED_AGAIN.unlink(missing_ok=True)
        OTHERS_SEEDED_AGAIN.unlink(missing_ok=True)
        found, samples = [], []
        with forked_workers() as loaders, GlobalSeeds() as seeds:
            loaders.append(fitting(fitting_loader, case))
            batches = iter(loaders[0])
            try:
                for batch in batches:  # the training loop draws, too
                    found.append(seeds_kept(python, numpy_state))
                    samples += values_of(batch) or []
            finally:
                end_workers_of(batches, loaders[0])
        found.append(seeds_kept(python, numpy_state))
        of_torch, of_others = zip(*found, strict=True)
        return {
            "torch": all(of_torch) and not SEEDED_AGAIN.exists(),
            "others": all(of_others),
            "in workers": OTHERS_SEEDED_AGAIN.exists(),
            "put back": seeds.seen,
            "samples": sorted(samples),
        }


# time_split


class Clock:
    """A clock that the probe sets. Looking at it takes no time."""

    def __init__(self, start):
        self.now = start

    def __call__(self):
        return self.now


class Stopped(Exception):
    """What a loader or a step of a case may raise."""


class Alike:
    """A batch that calls itself equal to whatever it is compared with."""

    def __eq__(self, other):
        return True

    __hash__ = None


def batch_of(batch):
    """A batch as the case describes it, or one that is no plain data."""
    odd = {
        "an ellipsis": ...,
        "equal to all": Alike(),
        "an array": np.arange(3),
        "a pair": (np.arange(3), np.arange(3)),
        "a dict": {"x": np.arange(3)},
    }
    if not isinstance(batch, str):
        return batch
    # the same object as a literal of the learner's
    return odd.get(batch, sys.intern(batch))


class ComesApart:
    """A loader whose every part takes its time: iter, each next, the end."""

    def __init__(self, clock, case, log):
        self.clock, self.case, self.log = clock, case, log
        self.batches = [batch_of(batch) for batch in case["batches"]]

    def __repr__(self):
        return f"a loader of {len(self.batches)} batches"

    def __iter__(self):
        self.clock.now += self.case["start"]
        self.log.append("iter")
        if self.case["fails"] == ["iter", 0]:
            raise error_of(self.case)
        return Batches(self)


class Vague(ComesApart):
    """The same, with a length that is an estimate, and too small."""

    def __len__(self):
        return max(len(self.case["loading"]) - 2, 0)


class Batches:
    def __init__(self, loader):
        self.loader = loader
        self.place, self.ended = 0, False

    def __iter__(self):
        return self

    def __next__(self):
        loader, place = self.loader, self.place
        case = loader.case
        self.place += 1
        if place < len(case["loading"]):
            loader.clock.now += case["loading"][place]
            loader.log.append(f"next {place}")
            if case["fails"] == ["loader", place]:
                raise error_of(case)
            return loader.batches[place]
        loader.log.append("end again" if self.ended else "end")
        if not self.ended:
            loader.clock.now += case["end"]
            self.ended = True
        raise StopIteration


def error_of(case):
    return {
        "Stopped": Stopped,
        "StopIteration": StopIteration,
        "RuntimeError": RuntimeError,
        "KeyError": KeyError,
        "KeyboardInterrupt": KeyboardInterrupt,
    }[case["error"]]()


def generated(loader):
    """The same, as a generator: it is one-shot and has no length."""
    yield from loader


class Indexed:
    """The same, by the old protocol: a `for` loop asks for 0, 1, 2, ..."""

    def __init__(self, loader):
        self.batches = iter(loader)

    def __getitem__(self, place):
        for batch in self.batches:
            return batch
        raise IndexError(place)


def clock_of(time_split):
    """The name of the clock of Python's that the function has by default."""
    try:
        default = inspect.signature(time_split).parameters["clock"].default
    except (TypeError, ValueError, KeyError):
        return None
    names = [name for name, value in vars(time).items() if value is default]
    return names[0] if callable(default) and names else None


def epoch_timed(time_split, case):
    """What comes back, and what happened in which order."""
    clock, log, samples, could_train = Clock(case["now"]), [], [], []
    collected, collects = [], gc.isenabled()
    loader = (Vague if case["kind"] == "vague" else ComesApart)(
        clock, case, log
    )
    batches = loader.batches
    if case["kind"] == "generator":
        loader = generated(loader)
    elif case["kind"] == "sequence":
        loader = Indexed(loader)

    def step(batch):
        place = len(samples)
        if place >= len(batches) or batch is not batches[place]:
            log.append("step on something else")
            return None
        samples.append(batch)
        could_train.append(torch.is_grad_enabled())
        collected.append(gc.isenabled())
        clock.now += case["steps"][place]
        log.append(f"step {place}")
        if case["fails"] == ["step", place]:
            raise error_of(case)
        return case["result"]

    def synchronize():
        clock.now += case["waits"][min(len(samples), len(case["waits"])) - 1]
        log.append("synchronize")
        if case["fails"] == ["synchronize", len(samples) - 1]:
            raise error_of(case)
        if broken and broken in log:
            raise RuntimeError("as CUDA does after an error")

    # what the log has once the loader or a step has failed
    what, place = case["fails"] or (None, 0)
    broken = {"loader": f"next {place}", "step": f"step {place}"}.get(what)
    arguments = [loader, step]
    if case["clock"]:
        arguments.append(clock)
    if case["synchronized"]:
        arguments.append(synchronize)
    wanted = () if case["fails"] is None else (type(error_of(case)),)
    if broken and case["synchronized"]:
        wanted = *wanted, RuntimeError
    given, reached = None, None
    try:
        given = time_split(*arguments)
    except wanted as error:
        reached = type(error).__name__
    collected.append(gc.isenabled())
    if collects:
        gc.enable()
    is_tuple = isinstance(given, tuple)  # a named one, too
    floats = is_tuple and all(isinstance(one, float) for one in given)
    times = [float(one) for one in given] if floats else []
    return {
        "type": "tuple" if is_tuple else type(given).__name__,
        "types": [
            "float" if isinstance(one, float) else type(one).__name__
            for one in (given if is_tuple else [])
        ],
        # real seconds are never alike
        "times": times if case["clock"] else [],
        "sensible": all(0 <= one < 10 for one in times),
        "own_clock": None if case["clock"] else clock_of(time_split),
        "could_train": all(could_train),
        "collector_kept": set(collected) == {collects},
        "log": log,
        "reached": reached,
        "elapsed": clock.now - case["now"],
    }


# quiz


def answer(quiz, case):
    """The letter for the question of the case, in small letters.

    The ticket comes with the case: what is recorded of one call is of no use
    in another.
    """
    given, form, letter = quiz(), "a letter", ""
    if not isinstance(given, dict):
        form = "no dict"
    elif case["question"] not in given:
        form = "no answer"
    else:
        letter = str(given[case["question"]]).strip().lower()
        if letter not in ("a", "b", "c", "d"):
            form, letter = "no letter", ""
    return {"letter": letter, "form": form, "ticket": case["ticket"]}
