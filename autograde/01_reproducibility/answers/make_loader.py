"""Answers to `make_loader` of chapter 01."""

import contextlib
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def by_a_batch_sampler():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            worker = torch.utils.data.get_worker_info()
            if hasattr(worker.dataset, "rng"):
                fresh = np.random.default_rng(torch.initial_seed() % 2**32)
                state = fresh.bit_generator.state
                worker.dataset.rng.bit_generator.state = state

        sampler = torch.utils.data.RandomSampler(
            range(len(dataset)), generator=torch.Generator().manual_seed(seed)
        )
        return DataLoader(
            dataset,
            batch_sampler=torch.utils.data.BatchSampler(
                sampler, batch_size, drop_last=False
            ),
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )

    @contextlib.contextmanager
    def isolated(seed):
        python, numpy = random.getstate(), np.random.get_state()
        with torch.random.fork_rng():
            try:
                random.seed(seed)
                np.random.seed(seed)
                torch.manual_seed(seed)
                yield seed
            finally:
                np.random.set_state(numpy)
                random.setstate(python)


@accepted(body=True)
def by_a_seeded_sampler():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if getattr(info.dataset, "rng", None) is not None:
                info.dataset.rng = np.random.default_rng(
                    [torch.initial_seed() % 2**63, worker_id]
                )

        base = torch.Generator()
        base.manual_seed(seed)
        sampler = torch.utils.data.RandomSampler(
            dataset, generator=torch.Generator().manual_seed(seed)
        )
        return DataLoader(
            dataset,
            batch_size,
            sampler=sampler,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=base,
        )

    @contextlib.contextmanager
    def isolated(seed):
        python, numpy = random.getstate(), np.random.get_state()
        cpu, gpus = torch.get_rng_state(), torch.cuda.get_rng_state_all()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_rng_state(cpu)
            torch.cuda.set_rng_state_all(gpus)


@accepted(body=True)
def by_a_sampler_class():
    class Shuffled(torch.utils.data.Sampler):
        def __init__(self, size, seed):
            self.size, self.rng = size, np.random.default_rng(seed)

        def __len__(self):
            return self.size

        def __iter__(self):
            return iter(self.rng.permutation(self.size).tolist())

    def make_loader(dataset, batch_size, seed, num_workers=0):
        def reseed(worker_id):
            worker = torch.utils.data.get_worker_info()
            if hasattr(worker.dataset, "rng"):
                fresh = np.random.SeedSequence(worker.seed)
                worker.dataset.rng = np.random.Generator(np.random.PCG64(fresh))

        return DataLoader(
            dataset,
            batch_size=batch_size,
            sampler=Shuffled(len(dataset), seed),
            worker_init_fn=reseed,
            generator=torch.Generator().manual_seed(seed),
            num_workers=num_workers,
        )

    class isolated:
        def __init__(self, seed):
            self.seed = seed

        def __enter__(self):
            self.python = random.getstate()
            self.numpy = np.random.get_state()
            self.torch = torch.random.fork_rng()
            self.torch.__enter__()
            random.seed(self.seed)
            np.random.seed(self.seed)
            torch.manual_seed(self.seed)

        def __exit__(self, *error):
            random.setstate(self.python)
            np.random.set_state(self.numpy)
            self.torch.__exit__(*error)


@accepted(body=True)
def by_the_workers_numpy_seed():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            copy = torch.utils.data.get_worker_info().dataset
            if hasattr(copy, "rng"):
                # NumPy's global generator is seeded per worker and epoch
                copy.rng = np.random.default_rng(
                    np.random.randint(0, 2**32, 4, dtype=np.uint32)
                )

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker if num_workers else None,
            generator=torch.Generator().manual_seed(seed),
        )

    @contextlib.contextmanager
    def isolated(seed):
        with contextlib.ExitStack() as stack:
            stack.callback(random.setstate, random.getstate())
            stack.callback(np.random.set_state, np.random.get_state())
            stack.enter_context(torch.random.fork_rng())
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield


@accepted(body=True)
def with_workers_that_stay():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if "rng" in vars(info.dataset):
                info.dataset.rng = np.random.default_rng((seed, worker_id))

        own = torch.Generator()
        own.manual_seed(seed)
        return DataLoader(
            dataset,
            batch_size,
            # with `shuffle=True` the base seed, drawn once here, would move it
            sampler=torch.utils.data.RandomSampler(dataset, generator=own),
            generator=torch.Generator().manual_seed(seed),
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            persistent_workers=num_workers > 0,
        )

    @contextlib.contextmanager
    def isolated(seed):
        before = random.getstate(), np.random.get_state()
        devices = range(torch.cuda.device_count())
        with torch.random.fork_rng(devices=devices):
            try:
                random.seed(seed)
                np.random.seed(seed)
                torch.manual_seed(seed)
                yield
            finally:
                random.setstate(before[0])
                np.random.set_state(before[1])


@accepted(body=True)
def with_the_epoch_in_the_seed():
    class Epochs(torch.utils.data.Sampler):
        def __init__(self, size, seed):
            self.size, self.seed, self.epoch = size, seed, 0

        def __len__(self):
            return self.size

        def __iter__(self):
            drawn = random.Random(f"{self.seed} {self.epoch}")
            self.epoch += 1
            order = list(range(self.size))
            drawn.shuffle(order)
            yield from order

    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            sampler=Epochs(len(dataset), seed),
            generator=torch.Generator().manual_seed(seed),
            num_workers=num_workers,
            worker_init_fn=seed_worker,
        )

    @contextlib.contextmanager
    def isolated(seed):
        python, numpy = random.getstate(), np.random.get_state()
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@accepted(body=True)
def mended_order_not_seeded():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )

    @contextlib.contextmanager
    def isolated(seed):
        python, numpy = random.getstate(), np.random.get_state()
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    breaks=hidden_tests.states_come_back,
    tells="You seed again with the old seed on leaving. That is the beginning"
    " of the stream, not the place it had reached: everything drawn so "
    "far comes once more. Restore the states.",
    body=True,
)
def seeded_back():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )

    @contextlib.contextmanager
    def isolated(seed):
        old = torch.initial_seed()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.seed(old)
            np.random.seed(old % 2**32)
            torch.manual_seed(old)


@wrong(
    breaks=hidden_tests.entered_later,
    tells="You keep the states when `isolated(seed)` is called. What counts "
    "is the moment the block is entered: keep them in `__enter__`, or "
    "before `yield`.",
    body=True,
)
def states_kept_too_early():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )

    class isolated:
        def __init__(self, seed):
            self.seed = seed
            self.states = random.getstate(), np.random.get_state()
            self.torch = torch.get_rng_state()
            self.gpus = torch.cuda.get_rng_state_all()

        def __enter__(self):
            random.seed(self.seed)
            np.random.seed(self.seed)
            torch.manual_seed(self.seed)

        def __exit__(self, *error):
            random.setstate(self.states[0])
            np.random.set_state(self.states[1])
            torch.set_rng_state(self.torch)
            torch.cuda.set_rng_state_all(self.gpus)
