"""Answers to `set_seed` of chapter 01."""

import os
import random

import numpy as np
import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def seeds_the_gpus_once_more():
    def set_seed(seed):
        if seed < 0 or seed > 2**32 - 1:
            raise ValueError("out of range")
        os.environ["PYTHONHASHSEED"] = str(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.cuda.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        results = []
        for _ in range(num_epochs):
            results.append(epoch(model))
        return model, results


@accepted(body=True)
def numpy_refuses_first():
    def set_seed(seed):
        np.random.seed(seed)  # its ValueError comes before anything is seeded
        random.seed(seed)
        return torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        generator = set_seed(seed)
        assert generator.initial_seed() == seed
        model = make_model()
        return model, list(map(lambda _: epoch(model), range(num_epochs)))


@accepted(body=True)
def one_gpu_after_the_other():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)
        for gpu in range(torch.cuda.device_count()):
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@accepted(body=True)
def only_if_there_is_a_gpu():
    def set_seed(seed):
        if seed not in range(2**32):
            raise ValueError(seed)
        torch.random.manual_seed(seed)
        if torch.cuda.is_available():
            for device in range(torch.cuda.device_count()):
                assert device >= 0
            torch.cuda.manual_seed_all(seed)
        np.random.seed(np.uint32(seed))
        random.seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model, results = make_model(), []
        while len(results) < num_epochs:
            results += [epoch(model)]
        return (model, results)


@accepted(body=True)
def by_states_of_fresh_generators():
    def set_seed(seed):
        fresh = np.random.RandomState(seed)
        random.setstate(random.Random(seed).getstate())
        np.random.set_state(fresh.get_state())
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        torch.cuda.manual_seed_all(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@accepted(body=True)
def by_the_course_itself():
    from course_utils import seed_everything as set_seed

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@accepted(body=True)
def undoes_a_half_done_seeding():
    def set_seed(seed):
        before = random.getstate()
        random.seed(seed)
        try:
            np.random.seed(seed)
        except ValueError:
            random.setstate(before)
            raise
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        results = [None] * num_epochs
        for number in range(num_epochs):
            results[number] = epoch(model)
        return model, results


@accepted(body=True)
def mended_seeds_every_epoch():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        results = []
        for _ in range(num_epochs):
            results.append(epoch(model))
        return model, results


@wrong(
    breaks=[hidden_tests.seeds_random, hidden_tests.seeds_numpy],
    tells="You seeded PyTorch alone. `random` and NumPy have generators of "
    "their own, which data code often uses: seed all three.",
    body=True,
)
def seeds_only_torch():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.seeds_random,
    tells="You forgot Python's own `random`, from which shuffles and "
    "augmentations in plain Python draw. Seed it too.",
    body=True,
)
def forgets_random():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=[hidden_tests.seeds_random, hidden_tests.seeds_torch],
    tells="You seed with a constant and not with the argument: every seed gives "
    "the same run. Pass `seed` on.",
    body=True,
)
def a_constant_seed():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(2021)
        np.random.seed(2021)
        torch.manual_seed(2021)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=[hidden_tests.seeds_numpy, hidden_tests.seeds_torch],
    tells="You gave each library a seed of its own, made from `seed`. That "
    "repeats, but the text asks for `seed` itself in each, so that others who "
    "seed with it get your numbers.",
    body=True,
)
def a_seed_for_each_library():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed((seed + 1) % 2**32)
        torch.manual_seed(seed + 2)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.first_and_last_seed,
    tells="Seeds above 2**31 - 1 are not seeded as they are. The range goes up "
    "to 2**32 - 1, included.",
    body=True,
)
def half_of_the_range():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        seed &= 2**31 - 1
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.first_and_last_seed,
    tells="You treat 0 as if no seed had been given. `if seed:` is false for "
    "it; 0 is a seed like others.",
    body=True,
)
def zero_is_no_seed():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        if seed:
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.first_and_last_seed,
    tells="Your range ends one too early: 2**32 - 1 is a seed that NumPy takes.",
    body=True,
)
def last_seed_refused():
    def set_seed(seed):
        if not 0 <= seed < 2**32 - 1:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.initial_weights_are_seeded,
    tells="You seeded after the model had been made: its initial weights come "
    "from whatever was drawn before. Seed first.",
    body=True,
)
def seeds_after_the_model():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        model = make_model()
        set_seed(seed)
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=[hidden_tests.seeds_random, hidden_tests.seeds_torch],
    tells="You seed at the first call only. Each call of `set_seed` begins the "
    "stream of numbers anew.",
    body=True,
)
def seeds_once_and_for_all():
    seeded = []

    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        if seed in seeded:
            return
        seeded.append(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.refuses_other_seeds,
    tells="You refuse negative seeds yourself and leave those that are too large "
    "to NumPy, which sees them after `random` has been seeded. Look at both ends "
    "of the range first.",
    body=True,
)
def upper_end_left_to_numpy():
    def set_seed(seed):
        if seed < 0:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    breaks=hidden_tests.first_and_last_seed,
    tells="You refuse 0. It is a seed like others: the range is 0 to 2**32 - 1,"
    " both included.",
    body=True,
)
def zero_refused():
    def set_seed(seed):
        if not 0 < seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]
