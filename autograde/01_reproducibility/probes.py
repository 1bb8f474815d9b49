"""Drives what the exercises of chapter 01 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. A stand-in takes the place of the GPUs, so that what
reaches their generators can be seen on a CPU. Loader workers are forked, because
the datasets below cannot be sent to a process that has not seen them.
"""

import contextlib
import multiprocessing
import operator
import os
import random
import warnings
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

# Global random states


def draws_of_python():
    return [
        random.random(),
        random.getrandbits(60),
        random.gauss(0.0, 1.0),
        random.sample(range(50), 5),
    ]


def draws_of_numpy():
    return [
        np.random.rand(3).tolist(),
        np.random.permutation(9).tolist(),
        float(np.random.randn()),
    ]


def draws_of_torch():
    layer = nn.Linear(3, 2)
    return [
        torch.rand(3).tolist(),
        torch.randn(5).tolist(),
        torch.randperm(9).tolist(),
        nn.functional.dropout(torch.ones(16), 0.5).tolist(),
        layer.weight.tolist(),
    ]


DRAWS = {
    "random": draws_of_python,
    "numpy": draws_of_numpy,
    "torch": draws_of_torch,
}


def one_draw_each():
    return {
        "random": random.random(),
        "numpy": np.random.rand(),
        "torch": torch.rand(()).item(),
    }


def draw_from_all(num_draws):
    """Odd numbers of normal draws leave a second one waiting in the generator."""
    for _ in range(num_draws):
        random.gauss(0.0, 1.0)
        np.random.randn()
        torch.randn(1)


def seed_all_three(seed):
    """Seeds the CPU's generators, whatever the GPUs do."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)


def states():
    """The three global states, as values that can be compared."""
    name, keys, *rest = np.random.get_state()
    return {
        "random": random.getstate(),
        "numpy": (name, keys.tolist(), *rest),
        "torch": torch.get_rng_state().tolist(),
    }


def differing(one, other):
    return [name for name in one if one[name] != other[name]]


# A stand-in for the GPUs


class StandInGpus:
    """GPUs that only remember the state of their generators.

    A state is an int here; what `get_rng_state` hands out is a tensor of it.
    """

    def __init__(self, states):
        self.states = list(states)
        self.current = 0

    def _number(self, device):
        if isinstance(device, int):
            return device
        index = torch.device(device).index
        return self.current if index is None else index

    def current_device(self):
        return self.current

    def set_device(self, device):
        self.current = self._number(device)

    @contextlib.contextmanager
    def device(self, device):
        before = self.current
        self.set_device(device)
        try:
            yield
        finally:
            self.current = before

    def manual_seed(self, seed):
        self.states[self.current] = int(seed)

    def manual_seed_all(self, seed):
        self.states = [int(seed)] * len(self.states)

    def get_rng_state(self, device="cuda"):
        return torch.tensor(self.states[self._number(device)])

    def set_rng_state(self, new_state, device="cuda"):
        self.states[self._number(device)] = int(new_state)

    def get_rng_state_all(self):
        return [torch.tensor(state) for state in self.states]

    def set_rng_state_all(self, new_states):
        self.states = [int(state) for state in new_states]

    def initial_seed(self):
        return self.states[self.current]


GPU_CALLS = (
    "manual_seed",
    "manual_seed_all",
    "get_rng_state",
    "set_rng_state",
    "get_rng_state_all",
    "set_rng_state_all",
    "initial_seed",
)


@contextlib.contextmanager
def stand_in_gpus(states):
    gpus = StandInGpus(states)
    facts = {
        "is_available": True,
        "is_initialized": True,
        "device_count": len(states),
        "_is_in_bad_fork": False,
    }
    with contextlib.ExitStack() as stack:

        def replace(place, name, function):
            stack.enter_context(mock.patch.object(place, name, function))

        for name in GPU_CALLS:
            replace(torch.cuda, name, getattr(gpus, name))
            replace(torch.cuda.random, name, getattr(gpus, name))
        for name in ("current_device", "set_device", "device"):
            replace(torch.cuda, name, getattr(gpus, name))
        for name, value in facts.items():
            replace(torch.cuda, name, lambda value=value: value)
        # fork_rng asks for it, to know whose generators to keep
        gpu = torch.device("cuda", 0)
        replace(torch.accelerator, "current_accelerator", lambda *_, **__: gpu)
        yield gpus


# set_seed, seeded_run


def seeded_draws(set_seed, case):
    """What is drawn after seeding, and again, with draws in between; None where
    the seed was refused."""
    drawn = []
    for seed, before in zip(case["seeds"], case["draws_before"], strict=True):
        draw_from_all(before)
        try:
            set_seed(seed)
        except ValueError:
            drawn.append(None)
            continue
        drawn.append(DRAWS[case["library"]]())
    return drawn


def seeds_of_the_gpus(set_seed, case):
    """The states of the GPUs' generators after seeding, and what the others
    draw: where there are GPUs, nobody is forgotten."""
    seen, drawn = [], []
    with stand_in_gpus(case["states"]) as gpus:
        for seed in case["seeds"]:
            set_seed(seed)
            seen.append(list(gpus.states))
            drawn.append(one_draw_each())
    return {"states": seen, "drawn": drawn}


def refused_seed(set_seed, case):
    """A good seed, then one to refuse: which generators has that touched?"""
    with stand_in_gpus([case["good"]]) as gpus:
        set_seed(case["good"])
        draw_from_all(case["draws"])
        before = {**states(), "gpus": list(gpus.states)}
        raised = "nothing"
        try:
            set_seed(case["bad"])
        except Exception as error:
            raised = type(error).__name__
            if isinstance(error, ValueError):
                raised = "ValueError"
        touched = differing(before, {**states(), "gpus": list(gpus.states)})
    return {"raised": raised, "touched": touched, "next": random.random()}


def flags():
    """The settings. Whether the switch only warns says nothing while it is off."""
    cudnn = torch.backends.cudnn
    on = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    return {
        "cudnn.enabled": cudnn.enabled,
        "cudnn.benchmark": cudnn.benchmark,
        "cudnn.deterministic": cudnn.deterministic,
        "cudnn.allow_tf32": cudnn.allow_tf32,
        "the switch": on,
        "warn_only": on and only_warns,
    }


def set_flags(wanted, off_and_warns=False):
    """Makes the settings those of `flags`; `off_and_warns`: a switch that is off
    has `warn_only` set all the same."""
    cudnn = torch.backends.cudnn
    cudnn.enabled = wanted["cudnn.enabled"]
    cudnn.benchmark = wanted["cudnn.benchmark"]
    cudnn.deterministic = wanted["cudnn.deterministic"]
    cudnn.allow_tf32 = wanted["cudnn.allow_tf32"]
    torch.use_deterministic_algorithms(
        wanted["the switch"], warn_only=wanted["warn_only"] or off_and_warns
    )


MATMUL = torch.backends.cuda.matmul
CUDNN = {  # PyTorch 2.11 has the first alone
    name: values
    for name, values in (
        ("fp32_precision", ("ieee", "none")),
        ("depthwise_kernel", ("native", "auto")),
    )
    if hasattr(torch.backends.cudnn, name)
}
ATTENTION = ("flash", "mem_efficient", "math", "cudnn")
REDUCED = (
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_reduced_precision_reduction",
)


def attends(kernel):
    return getattr(torch.backends.cuda, f"{kernel}_sdp_enabled")()


def let_attend(kernel, enabled):
    getattr(torch.backends.cuda, f"enable_{kernel}_sdp")(enabled)


def further_settings():
    """What none of the exercises is about."""
    return {
        **{f"cuda.matmul.{name}": getattr(MATMUL, name) for name in REDUCED},
        **{
            f"the {name} kernel of attention": attends(name)
            for name in ATTENTION
        },
        "the detection of anomalies": torch.is_anomaly_enabled(),
        "mkldnn.enabled": torch.backends.mkldnn.enabled,
        "cudnn.benchmark_limit": torch.backends.cudnn.benchmark_limit,
        **{
            f"cudnn.{name}": getattr(torch.backends.cudnn, name)
            for name in CUDNN
        },
        "fill_uninitialized_memory": (
            torch.utils.deterministic.fill_uninitialized_memory
        ),
        "the float32 matmul precision": torch.get_float32_matmul_precision(),
        "the number of threads": torch.get_num_threads(),
        "mkldnn.deterministic": torch.backends.mkldnn.deterministic,
        "the environment": dict(os.environ),
        "the filters of warnings": list(warnings.filters),
    }


@contextlib.contextmanager
def flags_kept(second=False):
    """Puts every flag back, and removes names that were invented. Inside, the
    further settings are some that a recipe, or `cudnn.flags`, would change; the
    `second` ones are others. The limit of cuDNN's tuner, where there is a cuDNN,
    is PyTorch's own."""
    kept = flags()
    environment = dict(os.environ)
    # an earlier call may have left it
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    onednn = torch.backends.mkldnn.deterministic
    cudnn = torch.backends.cudnn
    limit = cudnn.benchmark_limit
    if cudnn.is_available():
        cudnn.benchmark_limit = 10
    known = names_of_settings()
    threads = torch.get_num_threads()
    precision = torch.get_float32_matmul_precision()
    further = {name: getattr(cudnn, name) for name in CUDNN}
    reduced = [getattr(MATMUL, name) for name in REDUCED]
    attention = {name: attends(name) for name in ATTENTION}
    onednn_on = torch.backends.mkldnn.enabled
    torch.set_num_threads(2 if second else 3)
    torch.set_float32_matmul_precision("medium" if second else "high")
    for name, values in CUDNN.items():
        setattr(cudnn, name, values[second])
    torch.backends.mkldnn.deterministic = second
    torch.utils.deterministic.fill_uninitialized_memory = not second
    torch.backends.mkldnn.enabled = not second
    for name in ATTENTION:
        let_attend(name, not second)
    for name in REDUCED:
        setattr(MATMUL, name, not second)
    try:
        with warnings.catch_warnings():
            # or who puts "always" in front would change nothing
            warnings.filterwarnings("default", "nobody warns of this")
            yield
    finally:
        torch.backends.mkldnn.deterministic = onednn
        torch.backends.mkldnn.enabled = onednn_on
        for name, enabled in attention.items():
            let_attend(name, enabled)
        for name, value in zip(REDUCED, reduced, strict=True):
            setattr(MATMUL, name, value)
        os.environ.clear()
        os.environ.update(environment)
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        if cudnn.is_available():
            cudnn.benchmark_limit = limit
        torch.utils.deterministic.fill_uninitialized_memory = True
        for name, value in further.items():
            setattr(cudnn, name, value)
        set_flags(kept)
        for place, names in zip(PLACES, known, strict=True):
            for name in set(vars(place)) - names:
                delattr(place, name)


PLACES = (torch.backends.cudnn, torch.backends, torch)


def names_of_settings():
    return [set(vars(place)) for place in PLACES]


def flags_after_seeding(set_seed, case):
    with flags_kept(case["second"]):
        set_flags(case["flags"])
        further = further_settings()
        set_seed(case["seed"])
        # a popular recipe writes it, to no effect here
        os.environ.pop("PYTHONHASHSEED", None)
        further["the environment"].pop("PYTHONHASHSEED", None)
        changed = differing(case["flags"], flags())
        return {
            "changed": changed + differing(further, further_settings()),
            "drawn": torch.rand(2).tolist(),
        }


def run(seeded_run, case):
    """Runs whose model and epochs draw from the case's libraries."""
    runs = []
    for seed, before in zip(case["seeds"], case["draws_before"], strict=True):
        draw_from_all(before)
        runs.append(one_run(seeded_run, seed, case))
    return {name: [one[name] for one in runs] for name in runs[0]}


def one_run(seeded_run, seed, case):
    made, initial, calls, trained, modes = [], [], [], [], []
    gradients, given = [], []

    def draw():
        drawn = {"torch": torch.rand(()).item()}
        if "numpy" in case["libraries"]:
            drawn["numpy"] = np.random.rand()
        if "random" in case["libraries"]:
            drawn["random"] = random.random()
        return drawn

    def make_model():
        calls.append("make_model")
        model = nn.Linear(3, 2).double()
        with torch.no_grad():
            model.bias.add_(sum(draw().values()))
        model.bias.requires_grad_(False)
        model.train(case["training"])
        model.weight.grad = torch.ones_like(model.weight)
        made.append(model)
        initial.append([model.weight.tolist(), model.bias.tolist()])
        return model

    def mode_of(model):
        frozen = not model.bias.requires_grad
        dtype = str(model.weight.dtype)
        return [model.training, torch.is_grad_enabled(), dtype, frozen]

    def epoch(net):
        model = net
        calls.append("epoch")
        trained.append(bool(made) and model is made[-1])
        modes.append(mode_of(model))
        with torch.no_grad():
            model.weight.add_(torch.rand(2, 3))
        gradients.append(_listed(model.weight.grad))
        number = 1.0 + calls.count("epoch")
        model.weight.grad = torch.full_like(model.weight, number)
        drawn = draw()
        nothing = case["nothing_from"] == calls.count("epoch")
        if case["tensors"]:  # as a loss has, its graph behind it
            drawn = drawn["torch"] + 0 * model.weight.sum()
        given.append(None if nothing else drawn)
        return given[-1]

    returned = seeded_run(seed, make_model, epoch, case["num_epochs"])
    model, results = returned
    modes.append(mode_of(model))
    gradients.append(_listed(model.weight.grad))
    return {
        "returns": type(returned).__name__,
        "modes": modes,
        "gradients": gradients,
        "calls": calls,
        "initial": initial,
        "trained": all(trained),
        "the model made": bool(made) and model is made[-1],
        "as given": type(results) is list
        and len(results) == len(given)
        and all(map(operator.is_, results, given)),
        "weights": [model.weight.tolist(), model.bias.tolist()],
        "results": [_told(one) for one in results]
        if type(results) is list
        else results,
    }


def _told(result):
    if isinstance(result, torch.Tensor):
        return ["a tensor", result.tolist()]
    return result


def _listed(gradient):
    return None if gradient is None else gradient.tolist()


# reproducible, tuned


class Failed(Exception):
    """Ends a block of the probes."""


class Stopped(KeyboardInterrupt):
    """Ends a block as somebody's Ctrl-C does: no `except Exception` sees it."""


class Exited(SystemExit):
    """Ends a block as `sys.exit()` does."""


class Ended(StopIteration):
    """Ends a block as a `next` does that finds nothing more."""


ENDINGS = {
    "an error": Failed,
    "an interrupt": Stopped,
    "an exit": Exited,
    "a StopIteration": Ended,
}


def refuses_put():
    """What an operation without a deterministic kernel does: it raises, warns or
    just works."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2))
        except RuntimeError:
            return "raises"
    # a ResourceWarning comes whenever something is collected, whosever it was
    told = any(issubclass(one.category, UserWarning) for one in caught)
    return "warns" if told else "works"


def manager_of(reproducible, tuned, name):
    return {
        "reproducible": reproducible,
        "warning": lambda: reproducible(True),
        "raising": lambda: reproducible(warn_only=False),
        "tuned": tuned,
    }[name]()


def inside_and_after(reproducible, tuned, case):
    """The settings in the block and after it."""
    known = names_of_settings()
    with flags_kept(case["second"]):
        set_flags(case["flags"], case["off_and_warns"])
        further = further_settings()
        with manager_of(reproducible, tuned, case["manager"]):
            inside = flags()
            further_inside = differing(further, further_settings())
            put = refuses_put()
            doubled = (2 * case["x"]).tolist()
            if case["block_sets"] is not None:
                set_flags(case["block_sets"])
        changed = differing(case["flags"], flags())
        changed += differing(further, further_settings())
        invented = [
            name
            for place, names in zip(PLACES, known, strict=True)
            for name in set(vars(place)) - names - {"benchmark_limit"}
        ]
    return {
        "benchmark": inside["cudnn.benchmark"],
        "deterministic": inside["cudnn.deterministic"],
        "switch": inside["the switch"],
        "put": put,
        "others": [inside["cudnn.enabled"], inside["cudnn.allow_tf32"]],
        "further": further_inside,
        "set": differing(case["flags"], inside),
        "changed": changed,
        "invented": len(invented),
        "doubled": doubled,
    }


def after_an_exception(reproducible, tuned, case):
    """What is left changed when the block raises, and what the caller sees."""
    with flags_kept(case["second"]):
        set_flags(case["flags"], case["off_and_warns"])
        further = further_settings()
        caught = "nothing"
        error = ENDINGS[case["ending"]]()
        try:
            with manager_of(reproducible, tuned, case["manager"]):
                inside = flags()
                doubled = (2 * case["x"]).tolist()
                raise error
        except (Failed, Stopped, Exited, Ended) as same:
            caught = "the exception" if same is error else "another one"
        return {
            "changed": differing(case["flags"], flags())
            + differing(further, further_settings()),
            "caught": caught,
            "set": differing(case["flags"], inside),
            "doubled": doubled,
        }


def nested(reproducible, tuned, case):
    """The settings in nested blocks, on the way in and on the way out. The
    managers are made before the first is entered, if the case says so."""
    with flags_kept():
        set_flags(case["flags"])
        made = [None] * len(case["managers"])
        if case["made_before"]:
            set_flags(case["flags_when_made"])
            made = [
                manager_of(reproducible, tuned, name)
                for name in case["managers"]
            ]
            set_flags(case["flags"])
        seen = [flags()]
        walk(reproducible, tuned, case["managers"], made, seen)
        return {
            "settings": seen,
            "doubled": (2 * case["x"]).tolist(),
        }


def walk(reproducible, tuned, names, made, seen):
    if not names:
        return
    manager = made[0] or manager_of(reproducible, tuned, names[0])
    with manager:
        seen.append(flags())
        walk(reproducible, tuned, names[1:], made[1:], seen)
    seen.append(flags())


# make_loader


@contextlib.contextmanager
def forked_workers():
    usual = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    try:
        with warnings.catch_warnings():  # about the number of cores, of threads
            warnings.simplefilter("ignore")
            yield
    finally:
        multiprocessing.set_start_method(usual, force=True)


class Samples(Dataset):
    """Rows of a value, the worker's number (-1 in the main process), what `rng`
    is (0: there is none, 1: a Generator, 2: something else), and noise from it.

    One row of float64, so that a worker sends one tensor per batch.
    """

    def __init__(self, case):
        self.values = case["values"]
        if case["has_rng"]:
            self.rng = np.random.default_rng(case["rng_seed"])

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        info = get_worker_info()
        row = [self.values[index].item(), -1 if info is None else info.id, 0]
        if hasattr(self, "rng"):
            row[2] = 1 if isinstance(self.rng, np.random.Generator) else 2
            row += self.rng.random(2).tolist()
        return torch.tensor(row, dtype=torch.float64)


def batches_of(loader):
    """The batches of an epoch. The workers have ended when it has, also where it
    ends in an exception, whose traceback would keep them."""
    batches = iter(loader)
    try:
        yield from batches
    finally:
        end_workers = getattr(batches, "_shutdown_workers", None)
        if end_workers and not getattr(loader, "persistent_workers", False):
            end_workers()


def epochs_of(loader, num_epochs, disturb=False):
    """Per epoch: the values in their order, the sizes of the batches, the noise
    by worker, what `rng` was. Batches of another form hold no samples."""
    epochs = []
    for _ in range(num_epochs):
        values, sizes, noise, kinds = [], [], {}, set()
        for batch in batches_of(loader):
            if disturb:
                draw_from_all(3)
            if not isinstance(batch, torch.Tensor):
                continue
            sizes.append(len(batch))
            for value, worker, kind, *drawn in batch.tolist():
                values.append(value)
                kinds.add(kind)
                noise.setdefault(worker, []).extend(drawn)
        epochs.append(
            {
                "values": values,
                "sizes": sizes,
                "noise": noise,
                "kinds": sorted(kinds),
            }
        )
    return epochs


def orders(epochs):
    return [one["values"] for one in epochs]


def loader_of(make_loader, case, seed, num_workers):
    dataset = Samples(case)
    if num_workers == 0 and case["leave_out_workers"]:
        return make_loader(dataset, case["batch_size"], seed), dataset
    made = make_loader(dataset, case["batch_size"], seed, num_workers)
    return made, dataset


def one_epoch(make_loader, case):
    """What an epoch holds."""
    with forked_workers():
        loader, dataset = loader_of(
            make_loader, case, case["seed"], case["num_workers"]
        )
        (epoch,) = epochs_of(loader, 1)
    return {
        "is a DataLoader": isinstance(loader, DataLoader),
        "samples": sorted(epoch["values"]),
        "sizes": epoch["sizes"],
        "number of batches": len(loader) if hasattr(loader, "__len__") else -1,
        "workers": sorted(epoch["noise"]),
        "dataset": getattr(loader, "dataset", None) is dataset,
    }


def order_of_epochs(make_loader, case):
    """Facts about the orders of several epochs."""
    with forked_workers():
        num_workers = case["num_workers"]
        first, _ = loader_of(make_loader, case, case["seed"], num_workers)
        # made before the first is read: loaders for training and validation
        # stand beside each other
        other, _ = loader_of(make_loader, case, case["other_seed"], num_workers)
        epochs = orders(epochs_of(first, case["num_epochs"]))
        again, _ = loader_of(make_loader, case, case["seed"], num_workers)
        epochs_again = orders(epochs_of(again, case["num_epochs"]))
        epochs_other = orders(epochs_of(other, case["num_epochs"]))
    as_given = case["values"].tolist()
    distinct = len({tuple(one) for one in epochs})
    return {
        "samples": sorted(epochs[0]),
        "shuffled": as_given not in epochs,
        "epochs_differ": distinct == case["num_epochs"],
        "repeats": epochs == epochs_again,
        "seeds_differ": all(
            one != two for one, two in zip(epochs, epochs_other, strict=True)
        ),
    }


def order_by_workers(make_loader, case):
    with forked_workers():
        seen = []
        for num_workers in case["numbers_of_workers"]:
            loader, _ = loader_of(make_loader, case, case["seed"], num_workers)
            seen.append(orders(epochs_of(loader, case["num_epochs"])))
    return {
        "samples": sorted(seen[0][0]),
        "alike": all(one == seen[0] for one in seen),
        "first_alike": all(one[0] == seen[0][0] for one in seen),
    }


def order_when_disturbed(make_loader, case):
    """The order, when others draw from the global generators, or seed them."""
    with forked_workers():
        seen = []
        for disturbed in (False, True):
            seed_all_three(case["global_seed"])
            if disturbed and case["when"] == "before the loader is made":
                draw_from_all(case["draws"])
            if disturbed and case["when"] == "by batch size":
                case = {**case, "batch_size": case["batch_size"] + 1}
            loader, _ = loader_of(
                make_loader, case, case["seed"], case["num_workers"]
            )
            if disturbed and case["when"] == "between making and the epochs":
                draw_from_all(case["draws"])
            if disturbed and case["when"] == "after another seed":
                seed_all_three(case["global_seed"] + 1)
            during = disturbed and case["when"] == "during the epochs"
            seen.append(orders(epochs_of(loader, 2, disturb=during)))
    return {"samples": sorted(seen[0][0]), "alike": seen[0] == seen[1]}


def loader_leaves_alone(make_loader, case):
    """Which global states making a loader and an epoch change."""
    with forked_workers():
        draw_from_all(case["draws"])
        before = states()
        loader, _ = loader_of(
            make_loader, case, case["seed"], case["num_workers"]
        )
        while_made = differing(before, states())
        epochs = epochs_of(loader, case["num_epochs"])
        return {
            "making": while_made,
            "iterating": differing(before, states()),
            "samples": sorted(epochs[0]["values"]),
        }


def dataset_kept(make_loader, case):
    """What happens to the dataset's own generator in the main process."""
    with forked_workers():
        loader, dataset = loader_of(
            make_loader, case, case["seed"], case["num_workers"]
        )
        rng = getattr(dataset, "rng", None)
        expected = None
        if case["has_rng"]:
            expected = np.random.default_rng(case["rng_seed"])
        epochs = epochs_of(loader, 1)
        if expected is not None and case["num_workers"] == 0:
            expected.random((len(epochs[0]["values"]), 2))
        names = sorted(vars(dataset))
    return {
        "same_object": getattr(dataset, "rng", None) is rng,
        "same_state": rng is None
        or rng.bit_generator.state == expected.bit_generator.state,
        "attributes": names,
        "kinds": epochs[0]["kinds"],
        "samples": sorted(epochs[0]["values"]),
    }


def noise_of_workers(make_loader, case):
    """Facts about what the workers drew. Starting workers takes its time: one
    epoch is enough for the second and the third loader."""
    with forked_workers():
        runs = []
        for seed, num_epochs in (
            (case["seed"], 2),
            (case["seed"], 1),
            (case["other_seed"], 1),
        ):
            seed_all_three(case["global_seed"] + len(runs))
            loader, _ = loader_of(make_loader, case, seed, case["num_workers"])
            runs.append(epochs_of(loader, num_epochs))
    noise = [[one["noise"] for one in epochs] for epochs in runs]
    streams = [tuple(drawn) for one in noise[0] for drawn in one.values()]
    by_worker = [tuple(map(tuple, one.values())) for one in noise[0]]
    return {
        "samples": sorted(runs[0][0]["values"]),
        "workers": sorted(noise[0][0]),
        "kinds": runs[0][0]["kinds"],
        "workers_differ": all(
            not shared(*two) for one in by_worker for two in pairs(one)
        ),
        "epochs_differ": all(
            not shared(flat(one), flat(two)) for one, two in pairs(by_worker)
        ),
        "repeats": noise[0][0] == noise[1][0],
        "seeds_differ": not shared(flat(streams), flat(noise_rows(noise[2]))),
    }


def noise_rows(epochs):
    return [drawn for one in epochs for drawn in one.values()]


def flat(rows):
    return [number for row in rows for number in row]


def pairs(items):
    items = list(items)
    return [
        (one, two)
        for place, one in enumerate(items)
        for two in items[place + 1 :]
    ]


def shared(one, two):
    """Whether two sequences of draws have a number in common. Two independent
    draws of 53 random bits are never equal in practice."""
    return bool(set(one) & set(two))


# isolated


def inside_isolated(isolated, case):
    """What is drawn in the block."""
    drawn = []
    for seed, before in zip(case["seeds"], case["draws_before"], strict=True):
        draw_from_all(before)
        with isolated(seed):
            drawn.append(DRAWS[case["library"]]())
    return drawn


def after_isolated(isolated, case):
    """Which global states the block leaves changed."""
    draw_from_all(case["draws_before"])
    manager = isolated(case["seed"])
    draw_from_all(case["draws_between"])
    before = states()
    ending = case["ending"]
    caught = "nothing"
    doubled = []
    try:
        with manager:
            doubled = (2 * case["x"]).tolist()
            for library in case["draws_inside"]:
                DRAWS[library]()
            if ending is not None:
                error = ENDINGS[ending]()
                raise error
    except (Failed, Stopped, Exited, Ended) as same:
        caught = "the exception" if same is error else "another one"
    changed = differing(before, states())
    return {
        "changed": changed,
        "caught": caught,
        "doubled": doubled,
    }


def nested_isolated(isolated, case):
    """Draws before, inside and after the inner of two blocks."""

    def some():
        return [random.random(), np.random.rand(), torch.rand(2).tolist()]

    one, two = case["seeds"]
    before = states()
    with isolated(one):
        drawn = [some()]
        with isolated(two):
            drawn.append(some())
        drawn.append(some())
    return {"drawn": drawn, "changed": differing(before, states())}


def isolated_on_gpus(isolated, case):
    """The generators of stand-in GPUs in the block, with another one in it, and
    after it."""
    with (
        stand_in_gpus(case["states"]) as gpus,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # fork_rng's, about several GPUs
        before = states()
        with contextlib.suppress(Failed), isolated(case["seed"]):
            inside = list(gpus.states)
            gpus.states = [state + 1 for state in gpus.states]
            drawn = one_draw_each()
            with isolated(case["other_seed"]):
                pass
            if case["ending"] is not None:
                raise ENDINGS[case["ending"]]()
        return {
            "inside": inside,
            "after": list(gpus.states),
            "drawn": drawn,
            "changed": differing(before, states()),
        }
