"""Answers to `data_parallel` of chapter 14."""

import copy
import math

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def by_chunk_and_deepcopy():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        # a deep copy that shares the parameters: only buffers are new
        kept = {id(p): p for p in model.parameters()}
        chunks = X.chunk(num_devices)
        others = [copy.deepcopy(model, dict(kept)) for _ in chunks[1:]]
        replicas = [model, *others]
        return torch.cat([r(c) for r, c in zip(replicas, chunks)], 0)

    def plain_state_dict(model):
        if isinstance(model, (nn.DataParallel, DistributedDataParallel)):
            return model.module.state_dict()
        return model.state_dict()


@accepted(body=True)
def by_stateless_calls_and_one_last():
    def chunk_sizes(batch_size, num_devices):
        return [t.numel() for t in torch.empty(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        # the first chunk goes last, so that copies are of the right moment
        chunks = torch.chunk(X, num_devices, dim=0)
        outputs = []
        for chunk in reversed(chunks[1:]):
            state = {n: b.detach().clone() for n, b in model.named_buffers()}
            state.update(model.named_parameters())
            outputs.insert(0, functional_call(model, state, chunk))
        return torch.cat([model(chunks[0]), *outputs])

    def plain_state_dict(model):
        state = model.state_dict()
        if isinstance(model, nn.DataParallel | DistributedDataParallel):
            return {k[len("module.") :]: v for k, v in state.items()}
        return state


@accepted(body=True)
def by_an_autograd_function():
    def chunk_sizes(batch_size, num_devices):
        size = (batch_size + num_devices - 1) // num_devices
        full, rest = divmod(batch_size, size)
        return [size] * full + ([rest] if rest else [])

    class Send(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tuple(t.detach().clone() for t in tensors)

        @staticmethod
        def backward(ctx, *gradients):
            return gradients

    def data_parallel(model, X, num_devices):
        chunks = X.split(chunk_sizes(len(X), num_devices))
        names = [n for n, p in model.named_parameters() if p.requires_grad]
        given = [model.get_parameter(n) for n in names]
        copies = []
        for _ in chunks[1:]:
            sent = dict(zip(names, Send.apply(*given))) if given else {}
            copies.append(
                sent | {n: b.clone() for n, b in model.named_buffers()}
            )
        outputs = [model(chunks[0])]
        for state, chunk in zip(copies, chunks[1:]):
            outputs.append(functional_call(model, state, (chunk,)))
        return torch.cat(outputs, dim=0)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@accepted(body=True)
def by_swapping_buffers():
    def chunk_sizes(batch_size, num_devices):
        each = math.ceil(batch_size / num_devices)
        return [
            len(range(start, min(start + each, batch_size)))
            for start in range(0, batch_size, each)
        ]

    def data_parallel(model, X, num_devices):
        def copies():
            return [
                (layer, name, buffer, buffer.clone())
                for layer in model.modules()
                for name, buffer in layer._buffers.items()
                if buffer is not None
            ]

        pieces = list(X.split(chunk_sizes(X.shape[0], num_devices)))
        sets = [copies() for _ in pieces[1:]]
        results = [model(pieces[0])]
        for kept, piece in zip(sets, pieces[1:]):
            for layer, name, _, replica in kept:
                layer._buffers[name] = replica
            try:
                results.append(model(piece))
            finally:
                for layer, name, own, _ in kept:
                    layer._buffers[name] = own
        return torch.cat(results)

    def plain_state_dict(model):
        match model:
            case nn.DataParallel() | DistributedDataParallel():
                return dict(model.module.state_dict())
        return dict(model.state_dict())


@accepted(body=True)
def by_threads():
    def chunk_sizes(batch_size, num_devices):
        size = -(-batch_size // num_devices)
        ends = [*range(size, batch_size, size), batch_size]
        return [end - start for start, end in zip([0, *ends], ends)]

    def data_parallel(model, X, num_devices):
        # as nn.DataParallel does it: replicas first, then a thread for each
        from concurrent.futures import ThreadPoolExecutor

        chunks = X.tensor_split(
            list(range(0, len(X), chunk_sizes(len(X), num_devices)[0]))[1:]
        )
        own = {id(p): p for p in model.parameters()}
        replicas = [model]
        for _ in chunks[1:]:
            replicas.append(copy.deepcopy(model, dict(own)))
        grad_mode = torch.is_grad_enabled()  # each thread has its own

        def apply(replica, chunk):
            with torch.set_grad_enabled(grad_mode):
                return replica(chunk)

        with ThreadPoolExecutor(len(chunks)) as threads:
            return torch.cat(list(threads.map(apply, replicas, chunks)))

    def plain_state_dict(model):
        if type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
            model = model.module
        return {name: value for name, value in model.state_dict().items()}


@accepted(body=True)
def by_rows_picked_out():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        rows = torch.arange(len(X)).split(chunk_sizes(len(X), num_devices))
        own = dict(model.named_parameters())
        copies = [
            {n: copy.deepcopy(b) for n, b in model.named_buffers()}
            for _ in rows[1:]
        ]
        later = [
            functional_call(model, (own, state), (X.index_select(0, one),))
            for state, one in zip(copies, rows[1:])
        ]
        return torch.cat([model(X[rows[0]]), *later])

    def plain_state_dict(model):
        if isinstance(model, (nn.DataParallel, DistributedDataParallel)):
            return plain_state_dict(model.module)
        return {n: value.clone() for n, value in model.state_dict().items()}


@accepted(body=True)
def mended_model_put_into_train():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        first, *others = X.chunk(num_devices)
        replicas = [
            {n: b.clone() for n, b in model.named_buffers()} for _ in others
        ]
        outputs = [model(first)]
        for buffers, chunk in zip(replicas, others):
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    breaks=hidden_tests.gradients_reach_the_model,
    tells="You run all chunks on the model's own buffers and write the old values back "
    "in between. What an earlier replica kept of a buffer for its backward pass is "
    "overwritten by that, and its gradient is wrong. Give each replica copies.",
    body=True,
)
def by_restoring_buffers():
    def chunk_sizes(batch_size, num_devices):
        sizes, left = [], batch_size
        while left > 0:
            sizes.append(min(left, -(-batch_size // num_devices)))
            left -= sizes[-1]
        return sizes

    def data_parallel(model, X, num_devices):
        before = [b.clone() for b in model.buffers()]
        outputs, at, after = [], 0, None
        for size in chunk_sizes(len(X), num_devices):
            with torch.no_grad():
                for b, old in zip(model.buffers(), before):
                    b.data.copy_(old)
            outputs.append(model(X[at : at + size]))
            if after is None:
                after = [b.clone() for b in model.buffers()]
            at += size
        with torch.no_grad():
            for b, new in zip(model.buffers(), after):
                b.data.copy_(new)
        return torch.cat(outputs)

    def plain_state_dict(model):
        inner = model
        while type(inner) in (nn.DataParallel, DistributedDataParallel):
            inner = inner.module
        return inner.state_dict()


@wrong(
    breaks=hidden_tests.buffers_of_the_first,
    tells="It is the last replica whose buffers stay with you. It should be the "
    "first: its device holds the model itself.",
    body=True,
)
def last_one_writes():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        *others, last = X.chunk(num_devices)
        outputs = []
        for chunk in others:
            buffers = {n: b.clone() for n, b in model.named_buffers()}
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat([*outputs, model(last)])

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    breaks=hidden_tests.replicas_of_the_same_moment,
    tells="You copy the buffers of the state dict. A buffer made with "
    "`persistent=False` is not in there, so all replicas share it. Go through "
    "`named_buffers()`.",
    body=True,
)
def copies_of_the_state_dict():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        parameters = dict(model.named_parameters())
        first, *others = X.chunk(num_devices)
        copies = [
            {
                name: value.clone()
                for name, value in model.state_dict().items()
                if name not in parameters
            }
            for _ in others
        ]
        outputs = [model(first)]
        for buffers, chunk in zip(copies, others):
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    breaks=hidden_tests.gradients_reach_the_model,
    tells="Your replicas are deep copies, and their gradients stay with them: only "
    "the first chunk's reaches the model. Let the replicas use the model's own "
    "parameters, or send the gradients back.",
    body=True,
)
def gradients_stay_with_copies():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        chunks = X.chunk(num_devices)
        replicas = [model] + [copy.deepcopy(model) for _ in chunks[1:]]
        return torch.cat([r(c) for r, c in zip(replicas, chunks)])

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    breaks=hidden_tests.replicas_of_the_same_moment,
    tells="You keep the replicas for the next call. By then the model's buffers have "
    "moved on, and theirs have not. DataParallel makes new ones at every forward "
    "pass.",
    body=True,
)
def replicas_are_kept():
    KEPT = {}

    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        first, *others = X.chunk(num_devices)
        if KEPT.get("model") is not model:
            KEPT["model"] = model
            KEPT["replicas"] = [
                {n: b.clone() for n, b in model.named_buffers()}
                for _ in range(num_devices)
            ]
        outputs = [model(first)]
        for buffers, chunk in zip(KEPT["replicas"], others):
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    breaks=hidden_tests.same_model_afterwards,
    tells="Under `torch.no_grad()` your output still has a graph: you switch gradients "
    "on. Who calls decides that; leave the grad mode alone.",
    body=True,
)
def gradients_switched_on():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        with torch.enable_grad():
            first, *others = X.chunk(num_devices)
            replicas = [
                {n: b.clone() for n, b in model.named_buffers()} for _ in others
            ]
            outputs = [model(first)]
            for buffers, chunk in zip(replicas, others):
                outputs.append(functional_call(model, buffers, (chunk,)))
            return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    breaks=hidden_tests.same_model_afterwards,
    tells="You let the first replica write into a copy, and then put that copy "
    "into the model. Whoever holds the old buffer (a wrapper, an average "
    "of weights) no longer sees what the model does. The first replica "
    "works on the model's own buffers: call the model itself.",
    body=True,
)
def buffers_exchanged():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        chunks = X.chunk(num_devices)
        states = [
            {n: b.clone() for n, b in model.named_buffers()} for _ in chunks
        ]
        outputs = [
            functional_call(model, state, (chunk,))
            for state, chunk in zip(states, chunks)
        ]
        for name, buffer in states[0].items():
            layer, _, own_name = name.rpartition(".")
            setattr(model.get_submodule(layer), own_name, buffer)
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()
