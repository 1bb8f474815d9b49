"""Answers to `ddp_step` of chapter 14."""

import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def step_with_a_loss_in_float32(model, optimizer, micro_batches, group):
    world = dist.get_world_size(group)
    n = torch.tensor(
        [float(sum(len(y) for _, y in micro_batches))], dtype=torch.float64
    )
    dist.all_reduce(n, group=group)
    n = n.item()
    model.zero_grad()
    total = torch.zeros(1)
    for i, (x, y) in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss * world / n).backward()
        total += loss.detach()
    optimizer.step()
    dist.all_reduce(total, group=group)
    return (total / n).item()


@accepted()
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


@accepted()
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


@accepted()
def mended_step_in_train_mode(model, optimizer, micro_batches, group):
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


@wrong(
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
