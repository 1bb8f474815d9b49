"""Answers to `data_parallel` of chapter 14."""

import copy
import math

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

from course_grader.bank import accepted, edit, wrong

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


sizes_as_even_as_can_be = edit(
    mended_model_put_into_train,
    {
        "return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]": """
        parts = torch.arange(batch_size).tensor_split(num_devices)
        return [len(one) for one in parts if len(one)]
        """,
        "first, *others = X.chunk(num_devices)": "first, *others = X.split(chunk_sizes(len(X), num_devices))",
    },
    breaks=hidden_tests.chunks_of_a_batch,
    tells="Your chunks are as even as can be: 10 over 4 becomes 3, 3, 2, 2. "
    "DataParallel fills up: every chunk but the last has ⌈batch / devices⌉ "
    "samples.",
)

sizes_rounded_down = edit(
    mended_model_put_into_train,
    {
        "return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]": """
        size = max(1, batch_size // num_devices)
        full, rest = divmod(batch_size, size)
        return [size] * full + [rest] * (rest > 0)
        """,
        "first, *others = X.chunk(num_devices)": "first, *others = X.split(chunk_sizes(len(X), num_devices))",
    },
    breaks=hidden_tests.chunks_of_a_batch,
    tells="Your chunks have ⌊batch / devices⌋ samples, and what is left over makes "
    "a chunk more than there are devices. Round up, not down.",
)

sizes_with_zeros = edit(
    mended_model_put_into_train,
    {
        "return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]": """
        size = math.ceil(batch_size / num_devices)
        return [
            max(0, min(size, batch_size - i * size)) for i in range(num_devices)
        ]
        """,
        "first, *others = X.chunk(num_devices)": """
        sizes = [one for one in chunk_sizes(len(X), num_devices) if one]
        first, *others = X.split(sizes)
        """,
    },
    breaks=hidden_tests.fewer_samples_than_devices,
    tells="Your list has one entry per device, with zeros or less where nothing is "
    "left. Devices that get nothing have no chunk: 6 over 4 gives three.",
)

rest_is_dropped = edit(
    mended_model_put_into_train,
    {
        "len(one) for one in torch.arange(batch_size).chunk(num_devices)]": "batch_size // num_devices] * num_devices",
        "first, *others = X.chunk(num_devices)": """
        sizes = chunk_sizes(len(X), num_devices)
        first, *others = X[: sum(sizes)].split(sizes)
        """,
    },
    breaks=[hidden_tests.chunks_of_a_batch, hidden_tests.outputs_are_gathered],
    tells="Every chunk has batch // devices samples, and the rest of the batch is "
    "dropped. No sample may be lost: round up, and let the last chunk be shorter.",
)


@wrong(
    breaks=hidden_tests.one_forward_per_chunk,
    tells="The whole batch goes through the model at once, as `nn.DataParallel` does "
    "where there is no GPU. Cut it into chunks, and call the model once for each.",
    body=True,
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
    breaks=hidden_tests.buffers_of_the_first,
    tells="All chunks go through the model itself, so every one of them moves the "
    "running statistics, and sees what the one before it left. Only the first "
    "replica works on the model's buffers; give the others copies.",
    body=True,
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
    breaks=hidden_tests.buffers_of_the_first,
    tells="All replicas write into copies, also the first, so running statistics "
    "never move. The first device holds the model itself: what its replica "
    "writes stays.",
    body=True,
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
    tells="You copy the buffers after the first replica has run, so the other "
    "replicas start from what it wrote. Make all copies before any replica runs.",
    body=True,
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


one_copy_for_all_others = edit(
    mended_model_put_into_train,
    {
        """
        replicas = [
            {n: b.clone() for n, b in model.named_buffers()} for _ in others
        ]
        """: "buffers = {n: b.clone() for n, b in model.named_buffers()}",
        "for buffers, chunk in zip(replicas, others):": "for chunk in others:",
    },
    breaks=hidden_tests.replicas_of_the_same_moment,
    tells="You made one set of copies for all other replicas, so each starts from "
    "what the one before it wrote. Each needs copies of its own.",
)


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


output_without_a_graph = edit(
    mended_model_put_into_train,
    {
        "return torch.cat(outputs)": "return torch.cat([one.detach() for one in outputs])",
    },
    breaks=hidden_tests.gradients_reach_the_model,
    tells="What you return is cut off from the graph (`detach`, `.data` or "
    "`no_grad`), so a loss on it cannot go backward.",
)

inputs_detached = edit(
    mended_model_put_into_train,
    {
        "first, *others = X.chunk(num_devices)": "first, *others = X.detach().clone().chunk(num_devices)",
    },
    breaks=hidden_tests.gradient_of_the_inputs,
    tells="You detach the chunks, so no gradient reaches the batch. Where `X` "
    "requires one (a layer before it, an adversarial example), it must.",
)

samples_dealt_out = edit(
    mended_model_put_into_train,
    {
        "first, *others = X.chunk(num_devices)": """
        count = len(chunk_sizes(len(X), num_devices))
        first, *others = [X[i::count] for i in range(count)]
        """,
    },
    breaks=hidden_tests.outputs_are_gathered,
    tells="You deal the samples out like cards (`X[i::num_devices]`), so the outputs "
    "come in another order than the batch. Chunks are consecutive rows.",
)

outputs_averaged = edit(
    mended_model_put_into_train,
    {
        "return torch.cat(outputs)": "return torch.stack([one.mean(0) for one in outputs]).mean(0)",
    },
    breaks=hidden_tests.outputs_are_gathered,
    tells="You return the mean of the chunks' outputs. Gathering puts them one after "
    "the other: as many rows as the batch has.",
)

gradients_averaged = edit(
    mended_model_put_into_train,
    {
        "return torch.cat(outputs)": """
        out = torch.cat(outputs)
        return out / len(outputs) + (out - out / len(outputs)).detach()
        """,
    },
    breaks=hidden_tests.gradients_reach_the_model,
    tells="Your gradients are too small by the number of chunks. DataParallel adds "
    "what comes from the replicas; the mean is in the loss on the whole output.",
)

model_put_into_train = edit(
    mended_model_put_into_train,
    {
        "def data_parallel(model, X, num_devices):": """
        def data_parallel(model, X, num_devices):
            model.train()
        """,
    },
    breaks=hidden_tests.same_model_afterwards,
    tells="You call `model.train()`. Replicas are in the mode that the model is in: "
    "a model in `eval()` must stay there.",
)

names_with_prefix = edit(
    mended_model_put_into_train,
    {
        """
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()
        """: "return model.state_dict()",
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You return the wrapper's own state dict: its names begin with `module.`, "
    "and no plain model knows them. Ask the model inside, `model.module`.",
)

whatever_is_called_module = edit(
    mended_model_put_into_train,
    {
        """
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()
        """: 'return getattr(model, "module", model).state_dict()',
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You take `module` for a sign of a wrapper, or take `module.` off wherever "
    "it stands. A plain model may have a layer of that name. Look at the type of "
    "the model.",
)

every_module_replaced = edit(
    mended_model_put_into_train,
    {
        """
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()
        """: """
        state = model.state_dict()
        return {name.replace("module.", ""): v for name, v in state.items()}
        """,
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You take `module` for a sign of a wrapper, or take `module.` off wherever "
    "it stands. A plain model may have a layer of that name. Look at the type of "
    "the model.",
)

ddp_not_unwrapped = edit(
    mended_model_put_into_train,
    {
        """
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()
        """: """
        if isinstance(model, nn.DataParallel):
            model = model.module
        return model.state_dict()
        """,
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You unwrap `nn.DataParallel` alone. `DistributedDataParallel` keeps the "
    "model in `module`, too.",
)


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


prefix_of_all_names = edit(
    mended_model_put_into_train,
    {
        """
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        return (model.module if wrapped else model).state_dict()
        """: """
        state = model.state_dict()
        if all(name.startswith("module.") for name in state):
            state = {n.removeprefix("module."): v for n, v in state.items()}
        return state
        """,
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You take `module` for a sign of a wrapper, or take `module.` off wherever "
    "it stands. A plain model may have a layer of that name. Look at the type of "
    "the model.",
)

parameters_alone = edit(
    mended_model_put_into_train,
    {
        "return (model.module if wrapped else model).state_dict()": "return dict((model.module if wrapped else model).named_parameters())",
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You return the parameters alone. A state dict holds buffers, too: without "
    "the running statistics a model that is loaded from the file computes "
    "something else in `eval()`.",
)

gradients_cleared_first = edit(
    mended_model_put_into_train,
    {
        "def data_parallel(model, X, num_devices):": """
        def data_parallel(model, X, num_devices):
            model.zero_grad()
        """,
    },
    breaks=hidden_tests.gradients_reach_the_model,
    tells="You clear the model's gradients in the forward pass. What a pass before it "
    "had left there is lost; clearing belongs to whoever calls `backward()`.",
)

sizes_by_adding_nearly_one = edit(
    mended_model_put_into_train,
    {
        "return [len(one) for one in torch.arange(batch_size).chunk(num_devices)]": """
        size = int(batch_size / num_devices + 0.999)
        full, rest = divmod(batch_size, size)
        return [size] * full + [rest] * (rest > 0)
        """,
    },
    breaks=hidden_tests.fewer_samples_than_devices,
    tells="Adding 0.999 and cutting off rounds up only while the fraction is "
    "larger than 0.001: with thousands of devices your chunks are too "
    "small, and there are more chunks than devices. Use `math.ceil` or "
    "`-(-a // b)`.",
)


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


one_mode_for_all_layers = edit(
    mended_model_put_into_train,
    {
        "return torch.cat(outputs)": """
        model.train(model.training)
        return torch.cat(outputs)
        """,
    },
    breaks=hidden_tests.same_model_afterwards,
    tells="You call `model.train(...)`, which gives every layer the mode of "
    "the whole model. A layer that is in `eval()` on purpose must stay "
    "there. Leave the modes alone.",
)

one_mode_for_all_layers_first = edit(
    mended_model_put_into_train,
    {
        "def data_parallel(model, X, num_devices):": """
        def data_parallel(model, X, num_devices):
            model.train(model.training)
        """,
    },
    breaks=hidden_tests.same_model_afterwards,
    tells="You call `model.train(...)`, which gives every layer the mode of "
    "the whole model. A layer that is in `eval()` on purpose must stay "
    "there. Leave the modes alone.",
)

state_put_together = edit(
    mended_model_put_into_train,
    {
        "return (model.module if wrapped else model).state_dict()": """
        inner = model.module if wrapped else model
        state = dict(inner.named_parameters()) | dict(inner.named_buffers())
        return {name: value.detach() for name, value in state.items()}
        """,
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You put the state together from `named_parameters()` and "
    "`named_buffers()`. These name a weight that two layers share once "
    "instead of twice, and buffers that are not `persistent` as well. "
    "`state_dict()` knows what belongs into a file.",
)

state_in_float32 = edit(
    mended_model_put_into_train,
    {
        "return (model.module if wrapped else model).state_dict()": """
        state = (model.module if wrapped else model).state_dict()
        return {name: value.float() for name, value in state.items()}
        """,
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You save the state in float32. It is the model's own, with the "
    "dtypes that it has: what is loaded must compute the same.",
)

no_gradient_on_one_device = edit(
    mended_model_put_into_train,
    {
        "def data_parallel(model, X, num_devices):": """
        def data_parallel(model, X, num_devices):
            if num_devices == 1:
                with torch.no_grad():
                    return model(X)
        """,
    },
    breaks=hidden_tests.gradients_reach_the_model,
    tells="With one device you return an output without a graph. One device is "
    "no special case: it is one chunk, and its gradient counts.",
)

state_of_a_model_in_eval = edit(
    mended_model_put_into_train,
    {
        "wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))": """
        wrapped = isinstance(model, (nn.DataParallel, DistributedDataParallel))
        model.eval()
        """,
    },
    breaks=hidden_tests.names_without_prefix,
    tells="You put the model into `eval()` before you ask for its state. The "
    "modes are not in the state, and training goes on with the wrong "
    "ones.",
)

parameters_put_into_copies = edit(
    by_chunk_and_deepcopy,
    {
        """
        # a deep copy that shares the parameters: only buffers are new
        kept = {id(p): p for p in model.parameters()}
        """: "",
        "others = [copy.deepcopy(model, dict(kept)) for _ in chunks[1:]]": """
        others = [copy.deepcopy(model) for _ in chunks[1:]]
        for other in others:
            for name, p in model.named_parameters():
                place, _, leaf = name.rpartition(".")
                setattr(other.get_submodule(place), leaf, p)
        """,
    },
    breaks=hidden_tests.gradients_reach_the_model,
    tells="You put the model's parameters into the copies name by name, and "
    "`named_parameters()` names a weight that two layers share once. Under its "
    "second name the copy's own weight stays, and its gradient is lost. Ask for "
    "`remove_duplicate=False`.",
)

copies_of_the_state_dict_without_weights = edit(
    mended_model_put_into_train,
    {
        "first, *others = X.chunk(num_devices)": """
        weights = dict(model.named_parameters(remove_duplicate=False))
        first, *others = X.chunk(num_devices)
        """,
        "{n: b.clone() for n, b in model.named_buffers()} for _ in others": """
        {
            n: b.clone()
            for n, b in model.state_dict().items()
            if n not in weights
        }
        for _ in others
        """,
    },
    breaks=hidden_tests.replicas_of_the_same_moment,
    tells="You copy the buffers of the state dict. A buffer made with "
    "`persistent=False` is not in there, so all replicas share it. Go through "
    "`named_buffers()`.",
)

gradients_switched_on_for_the_layers = edit(
    mended_model_put_into_train,
    {
        """
        outputs = [model(first)]
        for buffers, chunk in zip(replicas, others):
            outputs.append(functional_call(model, buffers, (chunk,)))
        """: """
        with torch.enable_grad():
            outputs = [model(first)]
            for buffers, chunk in zip(replicas, others):
                outputs.append(functional_call(model, buffers, (chunk,)))
        """,
    },
    breaks=hidden_tests.same_model_afterwards,
    tells="In your forward passes gradients are on under `torch.no_grad()`: you switch them on, or "
    "run the passes in threads of your own, where they are on at first. Each layer then makes a "
    "graph that nobody wants, and one that calls `numpy()` on what it computes fails. Who "
    "calls decides that: leave the grad mode alone, and hand it on to threads.",
)
