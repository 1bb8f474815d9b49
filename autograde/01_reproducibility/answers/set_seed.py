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
