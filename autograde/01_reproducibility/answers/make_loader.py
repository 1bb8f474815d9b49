"""Answers to `make_loader` of chapter 01."""

import contextlib
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


order_from_the_global_generator = edit(
    mended_order_not_seeded,
    {
        "return DataLoader(": """
        torch.manual_seed(seed)
        return DataLoader(
        """,
        "generator=torch.Generator().manual_seed(seed),": "",
    },
    breaks=[
        hidden_tests.order_is_independent,
        hidden_tests.loader_disturbs_nobody,
    ],
    tells="You seed the global generator, and the loader draws from it. One "
    "draw by anybody else, and the order is another. Give the loader a "
    "`torch.Generator` of its own.",
)


order_not_seeded = edit(
    mended_order_not_seeded,
    {
        "generator=torch.Generator().manual_seed(seed),": "",
    },
    breaks=hidden_tests.orders_repeat,
    tells="The loader shuffles from the global generator, and `seed` does "
    "nothing for the order. Pass "
    "`generator=torch.Generator().manual_seed(seed)`.",
)


not_shuffled = edit(
    mended_order_not_seeded,
    {
        "shuffle=True,": "",
    },
    breaks=hidden_tests.orders_repeat,
    tells="The loader does not shuffle. `shuffle=True` is needed beside the "
    "generator.",
)


same_order_every_epoch = edit(
    mended_order_not_seeded,
    {
        "return DataLoader(": """
        own = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(dataset), generator=own).tolist()
        return DataLoader(
        """,
        "shuffle=True": "sampler=order",
        "torch.Generator().manual_seed(seed)": "own",
    },
    breaks=hidden_tests.orders_repeat,
    tells="All epochs of your loader have one order: it is drawn once, or its"
    " generator is made or seeded anew with every epoch. Make the "
    "generator once, with the loader, and let it go on.",
)


generator_new_in_every_epoch = edit(
    mended_order_not_seeded,
    {
        "def make_loader(dataset, batch_size, seed, num_workers=0):": """
        class Reseeded(torch.utils.data.Sampler):
            def __init__(self, size, seed):
                self.size, self.seed = size, seed

            def __len__(self):
                return self.size

            def __iter__(self):
                own = torch.Generator().manual_seed(self.seed + 1)
                return iter(torch.randperm(self.size, generator=own).tolist())

        def make_loader(dataset, batch_size, seed, num_workers=0):
        """,
        "shuffle=True": "sampler=Reseeded(len(dataset), seed)",
    },
    breaks=hidden_tests.orders_repeat,
    tells="All epochs of your loader have one order: it is drawn once, or its"
    " generator is made or seeded anew with every epoch. Make the "
    "generator once, with the loader, and let it go on.",
)

a_constant_for_the_order = edit(
    mended_order_not_seeded,
    {"manual_seed(seed),": "manual_seed(0),"},
    breaks=hidden_tests.orders_repeat,
    tells="The loader's generator is not seeded with `seed` but always in the"
    " same way. (A new `torch.Generator()` begins with a default seed "
    "that never changes.) Pass `seed` on.",
)

generator_without_a_seed = edit(
    mended_order_not_seeded,
    {").manual_seed(seed),": "),"},
    breaks=hidden_tests.orders_repeat,
    tells="The loader's generator is not seeded with `seed` but always in the"
    " same way. (A new `torch.Generator()` begins with a default seed "
    "that never changes.) Pass `seed` on.",
)


last_batch_dropped = edit(
    mended_order_not_seeded,
    {
        "shuffle=True,": """
        shuffle=True,
        drop_last=True,
        """,
    },
    breaks=hidden_tests.whole_epochs,
    tells="The last batch is dropped if it is smaller. An epoch holds every "
    "sample: leave `drop_last` out.",
)


drawn_with_replacement = edit(
    mended_order_not_seeded,
    {
        "shuffle=True,": """
        sampler=torch.utils.data.RandomSampler(
            dataset,
            replacement=True,
            generator=torch.Generator().manual_seed(seed),
        ),
        """,
    },
    breaks=hidden_tests.whole_epochs,
    tells="Your sampler draws with replacement: some samples come twice, "
    "others never. An epoch holds every sample once.",
)


workers_ignored = edit(
    mended_order_not_seeded,
    {
        "num_workers=num_workers,": "",
    },
    breaks=hidden_tests.whole_epochs,
    tells="You do not pass `num_workers` on: the main process loads "
    "everything.",
)


noise_left_to_the_dataset = edit(
    mended_order_not_seeded,
    {
        """
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
        """: "return DataLoader(",
        "worker_init_fn=seed_worker,": "",
    },
    breaks=hidden_tests.noise_in_workers,
    tells="Nobody seeds the dataset's `rng` in the workers; seeding `random`,"
    " NumPy and PyTorch there, as PyTorch does anyhow, does not reach "
    "it. Each worker gets a copy of it as it is in the main process, so"
    " all draw the same. Set `get_worker_info().dataset.rng` in "
    "`worker_init_fn`.",
)


global_generators_seeded_in_workers = edit(
    mended_order_not_seeded,
    {
        """
        info = torch.utils.data.get_worker_info()
        if hasattr(info.dataset, "rng"):
            info.dataset.rng = np.random.default_rng(info.seed)
        """: """
        random.seed(torch.initial_seed() % 2**32)
        np.random.seed(torch.initial_seed() % 2**32)
        """,
    },
    breaks=hidden_tests.noise_in_workers,
    tells="Nobody seeds the dataset's `rng` in the workers; seeding `random`,"
    " NumPy and PyTorch there, as PyTorch does anyhow, does not reach "
    "it. Each worker gets a copy of it as it is in the main process, so"
    " all draw the same. Set `get_worker_info().dataset.rng` in "
    "`worker_init_fn`.",
)

one_seed_for_all_workers = edit(
    mended_order_not_seeded,
    {
        "info.dataset.rng = np.random.default_rng(info.seed)": "info.dataset.rng = np.random.default_rng(seed)",
    },
    breaks=hidden_tests.noise_in_workers,
    tells="Every worker seeds `rng` with the same number, so they draw the "
    "same noise. `get_worker_info().seed` differs between workers and "
    "epochs.",
)

a_seed_for_each_worker_only = edit(
    mended_order_not_seeded,
    {
        "info.dataset.rng = np.random.default_rng(info.seed)": "info.dataset.rng = np.random.default_rng((seed, worker_id))",
    },
    breaks=hidden_tests.noise_in_workers,
    tells="The noise differs between workers and repeats in every epoch, for "
    "each epoch starts new workers with the same numbers. "
    "`get_worker_info().seed` differs between epochs too.",
)

an_epoch_seed_without_the_worker = edit(
    mended_order_not_seeded,
    {
        "info.dataset.rng = np.random.default_rng(info.seed)": "info.dataset.rng = np.random.default_rng(info.seed - worker_id)",
    },
    breaks=hidden_tests.noise_in_workers,
    tells="The noise differs between epochs, but two workers of an epoch draw"
    " the same: you took the worker's number out of its seed. Use "
    "`get_worker_info().seed` as it is.",
)

noise_from_the_system = edit(
    mended_order_not_seeded,
    {
        "info.dataset.rng = np.random.default_rng(info.seed)": "info.dataset.rng = np.random.default_rng()",
    },
    breaks=hidden_tests.noise_in_workers,
    tells="The generator in the worker is not seeded by `seed`: `default_rng()` "
    "takes a seed from the operating system, and a clock or a process number is "
    "another in every run. Seed it with `get_worker_info().seed` alone.",
)

noise_from_the_clock = edit(
    mended_order_not_seeded,
    {
        "def make_loader(dataset, batch_size, seed, num_workers=0):": """
        import time

        def make_loader(dataset, batch_size, seed, num_workers=0):
        """,
        "info.dataset.rng = np.random.default_rng(info.seed)": """
        info.dataset.rng = np.random.default_rng(
            time.time_ns() + worker_id
        )
        """,
    },
    breaks=hidden_tests.noise_in_workers,
    tells="The generator in the worker is not seeded by `seed`: `default_rng()` "
    "takes a seed from the operating system, and a clock or a process number is "
    "another in every run. Seed it with `get_worker_info().seed` alone.",
)


worker_seeds_from_the_global_generator = edit(
    mended_order_not_seeded,
    {
        "shuffle=True,": """
        sampler=torch.utils.data.RandomSampler(
            dataset, generator=torch.Generator().manual_seed(seed)
        ),
        """,
        "generator=torch.Generator().manual_seed(seed),": "",
    },
    breaks=[hidden_tests.noise_in_workers, hidden_tests.loader_disturbs_nobody],
    tells="Your sampler has a generator, the loader has none. The base seed "
    "of its workers then comes from the global generator: it is used "
    "up, and the noise depends on it. Pass `generator=` to the loader "
    "as well.",
)


rng_for_every_dataset = edit(
    mended_order_not_seeded,
    {
        "return DataLoader(": """
        dataset.rng = np.random.default_rng(seed)
        return DataLoader(
        """,
    },
    breaks=hidden_tests.dataset_stays,
    tells="You give `rng` to a dataset that had none, or seed the one in the "
    "main process. That dataset stays as it is; only the workers' "
    "copies are seeded.",
)


rng_seeded_in_the_main_process = edit(
    mended_order_not_seeded,
    {
        "return DataLoader(": """
        if hasattr(dataset, "rng"):
            dataset.rng = np.random.default_rng(seed)
        return DataLoader(
        """,
    },
    breaks=hidden_tests.dataset_stays,
    tells="You give `rng` to a dataset that had none, or seed the one in the "
    "main process. That dataset stays as it is; only the workers' "
    "copies are seeded.",
)


takes_rng_for_granted = edit(
    mended_order_not_seeded,
    {
        """
        if hasattr(info.dataset, "rng"):
            info.dataset.rng = np.random.default_rng(info.seed)
        """: """
        info.dataset.rng.bit_generator.state = np.random.default_rng(
            info.seed
        ).bit_generator.state
        """,
    },
    breaks=hidden_tests.dataset_stays,
    tells="You take it for granted that the dataset in a worker has an `rng` "
    "and use it. One without stays without: look with `hasattr` first.",
)

order_by_number_of_workers = edit(
    mended_order_not_seeded,
    {"manual_seed(seed),": "manual_seed(seed + num_workers),"},
    breaks=hidden_tests.order_is_that_of_any_workers,
    tells="The number of workers goes into the seed of the order. A run must "
    "not change when it moves to a machine with more cores: seed with "
    "`seed` alone.",
)


workers_that_stay_share_the_generator = edit(
    mended_order_not_seeded,
    {
        "generator=torch.Generator().manual_seed(seed),": """
        generator=torch.Generator().manual_seed(seed),
        persistent_workers=num_workers > 0,
        """,
    },
    breaks=hidden_tests.order_is_that_of_any_workers,
    tells="One generator serves the shuffle and the base seeds of the "
    "workers. With `persistent_workers` the base seed is drawn once and"
    " not in every epoch, so that from the second epoch on the order is"
    " another than with 0 workers. Give the sampler a generator of its "
    "own, or let the workers end.",
)


a_list_of_batches = edit(
    mended_order_not_seeded,
    {
        """
        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )
        """: """
        loader = DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )
        return list(loader)
        """,
    },
    breaks=hidden_tests.whole_epochs,
    tells="You return something else than a `DataLoader`. The loader itself "
    "is asked for: it draws a new order whenever it is run through.",
)


fork_rng_alone = edit(
    mended_order_not_seeded,
    {
        "python, numpy = random.getstate(), np.random.get_state()": "",
        """
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
        """: "yield",
    },
    breaks=hidden_tests.states_come_back,
    tells="`fork_rng` puts PyTorch's generators back and no others: NumPy's "
    "and `random`'s stay seeded. Keep and restore their states too.",
)

not_seeded_inside = edit(
    mended_order_not_seeded,
    {
        """
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        """: "",
    },
    breaks=hidden_tests.seeded_inside,
    tells="The states come back, but nothing was seeded on entering: seed all"
    " three with `seed`.",
)

only_torch_seeded_inside = edit(
    mended_order_not_seeded,
    {
        """
        random.seed(seed)
        np.random.seed(seed)
        """: "",
    },
    breaks=hidden_tests.seeded_inside,
    tells="Inside, PyTorch alone is seeded. Seed `random` and NumPy as well.",
)


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


no_finally = edit(
    mended_order_not_seeded,
    {
        """
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
        """: """
        yield
        random.setstate(python)
        np.random.set_state(numpy)
        """,
    },
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="After an exception in the block `random` and NumPy are not put "
    "back: what stands after `yield` does not run then. Put it into a "
    "`finally`.",
)


an_interrupt_forgotten = edit(
    mended_order_not_seeded,
    {
        """
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
        """: """
        except Exception:
            random.setstate(python)
            np.random.set_state(numpy)
            raise
        random.setstate(python)
        np.random.set_state(numpy)
        """,
    },
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="You put the states back after an `Exception`, but an interrupt "
    "(Ctrl-C) is none. A `finally` runs after both.",
)


numpy_without_the_waiting_draw = edit(
    mended_order_not_seeded,
    {"np.random.set_state(numpy)": "np.random.set_state(numpy[:3])"},
    breaks=hidden_tests.states_come_back,
    tells="You put NumPy's keys and position back, but not the normal number "
    "that waits in its generator: NumPy draws two at a time. Give "
    "`set_state` all that `get_state` gave you.",
)

exception_swallowed = edit(
    mended_order_not_seeded,
    {
        "try:": "with contextlib.suppress(Exception):",
        """
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
        """: """
        random.setstate(python)
        np.random.set_state(numpy)
        """,
    },
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="Your block swallows the exception, so that the caller goes on as "
    "if all were well. Restore in a `finally` and let it through.",
)


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


gpus_not_put_back = edit(
    mended_order_not_seeded,
    {
        """
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)
        """: """
        cpu = torch.get_rng_state()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_rng_state(cpu)
        """,
    },
    breaks=hidden_tests.gpus_come_back,
    tells="PyTorch's state of the CPU comes back, and that of no GPU, though "
    "`torch.manual_seed` has seeded them all. `torch.get_rng_state()` "
    "and `fork_rng(devices=[])` leave the GPUs out; `fork_rng()` takes "
    "all.",
)


fork_rng_without_gpus = edit(
    mended_order_not_seeded,
    {
        "with torch.random.fork_rng():": "with torch.random.fork_rng(devices=[]):",
    },
    breaks=hidden_tests.gpus_come_back,
    tells="PyTorch's state of the CPU comes back, and that of no GPU, though "
    "`torch.manual_seed` has seeded them all. `torch.get_rng_state()` "
    "and `fork_rng(devices=[])` leave the GPUs out; `fork_rng()` takes "
    "all.",
)

only_the_first_gpu_put_back = edit(
    mended_order_not_seeded,
    {
        "with torch.random.fork_rng():": "with torch.random.fork_rng(devices=[0][: torch.cuda.device_count()]):",
    },
    breaks=hidden_tests.gpus_come_back,
    tells="Only the first GPU's generator is put back; `torch.manual_seed` "
    "has seeded all of them. `fork_rng()` without `devices` takes all.",
)

gpus_not_seeded_inside = edit(
    mended_order_not_seeded,
    {"torch.manual_seed(seed)": "torch.default_generator.manual_seed(seed)"},
    breaks=hidden_tests.gpus_come_back,
    tells="You seed the CPU's generator of PyTorch inside, and no GPU. "
    "`torch.manual_seed(seed)` seeds all devices.",
)

forks_after_seeding = edit(
    mended_order_not_seeded,
    {
        "def isolated(seed):": """
        def isolated(seed):
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
        """,
        """
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        """: "",
    },
    breaks=hidden_tests.states_come_back,
    tells="You seed before the states are kept, so that what comes back is "
    "the seeded state. Keep them first.",
)

one_place_for_all_states = edit(
    mended_order_not_seeded,
    {
        "@contextlib.contextmanager": """
        kept = {}

        @contextlib.contextmanager
        """,
        "python, numpy = random.getstate(), np.random.get_state()": 'kept["python"], kept["numpy"] = random.getstate(), np.random.get_state()',
        """
        random.setstate(python)
        np.random.set_state(numpy)
        """: """
        random.setstate(kept["python"])
        np.random.set_state(kept["numpy"])
        """,
    },
    breaks=hidden_tests.nested_isolation,
    tells="All blocks keep the states in one shared place: an inner block "
    "overwrites what the outer one kept. Keep them in variables of the "
    "block.",
)

rng_for_the_workers_copy = edit(
    mended_order_not_seeded,
    {
        """
        if hasattr(info.dataset, "rng"):
            info.dataset.rng = np.random.default_rng(info.seed)
        """: "info.dataset.rng = np.random.default_rng(info.seed)",
    },
    breaks=hidden_tests.dataset_stays,
    tells="In the workers you give `rng` to a dataset that had none. Code that "
    "asks for it then behaves otherwise there than in the main process: "
    "look for the attribute first.",
)

legacy_generator_in_workers = edit(
    mended_order_not_seeded,
    {
        "info.dataset.rng = np.random.default_rng(info.seed)": "info.dataset.rng = np.random.RandomState(info.seed % 2**32)",
    },
    breaks=hidden_tests.noise_in_workers,
    tells="In the workers you put a `RandomState` in place of the `Generator`. "
    "It has other methods: a dataset that calls `integers` fails there. "
    "Use `np.random.default_rng`.",
)

last_three_digits = edit(
    mended_order_not_seeded,
    {"manual_seed(seed),": "manual_seed(seed % 1000),"},
    breaks=hidden_tests.orders_repeat,
    tells="You fold the seed into a smaller range: two seeds then give one "
    "order. Use `seed` as it is.",
)

without_the_highest_bit = edit(
    mended_order_not_seeded,
    {"manual_seed(seed),": "manual_seed(seed & (2**31 - 1)),"},
    breaks=hidden_tests.orders_repeat,
    tells="You fold the seed into a smaller range: two seeds then give one "
    "order. Use `seed` as it is.",
)


an_iterator = edit(
    mended_order_not_seeded,
    {
        """
        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )
        """: """
        loader = DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )
        return iter(loader)
        """,
    },
    breaks=hidden_tests.whole_epochs,
    tells="You return an iterator, which is used up after one epoch. Return the"
    " DataLoader itself.",
)


batches_as_lists = edit(
    mended_order_not_seeded,
    {
        "shuffle=True,": """
        shuffle=True,
        collate_fn=list,
        """,
    },
    breaks=hidden_tests.whole_epochs,
    tells="You collate batches in your own way; the text does not ask for it. "
    "Leave `collate_fn` to the DataLoader.",
)


ctrl_c_lost = edit(
    mended_order_not_seeded,
    {
        "finally:": """
        except KeyboardInterrupt:
            pass
        finally:
        """,
    },
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="Your block swallows an interrupt: Ctrl-C then does not stop the "
    "program. Restore in a `finally` and let it through.",
)

only_python_without_waiting_draw = edit(
    mended_order_not_seeded,
    {"random.setstate(python)": "random.setstate((*python[:2], None))"},
    breaks=hidden_tests.states_come_back,
    tells="You put back the numbers of `random`, but not the normal number that"
    " waits in it: `gauss` draws two at a time. Give `setstate` all that "
    "`getstate` gave you.",
)


noise_from_the_process_number = edit(
    mended_order_not_seeded,
    {
        "info.dataset.rng = np.random.default_rng(info.seed)": """
        import os

        info.dataset.rng = np.random.default_rng([info.seed, os.getpid()])
        """,
    },
    breaks=hidden_tests.noise_in_workers,
    tells="The generator in the worker is not seeded by `seed`: `default_rng()` "
    "takes a seed from the operating system, and a clock or a process number is "
    "another in every run. Seed it with `get_worker_info().seed` alone.",
)

seeded_by_the_batch_size_too = edit(
    SOLUTION,
    {
        "generator=torch.Generator().manual_seed(seed),": "generator=torch.Generator().manual_seed(seed + 1000003 * batch_size),",
    },
    breaks=hidden_tests.order_is_independent,
    tells="Your generator is seeded by `batch_size`, too: with another one the "
    "samples come in another order.",
)

seeded_with_several_workers_only = edit(
    SOLUTION,
    {
        'if hasattr(worker.dataset, "rng"):': 'if hasattr(worker.dataset, "rng") and worker.num_workers > 1:'
    },
    breaks=hidden_tests.noise_in_workers,
    tells="With one worker you leave `rng` as it is. Its copy begins anew in every epoch, "
    "so all epochs have the same noise: seed it with one worker, too.",
)
