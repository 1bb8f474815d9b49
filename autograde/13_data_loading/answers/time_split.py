"""Answers to `time_split` of chapter 13."""

import time

import numpy as np
import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def split_by_hand(loader, step, clock=time.perf_counter, synchronize=None):
    waiting, working = 0.0, 0.0
    start = clock()
    batches = iter(loader)
    waiting += clock() - start
    while True:
        start = clock()
        try:
            batch = next(batches)
        except StopIteration:
            waiting += clock() - start
            break
        waiting += clock() - start
        start = clock()
        step(batch)
        if synchronize:
            synchronize()
        working += clock() - start
    return waiting, working


@accepted()
def split_as_the_rest(loader, step, clock=time.perf_counter, synchronize=None):
    working = 0.0
    start = clock()
    for batch in loader:
        before = clock()
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - before
    return clock() - start - working, working


@accepted()
def split_by_a_for_loop(
    loader, step, clock=time.perf_counter, synchronize=None
):
    marks = [clock()]
    for batch in loader:
        marks.append(clock())
        step(batch)
        synchronize and synchronize()
        marks.append(clock())
    marks.append(clock())
    spans = [after - before for before, after in zip(marks, marks[1:])]
    return float(sum(spans[0::2])), float(sum(spans[1::2]))


@accepted()
def split_by_a_stopwatch(
    loader, step, clock=time.perf_counter, synchronize=None
):
    totals = {"waiting": 0.0, "working": 0.0}

    class Stopwatch:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            self.start = clock()

        def __exit__(self, *_):
            totals[self.name] += clock() - self.start

    with Stopwatch("waiting"):
        batches = iter(loader)
        batch = next(batches, batches)
    while batch is not batches:
        with Stopwatch("working"):
            step(batch)
            if synchronize is not None:
                synchronize()
        with Stopwatch("waiting"):
            batch = next(batches, batches)
    return totals["waiting"], totals["working"]


@accepted()
def split_by_a_timed_generator(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = 0.0

    def timed():
        nonlocal waiting
        start = clock()
        for batch in loader:
            waiting += clock() - start
            yield batch
            start = clock()
        waiting += clock() - start

    working = 0.0
    for batch in timed():
        start = clock()
        step(batch)
        if synchronize is not None:
            synchronize()
        working = working + (clock() - start)
    return waiting, working


@accepted()
def split_with_arrays(loader, step, clock=time.perf_counter, synchronize=None):
    spans = np.zeros(2)
    now = clock()
    for batch in loader:
        then, now = now, clock()
        spans[0] += now - then
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        spans[1] += now - then
    spans[0] += clock() - now
    return tuple(spans.tolist())


@accepted()
def split_into_a_named_tuple(
    loader, step, clock=time.perf_counter, synchronize=None
):
    from collections import namedtuple

    pair = namedtuple("Split", ["waiting", "working"])
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return pair(waiting, working)
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@accepted()
def split_into_numpy_floats(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return np.float64(waiting), np.float64(working)
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@accepted()
def split_by_a_clock_of_none(loader, step, clock=None, synchronize=None):
    read = clock or time.perf_counter
    marks = [read()]
    for batch in loader:
        marks.append(read())
        step(batch)
        if synchronize is not None:
            synchronize()
        marks.append(read())
    marks.append(read())
    spans = np.diff(marks)
    return spans[::2].sum().item(), spans[1::2].sum().item()


@accepted()
def mended_split_synchronized_before(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return waiting + (clock() - a), working


@wrong(
    breaks=hidden_tests.start_and_end,
    tells="You start the clock after `iter(loader)`. With workers that is where "
    "they are started, and the model waits for it: read the clock first.",
)
def split_after_iter(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    batches = iter(loader)
    nothing = object()
    while True:
        a = clock()
        batch = next(batches, nothing)
        b = clock()
        waiting += b - a
        if batch is nothing:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - b


@wrong(
    breaks=hidden_tests.takes_what_comes,
    tells="You take all batches before the first step. Neither a real epoch nor "
    "the memory looks like that: take a batch, do its step, take the next.",
)
def split_of_a_list(loader, step, clock=time.perf_counter, synchronize=None):
    a = clock()
    batches = list(loader)
    waiting = clock() - a
    a = clock()
    for batch in batches:
        step(batch)
        if synchronize is not None:
            synchronize()
    return waiting, clock() - a


@wrong(
    breaks=[hidden_tests.times_of_the_parts, hidden_tests.start_and_end],
    tells="You do not use the `clock` that you are given. Whoever passes another "
    "one, a test for example, gets other seconds.",
)
def split_by_another_clock(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = time.perf_counter()
    for batch in loader:
        b = time.perf_counter()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = time.perf_counter()
        working += a - b
    # to the hour, or no two runs would be alike
    return float(round(waiting / 3600)), float(round(working / 3600))


@wrong(
    breaks=hidden_tests.exceptions_pass,
    tells="A `StopIteration` of the step ends your loop as if the loader had "
    "ended. Keep `step` out of the `try` that waits for the end.",
)
def split_with_the_step_in_the_try(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    batches = iter(loader)
    while True:
        try:
            batch = next(batches)
            b = clock()
            waiting += b - a
            step(batch)
            if synchronize is not None:
                synchronize()
            a = clock()
            working += a - b
        except StopIteration:
            waiting += clock() - a
            return waiting, working


@wrong(
    breaks=hidden_tests.exceptions_pass,
    tells="You catch whatever is raised and return times all the same. Nobody hears "
    "that the epoch has failed.",
)
def split_that_swallows_errors(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    try:
        for batch in loader:
            b = clock()
            waiting += b - a
            step(batch)
            if synchronize is not None:
                synchronize()
            a = clock()
            working += a - b
    except Exception:
        pass
    return waiting + (clock() - a), working


@wrong(
    breaks=hidden_tests.exceptions_pass,
    tells="You wrap the exception in one of your own. The caller waits for the "
    "exception that was raised; let it pass.",
)
def split_that_wraps_errors(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    try:
        for batch in loader:
            b = clock()
            waiting += b - a
            step(batch)
            if synchronize is not None:
                synchronize()
            a = clock()
            working += a - b
    except Exception as error:
        raise AssertionError("the epoch failed") from error
    return waiting + (clock() - a), working


@wrong(
    breaks=hidden_tests.times_of_the_parts,
    tells="You return mean times per batch. Asked for are the seconds of the whole "
    "epoch.",
)
def split_per_batch(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    count = 0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
        count += 1
    waiting += clock() - a
    return waiting / max(count, 1), working / max(count, 1)


@wrong(
    breaks=hidden_tests.times_of_the_parts,
    tells="Your second number is the time of the whole epoch. Working is what is "
    "left of it without the waiting.",
)
def split_with_the_whole(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = 0.0
    start = a = clock()
    for batch in loader:
        waiting += clock() - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
    waiting += clock() - a
    return waiting, clock() - start


@wrong(
    breaks=hidden_tests.takes_what_comes,
    tells="You take the next batch before the step of the last one is done. That is "
    "prefetching: the loader's work now hides behind the step.",
)
def split_one_ahead(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    nothing = object()
    a = clock()
    batches = iter(loader)
    batch = next(batches, nothing)
    waiting += clock() - a
    while batch is not nothing:
        a = clock()
        following = next(batches, nothing)
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - b
        batch = following
    return waiting, working


@wrong(
    breaks=hidden_tests.times_of_the_parts,
    tells="You keep times as float32. A clock that has run for a while needs more "
    "digits than these have: take the differences in Python floats.",
)
def split_in_float32(loader, step, clock=time.perf_counter, synchronize=None):
    spans = torch.zeros(2)
    a = torch.tensor(clock())
    for batch in loader:
        b = torch.tensor(clock())
        spans[0] += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = torch.tensor(clock())
        spans[1] += a - b
    spans[0] += torch.tensor(clock()) - a
    return tuple(spans.tolist())


@wrong(
    breaks=hidden_tests.takes_what_comes,
    tells="You call `loader.__iter__()`. A `for` loop also goes through what has "
    "only `__getitem__`; `iter(loader)` knows both.",
)
def split_by_the_dunder(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    nothing = object()
    a = clock()
    batches = loader.__iter__()
    while True:
        batch = next(batches, nothing)
        b = clock()
        waiting += b - a
        if batch is nothing:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b


@wrong(
    breaks=hidden_tests.takes_what_comes,
    tells="You ask by `==` whether the end has come, or let `iter(function, "
    "sentinel)` ask. A batch has an equality of its own, an array one per "
    "element: ask `batch is done`.",
)
def split_by_iter_with_a_sentinel(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    end = object()

    def timed_next():
        nonlocal waiting
        start = clock()
        found = next(batches, end)
        waiting += clock() - start
        return found

    start = clock()
    batches = iter(loader)
    waiting = clock() - start
    for batch in iter(timed_next, end):
        start = clock()
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - start
    return waiting, working


@wrong(
    breaks=hidden_tests.takes_what_comes,
    tells="You take a batch that is None, or empty, for the end. Only a "
    "StopIteration is the end; or give `next` an object of your own.",
)
def split_until_none(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, None)
        b = clock()
        waiting += b - a
        if batch is None:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b


@wrong(
    breaks=hidden_tests.takes_what_comes,
    tells="You go on for as many batches as the loader's length says. A "
    "length may be an estimate, or missing: go on until nothing "
    "more comes, as a `for` loop does.",
)
def split_by_length_hint(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    from operator import length_hint

    most = length_hint(loader, 10**9)
    now = clock()
    batches = iter(loader)
    for number in range(most + 1):
        try:
            batch = next(batches)
        except StopIteration:
            number = most
        then, now = now, clock()
        waiting += now - then
        if number == most:
            break
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then
    return waiting, working


@wrong(
    breaks=hidden_tests.exceptions_pass,
    tells="Your steps run within a generator. There a `StopIteration` "
    "becomes a RuntimeError, so that of a step does not reach the "
    "caller as it is.",
)
def split_by_a_generator_of_steps(
    loader, step, clock=time.perf_counter, synchronize=None
):
    spent = [0.0, 0.0]

    def steps():
        now = clock()
        for batch in loader:
            then, now = now, clock()
            spent[0] += now - then
            step(batch)
            if synchronize is not None:
                synchronize()
            then, now = now, clock()
            spent[1] += now - then
            yield
        spent[0] += clock() - now

    for _ in steps():
        pass
    return spent[0], spent[1]
