"""The answer bank of chapter 01: reproducibility."""

import contextlib
import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from course_grader.bank import accepted, wrong

from . import hidden_tests

# set_seed


@accepted("set_seed", body=True)
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


@accepted("set_seed", body=True)
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


@accepted("set_seed", body=True)
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


@accepted("set_seed", body=True)
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


@accepted("set_seed", body=True)
def by_the_course_itself():
    from course_utils import seed_everything as set_seed

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@accepted("set_seed", body=True)
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


@wrong(
    "set_seed",
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
    "set_seed",
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
    "set_seed",
    breaks=hidden_tests.seeds_numpy,
    tells="You made a NumPy generator with the seed, which nobody else uses. "
    "`np.random.rand` draws from the global one: `np.random.seed(seed)`.",
    body=True,
)
def makes_a_numpy_generator():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.default_rng(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=[
        hidden_tests.seeds_torch,
        hidden_tests.initial_weights_are_seeded,
    ],
    tells="You made a `torch.Generator` with the seed and did not use it. What "
    "draws without a generator draws from the global one, which "
    "`torch.manual_seed(seed)` seeds.",
    body=True,
)
def makes_a_torch_generator():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.Generator().manual_seed(seed)
        torch.cuda.manual_seed_all(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
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
    "set_seed",
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
    "set_seed",
    breaks=hidden_tests.seeds_every_gpu,
    tells="After seeding everything you seeded the GPUs with 0. "
    "`torch.manual_seed(seed)` had done them already; now their numbers stay "
    "the same whatever `seed` is. Leave the line out.",
    body=True,
)
def zero_for_the_gpus():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(0)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.seeds_every_gpu,
    tells="You seeded the CPU's generator of PyTorch and no GPU. "
    "`torch.manual_seed(seed)` seeds all devices; the method of one generator "
    "seeds that one.",
    body=True,
)
def only_the_cpu_generator():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.seeds_every_gpu,
    tells="You seeded one GPU. `torch.cuda.manual_seed` is about the current "
    "one; `torch.manual_seed(seed)` seeds all devices.",
    body=True,
)
def only_the_first_gpu():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)
        torch.cuda.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.refuses_other_seeds,
    tells="A seed outside the range was refused by NumPy, after `random` had "
    "been seeded already. Look at `seed` first, then seed.",
    body=True,
)
def numpy_refuses_too_late():
    def set_seed(seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.refuses_other_seeds,
    tells="You fold a seed that is too large, or negative, into the range. Then "
    "two different seeds give one and the same run, and nobody knows. Raise a "
    "ValueError.",
    body=True,
)
def folds_the_seed():
    def set_seed(seed):
        seed = seed % 2**32
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
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
    "set_seed",
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
    "set_seed",
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
    "set_seed",
    breaks=hidden_tests.changes_no_flag,
    tells="Your `set_seed` sets flags of cuDNN or PyTorch as well. That changes "
    "the speed of a program that only wanted a seed; leave them alone here.",
    body=True,
)
def sets_flags_too():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
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
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You seed anew in every epoch, so all epochs draw the same: the same "
    "order, the same dropout. Seed once, before the model is made.",
    body=True,
)
def seeds_every_epoch():
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
            set_seed(seed)
            results.append(epoch(model))
        return model, results


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You seed each epoch with a seed of its own. The run has one seed: set "
    "it once, and the epochs draw on from there.",
    body=True,
)
def a_seed_for_each_epoch():
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
        for number in range(num_epochs):
            set_seed((seed + number) % 2**32)
            results.append(epoch(model))
        return model, results


@wrong(
    "set_seed",
    breaks=hidden_tests.initial_weights_are_seeded,
    tells="`seeded_run` does not seed: it goes on from whatever was drawn "
    "before. Call `set_seed(seed)` first.",
    body=True,
)
def forgets_to_seed_the_run():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.run_with_all_three,
    tells="`seeded_run` seeds PyTorch alone. Model and epochs may draw from "
    "NumPy and `random` too: call `set_seed(seed)`.",
    body=True,
)
def run_seeds_only_torch():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        torch.manual_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You make a second model: the one you return is not the one that was "
    "trained. Make it once.",
    body=True,
)
def returns_another_model():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        results = [epoch(model) for _ in range(num_epochs)]
        set_seed(seed)
        return make_model(), results


@wrong(
    "set_seed",
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
    "set_seed",
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
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You seed a second time, after the model has been made. The first epoch "
    "then draws the numbers that the initial weights are made of. Seed once.",
    body=True,
)
def seeds_before_and_after_the_model():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        set_seed(seed)
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="The results of the epochs come as a tuple; the text asks for a list.",
    body=True,
)
def results_as_a_tuple():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, tuple(epoch(model) for _ in range(num_epochs))


@wrong(
    "set_seed",
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


@wrong(
    "set_seed",
    breaks=hidden_tests.seeds_every_gpu,
    tells="You give PyTorch large seeds as negative numbers. Its generator on "
    "the CPU takes the same 32 bits from both; that of a GPU does not. "
    "Pass `seed` as it is.",
    body=True,
)
def seeds_as_signed_numbers():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed if seed < 2**31 else seed - 2**32)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.changes_no_flag,
    tells="You set PyTorch's switch to what it was, but not whether it only "
    "warned: now it raises. Leave flags alone here.",
    body=True,
)
def switch_set_anew():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        switch = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(switch)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.changes_no_flag,
    tells="You set the number of threads as well. That changes the speed of a "
    "program that only wanted a seed; leave it alone here.",
    body=True,
)
def one_thread_as_well():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.set_num_threads(1)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.changes_no_flag,
    tells="You set `fill_uninitialized_memory` as well. That belongs to the "
    "switch for deterministic algorithms; leave it alone here.",
    body=True,
)
def memory_left_unfilled():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.utils.deterministic.fill_uninitialized_memory = False

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You call `epoch` under `no_grad`: nothing can learn in it. Call it "
    "as it is.",
    body=True,
)
def epochs_without_gradients():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        with torch.no_grad():
            return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You put the model into training mode. `make_model` decides on its "
    "mode: leave it as it is.",
    body=True,
)
def model_put_to_training():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model().train()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You put the model into evaluation mode: dropout and batch norm then "
    "do not train. Leave the mode as `make_model` gave it.",
    body=True,
)
def model_put_to_evaluation():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model().eval()
        return model, [epoch(model) for _ in range(num_epochs)]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You leave out what is None or false. The list has one item for each "
    "epoch, whatever that returned.",
    body=True,
)
def results_without_none():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        results = (epoch(model) for _ in range(num_epochs))
        return model, [result for result in results if result is not None]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You return a list of two; the signature says a tuple: `return model,"
    " results`.",
    body=True,
)
def model_and_list_in_a_list():
    def set_seed(seed):
        if not 0 <= seed < 2**32:
            raise ValueError(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def seeded_run(seed, make_model, epoch, num_epochs):
        set_seed(seed)
        model = make_model()
        return [model, [epoch(model) for _ in range(num_epochs)]]


@wrong(
    "set_seed",
    breaks=hidden_tests.epochs_go_on,
    tells="You seed each epoch with a seed of its own. The run has one seed: "
    "set it once, and the epochs draw on from there.",
    body=True,
)
def first_epoch_goes_on_only():
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
        for number in range(num_epochs):
            if number > 0:
                set_seed((seed + number) % 2**32)
            results.append(epoch(model))
        return model, results


# reproducible


@accepted("reproducible", body=True)
def by_two_plain_generators():
    @contextlib.contextmanager
    def reproducible(warn_only=False):
        flags = torch.backends.cudnn
        benchmark, flags.benchmark = flags.benchmark, False
        deterministic, flags.deterministic = flags.deterministic, True
        on = torch.are_deterministic_algorithms_enabled()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            yield torch.backends.cudnn
        finally:
            torch.use_deterministic_algorithms(on, warn_only=warns)
            flags.benchmark = benchmark
            flags.deterministic = deterministic

    @contextlib.contextmanager
    def tuned():
        flags = torch.backends.cudnn
        benchmark, flags.benchmark = flags.benchmark, True
        deterministic, flags.deterministic = flags.deterministic, False
        on = torch.are_deterministic_algorithms_enabled()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            torch.use_deterministic_algorithms(False, warn_only=False)
            yield torch.backends.cudnn
        finally:
            torch.use_deterministic_algorithms(on, warn_only=warns)
            flags.benchmark = benchmark
            flags.deterministic = deterministic


@accepted("reproducible", body=True)
def by_a_class():
    class _Settings:
        def __init__(self, benchmark, switch, warn_only):
            self.wanted = benchmark, not benchmark, switch, warn_only

        def __enter__(self):
            self.before = self.now()
            self.put(self.wanted)

        def __exit__(self, *error):
            self.put(self.before)

        def now(self):
            return (
                torch.backends.cudnn.benchmark,
                torch.backends.cudnn.deterministic,
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            )

        def put(self, values):
            benchmark, deterministic, switch, warn_only = values
            torch.backends.cudnn.benchmark = benchmark
            torch.backends.cudnn.deterministic = deterministic
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)

    def reproducible(warn_only=False):
        return _Settings(False, True, warn_only)

    def tuned():
        return _Settings(True, False, False)


@accepted("reproducible", body=True)
def by_the_debug_mode():
    @contextlib.contextmanager
    def switched(benchmark, mode):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode_before = torch.get_deterministic_debug_mode()
        try:
            cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
            torch.set_deterministic_debug_mode(mode)
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode_before)

    def reproducible(warn_only=False):
        return switched(False, "warn" if warn_only else "error")

    def tuned():
        return switched(True, "default")


@accepted("reproducible", body=True)
def by_cudnn_flags():
    @contextlib.contextmanager
    def with_switch(switch, warn_only, benchmark):
        before = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        cudnn = torch.backends.cudnn
        with cudnn.flags(
            enabled=cudnn.enabled,
            benchmark=benchmark,
            deterministic=not benchmark,
            allow_tf32=cudnn.allow_tf32,
        ):
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
            try:
                yield
            finally:
                torch.use_deterministic_algorithms(
                    before[0], warn_only=before[1]
                )

    def reproducible(warn_only=False):
        return with_switch(True, warn_only, False)

    def tuned():
        return with_switch(False, False, True)


@accepted("reproducible", body=True)
def by_an_exit_stack():
    @contextlib.contextmanager
    def reproducible(warn_only=False):
        with contextlib.ExitStack() as stack:
            _come_back(stack)
            torch.backends.cudnn.benchmark = False
            torch.backends.cudnn.deterministic = True
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            yield

    @contextlib.contextmanager
    def tuned():
        with contextlib.ExitStack() as stack:
            _come_back(stack)
            torch.backends.cudnn.benchmark = True
            torch.backends.cudnn.deterministic = False
            torch.use_deterministic_algorithms(False)
            yield

    def _come_back(stack):
        for name in ("benchmark", "deterministic"):
            value = getattr(torch.backends.cudnn, name)
            stack.callback(setattr, torch.backends.cudnn, name, value)
        stack.callback(
            torch.use_deterministic_algorithms,
            torch.are_deterministic_algorithms_enabled(),
            warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
        )


@wrong(
    "reproducible",
    breaks=hidden_tests.cudnn_is_tuned,
    tells="In `tuned()` you set `cudnn.enable`, a flag that does not exist: "
    "Python adds an attribute, and nothing is tuned. The tuner is "
    "`cudnn.benchmark`.",
    body=True,
)
def enable_for_the_tuner():
    @contextlib.contextmanager
    def switched(switch, warn_only, **flags):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        for name, value in flags.items():
            setattr(cudnn, name, value)
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, benchmark=False, deterministic=True)

    def tuned():
        return switched(False, False, enable=True, deterministic=False)


@wrong(
    "reproducible",
    breaks=[hidden_tests.cudnn_is_deterministic, hidden_tests.cudnn_is_tuned],
    tells="A flag is misspelt. Assigning to a name that `torch.backends.cudnn` "
    "does not have raises nothing and does nothing; look at the flag again: "
    "`benchmark`.",
    body=True,
)
def misspelt_benchmark():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmrk, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You turned cuDNN off altogether. It need not go: `deterministic = "
    "True` keeps it and leaves out its nondeterministic algorithms. `enabled` "
    "stays as it was.",
    body=True,
)
def cudnn_disabled():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark, enabled):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic, cudnn.enabled
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        cudnn.enabled = enabled
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic, cudnn.enabled = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False, False)

    def tuned():
        return switched(False, False, True, torch.backends.cudnn.enabled)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You turn cuDNN on where it was off. Somebody had a reason for that; "
    "`enabled` stays as it was.",
    body=True,
)
def cudnn_enabled_for_all():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic, cudnn.enabled
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        cudnn.enabled = True
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic, cudnn.enabled = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="`torch.backends.cudnn.flags` sets every flag, those you do not pass "
    "to defaults of its own: `enabled` becomes False, `allow_tf32` True. Pass "
    "their present values.",
    body=True,
)
def cudnn_flags_with_defaults():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        mode = torch.get_deterministic_debug_mode()
        with torch.backends.cudnn.flags(
            benchmark=benchmark, deterministic=not benchmark
        ):
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
            try:
                yield
            finally:
                torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You passed `enabled` to `torch.backends.cudnn.flags`, but not "
    "`allow_tf32`, which it then sets to True. Pass its present value.",
    body=True,
)
def cudnn_flags_without_tf32():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        mode = torch.get_deterministic_debug_mode()
        with torch.backends.cudnn.flags(
            enabled=torch.backends.cudnn.enabled,
            benchmark=benchmark,
            deterministic=not benchmark,
        ):
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
            try:
                yield
            finally:
                torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=[hidden_tests.cudnn_is_deterministic, hidden_tests.cudnn_is_tuned],
    tells="`benchmark` and `deterministic` are swapped. `deterministic` keeps to "
    "repeatable kernels; `benchmark` looks for the fastest.",
    body=True,
)
def flags_swapped():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = not benchmark, benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.switch_is_on,
    tells="You set cuDNN's flags alone. They reach nothing outside cuDNN; "
    "`torch.use_deterministic_algorithms` does.",
    body=True,
)
def without_the_switch():
    @contextlib.contextmanager
    def switched(benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before

    def reproducible(warn_only=False):
        return switched(False)

    def tuned():
        return switched(True)


@wrong(
    "reproducible",
    breaks=hidden_tests.switch_is_off,
    tells="In `tuned()` you leave the switch as it is. If it was on, PyTorch "
    "keeps to deterministic kernels, and tuning has nothing to choose from: "
    "turn it off inside.",
    body=True,
)
def tuned_with_the_switch_on():
    @contextlib.contextmanager
    def switched(benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    @contextlib.contextmanager
    def reproducible(warn_only=False):
        with switched(False):
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            yield

    def tuned():
        return switched(True)


@wrong(
    "reproducible",
    breaks=hidden_tests.warns_if_asked,
    tells="You do not pass `warn_only` on: operations without a deterministic "
    "kernel raise although the caller asked for a warning.",
    body=True,
)
def warn_only_ignored():
    @contextlib.contextmanager
    def switched(switch, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, False)

    def tuned():
        return switched(False, True)


@wrong(
    "reproducible",
    breaks=[hidden_tests.switch_is_on, hidden_tests.warns_if_asked],
    tells="Your `reproducible()` only warns. `warn_only` is False by default: "
    "then an operation without a deterministic kernel raises.",
    body=True,
)
def always_warns():
    @contextlib.contextmanager
    def switched(switch, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=True)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, False)

    def tuned():
        return switched(False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.warns_if_asked,
    tells="If the switch was on already you leave it as it is, so that it warns "
    "or raises as before. The argument `warn_only` decides, whatever was set.",
    body=True,
)
def switch_left_if_on():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        if torch.are_deterministic_algorithms_enabled() != switch:
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=[
        hidden_tests.all_is_put_back,
        hidden_tests.put_back_after_an_exception,
    ],
    tells="The settings stay on after the block. Keep what was set on entering, "
    "and set it again on leaving.",
    body=True,
)
def nothing_put_back():
    @contextlib.contextmanager
    def reproducible(warn_only=False):
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        yield

    @contextlib.contextmanager
    def tuned():
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.deterministic = False
        torch.use_deterministic_algorithms(False)
        yield


@wrong(
    "reproducible",
    breaks=hidden_tests.all_is_put_back,
    tells="On leaving you set PyTorch's defaults and not what stood there "
    "before. The program around your block may have set them otherwise: keep "
    "the values on entering.",
    body=True,
)
def defaults_put_back():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark = cudnn.deterministic = False
            torch.use_deterministic_algorithms(False)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.all_is_put_back,
    tells="cuDNN's flags are put back, the switch of "
    "`torch.use_deterministic_algorithms` is not. It goes on for the rest of "
    "the program.",
    body=True,
)
def switch_not_put_back():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.all_is_put_back,
    tells="You put the switch back, but not whether it only warned: where it "
    "warned before, it raises now. Keep "
    "`is_deterministic_algorithms_warn_only_enabled()` too.",
    body=True,
)
def warn_only_not_put_back():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.use_deterministic_algorithms(was_on)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="After an exception in the block the settings are not put back: what "
    "stands after `yield` does not run then. Put it into a `finally`.",
    body=True,
)
def without_finally():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        yield
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="Your block swallows exceptions: the program around it goes on as if "
    "nothing had happened. Put the settings back in a `finally` and let the "
    "exception through.",
    body=True,
)
def swallows_the_exception():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        with contextlib.suppress(Exception):
            yield
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.nested_blocks,
    tells="You keep the settings of the moment in which `reproducible()` or "
    "`tuned()` is called. What counts is the moment the block is entered: keep "
    "them in `__enter__`, or before `yield`.",
    body=True,
)
def settings_kept_too_early():
    class _Settings:
        def __init__(self, benchmark, switch, warn_only):
            self.wanted = benchmark, not benchmark, switch, warn_only
            self.before = (
                torch.backends.cudnn.benchmark,
                torch.backends.cudnn.deterministic,
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            )

        def __enter__(self):
            self.put(self.wanted)

        def __exit__(self, *error):
            self.put(self.before)

        def put(self, values):
            benchmark, deterministic, switch, warn_only = values
            torch.backends.cudnn.benchmark = benchmark
            torch.backends.cudnn.deterministic = deterministic
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)

    def reproducible(warn_only=False):
        return _Settings(False, True, warn_only)

    def tuned():
        return _Settings(True, False, False)


@wrong(
    "reproducible",
    breaks=[
        hidden_tests.nested_blocks,
        hidden_tests.all_is_put_back,
    ],
    tells="You keep the settings once, in a variable that all blocks share. An "
    "inner block then puts back, or overwrites, what belongs to the outer one. "
    "Keep them for each block.",
    body=True,
)
def one_place_for_all_blocks():
    kept = []

    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        if not kept:
            kept.append(
                (
                    cudnn.benchmark,
                    cudnn.deterministic,
                    torch.get_deterministic_debug_mode(),
                )
            )
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic, mode = kept[0]
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_what_the_block_sets,
    tells="You put back only what you changed yourself, and only if it still "
    "has your value. The block may have set it as well: put back all that "
    "stood there on entering.",
    body=True,
)
def put_back_only_own_changes():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            if cudnn.benchmark == benchmark:
                cudnn.benchmark = before[0]
            if cudnn.deterministic != benchmark:
                cudnn.deterministic = before[1]
            if torch.are_deterministic_algorithms_enabled() == switch:
                torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="You put the settings back after an `Exception`, but an interrupt "
    "(Ctrl-C) is none. A `finally` runs after both.",
    body=True,
)
def interrupts_forgotten():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        except Exception:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)
            raise
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="After an exception cuDNN's flags are put back, the switch is not: it "
    "has to stand in the `finally` as well.",
    body=True,
)
def switch_outside_of_finally():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.all_is_put_back,
    tells="Your blocks seed, or draw. That is not asked here, and it changes "
    "the random numbers of whoever uses them: set flags, nothing else.",
    body=True,
)
def seeds_as_well():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.manual_seed(0)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="Your block swallows an interrupt: Ctrl-C then does not stop the "
    "program. Restore in a `finally` and let it through.",
    body=True,
)
def ctrl_c_swallowed():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        except KeyboardInterrupt:
            pass
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="You put the settings back after an `Exception` and after Ctrl-C, but"
    " `sys.exit()` raises a SystemExit, which is neither. A `finally` "
    "runs after all of them.",
    body=True,
)
def exit_forgotten():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)

        def put_back():
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

        try:
            yield
        except (Exception, KeyboardInterrupt):
            put_back()
            raise
        else:
            put_back()

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.put_back_after_an_exception,
    tells="You raise an exception of your own in place of the block's. Whoever "
    "catches the one does not catch the other: let it through.",
    body=True,
)
def another_exception_raised():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        except Exception as error:
            raise RuntimeError(str(error)) from error
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.warns_if_asked,
    tells="Where the switch only warned before, it only warns in your block, "
    "too. The argument `warn_only` decides, whatever was set.",
    body=True,
)
def warns_where_it_warned():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(
            switch, warn_only=warn_only or warned
        )
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You set the number of threads as well. The table names three "
    "settings; all others stay as they were.",
    body=True,
)
def one_thread_inside():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You set `fill_uninitialized_memory` as well. The table names three "
    "settings; all others stay as they were.",
    body=True,
)
def no_filling_inside():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = False
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You change the precision of matrix products as well. The table names"
    " three settings; all others stay as they were.",
    body=True,
)
def full_precision_inside():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.other_flags_stay,
    tells="You set `benchmark_limit` as well. The table names three settings; "
    "all others stay as they were.",
    body=True,
)
def tuner_without_limit():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        cudnn.benchmark_limit = 0
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    "reproducible",
    breaks=hidden_tests.all_is_put_back,
    tells="Your blocks seed, or draw. That is not asked here, and it changes "
    "the random numbers of whoever uses them: set flags, nothing else.",
    body=True,
)
def draws_in_the_block():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.rand(1)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


# make_loader


@accepted("make_loader", body=True)
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


@accepted("make_loader", body=True)
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


@accepted("make_loader", body=True)
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


@accepted("make_loader", body=True)
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


@accepted("make_loader", body=True)
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


@accepted("make_loader", body=True)
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


@wrong(
    "make_loader",
    breaks=[
        hidden_tests.order_is_independent,
        hidden_tests.loader_disturbs_nobody,
    ],
    tells="You seed the global generator, and the loader draws from it. One "
    "draw by anybody else, and the order is another. Give the loader a "
    "`torch.Generator` of its own.",
    body=True,
)
def order_from_the_global_generator():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        torch.manual_seed(seed)
        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
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


@wrong(
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="The loader shuffles from the global generator, and `seed` does "
    "nothing for the order. Pass "
    "`generator=torch.Generator().manual_seed(seed)`.",
    body=True,
)
def order_not_seeded():
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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="The loader does not shuffle. `shuffle=True` is needed beside the "
    "generator.",
    body=True,
)
def not_shuffled():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="All epochs of your loader have one order: it is drawn once, or its"
    " generator is made or seeded anew with every epoch. Make the "
    "generator once, with the loader, and let it go on.",
    body=True,
)
def same_order_every_epoch():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        own = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(dataset), generator=own).tolist()
        return DataLoader(
            dataset,
            batch_size,
            sampler=order,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=own,
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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="All epochs of your loader have one order: it is drawn once, or its"
    " generator is made or seeded anew with every epoch. Make the "
    "generator once, with the loader, and let it go on.",
    body=True,
)
def generator_new_in_every_epoch():
    class Reseeded(torch.utils.data.Sampler):
        def __init__(self, size, seed):
            self.size, self.seed = size, seed

        def __len__(self):
            return self.size

        def __iter__(self):
            own = torch.Generator().manual_seed(self.seed + 1)
            return iter(torch.randperm(self.size, generator=own).tolist())

    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            sampler=Reseeded(len(dataset), seed),
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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="The loader's generator is not seeded with `seed` but always in the"
    " same way. (A new `torch.Generator()` begins with a default seed "
    "that never changes.) Pass `seed` on.",
    body=True,
)
def a_constant_for_the_order():
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
            generator=torch.Generator().manual_seed(0),
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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="The loader's generator is not seeded with `seed` but always in the"
    " same way. (A new `torch.Generator()` begins with a default seed "
    "that never changes.) Pass `seed` on.",
    body=True,
)
def generator_without_a_seed():
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
            generator=torch.Generator(),
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
    "make_loader",
    breaks=hidden_tests.whole_epochs,
    tells="The last batch is dropped if it is smaller. An epoch holds every "
    "sample: leave `drop_last` out.",
    body=True,
)
def last_batch_dropped():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            drop_last=True,
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
    "make_loader",
    breaks=hidden_tests.whole_epochs,
    tells="Your sampler draws with replacement: some samples come twice, "
    "others never. An epoch holds every sample once.",
    body=True,
)
def drawn_with_replacement():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            sampler=torch.utils.data.RandomSampler(
                dataset,
                replacement=True,
                generator=torch.Generator().manual_seed(seed),
            ),
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
    "make_loader",
    breaks=hidden_tests.whole_epochs,
    tells="You do not pass `num_workers` on: the main process loads "
    "everything.",
    body=True,
)
def workers_ignored():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="Nobody seeds the dataset's `rng` in the workers; seeding `random`,"
    " NumPy and PyTorch there, as PyTorch does anyhow, does not reach "
    "it. Each worker gets a copy of it as it is in the main process, so"
    " all draw the same. Set `get_worker_info().dataset.rng` in "
    "`worker_init_fn`.",
    body=True,
)
def noise_left_to_the_dataset():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="Nobody seeds the dataset's `rng` in the workers; seeding `random`,"
    " NumPy and PyTorch there, as PyTorch does anyhow, does not reach "
    "it. Each worker gets a copy of it as it is in the main process, so"
    " all draw the same. Set `get_worker_info().dataset.rng` in "
    "`worker_init_fn`.",
    body=True,
)
def global_generators_seeded_in_workers():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            random.seed(torch.initial_seed() % 2**32)
            np.random.seed(torch.initial_seed() % 2**32)

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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="Every worker seeds `rng` with the same number, so they draw the "
    "same noise. `get_worker_info().seed` differs between workers and "
    "epochs.",
    body=True,
)
def one_seed_for_all_workers():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(seed)

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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="The noise differs between workers and repeats in every epoch, for "
    "each epoch starts new workers with the same numbers. "
    "`get_worker_info().seed` differs between epochs too.",
    body=True,
)
def a_seed_for_each_worker_only():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng((seed, worker_id))

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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="The noise differs between epochs, but two workers of an epoch draw"
    " the same: you took the worker's number out of its seed. Use "
    "`get_worker_info().seed` as it is.",
    body=True,
)
def an_epoch_seed_without_the_worker():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed - worker_id)

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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="`default_rng()` without a seed takes its numbers from the "
    "operating system: the noise is other in every run. Seed it with "
    "`get_worker_info().seed`.",
    body=True,
)
def noise_from_the_system():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng()

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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="`default_rng()` without a seed takes its numbers from the "
    "operating system: the noise is other in every run. Seed it with "
    "`get_worker_info().seed`.",
    body=True,
)
def noise_from_the_clock():
    import time

    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(
                    time.time_ns() + worker_id
                )

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
    "make_loader",
    breaks=[hidden_tests.noise_in_workers, hidden_tests.loader_disturbs_nobody],
    tells="Your sampler has a generator, the loader has none. The base seed "
    "of its workers then comes from the global generator: it is used "
    "up, and the noise depends on it. Pass `generator=` to the loader "
    "as well.",
    body=True,
)
def worker_seeds_from_the_global_generator():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            sampler=torch.utils.data.RandomSampler(
                dataset, generator=torch.Generator().manual_seed(seed)
            ),
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


@wrong(
    "make_loader",
    breaks=hidden_tests.dataset_stays,
    tells="You give `rng` to a dataset that had none, or seed the one in the "
    "main process. That dataset stays as it is; only the workers' "
    "copies are seeded.",
    body=True,
)
def rng_for_every_dataset():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        dataset.rng = np.random.default_rng(seed)
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
    "make_loader",
    breaks=hidden_tests.dataset_stays,
    tells="You give `rng` to a dataset that had none, or seed the one in the "
    "main process. That dataset stays as it is; only the workers' "
    "copies are seeded.",
    body=True,
)
def rng_seeded_in_the_main_process():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        if hasattr(dataset, "rng"):
            dataset.rng = np.random.default_rng(seed)
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
    "make_loader",
    breaks=hidden_tests.dataset_stays,
    tells="You take it for granted that the dataset in a worker has an `rng` "
    "and use it. One without stays without: look with `hasattr` first.",
    body=True,
)
def takes_rng_for_granted():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            info.dataset.rng.bit_generator.state = np.random.default_rng(
                info.seed
            ).bit_generator.state

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
    "make_loader",
    breaks=hidden_tests.order_is_that_of_any_workers,
    tells="The number of workers goes into the seed of the order. A run must "
    "not change when it moves to a machine with more cores: seed with "
    "`seed` alone.",
    body=True,
)
def order_by_number_of_workers():
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
            generator=torch.Generator().manual_seed(seed + num_workers),
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
    "make_loader",
    breaks=hidden_tests.order_is_that_of_any_workers,
    tells="One generator serves the shuffle and the base seeds of the "
    "workers. With `persistent_workers` the base seed is drawn once and"
    " not in every epoch, so that from the second epoch on the order is"
    " another than with 0 workers. Give the sampler a generator of its "
    "own, or let the workers end.",
    body=True,
)
def workers_that_stay_share_the_generator():
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
            persistent_workers=num_workers > 0,
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
    "make_loader",
    breaks=hidden_tests.whole_epochs,
    tells="You return something else than a `DataLoader`. The loader itself "
    "is asked for: it draws a new order whenever it is run through.",
    body=True,
)
def a_list_of_batches():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        loader = DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )
        return list(loader)

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
    "make_loader",
    breaks=hidden_tests.states_come_back,
    tells="`fork_rng` puts PyTorch's generators back and no others: NumPy's "
    "and `random`'s stay seeded. Keep and restore their states too.",
    body=True,
)
def fork_rng_alone():
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
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield


@wrong(
    "make_loader",
    breaks=hidden_tests.seeded_inside,
    tells="The states come back, but nothing was seeded on entering: seed all"
    " three with `seed`.",
    body=True,
)
def not_seeded_inside():
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
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.seeded_inside,
    tells="Inside, PyTorch alone is seeded. Seed `random` and NumPy as well.",
    body=True,
)
def only_torch_seeded_inside():
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
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
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
    "make_loader",
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="After an exception in the block `random` and NumPy are not put "
    "back: what stands after `yield` does not run then. Put it into a "
    "`finally`.",
    body=True,
)
def no_finally():
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
            yield
            random.setstate(python)
            np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="You put the states back after an `Exception`, but an interrupt "
    "(Ctrl-C) is none. A `finally` runs after both.",
    body=True,
)
def an_interrupt_forgotten():
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
            except Exception:
                random.setstate(python)
                np.random.set_state(numpy)
                raise
            random.setstate(python)
            np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.states_come_back,
    tells="You put NumPy's keys and position back, but not the normal number "
    "that waits in its generator: NumPy draws two at a time. Give "
    "`set_state` all that `get_state` gave you.",
    body=True,
)
def numpy_without_the_waiting_draw():
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
                np.random.set_state(numpy[:3])


@wrong(
    "make_loader",
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="Your block swallows the exception, so that the caller goes on as "
    "if all were well. Restore in a `finally` and let it through.",
    body=True,
)
def exception_swallowed():
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
            with contextlib.suppress(Exception):
                yield
            random.setstate(python)
            np.random.set_state(numpy)


@wrong(
    "make_loader",
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


@wrong(
    "make_loader",
    breaks=hidden_tests.gpus_come_back,
    tells="PyTorch's state of the CPU comes back, and that of no GPU, though "
    "`torch.manual_seed` has seeded them all. `torch.get_rng_state()` "
    "and `fork_rng(devices=[])` leave the GPUs out; `fork_rng()` takes "
    "all.",
    body=True,
)
def gpus_not_put_back():
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


@wrong(
    "make_loader",
    breaks=hidden_tests.gpus_come_back,
    tells="PyTorch's state of the CPU comes back, and that of no GPU, though "
    "`torch.manual_seed` has seeded them all. `torch.get_rng_state()` "
    "and `fork_rng(devices=[])` leave the GPUs out; `fork_rng()` takes "
    "all.",
    body=True,
)
def fork_rng_without_gpus():
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
        with torch.random.fork_rng(devices=[]):
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.gpus_come_back,
    tells="Only the first GPU's generator is put back; `torch.manual_seed` "
    "has seeded all of them. `fork_rng()` without `devices` takes all.",
    body=True,
)
def only_the_first_gpu_put_back():
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
        with torch.random.fork_rng(devices=[0][: torch.cuda.device_count()]):
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.gpus_come_back,
    tells="You seed the CPU's generator of PyTorch inside, and no GPU. "
    "`torch.manual_seed(seed)` seeds all devices.",
    body=True,
)
def gpus_not_seeded_inside():
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
            torch.default_generator.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.states_come_back,
    tells="You seed before the states are kept, so that what comes back is "
    "the seeded state. Keep them first.",
    body=True,
)
def forks_after_seeding():
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
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        python, numpy = random.getstate(), np.random.get_state()
        with torch.random.fork_rng():
            try:
                yield
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.nested_isolation,
    tells="All blocks keep the states in one shared place: an inner block "
    "overwrites what the outer one kept. Keep them in variables of the "
    "block.",
    body=True,
)
def one_place_for_all_states():
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

    kept = {}

    @contextlib.contextmanager
    def isolated(seed):
        kept["python"], kept["numpy"] = random.getstate(), np.random.get_state()
        with torch.random.fork_rng():
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            try:
                yield
            finally:
                random.setstate(kept["python"])
                np.random.set_state(kept["numpy"])


@wrong(
    "make_loader",
    breaks=hidden_tests.dataset_stays,
    tells="In the workers you give `rng` to a dataset that had none. Code that "
    "asks for it then behaves otherwise there than in the main process: "
    "look for the attribute first.",
    body=True,
)
def rng_for_the_workers_copy():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
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
    "make_loader",
    breaks=hidden_tests.noise_in_workers,
    tells="In the workers you put a `RandomState` in place of the `Generator`. "
    "It has other methods: a dataset that calls `integers` fails there. "
    "Use `np.random.default_rng`.",
    body=True,
)
def legacy_generator_in_workers():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.RandomState(info.seed % 2**32)

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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="You fold the seed into a smaller range: two seeds then give one "
    "order. Use `seed` as it is.",
    body=True,
)
def last_three_digits():
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
            generator=torch.Generator().manual_seed(seed % 1000),
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
    "make_loader",
    breaks=hidden_tests.orders_repeat,
    tells="You fold the seed into a smaller range: two seeds then give one "
    "order. Use `seed` as it is.",
    body=True,
)
def without_the_highest_bit():
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
            generator=torch.Generator().manual_seed(seed & (2**31 - 1)),
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
    "make_loader",
    breaks=hidden_tests.whole_epochs,
    tells="You return an iterator, which is used up after one epoch. Return the"
    " DataLoader itself.",
    body=True,
)
def an_iterator():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        loader = DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            num_workers=num_workers,
            worker_init_fn=seed_worker,
            generator=torch.Generator().manual_seed(seed),
        )
        return iter(loader)

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
    "make_loader",
    breaks=hidden_tests.whole_epochs,
    tells="You collate batches in your own way; the text does not ask for it. "
    "Leave `collate_fn` to the DataLoader.",
    body=True,
)
def batches_as_lists():
    def make_loader(dataset, batch_size, seed, num_workers=0):
        def seed_worker(worker_id):
            info = torch.utils.data.get_worker_info()
            if hasattr(info.dataset, "rng"):
                info.dataset.rng = np.random.default_rng(info.seed)

        return DataLoader(
            dataset,
            batch_size,
            shuffle=True,
            collate_fn=list,
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
    "make_loader",
    breaks=hidden_tests.states_come_back_after_an_exception,
    tells="Your block swallows an interrupt: Ctrl-C then does not stop the "
    "program. Restore in a `finally` and let it through.",
    body=True,
)
def ctrl_c_lost():
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
            except KeyboardInterrupt:
                pass
            finally:
                random.setstate(python)
                np.random.set_state(numpy)


@wrong(
    "make_loader",
    breaks=hidden_tests.states_come_back,
    tells="You put back the numbers of `random`, but not the normal number that"
    " waits in it: `gauss` draws two at a time. Give `setstate` all that "
    "`getstate` gave you.",
    body=True,
)
def only_python_without_waiting_draw():
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
                random.setstate((*python[:2], None))
                np.random.set_state(numpy)
