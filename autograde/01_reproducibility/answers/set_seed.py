"""Answers to `set_seed` of chapter 01."""

import os
import random

import numpy as np
import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


makes_a_numpy_generator = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "np.random.seed(seed)": "np.random.default_rng(seed)",
    },
    breaks=hidden_tests.seeds_numpy,
    tells="NumPy's global generator, from which `np.random.rand` draws, was not "
    "seeded: `np.random.seed(seed)`. A generator of your own, from "
    "`np.random.default_rng(seed)`, is another one, which nobody else uses.",
)

makes_a_torch_generator = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.Generator().manual_seed(seed)
        torch.cuda.manual_seed_all(seed)
        """,
    },
    breaks=[
        hidden_tests.seeds_torch,
        hidden_tests.initial_weights_are_seeded,
    ],
    tells="You made a `torch.Generator` with the seed and did not use it. What "
    "draws without a generator draws from the global one, which "
    "`torch.manual_seed(seed)` seeds.",
)


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


zero_for_the_gpus = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.manual_seed(seed)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(0)
        """,
    },
    breaks=hidden_tests.seeds_every_gpu,
    tells="After seeding everything you seeded the GPUs with 0. "
    "`torch.manual_seed(seed)` had done them already; now their numbers stay "
    "the same whatever `seed` is. Leave the line out.",
)

only_the_cpu_generator = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": "torch.default_generator.manual_seed(seed)",
    },
    breaks=hidden_tests.seeds_every_gpu,
    tells="You seeded the CPU's generator of PyTorch and no GPU. "
    "`torch.manual_seed(seed)` seeds all devices; the method of one generator "
    "seeds that one.",
)

only_the_first_gpu = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.default_generator.manual_seed(seed)
        torch.cuda.manual_seed(seed)
        """,
    },
    breaks=hidden_tests.seeds_every_gpu,
    tells="You seeded one GPU. `torch.cuda.manual_seed` is about the current "
    "one; `torch.manual_seed(seed)` seeds all devices.",
)

numpy_refuses_too_late = edit(
    SOLUTION,
    {
        """
        if not 0 <= seed < 2**32:
            raise ValueError(f"NumPy takes no seed like {seed}.")
        """: "",
    },
    breaks=hidden_tests.refuses_other_seeds,
    tells="A seed outside the range was refused by NumPy, after `random` had "
    "been seeded already. Look at `seed` first, then seed.",
)

folds_the_seed = edit(
    SOLUTION,
    {
        """
        if not 0 <= seed < 2**32:
            raise ValueError(f"NumPy takes no seed like {seed}.")
        """: "seed = seed % 2**32",
    },
    breaks=hidden_tests.refuses_other_seeds,
    tells="You fold a seed that is too large, or negative, into the range. Then "
    "two different seeds give one and the same run, and nobody knows. Raise a "
    "ValueError.",
)


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


sets_flags_too = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        """,
    },
    breaks=hidden_tests.changes_no_flag,
    tells="Your `set_seed` sets flags of cuDNN or PyTorch as well. That changes "
    "the speed of a program that only wanted a seed; leave them alone here.",
)


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


seeds_every_epoch = edit(
    mended_seeds_every_epoch,
    {
        "for _ in range(num_epochs):": """
        for _ in range(num_epochs):
            set_seed(seed)
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You seed anew in every epoch, so all epochs draw the same: the same "
    "order, the same dropout. Seed once, before the model is made.",
)

a_seed_for_each_epoch = edit(
    mended_seeds_every_epoch,
    {
        "for _ in range(num_epochs):": """
        for number in range(num_epochs):
            set_seed((seed + number) % 2**32)
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You seed each epoch with a seed of its own. The run has one seed: set "
    "it once, and the epochs draw on from there.",
)

forgets_to_seed_the_run = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "set_seed(seed)": "",
    },
    breaks=hidden_tests.initial_weights_are_seeded,
    tells="`seeded_run` does not seed: it goes on from whatever was drawn "
    "before. Call `set_seed(seed)` first.",
)

run_seeds_only_torch = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "set_seed(seed)": "torch.manual_seed(seed)",
    },
    breaks=hidden_tests.run_with_all_three,
    tells="`seeded_run` seeds PyTorch alone. Model and epochs may draw from "
    "NumPy and `random` too: call `set_seed(seed)`.",
)

returns_another_model = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "return model, [epoch(model) for _ in range(num_epochs)]": """
        results = [epoch(model) for _ in range(num_epochs)]
        set_seed(seed)
        return make_model(), results
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You make a second model: the one you return is not the one that was "
    "trained. Make it once.",
)


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


seeds_before_and_after_the_model = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "model = make_model()": """
        model = make_model()
        set_seed(seed)
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You seed a second time, after the model has been made. The first epoch "
    "then draws the numbers that the initial weights are made of. Seed once.",
)

results_as_a_tuple = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "return model, [epoch(model) for _ in range(num_epochs)]": "return model, tuple(epoch(model) for _ in range(num_epochs))",
    },
    breaks=hidden_tests.epochs_go_on,
    tells="The results of the epochs come as a tuple; the text asks for a list.",
)


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


seeds_as_signed_numbers = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": "torch.manual_seed(seed if seed < 2**31 else seed - 2**32)",
    },
    breaks=hidden_tests.seeds_every_gpu,
    tells="You give PyTorch large seeds as negative numbers. Its generator on "
    "the CPU takes the same 32 bits from both; that of a GPU does not. "
    "Pass `seed` as it is.",
)

switch_set_anew = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.manual_seed(seed)
        switch = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(switch)
        """,
    },
    breaks=hidden_tests.changes_no_flag,
    tells="You set PyTorch's switch to what it was, but not whether it only "
    "warned: now it raises. Leave flags alone here.",
)

one_thread_as_well = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        """,
    },
    breaks=hidden_tests.changes_no_flag,
    tells="You set the number of threads as well. That changes the speed of a "
    "program that only wanted a seed; leave it alone here.",
)

memory_left_unfilled = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "torch.manual_seed(seed)": """
        torch.manual_seed(seed)
        torch.utils.deterministic.fill_uninitialized_memory = False
        """,
    },
    breaks=hidden_tests.changes_no_flag,
    tells="You set `fill_uninitialized_memory` as well. That belongs to the "
    "switch for deterministic algorithms; leave it alone here.",
)

epochs_without_gradients = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "return model, [epoch(model) for _ in range(num_epochs)]": """
        with torch.no_grad():
            return model, [epoch(model) for _ in range(num_epochs)]
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You call `epoch` under `no_grad`: nothing can learn in it. Call it "
    "as it is.",
)

model_put_to_training = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "model = make_model()": "model = make_model().train()",
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You put the model into training mode. `make_model` decides on its "
    "mode: leave it as it is.",
)

model_put_to_evaluation = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "model = make_model()": "model = make_model().eval()",
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You put the model into evaluation mode: dropout and batch norm then "
    "do not train. Leave the mode as `make_model` gave it.",
)

results_without_none = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "return model, [epoch(model) for _ in range(num_epochs)]": """
        results = (epoch(model) for _ in range(num_epochs))
        return model, [result for result in results if result is not None]
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You leave out what is None or false. The list has one item for each "
    "epoch, whatever that returned.",
)

model_and_list_in_a_list = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "return model, [epoch(model) for _ in range(num_epochs)]": "return [model, [epoch(model) for _ in range(num_epochs)]]",
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You return a list of two; the signature says a tuple: `return model,"
    " results`.",
)

first_epoch_goes_on_only = edit(
    mended_seeds_every_epoch,
    {
        "for _ in range(num_epochs):": """
        for number in range(num_epochs):
            if number > 0:
                set_seed((seed + number) % 2**32)
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You seed each epoch with a seed of its own. The run has one seed: "
    "set it once, and the epochs draw on from there.",
)


forgets_numpy = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "np.random.seed(seed)": "",
    },
    breaks=hidden_tests.seeds_numpy,
    tells="NumPy's global generator, from which `np.random.rand` draws, was not "
    "seeded: `np.random.seed(seed)`. A generator of your own, from "
    "`np.random.default_rng(seed)`, is another one, which nobody else uses.",
)

gradients_cleared_after_each_epoch = edit(
    mended_seeds_every_epoch,
    {
        "results.append(epoch(model))": """
        results.append(epoch(model))
        model.zero_grad()
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You clear the gradients. They are the matter of `epoch`: one that "
    "accumulates over several calls needs what the last one left.",
)

gradients_cleared_before_the_epochs = edit(
    mended_seeds_every_epoch,
    {
        "results = []": """
        results = []
        model.zero_grad()
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You clear the gradients. They are the matter of `epoch`: one that "
    "accumulates over several calls needs what the last one left.",
)

gradients_cleared_at_the_end = edit(
    mended_seeds_every_epoch,
    {
        "return model, results": """
        model.zero_grad()
        return model, results
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You clear the gradients. They are the matter of `epoch`: one that "
    "accumulates over several calls needs what the last one left.",
)

results_in_a_shared_list = edit(
    mended_seeds_every_epoch,
    {
        "def seeded_run(seed, make_model, epoch, num_epochs):": "def seeded_run(seed, make_model, epoch, num_epochs, results=[]):",
        "results = []": "",
    },
    breaks=hidden_tests.epochs_go_on,
    tells="The list is a default argument, so all runs share one: a second run "
    "returns the first one's results too. Make a new list in each run.",
)

epochs_not_run_yet = edit(
    SOLUTION,
    {
        'raise ValueError(f"NumPy takes no seed like {seed}.")': "raise ValueError(seed)",
        "return model, [epoch(model) for _ in range(num_epochs)]": "return model, (epoch(model) for _ in range(num_epochs))",
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You return a generator, and no epoch has run when it comes back. Make "
    "it a list.",
)


one_epoch_at_least = edit(
    mended_seeds_every_epoch,
    {"range(num_epochs)": "range(max(1, num_epochs))"},
    breaks=hidden_tests.epochs_go_on,
    tells="You run an epoch although `num_epochs` is 0. Then the list is empty.",
)


done_with_the_gpus = edit(
    only_if_there_is_a_gpu,
    {
        "torch.cuda.manual_seed_all(seed)": """
        torch.cuda.manual_seed_all(seed)
        return
        """,
    },
    breaks=hidden_tests.seeds_every_gpu,
    tells="Where there are GPUs, you return before `random` and NumPy are "
    "seeded. Seed them on every machine.",
)

results_as_numbers = edit(
    SOLUTION,
    {
        "return model, [epoch(model) for _ in range(num_epochs)]": """
        results = [epoch(model) for _ in range(num_epochs)]
        return model, [
            one.item() if isinstance(one, torch.Tensor) else one
            for one in results
        ]
        """,
    },
    breaks=hidden_tests.epochs_go_on,
    tells="You make numbers of the tensors that `epoch` returned. The list holds what "
    "it returned.",
)

workspace_of_cublas_written = edit(
    SOLUTION,
    {
        "np.random.seed(seed)": """
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        np.random.seed(seed)
        """,
    },
    breaks=hidden_tests.changes_no_flag,
    tells="You write a switch of determinism into the environment. Seeding changes "
    "no setting.",
)

others_seeded_by_random = edit(
    SOLUTION,
    {
        "np.random.seed(seed)": "np.random.seed(random.getrandbits(32))",
        "torch.manual_seed(seed)": "torch.manual_seed(random.getrandbits(32))",
    },
    breaks=hidden_tests.seeds_numpy,
    tells="You draw the seeds of NumPy and PyTorch from `random`. They are then seeded with "
    "other numbers than `seed`, and `random` has moved on by two draws. Give all three "
    "`seed` itself.",
)

thawed_before_the_epochs = edit(
    SOLUTION,
    {"model = make_model()": "model = make_model().requires_grad_(True)"},
    breaks=hidden_tests.epochs_go_on,
    tells="You switch `requires_grad` on for all parameters. What `make_model` has frozen "
    "is trained then: leave the model as it was made.",
)
