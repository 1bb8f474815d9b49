"""Answers to `train` of chapter 12."""

import math
import random

import numpy as np
import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def by_one_key_for_each(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


scheduler_loaded_first_and_atomic = edit(
    by_one_key_for_each,
    {
        'model.load_state_dict(saved["model"])': """
        model.load_state_dict(saved["model"])
        scheduler.load_state_dict(saved["scheduler"])
        """,
        'scheduler.load_state_dict(saved["scheduler"])': "",
        "torch.save(saved, path)": """
        unfinished = path.with_suffix(".partial")
        torch.save(saved, unfinished)
        unfinished.replace(path)
        """,
    },
)


@accepted()
def by_the_order_and_a_position(job, path):
    def draw_states(states=None):
        if states is None:
            kind, keys, position, has_gauss, gauss = np.random.get_state()
            rest = [position, has_gauss, gauss]
            return [
                torch.get_rng_state(),
                random.getstate(),
                keys.tolist(),
                rest,
            ]
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        keys = np.array(states[2], dtype=np.uint32)
        np.random.set_state(("MT19937", keys, *states[3]))

    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, order = [], None
    per_epoch = math.ceil(job.num_samples / job.batch_size)
    if path.exists():
        states, order, losses, random_states = torch.load(path).values()
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
        draw_states(random_states)
    for step in range(len(losses), job.num_epochs * per_epoch):
        if step % per_epoch == 0:
            order = torch.randperm(job.num_samples)
        start = step % per_epoch * job.batch_size
        indices = order[start : start + job.batch_size]
        losses.append(job.step(*parts, indices))
        states = [part.state_dict() for part in parts]
        content = dict(zip("abcd", (states, order, losses, draw_states())))
        torch.save(content, path)
    return model, losses


@accepted()
def order_drawn_again_from_its_random_state(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    first_epoch, first_batch, losses, resumed = 0, 0, [], None
    if path.exists():
        resumed = torch.load(path)
        first_epoch, first_batch = resumed["epoch"], resumed["batch"]
        losses = resumed["losses"]
        model.load_state_dict(resumed["model"])
        optimizer.load_state_dict(resumed["optimizer"])
        scheduler.load_state_dict(resumed["scheduler"])
        scaler.load_state_dict(resumed["scaler"])
        torch.set_rng_state(resumed["before_the_order"])
    for epoch in range(first_epoch, job.num_epochs):
        before_the_order = torch.get_rng_state()
        batches = torch.randperm(job.num_samples).split(job.batch_size)
        if resumed:
            torch.set_rng_state(resumed["torch"])
            state = (*resumed["numpy"],)
            state = (state[0], state[1].numpy(), *state[2:])
            np.random.set_state(state)
            random.setstate(resumed["python"])
            resumed = None
        for batch, indices in enumerate(batches):
            if epoch == first_epoch and batch < first_batch:
                continue
            parts = model, optimizer, scheduler, scaler
            losses.append(job.step(*parts, indices))
            name, keys, *rest = np.random.get_state()
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(),
                    "epoch": epoch,
                    "batch": batch + 1,
                    "losses": losses,
                    "before_the_order": before_the_order,
                    "torch": torch.get_rng_state(),
                    "numpy": [name, torch.from_numpy(keys), *rest],
                    "python": random.getstate(),
                },
                path,
            )
    return model, losses


@accepted()
def all_parts_under_one_roof(job, path):
    class Run:
        def __init__(self):
            self.model = job.make_model()
            self.optimizer = job.make_optimizer(self.model)
            self.scheduler = job.make_scheduler(self.optimizer)
            self.scaler = job.make_scaler()
            self.todo = torch.empty(0, dtype=torch.int64)
            self.epochs_left = job.num_epochs
            self.losses = torch.empty(0, dtype=torch.float64)

        def parts(self):
            return self.model, self.optimizer, self.scheduler, self.scaler

        def state_dict(self):
            numpy = np.random.get_state(legacy=False)
            numpy["state"]["key"] = numpy["state"]["key"].tolist()
            return {
                "parts": [part.state_dict() for part in self.parts()],
                "todo": self.todo,
                "epochs_left": self.epochs_left,
                "losses": self.losses,
                "random": [torch.get_rng_state(), numpy, random.getstate()],
            }

        def load_state_dict(self, state):
            for part, own in zip(self.parts(), state["parts"], strict=True):
                part.load_state_dict(own)
            self.todo, self.losses = state["todo"], state["losses"]
            self.epochs_left = state["epochs_left"]
            of_torch, of_numpy, of_python = state["random"]
            key = np.array(of_numpy["state"]["key"], dtype=np.uint32)
            of_numpy["state"]["key"] = key
            torch.set_rng_state(of_torch)
            np.random.set_state(of_numpy)
            random.setstate(of_python)

        def one_step(self):
            if not len(self.todo):
                self.todo = torch.randperm(job.num_samples)
                self.epochs_left -= 1
            batch = self.todo[: job.batch_size]
            self.todo = self.todo[job.batch_size :].clone()
            loss = torch.tensor(
                [job.step(*self.parts(), batch)], dtype=torch.float64
            )
            self.losses = torch.cat([self.losses, loss])

    run = Run()
    if path.is_file():
        run.load_state_dict(torch.load(path, weights_only=True))
    while len(run.todo) or run.epochs_left:
        run.one_step()
        torch.save(run.state_dict(), path)
    return run.model, run.losses.tolist()


@accepted()
def with_a_checkpoint_before_the_first_step(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    if not path.exists():
        name, keys, *rest = np.random.get_state()
        saved = {
            "parts": [part.state_dict() for part in parts],
            "losses": losses,
            "epoch": epoch,
            "left": left,
            "numpy": (name, keys.tolist(), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@accepted()
def with_states_from_other_functions(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        of_numpy = saved["numpy"]
        keys = np.array(of_numpy["state"]["key"], dtype=np.uint32)
        of_numpy["state"]["key"] = keys
        np.random.set_state(of_numpy)
        random.setstate(saved["python"])
        torch.default_generator.set_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            of_numpy = np.random.get_state(legacy=False)
            of_numpy["state"]["key"] = of_numpy["state"]["key"].tolist()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": of_numpy,
                "python": random.getstate(),
                "torch": torch.default_generator.get_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@accepted()
def mended_saved_in_the_end_in_any_case(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


starts_over = edit(
    by_one_key_for_each,
    {"if path.exists():": "if False:"},
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="You write checkpoints and never read one: after a kill the run "
    "begins again. If `path` exists, load it before the first step.",
)

saved_before_the_step = edit(
    by_one_key_for_each,
    {
        """
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        """: "",
        "torch.save(saved, path)": """
        torch.save(saved, path)
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        """,
    },
    breaks=hidden_tests.only_the_rest,
    tells="You write the checkpoint before the step and not after it, so "
    "the last finished step is made again after every restart. Save "
    "once the step is done, without its batch among those to come.",
)

saved_once_an_epoch = edit(
    by_one_key_for_each,
    {
        "torch.save(saved, path)": """
        if not left:
            torch.save(saved, path)
        """,
    },
    breaks=hidden_tests.only_the_rest,
    tells="You save only at the end of an epoch. A run that dies within one "
    "makes its steps again, or starts over if it was the first. Save "
    "after every step, with what is left of the epoch.",
)

goes_on_with_the_next_epoch = edit(
    by_one_key_for_each,
    {'left, epoch, losses = saved["left"],': "epoch, losses ="},
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="After a restart you go on with the next epoch, and the samples "
    "that were left of the old one are never used. Save which batches "
    "are still to come.",
)

repeats_the_epoch = edit(
    by_one_key_for_each,
    {
        'left, epoch, losses = saved["left"], saved["epoch"]': 'epoch, losses = saved["epoch"] - 1',
    },
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="After a restart you begin the epoch again in which the run died, "
    "so some samples are used twice. Save which batches are still to "
    "come.",
)

order_drawn_anew = edit(
    by_one_key_for_each,
    {
        'left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]': """
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        number_left = len(left)
        """,
        'torch.set_rng_state(saved["torch"])': """
        torch.set_rng_state(saved["torch"])
        if number_left:
            order = torch.randperm(job.num_samples)
            left = list(order.split(job.batch_size))[-number_left:]
        """,
    },
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="You count the batches, but draw the order of the samples anew "
    "after a restart. Within an epoch that is another order: some "
    "samples come twice, some never. Save the order, or the random "
    "state from before it was drawn.",
)

draws_of_the_epoch_repeated = edit(
    by_one_key_for_each,
    {
        'torch.set_rng_state(saved["torch"])': """
        torch.set_rng_state(saved["torch"])
        before = saved["torch"]
        torch.randperm(job.num_samples)
        """,
        "if not left:": """
        if not left:
            before = torch.get_rng_state()
        """,
        "torch.get_rng_state()": "before",
    },
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="You restore the random state from before the epoch's order was "
    "drawn, and then draw the order. That gives the right order, but "
    "dropout goes on with numbers it has used before. Set the random "
    "state of the last step after the order is drawn.",
)

without_the_optimizer = edit(
    by_one_key_for_each,
    {'optimizer.load_state_dict(saved["optimizer"])': ""},
    breaks=[hidden_tests.losses_and_weights, hidden_tests.from_the_file],
    tells="The optimizer's state is missing. AdamW then starts again with "
    "empty moments and step count, and its first steps after the "
    "restart are far too large. Save and load "
    "`optimizer.state_dict()`.",
)

without_the_scheduler = edit(
    by_one_key_for_each,
    {'scheduler.load_state_dict(saved["scheduler"])': ""},
    breaks=[hidden_tests.learning_rates, hidden_tests.losses_and_weights],
    tells="The scheduler's state is missing. It counts from 0 again, and "
    "its schedule starts over. Save and load "
    "`scheduler.state_dict()`.",
)

last_epoch_by_hand = edit(
    by_one_key_for_each,
    {
        'scheduler.load_state_dict(saved["scheduler"])': 'scheduler.last_epoch = len(saved["losses"])',
    },
    breaks=hidden_tests.learning_rates,
    tells="You set `scheduler.last_epoch` by hand. It is a counter, not the "
    "state: some schedulers hold more, such as SequentialLR and "
    "ReduceLROnPlateau. Load `scheduler.state_dict()`.",
)

last_epoch_one_behind = edit(
    by_one_key_for_each,
    {
        'scheduler.load_state_dict(saved["scheduler"])': 'scheduler.last_epoch = len(saved["losses"]) - 1',
    },
    breaks=[hidden_tests.learning_rates, hidden_tests.losses_and_weights],
    tells="You set `scheduler.last_epoch` to the number of the last "
    "finished step, counted from 0. The schedule is then one step "
    "behind, and some schedulers hold more than that counter. Load "
    "`scheduler.state_dict()`.",
)

schedule_run_through_again = edit(
    by_one_key_for_each,
    {
        'scheduler.load_state_dict(saved["scheduler"])': """
        for _ in saved["losses"]:
            scheduler.step()
        """,
    },
    breaks=[hidden_tests.learning_rates, hidden_tests.losses_and_weights],
    tells="You step the new scheduler as often as the old one was stepped. "
    "It changes the learning rates that came with the optimizer a "
    "second time, and ReduceLROnPlateau would need the losses. Load "
    "`scheduler.state_dict()`.",
)

without_the_scaler = edit(
    by_one_key_for_each,
    {'scaler.load_state_dict(saved["scaler"])': ""},
    breaks=hidden_tests.loss_scale,
    tells="The scaler's state is missing. Its scale starts again where it "
    "once began, and steps are skipped or gradients lost until it has "
    "found its place. Save and load `scaler.state_dict()`.",
)

scale_without_its_counter = edit(
    by_one_key_for_each,
    {
        'scaler.load_state_dict(saved["scaler"])': """
        scale = {"scale": saved["scaler"]["scale"]}
        scaler.load_state_dict(scaler.state_dict() | scale)
        """,
    },
    breaks=hidden_tests.loss_scale,
    tells="You restore the scale, but not the scaler's growth counter: the "
    "scale grows at other steps. Load the whole "
    "`scaler.state_dict()`.",
)

without_random_states = edit(
    by_one_key_for_each,
    {
        """
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
        """: "",
    },
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="No random state is restored. Dropout and the orders of later "
    "epochs are then drawn from the new process's seed. Save the "
    "states of `torch`, `np.random` and `random`.",
)

random_state_of_torch_alone = edit(
    by_one_key_for_each,
    {
        """
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        """: "",
    },
    breaks=hidden_tests.order_and_draws,
    tells="You restore PyTorch's random state alone. A step may also draw "
    "from `np.random` and `random`, as augmentations do. Save all "
    "three.",
)

without_numpys_random_state = edit(
    by_one_key_for_each,
    {
        """
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        """: "",
    },
    breaks=hidden_tests.order_and_draws,
    tells="NumPy's random state is missing. Save `np.random.get_state()`, "
    "with its array as a list or tensor.",
)

without_pythons_random_state = edit(
    by_one_key_for_each,
    {'random.setstate(saved["python"])': ""},
    breaks=hidden_tests.order_and_draws,
    tells="The random state of Python's own `random` is missing. Save "
    "`random.getstate()`.",
)

without_torchs_random_state = edit(
    by_one_key_for_each,
    {'torch.set_rng_state(saved["torch"])': ""},
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="PyTorch's random state is missing, so dropout and the order of "
    "later epochs differ. Save `torch.get_rng_state()`.",
)

random_states_set_too_early = edit(
    by_one_key_for_each,
    {
        "def by_one_key_for_each(job, path):": """
        def by_one_key_for_each(job, path):
            if path.exists():
                torch.set_rng_state(torch.load(path)["torch"])
        """,
        'torch.set_rng_state(saved["torch"])': "",
    },
    breaks=[hidden_tests.order_and_draws, hidden_tests.losses_and_weights],
    tells="You restore the random states before the model is made. Making "
    "it draws numbers, so the run goes on a few draws too late. Make "
    "everything first, set the random states last.",
)

optimizer_loaded_before_the_scheduler_is_made = edit(
    by_one_key_for_each,
    {
        "optimizer = job.make_optimizer(model)": """
        optimizer = job.make_optimizer(model)
        if path.exists():
            optimizer.load_state_dict(torch.load(path)["optimizer"])
        """,
        'optimizer.load_state_dict(saved["optimizer"])': "",
    },
    breaks=hidden_tests.learning_rates,
    tells="You load the optimizer before you make the scheduler. Making a "
    "scheduler sets learning rates of the optimizer, over those you "
    "have just loaded. Make all parts first, then load them.",
)

losses_since_the_restart = edit(
    by_one_key_for_each,
    {
        ', losses = saved["left"], saved["epoch"], saved["losses"': '= saved["left"], saved["epoch"',
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You return the losses since the restart alone. Those from before "
    "belong in the checkpoint too.",
)

with_an_array_in_the_file = edit(
    by_one_key_for_each,
    {
        "saved = torch.load(path)": "saved = torch.load(path, weights_only=False)",
        "np.random.set_state((name, keys.numpy(), *rest))": "np.random.set_state((name, keys, *rest))",
        "torch.from_numpy(keys)": "keys",
    },
    breaks=hidden_tests.from_the_file,
    tells="You save NumPy's random state with its array and load with "
    "`weights_only=False`. `torch.load` with its defaults cannot read "
    "that file. Make a list or a tensor of the array.",
)

seeded_at_the_start = edit(
    by_one_key_for_each,
    {
        "def by_one_key_for_each(job, path):": """
        def by_one_key_for_each(job, path):
            torch.manual_seed(0)
            np.random.seed(0)
            random.seed(0)
        """,
    },
    breaks=hidden_tests.uninterrupted,
    tells="You seed the generators at the start of your function. Every run "
    "then is the same run, and a resumed one repeats its draws unless "
    "the states are restored. Leave seeding to the caller.",
)

removed_when_finished = edit(
    by_one_key_for_each,
    {
        "return model, losses": """
        path.unlink(missing_ok=True)
        return model, losses
        """,
    },
    breaks=hidden_tests.only_the_rest,
    tells="You delete the checkpoint at the end. A finished run that is "
    "called once more then trains all over again. Keep the file.",
)

a_draw_for_the_file_name = edit(
    by_one_key_for_each,
    {
        "torch.save(saved, path)": """
        unfinished = path.with_suffix(f".{torch.randint(1000, ()).item()}")
        torch.save(saved, unfinished)
        unfinished.replace(path)
        """,
    },
    breaks=hidden_tests.uninterrupted,
    tells="Your checkpoint draws a random number, for a file name perhaps, "
    "and so moves PyTorch's generator: the run is no longer the one "
    "without checkpoints. Take names that need no draw.",
)


random_states_in_a_second_file = edit(
    by_one_key_for_each,
    {
        "saved = torch.load(path)": """
        saved = torch.load(path)
        second = path.with_suffix(".random")
        """,
        """
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
        """: """
        if second.exists():
            states = torch.load(second)
            name, keys, *rest = states["numpy"]
            np.random.set_state((name, keys.numpy(), *rest))
            random.setstate(states["python"])
            torch.set_rng_state(states["torch"])
        """,
        """
        }
        torch.save(saved, path)
        """: """
        }
        states = {
            name: saved.pop(name) for name in ("numpy", "python", "torch")
        }
        torch.save(saved, path)
        torch.save(states, path.with_suffix(".random"))
        """,
    },
    breaks=hidden_tests.order_and_draws,
    tells="You keep the random states in a file of their own. When the "
    "checkpoint is moved without it the run goes on with other draws, "
    "and a kill between the two writes leaves two that do not belong "
    "together. Put everything into one file.",
)


the_weights_of_the_first_step = edit(
    by_one_key_for_each,
    {
        "}": """
        }
        if path.exists():
            saved["model"] = torch.load(path)["model"]
        """,
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You write the weights into the checkpoint once and then never "
    "again. Write all of it after every step.",
)


losses_in_float32 = edit(
    by_one_key_for_each,
    {
        'left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]': """
        left, epoch, losses = (
            saved["left"],
            saved["epoch"],
            saved["losses"].tolist(),
        )
        """,
        '"losses": losses,': '"losses": torch.tensor(losses).mul(1 / 3).mul(3),',
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You keep the losses as a tensor, in float32 or rounded. Python "
    "floats are float64, and what comes back is no longer, bit for "
    "bit, what `job.step` returned. Keep a list, or a float64 tensor.",
)

saved_every_second_step = edit(
    by_one_key_for_each,
    {
        "torch.save(saved, path)": """
        if len(losses) % 2 == 0 or not left and epoch == job.num_epochs:
            torch.save(saved, path)
        """,
    },
    breaks=[hidden_tests.only_the_rest, hidden_tests.losses_and_weights],
    tells="You save only after every second step. A run that dies in "
    "between makes a step again, or starts over. Save after every "
    "step.",
)

weights_halved_to_save_space = edit(
    by_one_key_for_each,
    {
        "model.state_dict()": "{k: v.half() for k, v in model.state_dict().items()}",
    },
    breaks=[hidden_tests.losses_and_weights, hidden_tests.from_the_file],
    tells="You save the weights in half precision. The run goes on from "
    "rounded ones, and is another run. Save them as they are.",
)

without_the_half_pair_of_python = edit(
    mended_saved_in_the_end_in_any_case,
    {"random.getstate(": "(*random.getstate()[:2], None"},
    breaks=hidden_tests.order_and_draws,
    tells="The random state of `random` has three parts, and you drop the "
    "last: `gauss` draws pairs and keeps the second for later. Save "
    "`random.getstate()` as it is.",
)

without_the_half_pair_of_numpy = edit(
    mended_saved_in_the_end_in_any_case,
    {"tolist(), *rest),": "tolist(), rest[0]),"},
    breaks=hidden_tests.order_and_draws,
    tells="You keep the numbers and the position of NumPy's random state "
    "and drop the rest: `standard_normal` draws pairs and keeps the "
    "second for later. Save all of `np.random.get_state()`.",
)

back_at_once_when_finished = edit(
    mended_saved_in_the_end_in_any_case,
    {
        'losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]': """
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        if epoch == job.num_epochs - 1 and not left:
            return model, losses
        """,
    },
    breaks=hidden_tests.order_and_draws,
    tells="A finished run returns before the random states are set. What "
    "is drawn after `train` is then not what would have been drawn. "
    "Set them first.",
)

saved_when_interrupted = edit(
    mended_saved_in_the_end_in_any_case,
    {
        "losses.append(job.step(*parts, left.pop(0)))": """
        now = left[0]
        try:
            losses.append(job.step(*parts, now))
        except BaseException:
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
            raise
        left.pop(0)
        """,
    },
    breaks=hidden_tests.interrupted_step,
    tells="You save when a step is interrupted. Half a step has then "
    "changed weights, random states or the scheduler, and the step "
    "is made again on top. Save after whole steps only.",
)


@wrong(
    breaks=hidden_tests.interrupted_step,
    tells="You save when a step is interrupted. Half a step has then "
    "changed weights, random states or the scheduler, and the step "
    "is made again on top. Save after whole steps only.",
)
def saved_in_the_end_in_any_case(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            try:
                losses.append(job.step(*parts, left[0]))
                left.pop(0)
            finally:
                name, keys, *rest = np.random.get_state()
                saved = {
                    "parts": [part.state_dict() for part in parts],
                    "losses": losses,
                    "epoch": epoch,
                    "left": left,
                    "numpy": (name, keys.tolist(), *rest),
                    "python": random.getstate(),
                    "torch": torch.get_rng_state(),
                }
                torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


three_epochs_always = edit(
    mended_saved_in_the_end_in_any_case,
    {"while epoch < job.num_epochs:": "while epoch < 3:"},
    breaks=hidden_tests.other_sizes,
    tells="You run three epochs, as the job of the notebook does. Another "
    "job has another number: ask it.",
)

in_equal_parts = edit(
    mended_saved_in_the_end_in_any_case,
    {
        "left = list(torch.randperm(job.num_samples).split(job.batch_size))": """
        number = -(-job.num_samples // job.batch_size)
        left = list(torch.randperm(job.num_samples).chunk(number))
        """,
    },
    breaks=hidden_tests.other_sizes,
    tells="You cut the order into equal parts. The batches of "
    "`train_in_one_go` have `job.batch_size` samples each, and the "
    "last has what is left: use `split`.",
)

the_last_batch_dropped = edit(
    mended_saved_in_the_end_in_any_case,
    {
        "while left:": """
        left = [one for one in left if len(one) == job.batch_size]
        while left:
        """,
    },
    breaks=hidden_tests.other_sizes,
    tells="You drop the last batch of an epoch if it is shorter. "
    "`train_in_one_go` trains on it.",
)


parameters_without_buffers = edit(
    mended_saved_in_the_end_in_any_case,
    {
        'for part, state in zip(parts, saved["parts"], strict=True):': """
        model.load_state_dict(saved["parts"][0], strict=False)
        for part, state in zip(parts[1:], saved["parts"][1:], strict=True):
        """,
        '"parts": [part.state_dict() for part in parts],': """
        "parts": [
            {k: p.detach() for k, p in model.named_parameters()},
            *(part.state_dict() for part in parts[1:]),
        ],
        """,
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You save the model's parameters and not its buffers, such as "
    "running statistics. Save its `state_dict()`.",
)


everything_in_float32 = edit(
    mended_saved_in_the_end_in_any_case,
    {
        '"parts": [part.state_dict() for part in parts],': """
        "parts": [
            {k: v.float() for k, v in model.state_dict().items()},
            *(part.state_dict() for part in parts[1:]),
        ],
        """,
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You save the model's tensors as float32. Counters and float64 "
    "weights do not fit into that: save each in its own dtype.",
)

losses_in_a_tensor = edit(
    mended_saved_in_the_end_in_any_case,
    {
        "return model, losses": "return model, torch.tensor(losses, dtype=torch.float64)",
    },
    breaks=hidden_tests.uninterrupted,
    tells="You return the losses as a tensor or tuple. `train_in_one_go` "
    "returns a list of floats.",
)

losses_in_a_tuple = edit(
    mended_saved_in_the_end_in_any_case,
    {"return model, losses": "return model, tuple(losses)"},
    breaks=hidden_tests.uninterrupted,
    tells="You return the losses as a tensor or tuple. `train_in_one_go` "
    "returns a list of floats.",
)

a_short_run_without_checkpoints = edit(
    mended_saved_in_the_end_in_any_case,
    {
        "while epoch < job.num_epochs:": """
        if job.num_epochs == 1 and not path.exists():
            for indices in torch.randperm(job.num_samples).split(job.batch_size):
                losses.append(job.step(*parts, indices))
            return model, losses
        while epoch < job.num_epochs:
        """,
    },
    breaks=hidden_tests.other_sizes,
    tells="A run of one epoch gets no checkpoint. It too may be killed: "
    "save after every step.",
)


exceptions_swallowed = edit(
    by_one_key_for_each,
    {
        "losses.append(job.step(model, optimizer, scheduler, scaler, indices))": """
        try:
            loss = job.step(model, optimizer, scheduler, scaler, indices)
        except Exception:
            return model, losses
        losses.append(loss)
        """,
    },
    breaks=hidden_tests.exceptions_come_out,
    tells="You catch the exceptions of `job.step` and return. A run that broke "
    "then looks like one that is finished. Let them through: the checkpoint is "
    "there already.",
)

by_a_list_at_the_top = edit(
    by_one_key_for_each,
    {
        "saved = torch.load(path)": "(saved,) = torch.load(path)",
        "torch.save(saved, path)": "torch.save([saved], path)",
    },
)

returns_at_ctrl_c = edit(
    by_one_key_for_each,
    {
        "losses.append(job.step(model, optimizer, scheduler, scaler, indices))": """
        try:
            losses.append(
                job.step(model, optimizer, scheduler, scaler, indices)
            )
        except KeyboardInterrupt:
            return model, losses
        """,
    },
    breaks=hidden_tests.exceptions_come_out,
    tells="At Ctrl-C you return as if the run had come to its end. Let the exception "
    "pass: who called must see that the run is not done.",
)

raises_another_exception = edit(
    by_one_key_for_each,
    {
        "losses.append(job.step(model, optimizer, scheduler, scaler, indices))": """
        try:
            losses.append(
                job.step(model, optimizer, scheduler, scaler, indices)
            )
        except Exception:
            raise RuntimeError("a step failed") from None
        """,
    },
    breaks=hidden_tests.exceptions_come_out,
    tells="Another exception comes out than the one that `job.step` raised. Let "
    "that one pass.",
)

a_runtime_error_ends_the_process = edit(
    by_one_key_for_each,
    {
        "losses.append(job.step(model, optimizer, scheduler, scaler, indices))": """
        try:
            losses.append(
                job.step(model, optimizer, scheduler, scaler, indices)
            )
        except RuntimeError:
            raise SystemExit(1) from None
        """,
    },
    breaks=hidden_tests.exceptions_come_out,
    tells="Another exception comes out than the one that `job.step` raised. Let "
    "that one pass.",
)

no_checkpoint_of_an_infinite_loss = edit(
    SOLUTION,
    {
        "torch.save(checkpoint, path)": """
        if math.isfinite(losses[-1]):
            torch.save(checkpoint, path)
        """
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You write no checkpoint after a step whose loss is not finite. Killed "
    "there, the run makes the step again. Write one after *every* step.",
)

stops_at_nan = edit(
    SOLUTION,
    {
        "losses.append(job.step(*parts, to_come.pop(0)))": """
        losses.append(job.step(*parts, to_come.pop(0)))
        if math.isnan(losses[-1]):
            raise FloatingPointError("the loss is NaN")
        """
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You raise at a loss that is NaN. `train_in_one_go` goes on, and a "
    "scaler skips such a step: leave it to `job`.",
)

counters_left_out = edit(
    SOLUTION,
    {
        '"parts": [part.state_dict() for part in parts],': """
        "parts": [
            {
                name: value
                for name, value in part.state_dict().items()
                if not name.endswith("num_batches_tracked")
            }
            for part in parts
        ],
        """,
        "part.load_state_dict(state)": """
        if part is model:
            part.load_state_dict(state, strict=False)
        else:
            part.load_state_dict(state)
        """,
    },
    breaks=hidden_tests.losses_and_weights,
    tells="You leave `num_batches_tracked` out of the file, so the counters begin "
    "again. They are buffers as others are, and with `momentum=None` they "
    "decide about the statistics.",
)

weights_saved_in_float32 = edit(
    SOLUTION,
    {
        '"parts": [part.state_dict() for part in parts],': """
        "parts": [
            {
                name: value.float()
                if torch.is_tensor(value) and value.dtype == torch.float64
                else value
                for name, value in part.state_dict().items()
            }
            for part in parts
        ],
        """,
    },
    breaks=hidden_tests.other_sizes,
    tells="You save the weights in float32. A model in float64 loses digits: save "
    "what `state_dict()` gives.",
)

order_in_bytes = edit(
    by_the_order_and_a_position,
    {
        "states, order, losses, random_states = torch.load(path).values()": """
        states, order, losses, random_states = torch.load(path).values()
        order = order.long()
        """,
        "(states, order, losses, draw_states())": (
            "(states, order.byte(), losses, draw_states())"
        ),
    },
    breaks=hidden_tests.other_sizes,
    tells="You store the order of the samples in `uint8`, which ends at 255. With "
    "more samples others come after a restart: keep the `int64` of `randperm`.",
)

returned_in_eval_mode = edit(
    SOLUTION,
    {"return model, losses": "return model.eval(), losses"},
    breaks=hidden_tests.uninterrupted,
    tells="You return the model in eval mode. `train_in_one_go` leaves it in "
    "training mode, and whoever trains on would do so without dropout.",
)

deterministic_for_good = edit(
    SOLUTION,
    {
        "model = job.make_model()": """
        torch.use_deterministic_algorithms(True, warn_only=True)
        model = job.make_model()
        """
    },
    breaks=hidden_tests.uninterrupted,
    tells="You switch deterministic algorithms on for the whole process, and they "
    "stay on. That is for who calls `train` to decide.",
)

without_the_model = edit(
    by_one_key_for_each,
    {'model.load_state_dict(saved["model"])': ""},
    breaks=[hidden_tests.losses_and_weights, hidden_tests.from_the_file],
    tells="The model's weights are missing. The run goes on from the random ones of "
    "the new process, with an optimizer that knows others. Save and "
    "load `model.state_dict()`.",
)

finished_run_in_eval_mode = edit(
    SOLUTION,
    {
        "while to_come or epochs_begun < job.num_epochs:": """
        if epochs_begun >= job.num_epochs and not to_come:
            return model.eval(), losses
        while to_come or epochs_begun < job.num_epochs:
        """,
    },
    breaks=hidden_tests.only_the_rest,
    tells="You return the model of a finished run in eval mode. It is to come back as "
    "from `train_in_one_go`, in training mode, at every call.",
)

file_removed_once_it_is_read = edit(
    SOLUTION,
    {
        "checkpoint = torch.load(path)": """
        checkpoint = torch.load(path)
        path.unlink()
        """,
    },
    breaks=hidden_tests.killed_twice,
    tells="You remove the file once you have read it. Killed in the next step, the run "
    "has nothing left and begins anew. Leave the file there until the next "
    "checkpoint takes its place.",
)

two_numbers_of_the_scaler = edit(
    by_one_key_for_each,
    {
        '"scaler": scaler.state_dict(),': """
        "scaler": {
            key: scaler.state_dict()[key] for key in ("scale", "_growth_tracker")
        },
        """,
        'scaler.load_state_dict(saved["scaler"])': """
        scaler.load_state_dict(scaler.state_dict() | saved["scaler"])
        """,
    },
    breaks=hidden_tests.other_sizes,
    tells="You take the scaler's state apart. That of a scaler with `enabled=False` is empty: save "
    "what `state_dict()` gives, whatever it is.",
)

index_errors_end_the_epoch = edit(
    SOLUTION,
    {
        "losses.append(job.step(*parts, to_come.pop(0)))": """
        try:
            losses.append(job.step(*parts, to_come.pop(0)))
        except IndexError:
            continue
        """
    },
    breaks=hidden_tests.exceptions_come_out,
    tells="You catch the exceptions of `job.step` and return. A run that broke "
    "then looks like one that is finished. Let them through: the checkpoint is "
    "there already.",
)

thawed_after_loading = edit(
    SOLUTION,
    {
        'epochs_begun = checkpoint["epochs_begun"]': """
        model.requires_grad_(True)
        epochs_begun = checkpoint["epochs_begun"]
        """
    },
    breaks=hidden_tests.losses_and_weights,
    tells="After loading you let all parameters learn. What `job.make_model` has frozen then moves "
    "after a restart: leave `requires_grad` alone.",
)

epochs_counted_by_one_more_step = edit(
    SOLUTION,
    {
        'losses = checkpoint["losses"]': """
        losses = checkpoint["losses"]
        steps_per_epoch = job.num_samples // job.batch_size + 1
        epochs_begun = -(-len(losses) // steps_per_epoch)
        """,
    },
    breaks=hidden_tests.other_sizes,
    tells="You count the epochs by `num_samples // batch_size + 1` steps each. Where the batch size "
    "divides the number of samples, that is one step too many, and the run goes on for too "
    "long. Round up by `-(-n // m)`, or save the number of the epoch.",
)
