"""The answer bank of chapter 14: several GPUs, several processes."""

import contextlib
import copy
import functools
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from course_grader.bank import accepted, wrong

from . import hidden_tests

# data_parallel


@accepted("data_parallel", body=True)
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


@wrong(
    "data_parallel",
    breaks=hidden_tests.gradients_reach_the_model,
    body=True,
    tells="You run all chunks on the model's own buffers and write the old values back "
    "in between. What an earlier replica kept of a buffer for its backward pass is "
    "overwritten by that, and its gradient is wrong. Give each replica copies.",
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


@accepted("data_parallel", body=True)
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


@accepted("data_parallel", body=True)
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


@accepted("data_parallel", body=True)
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


@accepted("data_parallel", body=True)
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


@wrong(
    "data_parallel",
    breaks=hidden_tests.chunks_of_a_batch,
    body=True,
    tells="Your chunks are as even as can be: 10 over 4 becomes 3, 3, 2, 2. "
    "DataParallel fills up: every chunk but the last has ⌈batch / devices⌉ "
    "samples.",
)
def sizes_as_even_as_can_be():
    def chunk_sizes(batch_size, num_devices):
        parts = torch.arange(batch_size).tensor_split(num_devices)
        return [len(one) for one in parts if len(one)]

    def data_parallel(model, X, num_devices):
        first, *others = X.split(chunk_sizes(len(X), num_devices))
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
    "data_parallel",
    breaks=hidden_tests.chunks_of_a_batch,
    body=True,
    tells="Your chunks have ⌊batch / devices⌋ samples, and what is left over makes "
    "a chunk more than there are devices. Round up, not down.",
)
def sizes_rounded_down():
    def chunk_sizes(batch_size, num_devices):
        size = max(1, batch_size // num_devices)
        full, rest = divmod(batch_size, size)
        return [size] * full + [rest] * (rest > 0)

    def data_parallel(model, X, num_devices):
        first, *others = X.split(chunk_sizes(len(X), num_devices))
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
    "data_parallel",
    breaks=hidden_tests.fewer_samples_than_devices,
    body=True,
    tells="Your list has one entry per device, with zeros or less where nothing is "
    "left. Devices that get nothing have no chunk: 6 over 4 gives three.",
)
def sizes_with_zeros():
    def chunk_sizes(batch_size, num_devices):
        size = math.ceil(batch_size / num_devices)
        return [
            max(0, min(size, batch_size - i * size)) for i in range(num_devices)
        ]

    def data_parallel(model, X, num_devices):
        sizes = [one for one in chunk_sizes(len(X), num_devices) if one]
        first, *others = X.split(sizes)
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
    "data_parallel",
    breaks=[hidden_tests.chunks_of_a_batch, hidden_tests.outputs_are_gathered],
    body=True,
    tells="Every chunk has batch // devices samples, and the rest of the batch is "
    "dropped. No sample may be lost: round up, and let the last chunk be shorter.",
)
def rest_is_dropped():
    def chunk_sizes(batch_size, num_devices):
        return [batch_size // num_devices] * num_devices

    def data_parallel(model, X, num_devices):
        sizes = chunk_sizes(len(X), num_devices)
        first, *others = X[: sum(sizes)].split(sizes)
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
    "data_parallel",
    breaks=hidden_tests.one_forward_per_chunk,
    body=True,
    tells="The whole batch goes through the model at once, as `nn.DataParallel` does "
    "where there is no GPU. Cut it into chunks, and call the model once for each.",
)
def batch_at_once():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        return model(X)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.buffers_of_the_first,
    body=True,
    tells="All chunks go through the model itself, so every one of them moves the "
    "running statistics, and sees what the one before it left. Only the first "
    "replica works on the model's buffers; give the others copies.",
)
def all_write_into_the_model():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        return torch.cat([model(one) for one in X.chunk(num_devices)])

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.buffers_of_the_first,
    body=True,
    tells="All replicas write into copies, also the first, so running statistics "
    "never move. The first device holds the model itself: what its replica "
    "writes stays.",
)
def nobody_writes_into_the_model():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        outputs = []
        for chunk in X.chunk(num_devices):
            buffers = {n: b.clone() for n, b in model.named_buffers()}
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.buffers_of_the_first,
    body=True,
    tells="It is the last replica whose buffers stay with you. It should be the "
    "first: its device holds the model itself.",
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
    "data_parallel",
    breaks=hidden_tests.replicas_of_the_same_moment,
    body=True,
    tells="You copy the buffers after the first replica has run, so the other "
    "replicas start from what it wrote. Make all copies before any replica runs.",
)
def copies_come_too_late():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        first, *others = X.chunk(num_devices)
        outputs = [model(first)]
        for chunk in others:
            buffers = {n: b.clone() for n, b in model.named_buffers()}
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.replicas_of_the_same_moment,
    body=True,
    tells="You made one set of copies for all other replicas, so each starts from "
    "what the one before it wrote. Each needs copies of its own.",
)
def one_copy_for_all_others():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        first, *others = X.chunk(num_devices)
        buffers = {n: b.clone() for n, b in model.named_buffers()}
        outputs = [model(first)]
        for chunk in others:
            outputs.append(functional_call(model, buffers, (chunk,)))
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.replicas_of_the_same_moment,
    body=True,
    tells="You copy the buffers of the state dict. A buffer made with "
    "`persistent=False` is not in there, so all replicas share it. Go through "
    "`named_buffers()`.",
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
    "data_parallel",
    breaks=hidden_tests.gradients_reach_the_model,
    body=True,
    tells="Your replicas are deep copies, and their gradients stay with them: only "
    "the first chunk's reaches the model. Let the replicas use the model's own "
    "parameters, or send the gradients back.",
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
    "data_parallel",
    breaks=hidden_tests.gradients_reach_the_model,
    body=True,
    tells="What you return is cut off from the graph (`detach`, `.data` or "
    "`no_grad`), so a loss on it cannot go backward.",
)
def output_without_a_graph():
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
        return torch.cat([one.detach() for one in outputs])

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.gradient_of_the_inputs,
    body=True,
    tells="You detach the chunks, so no gradient reaches the batch. Where `X` "
    "requires one (a layer before it, an adversarial example), it must.",
)
def inputs_detached():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        first, *others = X.detach().clone().chunk(num_devices)
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
    "data_parallel",
    breaks=hidden_tests.outputs_are_gathered,
    body=True,
    tells="You deal the samples out like cards (`X[i::num_devices]`), so the outputs "
    "come in another order than the batch. Chunks are consecutive rows.",
)
def samples_dealt_out():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        count = len(chunk_sizes(len(X), num_devices))
        first, *others = [X[i::count] for i in range(count)]
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
    "data_parallel",
    breaks=hidden_tests.outputs_are_gathered,
    body=True,
    tells="You return the mean of the chunks' outputs. Gathering puts them one after "
    "the other: as many rows as the batch has.",
)
def outputs_averaged():
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
        return torch.stack([one.mean(0) for one in outputs]).mean(0)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.gradients_reach_the_model,
    body=True,
    tells="Your gradients are too small by the number of chunks. DataParallel adds "
    "what comes from the replicas; the mean is in the loss on the whole output.",
)
def gradients_averaged():
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
        out = torch.cat(outputs)
        return out / len(outputs) + (out - out / len(outputs)).detach()

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.same_model_afterwards,
    body=True,
    tells="You call `model.train()`. Replicas are in the mode that the model is in: "
    "a model in `eval()` must stay there.",
)
def model_put_into_train():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        model.train()
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
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You return the wrapper's own state dict: its names begin with `module.`, "
    "and no plain model knows them. Ask the model inside, `model.module`.",
)
def names_with_prefix():
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
        return model.state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You take `module` for a sign of a wrapper, or take `module.` off wherever "
    "it stands. A plain model may have a layer of that name. Look at the type of "
    "the model.",
)
def whatever_is_called_module():
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
        return getattr(model, "module", model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You take `module` for a sign of a wrapper, or take `module.` off wherever "
    "it stands. A plain model may have a layer of that name. Look at the type of "
    "the model.",
)
def every_module_replaced():
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
        state = model.state_dict()
        return {name.replace("module.", ""): v for name, v in state.items()}


@wrong(
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You unwrap `nn.DataParallel` alone. `DistributedDataParallel` keeps the "
    "model in `module`, too.",
)
def ddp_not_unwrapped():
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
        if isinstance(model, nn.DataParallel):
            model = model.module
        return model.state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.replicas_of_the_same_moment,
    body=True,
    tells="You keep the replicas for the next call. By then the model's buffers have "
    "moved on, and theirs have not. DataParallel makes new ones at every forward "
    "pass.",
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
    "data_parallel",
    breaks=hidden_tests.same_model_afterwards,
    body=True,
    tells="Under `torch.no_grad()` your output still has a graph: you switch gradients "
    "on. Who calls decides that; leave the grad mode alone.",
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
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You take `module` for a sign of a wrapper, or take `module.` off wherever "
    "it stands. A plain model may have a layer of that name. Look at the type of "
    "the model.",
)
def prefix_of_all_names():
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
        state = model.state_dict()
        if all(name.startswith("module.") for name in state):
            state = {n.removeprefix("module."): v for n, v in state.items()}
        return state


@wrong(
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You return the parameters alone. A state dict holds buffers, too: without "
    "the running statistics a model that is loaded from the file computes "
    "something else in `eval()`.",
)
def parameters_alone():
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
        return dict((model.module if wrapped else model).named_parameters())


@wrong(
    "data_parallel",
    breaks=hidden_tests.gradients_reach_the_model,
    body=True,
    tells="You clear the model's gradients in the forward pass. What a pass before it "
    "had left there is lost; clearing belongs to whoever calls `backward()`.",
)
def gradients_cleared_first():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        model.zero_grad()
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


@accepted("data_parallel", body=True)
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


@wrong(
    "data_parallel",
    breaks=hidden_tests.fewer_samples_than_devices,
    body=True,
    tells="Adding 0.999 and cutting off rounds up only while the fraction is "
    "larger than 0.001: with thousands of devices your chunks are too "
    "small, and there are more chunks than devices. Use `math.ceil` or "
    "`-(-a // b)`.",
)
def sizes_by_adding_nearly_one():
    def chunk_sizes(batch_size, num_devices):
        size = int(batch_size / num_devices + 0.999)
        full, rest = divmod(batch_size, size)
        return [size] * full + [rest] * (rest > 0)

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
    "data_parallel",
    breaks=hidden_tests.same_model_afterwards,
    body=True,
    tells="You let the first replica write into a copy, and then put that copy "
    "into the model. Whoever holds the old buffer (a wrapper, an average "
    "of weights) no longer sees what the model does. The first replica "
    "works on the model's own buffers: call the model itself.",
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


@wrong(
    "data_parallel",
    breaks=hidden_tests.same_model_afterwards,
    body=True,
    tells="You call `model.train(...)`, which gives every layer the mode of "
    "the whole model. A layer that is in `eval()` on purpose must stay "
    "there. Leave the modes alone.",
)
def one_mode_for_all_layers():
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
        model.train(model.training)
        return torch.cat(outputs)

    def plain_state_dict(model):
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()


@wrong(
    "data_parallel",
    breaks=hidden_tests.same_model_afterwards,
    body=True,
    tells="You call `model.train(...)`, which gives every layer the mode of "
    "the whole model. A layer that is in `eval()` on purpose must stay "
    "there. Leave the modes alone.",
)
def one_mode_for_all_layers_first():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        model.train(model.training)
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
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You put the state together from `named_parameters()` and "
    "`named_buffers()`. These name a weight that two layers share once "
    "instead of twice, and buffers that are not `persistent` as well. "
    "`state_dict()` knows what belongs into a file.",
)
def state_put_together():
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
        inner = model.module if wrapped else model
        state = dict(inner.named_parameters()) | dict(inner.named_buffers())
        return {name: value.detach() for name, value in state.items()}


@wrong(
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You save the state in float32. It is the model's own, with the "
    "dtypes that it has: what is loaded must compute the same.",
)
def state_in_float32():
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
        state = (model.module if wrapped else model).state_dict()
        return {name: value.float() for name, value in state.items()}


@wrong(
    "data_parallel",
    breaks=hidden_tests.gradients_reach_the_model,
    body=True,
    tells="With one device you return an output without a graph. One device is "
    "no special case: it is one chunk, and its gradient counts.",
)
def no_gradient_on_one_device():
    def chunk_sizes(batch_size, num_devices):
        return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]

    def data_parallel(model, X, num_devices):
        if num_devices == 1:
            with torch.no_grad():
                return model(X)
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
    "data_parallel",
    breaks=hidden_tests.names_without_prefix,
    body=True,
    tells="You put the model into `eval()` before you ask for its state. The "
    "modes are not in the state, and training goes on with the wrong "
    "ones.",
)
def state_of_a_model_in_eval():
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
        model.eval()
        return (model.module if wrapped else model).state_dict()


# ddp_step


@accepted("ddp_step")
def step_by_own_all_reduce(model, optimizer, micro_batches, group):
    plain = model.module
    optimizer.zero_grad()
    loss_sum, count = 0.0, 0
    for x, y in micro_batches:
        loss = F.cross_entropy(plain(x), y, reduction="sum")
        loss.backward()
        loss_sum += loss.item()
        count += len(y)
    total = torch.tensor([loss_sum, float(count)], dtype=torch.float64)
    dist.all_reduce(total, group=group)
    for p in plain.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)
            p.grad /= total[1]
    optimizer.step()
    return (total[0] / total[1]).item()


@accepted("ddp_step")
def step_scaled_at_the_end(model, optimizer, micro_batches, group):
    optimizer.zero_grad()
    sums = torch.zeros(2, dtype=torch.float64)
    with model.no_sync():
        for x, y in micro_batches[:-1]:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
            sums += torch.tensor([loss.item(), len(y)], dtype=torch.float64)
    x, y = micro_batches[-1]
    loss = F.cross_entropy(model(x), y, reduction="sum")
    loss.backward()
    sums += torch.tensor([loss.item(), len(y)], dtype=torch.float64)
    dist.all_reduce(sums, group=group)
    factor = group.size() / sums[1].item()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(factor)
    optimizer.step()
    return sums[0].item() / sums[1].item()


@accepted("ddp_step")
def step_by_the_switch(model, optimizer, micro_batches, group):
    counts = [None] * dist.get_world_size(group)
    mine = sum(y.numel() for _, y in micro_batches)
    dist.all_gather_object(counts, mine, group=group)
    share = len(counts) / sum(counts)
    model.zero_grad()
    losses = []
    for i, (x, y) in enumerate(micro_batches, start=1):
        model.require_backward_grad_sync = i == len(micro_batches)
        loss = F.cross_entropy(model(x), y, reduction="sum") * share
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
    means = [None] * len(counts)
    dist.all_gather_object(means, sum(losses), group=group)
    return sum(means) / len(counts)


@accepted("ddp_step")
def step_with_one_flat_exchange(model, optimizer, micro_batches, group):
    for p in optimizer.param_groups[0]["params"]:
        p.grad = None
    weights = [p for p in model.parameters() if p.requires_grad]
    sums = [torch.zeros_like(p) for p in weights]
    loss_sum = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        for total, g in zip(sums, torch.autograd.grad(loss, weights)):
            total += g
        loss_sum += loss.item()
    count = float(sum(len(y) for _, y in micro_batches))
    numbers = torch.tensor([loss_sum, count], dtype=weights[0].dtype)
    flat = torch.cat([numbers, *[one.flatten() for one in sums]])
    dist.all_reduce(flat, group=group)
    flat[2:] /= flat[1].item()
    at = 2
    for p in weights:
        p.grad = flat[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    optimizer.step()
    optimizer.zero_grad()
    return (flat[0] / flat[1]).item()


@accepted("ddp_step")
def step_with_weighted_means(model, optimizer, micro_batches, group):
    count = torch.tensor(float(sum(len(x) for x, _ in micro_batches)))
    dist.all_reduce(count, dist.ReduceOp.SUM, group)
    size = dist.get_world_size(group=group)
    optimizer.zero_grad(set_to_none=True)
    mean = torch.zeros((), dtype=torch.float64)
    with contextlib.ExitStack() as local:
        local.enter_context(model.no_sync())
        for i, (x, y) in enumerate(micro_batches):
            if i == len(micro_batches) - 1:
                local.close()
            loss = F.cross_entropy(model(x), y)
            part = loss * (len(y) / count.item())
            (part * size).backward()
            mean += part.detach()
    dist.all_reduce(mean, group=group)
    optimizer.step()
    return float(mean)


@accepted("ddp_step")
def step_by_gathering_all_gradients(model, optimizer, micro_batches, group):
    losses, count = 0.0, 0
    optimizer.zero_grad()
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        loss.backward()
        losses, count = losses + loss.item(), count + len(y)
    weights = [p for p in model.parameters() if p.grad is not None]
    mine = torch.cat([p.grad.flatten() for p in weights])
    mine = torch.cat([mine, mine.new_tensor([losses, count])])
    everything = [torch.empty_like(mine) for _ in range(group.size())]
    dist.all_gather(everything, mine, group=group)
    total = torch.stack(everything).sum(0)
    means = (total[:-2] / total[-1]).split([p.numel() for p in weights])
    for p, mean in zip(weights, means):
        p.grad = mean.view_as(p)
    optimizer.step()
    return (total[-2] / total[-1]).item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.unequal_shards,
    tells="Each rank takes the mean over its own samples, and DDP the mean of these "
    "means: a sample on a rank with few counts more. Take the sum of the losses, "
    "times the number of ranks, over the number of *all* samples.",
)
def step_mean_of_means(model, optimizer, micro_batches, group):
    count = sum(len(y) for _, y in micro_batches)
    total = torch.tensor([float(count), 0.0], dtype=torch.float64)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / count).backward()
        total[1] += loss.item()
    optimizer.step()
    dist.all_reduce(total, group=group)
    return (total[1] / total[0]).item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.unequal_shards,
    tells="You take each micro-batch's mean, and divide by the number of "
    "micro-batches. Neither micro-batches nor ranks have equally many samples: "
    "sum the losses, and divide by the number of all samples of all ranks.",
)
def step_mean_of_micro_means(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y)
            (loss / len(micro_batches)).backward()
        total += torch.tensor([len(y), len(y) * loss.item()]).double()
    optimizer.step()
    dist.all_reduce(total, group=group)
    return (total[1] / total[0]).item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.equal_shards,
    tells="Your gradient is too small by the number of ranks. DDP does not add the "
    "ranks' gradients but averages them, which divides once more: multiply the "
    "loss by the number of ranks.",
)
def step_without_the_factor(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    total.zero_()
    optimizer.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
            loss.backward()
        total += loss.detach()
    optimizer.step()
    dist.all_reduce(total, group=group)
    return total[0].item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.exchanged_once,
    tells="The numbers are right, but the gradient crosses between the ranks at every "
    "micro-batch. `no_sync()` has to stand around all but the last, and around "
    "the *forward* pass as well: that is where DDP prepares the exchange.",
)
def step_without_no_sync(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    mean = torch.zeros(1, dtype=torch.float64)
    optimizer.zero_grad()
    for x, y in micro_batches:
        loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
        (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.exchanged_once,
    tells="The numbers are right, but the gradient crosses between the ranks at every "
    "micro-batch. `no_sync()` has to stand around all but the last, and around "
    "the *forward* pass as well: that is where DDP prepares the exchange.",
)
def step_no_sync_around_backward(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    mean = torch.zeros(1, dtype=torch.float64)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=[hidden_tests.equal_shards, hidden_tests.ranks_stay_together],
    tells="The gradient never crosses between the ranks: `no_sync()` stands around "
    "the last micro-batch, too, or you call `model.module` and exchange nothing. "
    "Each rank trains a model of its own.",
)
def step_never_synchronised(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    mean = torch.zeros(1, dtype=torch.float64)
    optimizer.zero_grad()
    for x, y in micro_batches:
        with model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=[hidden_tests.equal_shards, hidden_tests.ranks_stay_together],
    tells="The gradient never crosses between the ranks: `no_sync()` stands around "
    "the last micro-batch, too, or you call `model.module` and exchange nothing. "
    "Each rank trains a model of its own.",
)
def step_of_the_inner_model(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    mean = torch.zeros(1, dtype=torch.float64)
    optimizer.zero_grad()
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        loss = loss / num_samples
        (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.windows_of_ranks,
    tells="`no_sync()` stands around the last micro-batch and not around those before "
    "it: the exchange comes too early, and what the last one adds stays on its "
    "rank.",
)
def step_no_sync_around_the_last(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    mean = torch.zeros(1, dtype=torch.float64)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1 and i > 0
        with model.no_sync() if last else contextlib.nullcontext():
            loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.windows_of_ranks,
    tells="You step after each micro-batch. There is one step for all micro-batches of "
    "all ranks: put it after the loop.",
)
def step_after_each(model, optimizer, micro_batches, group):
    total = torch.zeros(2, dtype=torch.float64)
    total[0] = sum(len(y) for _, y in micro_batches)
    dist.all_reduce(total, group=group)
    num_samples = total[0].item()
    mean = torch.zeros(1, dtype=torch.float64)
    for x, y in micro_batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
        (loss * group.size()).backward()
        optimizer.step()
        mean += loss.detach()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.loss_of_all_ranks,
    tells="The loss that you return is that of the rank's own samples. The mean over "
    "all ranks has to cross between them: `all_reduce` the sum of the losses.",
)
def step_loss_of_the_rank(model, optimizer, micro_batches, group):
    own = sum(len(y) for _, y in micro_batches)
    total = torch.tensor(float(own), dtype=torch.float64)
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    loss_sum = 0.0
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss * group.size() / total).backward()
        loss_sum += loss.item()
    optimizer.step()
    return loss_sum / own


@wrong(
    "ddp_step",
    breaks=hidden_tests.loss_of_all_ranks,
    tells="The loss that you return is the mean of the ranks' means, and ranks do not "
    "have equally many samples. Add up sums and counts, and divide once.",
)
def step_loss_mean_of_means(model, optimizer, micro_batches, group):
    own = sum(len(y) for _, y in micro_batches)
    total = torch.tensor(float(own), dtype=torch.float64)
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss * group.size() / total).backward()
        mean += loss.detach() / own
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item() / group.size()


@wrong(
    "ddp_step",
    breaks=hidden_tests.loss_of_all_ranks,
    tells="`dist.reduce` gives the sum to the first rank alone, and the others return "
    "something unfinished. Every rank needs it: `all_reduce`.",
)
def step_loss_on_the_first_rank(model, optimizer, micro_batches, group):
    own = sum(len(y) for _, y in micro_batches)
    total = torch.tensor(float(own), dtype=torch.float64)
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = 0.0
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.item()
    optimizer.step()
    gathered = torch.tensor(mean, dtype=torch.float64)
    dist.all_reduce(gathered, group=group)
    return gathered.item() if group.rank() == 0 else mean


@wrong(
    "ddp_step",
    breaks=hidden_tests.loss_of_all_ranks,
    tells="You return a tensor. Call `.item()`: a float keeps no graph and no memory.",
)
def step_loss_as_a_tensor(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean


@wrong(
    "ddp_step",
    breaks=hidden_tests.old_and_frozen,
    tells="Gradients from before are still there and are added to yours. Clear them "
    "before the first `backward()`.",
)
def step_on_old_gradients(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.windows_of_ranks,
    tells="You clear the gradients before every micro-batch, so the step uses the last "
    "one alone. Clear them once.",
)
def step_zero_each_time(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        optimizer.zero_grad()
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.equal_shards,
    tells="You add the gradients of the ranks once more after DDP has averaged them: "
    "the update is too large by the number of ranks. One exchange is enough.",
)
def step_reduced_twice(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=[hidden_tests.equal_shards, hidden_tests.step_leaves_the_rest],
    tells="You multiply the learning rate by the number of ranks. The gradient is that "
    "of the mean already, and the settings are not yours.",
)
def step_with_a_scaled_rate(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    for settings in optimizer.param_groups:
        settings["lr"] *= group.size()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.equal_shards,
    tells="You let each rank step on its own and then copy the first rank's weights to "
    "the others. What they had learned is lost. With DDP nothing is copied: all "
    "ranks step on the same gradient.",
)
def step_copied_from_the_first(model, optimizer, micro_batches, group):
    own = sum(len(y) for _, y in micro_batches)
    total = torch.zeros(2, dtype=torch.float64)
    optimizer.zero_grad()
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        (loss / own).backward()
        total += torch.tensor([loss.item(), len(y)], dtype=torch.float64)
    optimizer.step()
    for p in model.parameters():
        dist.broadcast(p.data, group_src=0, group=group)
    dist.all_reduce(total, group=group)
    return (total[0] / total[1]).item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.unequal_shards,
    tells="You let each rank step on its own and then average the weights. That is "
    "another method (local SGD): it equals the common step only for equal shards, "
    "plain SGD and a single step.",
)
def step_then_average_weights(model, optimizer, micro_batches, group):
    own = sum(len(y) for _, y in micro_batches)
    total = torch.zeros(2, dtype=torch.float64)
    optimizer.zero_grad()
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        (loss / own).backward()
        total += torch.tensor([loss.item(), len(y)], dtype=torch.float64)
    optimizer.step()
    for p in model.parameters():
        dist.all_reduce(p.data, group=group)
        p.data /= group.size()
    dist.all_reduce(total, group=group)
    return (total[0] / total[1]).item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.one_graph_at_a_time,
    tells="You put the rank's micro-batches together and take one forward pass. That "
    "needs the memory that micro-batches are there to save.",
)
def step_on_the_whole_shard(model, optimizer, micro_batches, group):
    x = torch.cat([x for x, _ in micro_batches])
    y = torch.cat([y for _, y in micro_batches])
    total = torch.tensor(float(len(y)), dtype=torch.float64)
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y, reduction="sum") / total
    (loss * group.size()).backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.one_graph_at_a_time,
    tells="All micro-batches go forward before the first goes backward, so all their "
    "graphs are kept at once. Call `backward()` for each, inside the loop.",
)
def step_backward_at_the_end(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        mean = mean + loss / total
    mean.backward()
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)
    optimizer.step()
    returned = mean.detach().clone()
    dist.all_reduce(returned, group=group)
    return returned.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You call `model.train()`. The mode is not yours: frozen layers may be in "
    "`eval()` on purpose.",
)
def step_in_train_mode(model, optimizer, micro_batches, group):
    model.train()
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="DDP's switch for synchronising is still off when you are done: the next "
    "backward pass, whosever it is, does not cross. `no_sync()` puts it back by "
    "itself.",
)
def step_switch_left_off(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        model.require_backward_grad_sync = i == len(micro_batches) - 1
        loss = F.cross_entropy(model(x), y, reduction="sum") / total
        (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    model.require_backward_grad_sync = False
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.unequal_shards,
    tells="You count as many samples on every rank as there are on your own. The "
    "number of all samples has to cross between the ranks: `all_reduce` it.",
)
def step_counts_its_own(model, optimizer, micro_batches, group):
    num_samples = group.size() * sum(len(y) for _, y in micro_batches)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / num_samples
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.ranks_stay_together,
    tells="You count the samples once and use that number for ever. Every step has "
    "its own.",
)
def step_counts_the_first_time(model, optimizer, micro_batches, group):
    if not hasattr(model, "num_samples"):
        total = torch.tensor(float(sum(len(y) for _, y in micro_batches)))
        dist.all_reduce(total, group=group)
        model.num_samples = total.item()
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss = loss / model.num_samples
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.equal_shards,
    tells="The first rank alone steps and sends its weights to the others. Then their "
    "optimizers know nothing of the step, and twice as much crosses. With DDP "
    "every rank steps, on the same gradient.",
)
def step_of_the_first_rank_alone(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    if group.rank() == 0:
        optimizer.step()
    for p in model.parameters():
        dist.broadcast(p.data, group_src=0, group=group)
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.loss_of_all_ranks,
    tells="You compute the loss again, after the step. The loss *before* the step is "
    "asked for, and you have it already: one forward pass per micro-batch.",
)
def step_loss_afterwards(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
    optimizer.step()
    mean = torch.zeros((), dtype=torch.float64)
    with torch.no_grad():
        for x, y in micro_batches:
            mean += F.cross_entropy(model.module(x), y, reduction="sum") / total
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.equal_shards,
    tells="The gradient crosses in float32, and the digits that float64 had are lost. "
    "Exchange it in the dtype that it has.",
)
def step_exchanged_in_float32(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum") / total
        loss.backward()
        mean += loss.detach()
    for p in model.parameters():
        if p.grad is not None:
            sent = p.grad.float()
            dist.all_reduce(sent, group=group)
            p.grad = sent.to(p.dtype)
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@accepted("ddp_step")
def step_mostly_by_the_inner_model(model, optimizer, micro_batches, group):
    total = torch.tensor(sum(y.numel() for _, y in micro_batches))
    dist.all_reduce(total, group=group)
    for p in model.parameters():
        p.grad = None
    mean = torch.zeros((), dtype=torch.float64)
    *most, (x, y) = micro_batches
    for before in most:
        loss = F.cross_entropy(
            model.module(before[0]), before[1], reduction="sum"
        )
        (loss * group.size() / total).backward()
        mean += loss.detach()
    loss = F.cross_entropy(model(x), y, reduction="sum")  # DDP adds all up
    (loss * group.size() / total).backward()
    mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return (mean / total).item()


@accepted("ddp_step")
def step_by_reduce_and_broadcast(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.reduce(mean, group_dst=0, group=group)
    dist.broadcast(mean, group_src=0, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.old_and_frozen,
    tells="You fill old gradients with zeros instead of removing them. A "
    "parameter that was frozen since then still has one, and weight "
    "decay (or momentum) moves it. `zero_grad()` sets them to None.",
)
def step_with_zeros_for_gradients(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad(set_to_none=False)
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.old_and_frozen,
    tells="You clear the gradients of the parameters that require one. One "
    "that was frozen since then keeps its old gradient, and the "
    "optimizer moves it. Clear them all: `optimizer.zero_grad()`.",
)
def step_with_old_gradients_of_frozen(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    for p in model.parameters():
        if p.requires_grad:
            p.grad = None
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.windows_of_ranks,
    tells="You flatten the inputs. A sample may have several dimensions, and "
    "the model knows what they mean: give it `x` as it is.",
)
def step_on_flat_inputs(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = (
                F.cross_entropy(model(x.flatten(1)), y, reduction="sum") / total
            )
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.windows_of_ranks,
    tells="You count the numbers in `x` in place of the samples. Where "
    "micro-batches have samples of different lengths, that weights them "
    "wrongly: `len(y)`.",
)
def step_counts_numbers(model, optimizer, micro_batches, group):
    wide = micro_batches[0][0][0].numel()
    total = sum(x.numel() / wide for x, _ in micro_batches)
    total = torch.tensor(total, dtype=torch.float64)
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You take the micro-batches out of the list. It is the caller's, who "
    "may want to go through it again: iterate over it.",
)
def step_empties_the_list(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    while micro_batches:
        x, y = micro_batches.pop(0)
        with model.no_sync() if micro_batches else contextlib.nullcontext():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You call `model.eval()` for the step. The mode is not yours: in "
    "`eval()` dropout and batch norm do not train.",
)
def step_in_eval_mode(model, optimizer, micro_batches, group):
    model_was = model.training
    model.eval()
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    model.train(model_was)
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.exchanged_once,
    tells="The gradient crosses once, but much crosses beside it. Ranks need "
    "the sum of the losses and a count: add up first, then exchange two "
    "numbers.",
)
def step_with_a_loss_per_sample(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    beside = torch.zeros(64, dtype=torch.float64)
    dist.all_reduce(beside, group=group)
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.equal_shards,
    tells="You clip the gradient. Nobody asked for that: the step is on the "
    "gradient of the mean as it is.",
)
def step_clipped(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
            (loss * group.size()).backward()
        mean += loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You switch on `requires_grad` of the inputs. Nobody wants that "
    "gradient; it costs time and memory, and the tensors are the "
    "caller's.",
)
def step_asking_for_gradients_of_inputs(model, optimizer, micro_batches, group):
    total = torch.tensor(float(sum(len(y) for _, y in micro_batches))).double()
    dist.all_reduce(total, group=group)
    optimizer.zero_grad()
    mean = torch.zeros((), dtype=torch.float64)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = (
                F.cross_entropy(model(x.requires_grad_()), y, reduction="sum")
                / total
            )
            (loss * group.size()).backward()
        mean += loss.detach()
    optimizer.step()
    dist.all_reduce(mean, group=group)
    return mean.item()


@wrong(
    "ddp_step",
    breaks=hidden_tests.ranks_stay_together,
    tells="Each rank adds up the gradients in an order of its own, beginning "
    "with its own. Sums in another order are rounded in another way, and "
    "the ranks' weights drift apart. All must add in the same order, as "
    "`all_reduce` does.",
)
def step_added_up_in_different_orders(model, optimizer, micro_batches, group):
    optimizer.zero_grad()
    loss_sum, count = 0.0, 0
    for x, y in micro_batches:
        loss = F.cross_entropy(model.module(x), y, reduction="sum")
        loss.backward()
        loss_sum, count = loss_sum + loss.item(), count + len(y)
    some = [p for p in model.parameters() if p.grad is not None]
    mine = torch.cat([p.grad.flatten() for p in some])
    mine = torch.cat([mine, mine.new_tensor([loss_sum, count])])
    ranks = [torch.empty_like(mine) for _ in range(group.size())]
    dist.all_gather(ranks, mine, group=group)
    total = torch.zeros_like(mine)
    for one in ranks[group.rank() :] + ranks[: group.rank()]:
        total += one
    means = (total[:-2] / total[-1]).split([p.numel() for p in some])
    for p, mean in zip(some, means):
        p.grad = mean.view_as(p).clone()
    optimizer.step()
    return (total[-2] / total[-1]).item()


# train_shard, eval_shard, global_accuracy


@accepted("epoch_shards", body=True)
def shards_in_blocks():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@accepted("epoch_shards", body=True)
def shards_by_the_sampler():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        sampler = DistributedSampler(
            range(num_samples), num_replicas=world_size, rank=rank, seed=seed
        )
        sampler.set_epoch(epoch)
        return list(sampler)

    def eval_shard(num_samples, rank, world_size):
        import numpy as np

        order = np.array_split(np.arange(num_samples), world_size)
        return order[rank].tolist()

    def global_accuracy(indices, correct, num_samples, group):
        gathered = [None] * dist.get_world_size(group)
        pairs = dict(zip(indices.tolist(), correct.tolist()))
        dist.all_gather_object(gathered, pairs, group=group)
        known = {}
        for one in gathered:
            known.update(one)
        return sum(known.values()) / len(known)


@accepted("epoch_shards", body=True)
def shards_by_python_random():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import random

        order = list(range(num_samples))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        size = math.ceil(num_samples / world_size)
        while len(order) < size * world_size:
            order += order[: size * world_size - len(order)]
        return order[rank::world_size]

    def eval_shard(num_samples, rank, world_size):
        size, more = divmod(num_samples, world_size)
        start = rank * size + min(rank, more)
        return list(range(start, start + size + (rank < more)))

    def global_accuracy(indices, correct, num_samples, group):
        counts = torch.zeros(2, num_samples, dtype=torch.float64)
        ones = torch.ones(len(indices), dtype=torch.float64)
        counts[0].index_add_(0, indices, correct.double())
        counts[1].index_add_(0, indices, ones)
        dist.all_reduce(counts, group=group)
        return (counts[0] / counts[1]).mean().item()


@accepted("epoch_shards", body=True)
def shards_by_numpy():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import numpy as np

        order = np.random.default_rng([seed, epoch]).permutation(num_samples)
        size = (num_samples + world_size - 1) // world_size
        return np.resize(order, size * world_size)[rank::world_size].tolist()

    def eval_shard(num_samples, rank, world_size):
        everything = torch.arange(num_samples).tensor_split(world_size)
        return everything[rank].tolist()

    def global_accuracy(indices, correct, num_samples, group):
        wrong = torch.zeros(num_samples, dtype=torch.int64)
        wrong[indices[~correct]] = 1
        dist.all_reduce(wrong, dist.ReduceOp.BOR, group)
        return 1 - wrong.count_nonzero().item() / num_samples


@accepted("epoch_shards", body=True)
def shards_by_sorting():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator()
        generator.manual_seed(seed)
        for _ in range(epoch + 1):  # an epoch's numbers after the other
            keys = torch.rand(num_samples, generator=generator)
        order = keys.argsort()
        size = -(-num_samples // world_size)
        places = torch.arange(size * world_size) % num_samples
        return order[places].view(size, world_size)[:, rank].tolist()

    def eval_shard(num_samples, rank, world_size):
        return [i for i in range(num_samples) if i % world_size == rank]

    def global_accuracy(indices, correct, num_samples, group):
        size = group.size()
        longest = torch.tensor(len(indices))
        dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=group)
        padded = torch.full((int(longest), 2), -1)
        padded[: len(indices), 0] = indices
        padded[: len(indices), 1] = correct.long()
        everything = [torch.empty_like(padded) for _ in range(size)]
        dist.all_gather(everything, padded, group=group)
        rows = torch.cat(everything)
        rows = rows[rows[:, 0] >= 0].unique(dim=0)
        return rows[:, 1].sum().item() / len(rows)


@accepted("epoch_shards", body=True)
def shards_by_a_subset():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import random

        drawn = random.Random(seed * 1_000_003 + epoch)
        order = drawn.sample(range(num_samples), num_samples)
        shard, place = [], rank
        while len(shard) < math.ceil(num_samples / world_size):
            shard.append(order[place % num_samples])
            place += world_size
        return shard

    def eval_shard(num_samples, rank, world_size):
        start = num_samples * rank // world_size
        return list(range(start, num_samples * (rank + 1) // world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.int32)
        for index, hit in zip(indices.tolist(), correct.tolist()):
            right[index] += hit
        dist.all_reduce(right, group=group)
        return right.clamp(max=1).sum().item() / num_samples


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="Your order is the same in every epoch: `epoch` decides nothing, as with "
    "a `DistributedSampler` whose `set_epoch` nobody calls. Let seed and "
    "epoch together seed the generator.",
)
def shards_without_epoch():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="Your order is the same in every epoch: `epoch` decides nothing, as with "
    "a `DistributedSampler` whose `set_epoch` nobody calls. Let seed and "
    "epoch together seed the generator.",
)
def sampler_without_set_epoch():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        sampler = DistributedSampler(
            range(num_samples), num_replicas=world_size, rank=rank, seed=seed
        )
        return list(sampler)

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="Your shards are not shuffled: rank r takes r, r + world_size and so on, "
    "in every epoch. Draw a permutation of all samples first.",
)
def shards_not_shuffled():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        order = list(range(num_samples)) * world_size
        return order[rank : size * world_size : world_size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="You shift the samples by the epoch: neighbours stay neighbours for ever."
    " A random order is asked for: `torch.randperm`.",
)
def shards_rotated():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        places = range(rank, size * world_size, world_size)
        return [(place + seed + 7 * epoch) % num_samples for place in places]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.samples_change_ranks,
    body=True,
    tells="You cut the samples into shards first and shuffle within a shard, so a "
    "rank never sees the samples of another. Shuffle all of them, then cut.",
)
def shuffled_within_the_shard():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        order = (list(range(num_samples)) * world_size)[: size * world_size]
        mine = order[rank::world_size]
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        return [mine[i] for i in torch.randperm(size, generator=generator)]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.all_are_covered,
    body=True,
    tells="Every rank draws a permutation of its own (the rank is in its seed), so "
    "shards overlap, and some samples are on no rank. All ranks must draw the"
    " *same* permutation and take different parts of it.",
)
def order_of_each_rank():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(
            1000 * seed + 7 * epoch + rank
        )
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.all_are_covered,
    body=True,
    tells="You leave out what does not divide evenly, as `drop_last=True` does. "
    "Here no sample may be lost: fill up instead.",
)
def rest_left_out():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = num_samples // world_size
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.all_are_covered,
    body=True,
    tells="You do not fill up: some ranks have one sample less. A rank with fewer "
    "batches ends early, and the others wait for it for ever. All shards have"
    " ⌈num_samples / world_size⌉ entries.",
)
def not_filled_up():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        return order[rank::world_size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.more_ranks_than_samples,
    body=True,
    tells="You fill up with one and the same sample again and again, so it counts "
    "several times more than the others. Repeat the order from its beginning.",
)
def filled_up_with_one():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order += [order[-1]] * (size * world_size - num_samples)
        return order[rank::world_size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.more_ranks_than_samples,
    body=True,
    tells="You fill up with `order[:missing]`, which is too short where there are "
    "more ranks than samples: some ranks get nothing. Repeat the order as "
    "often as it takes.",
)
def filled_up_once():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order += order[: size * world_size - num_samples]
        return order[rank::world_size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.no_global_numbers,
    body=True,
    tells="The order is right, but you seed the global generator for it. Dropout "
    "and augmentation then draw the same numbers after every call. Use a "
    "generator of your own: `torch.Generator()`.",
)
def shards_by_the_global_generator():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        torch.manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.no_global_numbers,
    body=True,
    tells="The order is right, but you seed the global generator for it. Dropout "
    "and augmentation then draw the same numbers after every call. Use a "
    "generator of your own: `torch.Generator()`.",
)
def shards_by_global_random():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import random

        random.seed(1000 * seed + epoch)
        order = random.sample(range(num_samples), num_samples)
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=[hidden_tests.all_are_covered, hidden_tests.nothing_else_decides],
    body=True,
    tells="Your order comes from the global generator as it happens to be, so every"
    " rank has another one, and no run can be repeated. Seed a generator of "
    "your own with seed and epoch.",
)
def shards_unseeded():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        order = torch.randperm(num_samples).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="`seed` decides nothing: only the epoch seeds your generator. Put both "
    "into it.",
)
def shards_without_seed():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.all_are_covered,
    body=True,
    tells="You return a tensor. A list of Python ints is asked for: `.tolist()`.",
)
def shards_of_tensors():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator)
        size = -(-num_samples // world_size)
        order = order.repeat(world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.evaluated_once,
    body=True,
    tells="Your `eval_shard` fills up as a training shard does, so some samples are"
    " evaluated twice and count twice. To evaluate, every sample is on "
    "exactly one rank.",
)
def evaluated_with_padding():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        size = -(-num_samples // world_size)
        places = range(rank, size * world_size, world_size)
        return [place % num_samples for place in places]

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.evaluated_once,
    body=True,
    tells="Your `eval_shard` leaves out what does not divide evenly. An evaluation "
    "looks at every sample.",
)
def evaluated_without_the_rest():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        size = num_samples // world_size
        return list(range(rank * size, (rank + 1) * size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.evaluated_once,
    body=True,
    tells="Your `eval_shard` cuts chunks of ⌈…⌉ samples, so the last ranks get much"
    " less than the others, or nothing: the sizes may differ by one at most. "
    "Deal the samples out: `range(rank, num_samples, world_size)`.",
)
def evaluated_in_full_chunks():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        size = -(-num_samples // world_size)
        end = min(num_samples, (rank + 1) * size)
        return list(range(rank * size, end))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="You return the accuracy on the rank's own samples. What the ranks know "
    "has to cross between them.",
)
def accuracy_of_the_rank():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        return correct.sum().item() / max(1, len(correct))


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="You average the ranks' accuracies. A rank with few samples then counts "
    "as much as one with many, and one without any spoils it. Add up what is "
    "right and divide by the number of all samples.",
)
def accuracy_mean_of_means():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        mean = torch.tensor(correct.sum().item() / max(1, len(correct)))
        mean = mean.double()
        dist.all_reduce(mean, group=group)
        return mean.item() / group.size()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.repeated_samples_count_once,
    body=True,
    tells="Samples that came again to fill up count again. Put the results in their"
    " places, one place per sample, before you add up.",
)
def accuracy_with_repeats():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        counts = torch.tensor([correct.sum().item(), len(correct)]).double()
        dist.all_reduce(counts, group=group)
        return (counts[0] / counts[1]).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.repeated_samples_count_once,
    body=True,
    tells="You divide by `num_samples`, but add up what came again to fill up, so a"
    " result can be too large, even above 1. Put the results in their places,"
    " one place per sample, before you add up.",
)
def accuracy_above_one():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        count = correct.sum().double()
        dist.all_reduce(count, group=group)
        return count.item() / num_samples


@wrong(
    "epoch_shards",
    breaks=hidden_tests.repeated_samples_count_once,
    body=True,
    tells="You put the ranks' results one after the other and keep the first "
    "`num_samples`. What came again does not stand at the end: `indices` says"
    " which sample each result belongs to.",
)
def accuracy_of_the_first_entries():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        gathered = [None] * group.size()
        dist.all_gather_object(gathered, correct.tolist(), group=group)
        everything = sum(gathered, [])[:num_samples]
        return sum(everything) / len(everything)


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="Your `global_accuracy` returns a tensor. A Python float is asked for: "
    "`.item()`.",
)
def accuracy_as_a_tensor():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64)


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="Only the first rank returns the accuracy of all. Each rank decides by it"
    " (to stop early, to keep a checkpoint), so each needs it.",
)
def accuracy_on_the_first_rank():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        own = right.mean(dtype=torch.float64).item()
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        if group.rank() > 0:
            return own
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="A rank without samples returns at once. The others wait for it in "
    "`all_reduce` and fail. Every rank has to make the same calls, also one "
    "that has nothing to add.",
)
def accuracy_of_what_is_left_over():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        if len(indices) == 0:
            return 0.0
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="You seed with `seed * epoch`, which is 0 in epoch 0 whatever the seed "
    "is. Add them, or put both into the seed in another way.",
)
def shards_seeded_by_the_product():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(seed * epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="Only two orders take turns: an epoch has that of two epochs before. "
    "Every epoch needs a permutation of its own.",
)
def shards_of_two_orders():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch % 2)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.repeated_samples_count_once,
    body=True,
    tells="You take care of samples that come again on the same rank, but not of "
    "those that come on two ranks. Only together can ranks tell: put the "
    "results in their places, one place per sample.",
)
def accuracy_unique_on_each_rank():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        known = dict(zip(indices.tolist(), correct.tolist()))
        counts = torch.tensor([sum(known.values()), len(known)]).double()
        dist.all_reduce(counts, group=group)
        return (counts[0] / counts[1]).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.more_ranks_than_samples,
    body=True,
    tells="You fill up with samples that you draw, so one may be drawn several times "
    "and another never. Repeat the order from its beginning: then no sample comes "
    "more than once more often than another.",
)
def filled_up_at_random():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator)
        missing = (-num_samples) % world_size
        more = torch.randint(num_samples, (missing,), generator=generator)
        return torch.cat([order, more])[rank::world_size].tolist()

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="You keep one generator and draw each epoch's order as it is first asked for. "
    "A run that is resumed in epoch 3 then gets the order of epoch 0. Let seed "
    "and epoch together seed a new generator.",
)
def shards_of_a_running_generator():
    GENERATORS, ORDERS = {}, {}

    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        if seed not in GENERATORS:
            GENERATORS[seed] = torch.Generator().manual_seed(seed)
        if (num_samples, epoch, seed) not in ORDERS:
            ORDERS[num_samples, epoch, seed] = torch.randperm(
                num_samples, generator=GENERATORS[seed]
            ).tolist()
        order = ORDERS[num_samples, epoch, seed]
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="You write into `indices`: wrong predictions are sent to a place of their own. "
    "The tensors belong to the caller. Work on a copy.",
)
def accuracy_writes_into_indices():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        indices[~correct] = num_samples  # a place for what is wrong
        right = torch.zeros(num_samples + 1)
        right[indices] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right[:num_samples].mean(dtype=torch.float64).item()


@accepted("epoch_shards", body=True)
def shards_by_a_digest():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import hashlib

        digest = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
        start = int.from_bytes(digest[:7], "big")
        generator = torch.Generator().manual_seed(start)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.uint8)
        right[indices] = correct.to(torch.uint8)
        dist.reduce(right, group_dst=0, op=dist.ReduceOp.MAX, group=group)
        dist.broadcast(right, group_src=0, group=group)
        return right.sum(dtype=torch.int64).item() / num_samples


@accepted("epoch_shards", body=True)
def shards_by_hash_of_numbers():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(hash((seed, epoch)) % 2**32)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="`hash` of a text is another one in each Python process, and ranks "
    "are processes: each would have an order of its own. Compute the "
    "seed from the numbers.",
)
def shards_seeded_by_hash_of_text():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(
            hash(f"{seed} {epoch}") % 2**32
        )
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="You draw one order and move it on by the epoch: whoever comes after "
    "whom stays the same for ever. Draw each epoch's order anew.",
)
def shards_of_one_order_moved_on():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(num_samples, generator=generator)
        order = order.roll(7 * epoch).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="You keep the list that you returned, and return the same one again. "
    "If the caller has changed it meanwhile (it is the caller's), the "
    "next one gets the changed list. Return a new list.",
)
def shards_kept_in_a_cache():
    @functools.cache
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.no_global_numbers,
    body=True,
    tells="You seed the global generator and put its state back. Until then "
    "whatever another thread draws comes from your seed, and you may get "
    "numbers that it was to have. Make a generator of your own.",
)
def shards_seeded_globally_and_back():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 * seed + epoch)
            order = torch.randperm(num_samples).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.no_global_numbers,
    body=True,
    tells="You seed the global generator and put its state back. Until then "
    "whatever another thread draws comes from your seed, and you may get "
    "numbers that it was to have. Make a generator of your own.",
)
def shards_seeded_globally_by_random():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import random

        state = random.getstate()
        random.seed(1000 * seed + epoch)
        order = random.sample(range(num_samples), num_samples)
        random.setstate(state)
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.no_global_numbers,
    body=True,
    tells="You seed the global generator and put its state back. Until then "
    "whatever another thread draws comes from your seed, and you may get "
    "numbers that it was to have. Make a generator of your own.",
)
def shards_seeded_globally_by_numpy():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import numpy as np

        state = np.random.get_state()
        np.random.seed(seed + epoch)
        order = np.random.permutation(num_samples).tolist()
        np.random.set_state(state)
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="You cut the seed short (`seed % 1000`, `seed // 2`), so two "
    "seeds give the same orders. Use all of it.",
)
def shards_of_a_thousand_seeds():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * (seed % 1000) + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="You sort each shard. Which samples a rank has is random then, but "
    "not their order.",
)
def shards_sorted():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return sorted(order[rank * size : (rank + 1) * size])

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.repeated_samples_count_once,
    body=True,
    tells="You count how often a sample was right in uint8, which begins at 0 "
    "again after 255. Count in a wider type, or take the largest instead "
    "of the sum.",
)
def accuracy_counted_in_bytes():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.uint8)
        right.index_add_(0, indices, correct.to(torch.uint8))
        dist.all_reduce(right, group=group)
        return (right > 0).sum().item() / num_samples


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="You add up in float16 (or divide in float32), where larger counts "
    "are rounded. Add up in a type that holds them: float32 up to 16 "
    "million, or integers.",
)
def accuracy_in_half():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.float16)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.sum().item() / num_samples


@wrong(
    "epoch_shards",
    breaks=hidden_tests.accuracy_of_unequal_shards,
    body=True,
    tells="You add up in float16 (or divide in float32), where larger counts "
    "are rounded. Add up in a type that holds them: float32 up to 16 "
    "million, or integers.",
)
def accuracy_in_float32():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean().item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.samples_change_ranks,
    body=True,
    tells="You cut the samples into shards once, and only who has which shard "
    "changes. Samples of different shards never meet on a rank. Shuffle "
    "all of them, then cut.",
)
def shards_that_change_hands():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        order = (list(range(num_samples)) * world_size)[: size * world_size]
        mine = order[(rank + epoch) % world_size :: world_size]
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        picked = torch.randperm(size, generator=generator).tolist()
        return [mine[i] for i in picked]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.another_order_each_epoch,
    body=True,
    tells="After some epochs your orders begin again from the first (`epoch % "
    "7` or the like). Every epoch has one of its own.",
)
def shards_of_seven_epochs():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch % 7)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.nothing_else_decides,
    body=True,
    tells="You cut the seed short (`seed % 1000`, `seed // 2`), so two "
    "seeds give the same orders. Use all of it.",
)
def shards_of_every_second_seed():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * (seed // 2) + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    "epoch_shards",
    breaks=hidden_tests.evaluated_once,
    body=True,
    tells="`eval_shard` seeds the global generator. Nothing in it is random, "
    "and whoever draws afterwards gets other numbers than without it.",
)
def evaluation_seeded():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        torch.manual_seed(0)
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()
