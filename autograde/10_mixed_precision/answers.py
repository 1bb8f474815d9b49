"""The answer bank of chapter 10: mixed precision."""

import copy
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# train_in_bf16

CONVERTED = (
    "You convert the model to 16 bit. Its weights are then 16 bit as well, and "
    "a small update to them is rounded away. Leave the model alone: inside "
    "`torch.autocast` the layers make 16-bit copies by themselves."
)
BACKWARD_INSIDE = (
    "The backward pass runs inside the autocast block. Backward operations take "
    "the dtype of their forward operation anyway; inside, more is converted than "
    "should be. End the block after the loss."
)
DOUBLE_CAST = (
    "You convert the inputs yourself. Autocast does that for the layers that want "
    "it, and keeps float32 for those that do not. Give the model `x` as it came."
)
NOT_LOW = (
    "Nothing computes in bfloat16: autocast is not on in the forward pass. Put "
    'the call of the model into `with torch.autocast("cpu", torch.bfloat16):`.'
)


@accepted("train_in_bf16")
def bf16_by_amp_autocast(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses += [float(loss)]
    return losses


@accepted("train_in_bf16")
def bf16_by_decorator(model, optimizer, loss_fn, batches, enabled=True):
    @torch.autocast("cpu", enabled=enabled)
    def forward(x, y):
        return loss_fn(model(x), y)

    losses = []
    for x, y in batches:
        model.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().item())
    return losses


@accepted("train_in_bf16")
def bf16_loss_outside_in_float(
    model, optimizer, loss_fn, batches, enabled=True
):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = model(x)
        loss = loss_fn(logits.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted("train_in_bf16")
def bf16_without_a_cache(model, optimizer, loss_fn, batches, enabled=True):
    def loss_of(x, y):
        if not enabled:
            return loss_fn(model(x), y)
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            return loss_fn(model(x), y)

    losses = []
    for pair in batches:
        optimizer.zero_grad()
        loss = loss_of(*pair)
        loss.backward()
        optimizer.step()
        losses.append(loss.tolist())
    return losses


@accepted("train_in_bf16")
def bf16_by_autograd_grad(model, optimizer, loss_fn, batches, enabled=True):
    parameters = [p for p in model.parameters() if p.requires_grad]
    losses = []
    for x, y in batches:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        grads = torch.autograd.grad(loss, parameters, allow_unused=True)
        for p, grad in zip(parameters, grads):
            p.grad = grad
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted("train_in_bf16")
def bf16_with_a_disabled_scaler(
    model, optimizer, loss_fn, batches, enabled=True
):
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


@wrong("train_in_bf16", breaks=hidden_tests.float32_weights, tells=CONVERTED)
def bf16_converted(model, optimizer, loss_fn, batches, enabled=True):
    if enabled:
        model.bfloat16()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.bfloat16() if enabled else x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("train_in_bf16", breaks=hidden_tests.float32_weights, tells=CONVERTED)
def bf16_converted_under_autocast(
    model, optimizer, loss_fn, batches, enabled=True
):
    if enabled:
        model.bfloat16()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.float32_weights,
    tells="You convert the model to bfloat16 and, at the end, back to float32. In "
    "between each update was rounded to two or three digits, and that is not undone. "
    "Leave the model alone and use `torch.autocast`.",
)
def bf16_there_and_back(model, optimizer, loss_fn, batches, enabled=True):
    if enabled:
        model.bfloat16()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.bfloat16() if enabled else x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.float()
    return losses


@wrong(
    "train_in_bf16",
    breaks=[hidden_tests.float32_weights, hidden_tests.layers_in_bf16],
    tells="You convert the model to float16. It is not bfloat16, its weights are "
    "16 bit too, and without a scaler its gradients underflow. Leave the model "
    "alone and use `torch.autocast` with `torch.bfloat16`.",
)
def bf16_half_model(model, optimizer, loss_fn, batches, enabled=True):
    if enabled:
        model.half()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.half() if enabled else x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_backward_outside,
    tells=BACKWARD_INSIDE,
)
def bf16_backward_inside(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=[hidden_tests.bf16_backward_outside, hidden_tests.bf16_step_outside],
    tells="The whole step is inside the autocast block. Only the forward pass and "
    "the loss belong there: end the block before `backward()`.",
)
def bf16_all_inside(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=[hidden_tests.bf16_updates, hidden_tests.bf16_step_outside],
    tells="The autocast block is around the whole loop. It keeps its 16-bit copies "
    "of the weights until it ends, so every batch sees the weights of the first "
    "step. Open a new block for each forward pass.",
)
def bf16_around_the_loop(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@wrong("train_in_bf16", breaks=hidden_tests.layers_in_bf16, tells=NOT_LOW)
def bf16_not_at_all(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("train_in_bf16", breaks=hidden_tests.layers_in_bf16, tells=NOT_LOW)
def bf16_for_the_loss_alone(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.layers_in_bf16,
    tells='`torch.autocast("cuda")` is for the operations of a GPU. On the CPU it '
    "does nothing, and warns where there is no GPU. The first argument is the "
    'type of the device that computes: here "cpu", in general `x.device.type`.',
)
def bf16_of_another_device(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.layers_in_bf16,
    tells="Your autocast dtype is float16. Its range is small: it needs a scaler, "
    "which bfloat16 does not. The dtype asked for is `torch.bfloat16`.",
)
def bf16_in_float16(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.loss_in_float32,
    tells="The loss is computed after the autocast block, from bfloat16 logits: it "
    "is bfloat16 itself, with two to three digits. Compute it inside the block, where "
    "losses are float32.",
)
def bf16_loss_outside(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = model(x)
        loss = loss_fn(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("train_in_bf16", breaks=hidden_tests.layers_in_bf16, tells=DOUBLE_CAST)
def bf16_inputs_converted(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x.bfloat16() if enabled else x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You open autocast by hand and never close it: whatever runs afterwards "
    "computes in 16 bit, with old copies of the weights. Use `with`.",
)
def bf16_never_closed(model, optimizer, loss_fn, batches, enabled=True):
    torch.autocast("cpu", torch.bfloat16, enabled=enabled).__enter__()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="After your function autocast is still on. What you switch on by hand "
    "stays on, for all of PyTorch. Use `with torch.autocast(...)`.",
)
def bf16_switched_on(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        torch.set_autocast_enabled("cpu", enabled)
        loss = loss_fn(model(x), y)
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.set_autocast_enabled("cpu", enabled)
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="`torch.cpu.amp.autocast` and `torch.cuda.amp.autocast` are deprecated "
    'and warn. The name for all devices is `torch.autocast("cpu", ...)`.',
)
def bf16_by_the_old_name(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cpu.amp.autocast(dtype=torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_disabled,
    tells="Your code ignores `enabled`: it computes in bfloat16 in any case. Hand "
    "it on: `torch.autocast(..., enabled=enabled)`.",
)
def bf16_always_on(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_updates,
    tells="The gradients are never cleared, so each step uses those of all batches "
    "before it. Call `optimizer.zero_grad()` for each batch.",
)
def bf16_without_zero_grad(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_old_gradients,
    tells="You clear the gradients after each step. Those that were there before "
    "the first one are used. Clear them before `backward()`.",
)
def bf16_zero_grad_afterwards(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_losses,
    tells="You return tensors. A tensor with a graph keeps all of its graph alive. "
    "`.item()` makes a Python float.",
)
def bf16_tensors_returned(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_losses,
    tells="You return one number. Asked for is a list with the loss of each batch.",
)
def bf16_mean_returned(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / max(1, len(losses))


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_losses,
    tells="The losses you return are those after the step, from a second forward "
    "pass. Return the loss that you went backward on.",
)
def bf16_loss_after_the_step(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(loss_fn(model(x), y).item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You call `model.train()`. Layers that were in eval mode, as frozen batch "
    "norms are, are not any more. The mode is not yours to change here.",
)
def bf16_train_mode(model, optimizer, loss_fn, batches, enabled=True):
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You seed PyTorch's global generator. What the caller draws afterwards is "
    "drawn again and again. Nothing here needs a seed.",
)
def bf16_seeded(model, optimizer, loss_fn, batches, enabled=True):
    torch.manual_seed(0)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_losses,
    tells="Your code makes one step too many or stops at an empty input: with no "
    "batch there is nothing to do, and the list is empty.",
)
def bf16_stops_at_nothing(model, optimizer, loss_fn, batches, enabled=True):
    pairs = iter(batches)
    x, y = next(pairs)
    losses = []
    for x, y in itertools.chain([(x, y)], pairs):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_updates,
    tells="You scale the loss and never take the scale out of the gradients again, "
    "so each step is larger by that factor. bfloat16 needs no scaling at all.",
)
def bf16_scaled(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        (loss * (1024.0 if enabled else 1.0)).backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted("train_in_bf16")
def bf16_with_plain_floats(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            scores = model(x)
            loss = loss_fn(scores.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_losses,
    tells="You round the losses that you return. Return them as they are; round "
    "where you print.",
)
def bf16_losses_rounded(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 3))
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You call `model.forward(x)`. Hooks of the model do not run then, and DDP "
    "does not work. Call `model(x)`.",
)
def bf16_in_forward(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model.forward(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted("train_in_bf16")
def bf16_entered_by_hand(model, optimizer, loss_fn, batches, enabled=True):
    low = torch.autocast("cpu", torch.bfloat16)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        if enabled:
            low.__enter__()
        try:
            loss = loss_fn(model(x), y)
        finally:
            if enabled:
                low.__exit__(None, None, None)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_updates,
    tells="You clip the gradients. Nobody asked for it: where they are large, the "
    "update is another.",
)
def bf16_clipped(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_updates,
    tells="The optimizer steps before `backward()`, with the gradients of the batch "
    "before. Go backward first.",
)
def bf16_steps_first(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    optimizer.zero_grad()
    for x, y in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_step_outside,
    tells="You read all batches inside an autocast block. What the loader computes "
    "then, as an augmentation, is 16 bit without your knowing. Read them outside.",
)
def bf16_batches_read_inside(model, optimizer, loss_fn, batches, enabled=True):
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        pairs = list(batches)
    losses = []
    for x, y in pairs:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_updates,
    tells="You round the gradients to bfloat16 before the step, or the weights "
    "after it. They are float32 so that small updates are not lost.",
)
def bf16_rounded_weights(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p in model.parameters():
                if enabled:
                    p.copy_(p.bfloat16())
        losses.append(loss.item())
    return losses


# loss_scaler


@accepted("loss_scaler")
class ScalerByHand:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@accepted("loss_scaler")
class ScalerOfTorch(torch.amp.GradScaler):
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        super().__init__(
            "cpu",
            init_scale,
            growth_factor,
            backoff_factor,
            growth_interval,
            enabled,
        )


@accepted("loss_scaler")
class ScalerAroundTorch:
    def __init__(self, init_scale=65536.0, **settings):
        self.inner = torch.amp.GradScaler(
            "cpu", init_scale=float(init_scale), **settings
        )
        for name in ("scale", "get_scale", "unscale_", "step", "update"):
            setattr(self, name, getattr(self.inner, name))

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)


@accepted("loss_scaler")
class ScalerByForeach:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        grads = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        torch._foreach_mul_(grads, 1 / self.factor)
        self.found_inf = not all(bool(g.isfinite().all()) for g in grads)

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@accepted("loss_scaler")
class ScalerWithNewGradients:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    bad = p.grad.isnan().any() or p.grad.isinf().any()
                    self.found_inf = self.found_inf or bool(bad)
                    p.grad = p.grad / self.factor

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@accepted("loss_scaler")
class ScalerWithTensors:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.kept = torch.tensor(float(init_scale), dtype=torch.float64)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.kept.item() if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(1.0 / self.kept.item())
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.kept = self.kept * self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.kept = self.kept * self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "kept": self.kept,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@accepted("loss_scaler")
class ScalerThatCountsDown:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.to_go = growth_interval
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.to_go = self.growth_interval
        else:
            self.to_go -= 1
            if not self.to_go:
                self.factor *= self.growth_factor
                self.to_go = self.growth_interval
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "to_go": self.to_go,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.loss_is_scaled, hidden_tests.small_gradients_arrive],
    tells="Your scaler does not scale the loss, so the backward pass runs on "
    "the small numbers, and what float16 makes 0 stays 0, also if "
    "gradients are multiplied afterwards. Return `loss` times the scale.",
)
class ScalerOfOne:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.loss_is_scaled, hidden_tests.small_gradients_arrive],
    tells="Your scaler does not scale the loss, so the backward pass runs on "
    "the small numbers, and what float16 makes 0 stays 0, also if "
    "gradients are multiplied afterwards. Return `loss` times the scale.",
)
class ScalerOfGradients:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad *= self.factor
                    p.grad /= self.factor * (1 + 1e-9)
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.weights_as_without,
    tells="The gradients are never divided by the scale: each step is larger by "
    "that factor. `step` must do it if `unscale_` was not called.",
)
class ScalerNeverUnscales:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and not p.grad.isfinite().all():
                    self.found_inf = True
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.unscale_then_clip,
    tells="After `unscale_` your `step` divides by the scale a second time. "
    "Remember that it has been done, until `update()`.",
)
class ScalerUnscalesTwice:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        self.divide(optimizer)

    def divide(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        self.divide(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.weights_as_without, hidden_tests.unscale_then_clip],
    tells="Only the first iteration divides by the scale: that it has been done "
    "is never forgotten. `update()` ends an iteration, and with it all "
    "that belongs to one.",
)
class ScalerUnscalesTheFirstTime:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = getattr(self, "unscaled", False)
        self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled:
            return
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look for NaN alone. An overflow is inf at first, and "
    "`isnan(inf)` is False. `isfinite` finds both.",
)
class ScalerSeesNaNAlone:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if torch.isnan(p.grad).any():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look for inf alone. An inf in the forward or backward pass often "
    "becomes NaN on its way (inf - inf, 0 * inf). `isfinite` finds both.",
)
class ScalerSeesInfAlone:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if torch.isinf(p.grad).any():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You compare with inf: -inf and NaN pass. Nothing equals NaN, itself "
    "included. Use `isfinite`.",
)
class ScalerSeesPlusInf:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if (p.grad == math.inf).any():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="Each parameter overwrites what was found for the one before, so only "
    "the last one counts. Once one gradient is not finite, it stays "
    "found.",
)
class ScalerSeesTheLast:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    self.found_inf = not torch.isfinite(p.grad).all()

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[
        hidden_tests.overflow_skips_the_step,
        hidden_tests.scaler_without_gradients,
    ],
    tells="You go through the first group of parameters alone. An optimizer may "
    "have several: the others are neither unscaled nor looked at.",
)
class ScalerSeesTheFirstGroup:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups[:1]:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You replace inf and NaN by numbers and step all the same. That is a "
    "step in a made-up direction. Leave the step out, and lower the "
    "scale.",
)
class ScalerCleansUp:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True
                        p.grad.nan_to_num_(0.0, 0.0, 0.0)

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You set the gradients to zero and step. With momentum or weight "
    "decay a step with zero gradients moves the weights. Do not call "
    "`optimizer.step()` at all.",
)
class ScalerStepsWithZeros:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if self.found_inf:
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.overflow_skips_the_step],
    tells="You lower the scale after an overflow, and step as well: inf and NaN "
    "go into the weights. Leave that step out.",
)
class ScalerStepsAnyway:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.overflow_skips_the_step, hidden_tests.scale_backs_off],
    tells="After one overflow no step is made any more: what was found is never "
    "cleared. It belongs to one iteration; `update()` ends it.",
)
class ScalerStopsForGood:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.found_inf = False
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="The scale stays what it was after an overflow, so the next step will "
    "overflow again. Multiply it by `backoff_factor` in `update()`.",
)
class ScalerNeverBacksOff:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="After an overflow you halve the scale, whatever `backoff_factor` is. "
    "Multiply by that.",
)
class ScalerHalves:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor /= 2
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="You divide by `backoff_factor`. It is below 1, so the scale grows "
    "after an overflow. Multiply.",
)
class ScalerDividesByBackoff:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor /= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="The scale never grows. After one overflow it stays low for ever, and "
    "small gradients are lost again. Count the good steps in `update()`.",
)
class ScalerNeverGrows:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="You double the scale, whatever `growth_factor` is. Multiply by that.",
)
class ScalerDoubles:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= 2
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="The scale grows one step late: after `growth_interval` + 1 good "
    "steps. Add to the count first, then compare.",
)
class ScalerGrowsOneLate:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count > self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="The scale grows one step late: after `growth_interval` + 1 good "
    "steps. Add to the count first, then compare.",
)
class ScalerGrowsOneLateEach:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
            else:
                self.count += 1
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="After the first growth the count is not set to 0, so the scale grows "
    "only once, or at every step from then on. Start the count anew.",
)
class ScalerGrowsOnAndOn:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count >= self.growth_interval:
                self.factor *= self.growth_factor
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="You count good steps, but not in a row: a step left out must set the "
    "count to 0.",
)
class ScalerCountsAcross:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="You count all iterations, those left out too. The scale grows after "
    "`growth_interval` good steps in a row.",
)
class ScalerCountsAll:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
        self.count += 1
        if self.count == self.growth_interval:
            if not self.found_inf:
                self.factor *= self.growth_factor
            self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.misuse_raises,
    tells="A second `unscale_` before `update()` does nothing in your scaler, "
    "and a second `step` steps again. Both are mistakes of the caller: "
    "raise a RuntimeError.",
)
class ScalerForgives:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled:
            return
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.misuse_raises,
    tells="A second `step` before `update()` steps again with the same "
    "gradients. Raise a RuntimeError instead.",
)
class ScalerForgivesASecondStep:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.misuse_raises,
    tells="A second `unscale_` or `step` raises an AssertionError in your "
    "scaler. Asserts disappear under `python -O`, and the text asks for a "
    "RuntimeError.",
)
class ScalerAsserts:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        assert not self.unscaled
        assert not self.stepped
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        assert not self.stepped
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_without_gradients,
    tells="Your `unscale_` takes for granted that each parameter has a "
    "gradient. That of a frozen or unused one is `None`: leave it out.",
)
class ScalerNeedsGradients:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad /= self.factor
                if not torch.isfinite(p.grad).all():
                    self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_without_gradients,
    tells="You give parameters without a gradient one of zeros. The optimizer "
    "then treats them as used, and weight decay or momentum moves them. "
    "`None` stays `None`.",
)
class ScalerFillsInZeros:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                else:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.loss_is_scaled,
    tells="Your `scale` changes the loss in place: what is logged afterwards is "
    "the scaled one. Return a new tensor, `loss * scale`.",
)
class ScalerChangesTheLoss:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss.mul_(self.get_scale())

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.loss_is_scaled],
    tells="`scale` changes the dtype of the loss. Multiply by a Python float, "
    "which keeps the dtype.",
)
class ScalerInFloat32:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss.float() * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_disabled,
    tells="Your scaler ignores `enabled`. With `enabled=False` it must do "
    "nothing but `optimizer.step()`, so that one loop serves float32, "
    "bfloat16 and float16.",
)
class ScalerAlwaysOn:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = True
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your `get_scale()` returns `init_scale`. "
    "Nothing is scaled, so it is 1.0.",
)
class ScalerOffTellsItsScale:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor

    def scale(self, loss):
        return loss * (self.factor if self.enabled else 1.0)

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your `step` returns without a step. It must be "
    "`optimizer.step()` then.",
)
class ScalerOffNeverSteps:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="Your state dict holds no count of good steps. After each restart the "
    "scale grows too late, and with frequent restarts never.",
)
class ScalerForgetsTheCount:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="Your state dict holds the scale and the count, and not factors and "
    "interval. A scaler made with other arguments then goes on with "
    "those.",
)
class ScalerSavesTheScaleAlone:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="Your state dict is the scaler's own `__dict__`: it changes with the "
    "scaler, and two scalers then share it. Return a new dict.",
)
class ScalerSavesItself:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return self.__dict__

    def load_state_dict(self, state):
        self.__dict__ = state


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="Your state dict holds an object of a class of its own. `torch.load` "
    "refuses such a file by default. Put numbers into it.",
)
class ScalerSavesAnObject:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {"scaler": copy.copy(self)}

    def load_state_dict(self, state):
        vars(self).update(vars(state["scaler"]))


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="Your `load_state_dict` takes nothing over from the state.",
)
class ScalerLoadsNothing:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        state = dict(state)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.two_scalers,
    tells="Scale and count belong to your class: all scalers share them. Set "
    "them on `self`, in `__init__`.",
)
class ScalerOfTheClass:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        type(self).factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            type(self).factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                type(self).factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.loss_is_scaled,
    tells="You round the scale to a power of two. The scale that was given is "
    "the one to use: the gradients are divided by the same number.",
)
class ScalerRoundsUp:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = 2.0 ** round(math.log2(init_scale))
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.loss_is_scaled],
    tells="Your scale cannot fall below 1. It may: a loss can be too large for "
    "float16, too. Multiply by `backoff_factor` and leave it there.",
)
class ScalerAtLeastOne:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = max(1.0, float(init_scale))
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor = max(1.0, self.factor * self.backoff_factor)
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="`get_scale()` returns a tensor. Asked for is a Python float: "
    "`.item()`.",
)
class ScalerReturnsATensor:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return torch.tensor(self.factor if self.enabled else 1.0)

    def scale(self, loss):
        return loss * (self.factor if self.enabled else 1.0)

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_leaves_the_rest,
    tells="You seed PyTorch's global generator. What the caller draws "
    "afterwards is drawn again and again. Nothing here needs a seed.",
)
class ScalerSeeds:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        torch.manual_seed(0)
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=[hidden_tests.scaler_leaves_the_rest],
    tells="You switch gradients off and do not switch them on again. Use `with "
    "torch.no_grad():`, or nothing: changing `.grad` in place needs "
    "neither.",
)
class ScalerLeavesGradModeOff:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        torch.set_grad_enabled(False)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look at the loss for inf and NaN, and not at the gradients. The "
    "loss is a float32 number and mostly finite when a float16 gradient "
    "overflows.",
)
class ScalerOfLossAlone:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        self.found_inf = self.enabled and not loss.isfinite().item()
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


# clipped_step


@accepted("clipped_step")
def clip_with_two_calls(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(grads)
    nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)
    scaler.step(optimizer)
    scaler.update()
    return float(loss.detach()), float(norm)


@accepted("clipped_step")
def clip_with_a_scaled_threshold(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaled_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm * scale)
    norm = scaled_norm / scale
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("clipped_step")
def clip_by_hand(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.stack([g.double().norm() for g in grads]).norm()
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm.item())
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("clipped_step")
def clip_and_step_if_finite(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if math.isfinite(norm):
        scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("clipped_step")
def clip_with_scaled_first_gradient(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    if dtype is None:
        loss = F.cross_entropy(model(x), y)
    else:
        with torch.amp.autocast(x.device.type, dtype=dtype):
            loss = F.cross_entropy(model(x), y)
    loss.backward(scaler.scale(torch.ones_like(loss)))
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("clipped_step")
def clip_without_foreach(model, optimizer, scaler, x, y, max_norm, dtype=None):
    model.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(
        list(model.parameters()), max_norm, norm_type=2.0, foreach=False
    )
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("clipped_step")
def clip_with_autograd_grad(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    parameters = [p for p in model.parameters() if p.requires_grad]
    scaled = scaler.scale(loss)
    grads = torch.autograd.grad(scaled, parameters, allow_unused=True)
    for p, grad in zip(parameters, grads):
        p.grad = grad
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("clipped_step")
def clip_through_the_groups(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    held = [p for group in optimizer.param_groups for p in group["params"]]
    norm = nn.utils.clip_grad_norm_(held, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped, hidden_tests.norm_returned],
    tells="You clip the scaled gradients: they are clipped to `max_norm` and "
    "then divided by the scale, so the update is far too small. Call "
    "`scaler.unscale_(optimizer)` before clipping.",
)
def clip_scaled_gradients(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="`unscale_` is called twice for one step, which raises. Once is "
    "enough, and `scaler.step` knows about it.",
)
def clip_unscaled_twice(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="You divide the gradients by the scale by hand, and the scaler does "
    "it once more. Leave it to `scaler.unscale_`.",
)
def clip_unscaled_by_hand_too(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= scaler.get_scale()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="You divide the gradients by the scale by hand. `scaler.step` does "
    "not know that and divides again. Use `scaler.unscale_(optimizer)`, "
    "which it knows of.",
)
def clip_divides_by_hand(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= scaler.get_scale()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.norm_returned,
    tells="You clip the scaled gradient to `max_norm` times the scale, which is "
    "right, and report the scaled norm, which is not. Divide it by the "
    "scale.",
)
def clip_threshold_scaled_alone(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(
        model.parameters(), max_norm * scaler.get_scale()
    )
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.tiny_gradients_arrive, hidden_tests.update_is_clipped],
    tells="The scaled loss is thrown away: `backward()` runs on the loss "
    "itself. The scaler then divides gradients by a scale that was never "
    "in them. Write `scaler.scale(loss).backward()`.",
)
def clip_discards_the_scaled_loss(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss)
    loss.backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.one_step_one_update],
    tells="The scaled loss is thrown away, and the optimizer steps twice: by "
    "itself and through the scaler. Three calls are right: "
    "`scaler.scale(loss).backward()`, `scaler.step(optimizer)`, "
    "`scaler.update()`.",
)
def clip_as_in_the_post(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.scale_history, hidden_tests.one_step_one_update],
    tells="`optimizer.step()` is called directly, on gradients that are still "
    "scaled, and nothing looks for an overflow. `scaler.step(optimizer)` "
    "does both.",
)
def clip_steps_by_itself(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.overflow_is_left_out,
    tells="After `unscale_` you call `optimizer.step()` yourself, so it steps "
    "after an overflow too. `scaler.step(optimizer)` leaves that step "
    "out.",
)
def clip_unscales_and_steps_by_itself(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.one_step_one_update,
    tells="The optimizer steps twice: `scaler.step(optimizer)` has made the "
    "step already. Remove `optimizer.step()`.",
)
def clip_steps_twice(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.step()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.one_step_one_update, hidden_tests.scale_history],
    tells="`scaler.update()` is missing. The scale never changes, and at the "
    "next call the scaler takes this step for unfinished and raises.",
)
def clip_never_updates(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.overflow_is_left_out],
    tells="You update the scaler only after a step that was made. But it is "
    "after an overflow that the scale must fall, or the next step "
    "overflows as well. Update it always.",
)
def clip_updates_good_steps_alone(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if math.isfinite(norm):
        scaler.step(optimizer)
        scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="`scaler.update()` comes before `scaler.step(optimizer)`. It ends the "
    "iteration: what is unscaled by then is forgotten, and divided again. "
    "Step first.",
)
def clip_updates_first(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.update()
    scaler.step(optimizer)
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.scale_history, hidden_tests.overflow_is_left_out],
    tells="You make a new scaler in each call. Its scale never adapts: after an "
    "overflow the next call starts from the same scale again. Use the one "
    "that you get.",
)
def clip_with_a_new_scaler(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    scaler = torch.amp.GradScaler("cpu", init_scale=scaler.get_scale())
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_loss,
    tells="You return the scaled loss. What is logged must not depend on the "
    "scale: keep `loss`, and scale a copy.",
)
def clip_scaled_loss_returned(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    loss = scaler.scale(loss)
    loss.backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="You clip after the step, when the gradient has been used already. "
    "Clip before it.",
)
def clip_after_the_step(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped, hidden_tests.norm_returned],
    tells="You clip before `backward()`, when there is no gradient yet. Clip "
    "after it, and after unscaling.",
)
def clip_before_backward(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped],
    tells="You clip each parameter's gradient by itself. The direction of the "
    "whole changes, and its norm may be larger than `max_norm`. Clip all "
    "together.",
)
def clip_each_tensor(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    kept = [p for p in model.parameters() if p.grad is not None]
    norms = [nn.utils.clip_grad_norm_([p], max_norm) for p in kept]
    norm = torch.stack(norms).norm()
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_old_gradients,
    tells="You clip the first group of parameters alone. The norm is that of "
    "all parameters together.",
)
def clip_the_first_group(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    held = optimizer.param_groups[0]["params"]
    norm = nn.utils.clip_grad_norm_(held, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped],
    tells="You clip each number of the gradient to `max_norm`. That changes its "
    "direction, and its norm is another. Use `clip_grad_norm_`.",
)
def clip_values(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(grads)
    nn.utils.clip_grad_value_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.short_gradients_stay,
    tells="You give every gradient the norm `max_norm`, short ones too. A "
    "gradient that is shorter stays as it is.",
)
def clip_always(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(grads)
    for g in grads:
        g.mul_(max_norm / norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.norm_returned,
    tells="You return the norm after clipping. It is never more than `max_norm` "
    "and tells nothing. `clip_grad_norm_` returns the one before.",
)
def clip_norm_afterwards(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    kept = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(kept)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped, hidden_tests.norm_returned],
    tells="You clip by the largest entry (`norm_type=inf`). Asked for is the "
    "ordinary norm, the root of the sum of squares.",
)
def clip_largest_entry(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm, math.inf)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_backward_outside,
    tells="The backward pass runs inside the autocast block. End the block "
    "after the loss.",
)
def clip_backward_inside(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_backward_outside,
    tells="The whole step is inside the autocast block. Only the forward pass "
    "and the loss belong there.",
)
def clip_all_inside(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.step_in_autocast],
    tells="Your code ignores `dtype`: nothing computes in 16 bit. A scaler "
    "converts nothing. Put forward pass and loss under `torch.autocast`.",
)
def clip_without_autocast(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.step_in_autocast],
    tells="Your autocast is always to bfloat16. Hand `dtype` on.",
)
def clip_always_bf16(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.step_in_autocast,
    tells="The loss is computed after the autocast block, from 16-bit logits, "
    "and is 16 bit itself: scaled, it overflows at once. Compute it "
    "inside the block.",
)
def clip_loss_outside(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        logits = model(x)
    loss = F.cross_entropy(logits, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.step_in_autocast],
    tells="You convert the model to 16 bit. Its weights and gradients are 16 "
    "bit then, and the scaler refuses float16 gradients. Leave the model "
    "alone: autocast makes copies.",
)
def clip_half_model(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    if dtype is not None:
        model.to(dtype)
        x = x.to(dtype)
    loss = F.cross_entropy(model(x).float(), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped],
    tells="The gradients are never cleared: those of the last call are in this "
    "step too. Call `optimizer.zero_grad()` first.",
)
def clip_without_zero_grad(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_old_gradients,
    tells="You clear the gradients after the step. Those that were there before "
    "the first call are used. Clear them before `backward()`.",
)
def clip_zero_grad_afterwards(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.overflow_is_left_out],
    tells="Your code raises when the gradient overflows. With a scaler that "
    "happens now and then, by design: the step is left out, and the scale "
    "falls.",
)
def clip_raises_on_overflow(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(
        model.parameters(), max_norm, error_if_nonfinite=True
    )
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.norm_returned],
    tells="You replace inf and NaN in the gradients before the norm is taken, "
    "so an overflow looks like a gradient of 0. Leave them: the scaler "
    "skips the step.",
)
def clip_cleans_up(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for p in model.parameters():
        if p.grad is not None:
            p.grad.nan_to_num_(0.0, 0.0, 0.0)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.norm_returned, hidden_tests.clipped_loss],
    tells="You return tensors. The loss carries its whole graph with it. "
    "`.item()` makes Python floats.",
)
def clip_returns_tensors(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss, norm


@wrong(
    "clipped_step",
    breaks=[hidden_tests.norm_returned, hidden_tests.clipped_loss],
    tells="You return one thing. Asked for are two: the loss, and the norm "
    "before clipping.",
)
def clip_returns_the_loss_alone(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.norm_returned,
    tells="The norm you return is a tensor. `.item()` makes a Python float.",
)
def clip_norm_is_a_tensor(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You call `model.train()`. Layers that were in eval mode are not any "
    "more. The mode is not yours to change here.",
)
def clip_in_train_mode(model, optimizer, scaler, x, y, max_norm, dtype=None):
    model.train()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="After your function autocast is still on. What is switched on by "
    "hand stays on, for all of PyTorch. Use `with torch.autocast(...)`.",
)
def clip_leaves_autocast_on(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    if dtype is not None:
        torch.set_autocast_dtype("cpu", dtype)
        torch.set_autocast_enabled("cpu", True)
    loss = F.cross_entropy(model(x), y)
    torch.set_autocast_enabled("cpu", False)
    torch.clear_autocast_cache()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    torch.set_autocast_enabled("cpu", dtype is not None)
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.clipped_disabled],
    tells="You take for granted that the scaler is enabled. A disabled one has "
    "a scale of 1 and just steps; the same calls serve both.",
)
def clip_needs_a_scale(model, optimizer, scaler, x, y, max_norm, dtype=None):
    if not scaler.is_enabled():
        raise ValueError("the scaler is disabled")
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.clipped_disabled],
    tells="With a disabled scaler you do not clip. Clipping does not depend on "
    "the scaler: it is wanted with bfloat16 and float32, too.",
)
def clip_not_if_disabled(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    limit = max_norm if scaler.is_enabled() else math.inf
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


# train_epoch_amp


@accepted("train_epoch_amp")
def amp_epoch_of_means(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * (len(y) / size)).backward()
            total += loss.item() * len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@accepted("train_epoch_amp")
def amp_epoch_with_final_division(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    batches = list(loader)
    total, samples, skips, size = 0.0, 0, 0, 0
    for i, (x, y) in enumerate(batches):
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss).backward()
        total += loss.item()
        size += len(y)
        last = i + 1 == len(batches)
        if (i + 1) % accumulation_steps and not last:
            continue
        scaler.unscale_(optimizer)
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= size
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < before:
            skips += 1
        elif scheduler:
            scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        samples, size = samples + size, 0
    return (total / samples if samples else float("nan")), skips


@accepted("train_epoch_amp")
def amp_epoch_counting_steps(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    made = []
    handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        known = len(made)
        scaler.step(optimizer)
        scaler.update()
        skipped = len(made) == known
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    handle.remove()
    return (total / samples if samples else math.nan), skips


@accepted("train_epoch_amp")
def amp_epoch_with_loss_outside(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                logits = model(x)
            if dtype is not None:
                logits = logits.float()
            loss = F.cross_entropy(logits, y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@accepted("train_epoch_amp")
def amp_epoch_zero_grad_first(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        optimizer.zero_grad()
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        skips += int(skipped)
        samples += size
    model.zero_grad()
    return (total / samples if samples else math.nan), skips


@accepted("train_epoch_amp")
def amp_epoch_looking_at_gradients(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        skipped = not all(
            bool(p.grad.isfinite().all())
            for p in model.parameters()
            if p.grad is not None
        )
        if not skipped:
            scaler.step(optimizer)
        scaler.update()
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@accepted("train_epoch_amp")
def amp_epoch_backward_with_a_gradient(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward(scaler.scale(torch.ones_like(loss)) / size)
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.windows_use_their_mean, hidden_tests.last_window],
    tells="The mean losses of the micro-batches are added up and never divided: "
    "the gradient is as many times too large as a window has "
    "micro-batches. Divide by the samples of the window.",
)
def amp_epoch_undivided(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            total += loss.item() * len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You take the mean of the micro-batches' means. Where they are of "
    "unequal size, samples in small ones count more. Divide sums by the "
    "samples of the window.",
)
def amp_epoch_mean_of_means(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss / len(window)).backward()
            total += loss.item() * len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.last_window],
    tells="You divide by `accumulation_steps` means in every window. The last "
    "window may have fewer micro-batches, and micro-batches may differ in "
    "size. Divide by the samples of the window.",
)
def amp_epoch_divided_by_k(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss / accumulation_steps).backward()
            total += loss.item() * len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.last_window, hidden_tests.one_update_per_window],
    tells="A last window that is not full is never stepped on. Its gradients "
    "are lost, or leak into the next epoch. Step after the last "
    "micro-batch, too.",
)
def amp_epoch_without_flush(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        if len(window) < accumulation_steps:
            for x, y in window:
                with torch.autocast("cpu", dtype, enabled=dtype is not None):
                    loss = F.cross_entropy(model(x), y, reduction="sum")
                scaler.scale(loss / len(y)).backward()
                total += loss.item()
                samples += len(y)
            optimizer.zero_grad()
            break
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.one_update_per_window],
    tells="The scaler is updated, and the optimizer steps, after every "
    "micro-batch. That is training on small batches. Step and update once "
    "per window.",
)
def amp_epoch_updates_each_micro_batch(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[
        hidden_tests.one_update_per_window,
        hidden_tests.windows_use_their_mean,
    ],
    tells="Every micro-batch makes a step of its own, and its gradients are "
    "cleared. Nothing is accumulated. Step, update and clear once per "
    "window.",
)
def amp_epoch_steps_and_clears_each(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, 1)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You call `unscale_` after every micro-batch. The second call in a "
    "window raises; without the error, gradients of two scales would be "
    "added. Unscale at most once, when the window is complete.",
)
def amp_epoch_unscales_each_micro_batch(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            scaler.unscale_(optimizer)
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_in_autocast],
    tells="A backward pass runs inside an autocast block. Open a block for each "
    "forward pass, and end it after the loss.",
)
def amp_epoch_backward_inside(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
                scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_in_autocast],
    tells="A backward pass runs inside an autocast block. Open a block for each "
    "forward pass, and end it after the loss.",
)
def amp_epoch_around_the_window(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            for x, y in window:
                loss = F.cross_entropy(model(x), y, reduction="sum")
                scaler.scale(loss / size).backward()
                total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_in_autocast],
    tells="The autocast block is around the whole epoch. Its copies of the "
    "weights are those of the first window until it ends, and steps and "
    "backward passes run inside. Open one for each forward pass.",
)
def amp_epoch_around_the_epoch(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    block = torch.autocast("cpu", dtype, enabled=dtype is not None)
    block.__enter__()
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    block.__exit__(None, None, None)
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_in_autocast],
    tells="Your code ignores `dtype`: nothing computes in 16 bit. A scaler "
    "converts nothing. Put forward pass and loss under `torch.autocast`.",
)
def amp_epoch_without_autocast(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_of_tiny_gradients],
    tells="The loss is not scaled before `backward()`, so float16 gradients "
    "underflow; and the scaler divides by a scale that is not there. "
    "Write `scaler.scale(...).backward()`.",
)
def amp_epoch_without_scale(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size)
            (loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[
        hidden_tests.one_update_per_window,
        hidden_tests.epoch_of_tiny_gradients,
    ],
    tells="You do not use the scaler at all. Without it small float16 gradients "
    "become 0, and nothing skips a step that overflows.",
)
def amp_epoch_without_a_scaler(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        optimizer.step()
        skipped = False
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.overflow_skips_the_window],
    tells="When a micro-batch overflows, you clear the gradients and go on with "
    "the rest of its window. What is stepped on then is not the window's "
    "mean. Let the scaler skip the whole window: an inf makes the sum "
    "inf.",
)
def amp_epoch_drops_the_micro_batch(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            finite = all(
                bool(p.grad.isfinite().all())
                for p in model.parameters()
                if p.grad is not None
            )
            if not finite:
                optimizer.zero_grad()
                for p in model.parameters():
                    if p.requires_grad:
                        p.grad = torch.zeros_like(p)
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[
        hidden_tests.overflow_skips_the_window,
        hidden_tests.no_gradients_left,
    ],
    tells="You clear the gradients only after a step that was made. After an "
    "overflow inf stays in them, and every window after it is skipped as "
    "well. Clear them after each window.",
)
def amp_epoch_clears_after_steps_alone(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        if not skipped:
            optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[
        hidden_tests.windows_use_their_mean,
        hidden_tests.no_gradients_left,
    ],
    tells="The gradients are never cleared: each window adds to those before "
    "it. Clear them after each window.",
)
def amp_epoch_never_clears(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.no_gradients_left],
    tells="You clear the gradients at the start of each window, and not after "
    "the last one. They are left there for the next epoch, or for whoever "
    "accumulates next.",
)
def amp_epoch_leaves_the_last(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        optimizer.zero_grad()
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler steps after every window, also where the step was "
    "skipped. The rate then falls without a step, and after a first "
    "window that is skipped PyTorch warns. Step it only if the scale has "
    "not fallen.",
)
def amp_epoch_schedule_each_window(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler is never stepped.",
)
def amp_epoch_schedule_never(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler steps once per micro-batch. It belongs to the "
    "optimizer's steps: one per window.",
)
def amp_epoch_schedule_each_micro_batch(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            for _ in window:
                scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="You take every change of the scale for a skipped step. It also "
    "grows, after a good one. Only a scale that fell tells of a skip.",
)
def amp_epoch_schedule_at_growth(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() != before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="With a disabled scaler your scheduler never steps. Its scale stays "
    "1.0, and every step is made: compare the scale before and after "
    "`update()`; if it has not fallen, the step was made.",
)
def amp_epoch_schedule_if_grown(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped and scaler.is_enabled():
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.skipped_windows, hidden_tests.schedule_of_made_steps],
    tells="You look at the loss to see whether a window was skipped. It is "
    "float32 and finite when a gradient overflows. Compare the scale "
    "before and after `update()`.",
)
def amp_epoch_counts_by_the_loss(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        scaler.step(optimizer)
        scaler.update()
        skipped = not math.isfinite(loss.item())
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.skipped_windows],
    tells="You count the micro-batches of skipped windows. Asked for is the "
    "number of windows.",
)
def amp_epoch_counts_micro_batches(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += len(window) if skipped else 0
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.skipped_windows],
    tells="You count the windows that were stepped on. Asked for are those that "
    "were skipped.",
)
def amp_epoch_counts_made_windows(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(not skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.skipped_windows],
    tells="You tell whether a window was skipped. Asked for is how many, as an "
    "int.",
)
def amp_epoch_tells_that_it_skipped(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips > 0


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.overflow_skips_the_window],
    tells="You find the overflow yourself and go on to the next window without "
    "`scaler.update()`, so the scale stays, and the next window overflows "
    "as well. Call `update()` after every window.",
)
def amp_epoch_skips_by_hand(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        skipped = not all(
            bool(p.grad.isfinite().all())
            for p in model.parameters()
            if p.grad is not None
        )
        if not skipped:
            scaler.step(optimizer)
            scaler.update()
        else:
            scaler._per_optimizer_states.clear()
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.overflow_skips_the_window],
    tells="After `unscale_` you call `optimizer.step()` yourself, and so step "
    "after an overflow, too. `scaler.step(optimizer)` leaves that step "
    "out.",
)
def amp_epoch_steps_by_itself(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.unscale_(optimizer)
        optimizer.step()
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.one_update_per_window],
    tells="The optimizer steps twice per window: by itself and through the "
    "scaler. `scaler.step(optimizer)` is enough.",
)
def amp_epoch_steps_twice(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer.step()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.one_update_per_window],
    tells="`scaler.update()` is missing: the scale never changes, and the next "
    "window's step raises.",
)
def amp_epoch_never_updates(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[
        hidden_tests.overflow_skips_the_window,
        hidden_tests.one_update_per_window,
    ],
    tells="You make a scaler of your own in each epoch. What the scale has "
    "learned is lost, and the one you were given never hears of an "
    "overflow. Use that one.",
)
def amp_epoch_with_a_new_scaler(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    scaler = torch.amp.GradScaler("cpu", scaler.get_scale())
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_graphs],
    tells="You put the micro-batches of a window together and go forward once. "
    "The numbers are right, and the memory is that of the whole window. "
    "Give the model one micro-batch at a time.",
)
def amp_epoch_together(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        x = torch.cat([pair[0] for pair in window])
        y = torch.cat([pair[1] for pair in window])
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss / size).backward()
        total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_graphs],
    tells="You go backward once, on the sum of all losses of a window. Until "
    "then all graphs are kept: as much memory as the whole window needs. "
    "Go backward on each micro-batch.",
)
def amp_epoch_backward_once(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        losses = []
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                losses.append(F.cross_entropy(model(x), y, reduction="sum"))
        scaler.scale(sum(losses) / size).backward()
        total += sum(losses).item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return is the mean of the micro-batches' means. Asked "
    "for is the mean over samples: a short micro-batch counts less.",
)
def amp_epoch_mean_of_batch_means(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item() / len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += len(window)
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return adds up the windows' means. Asked for is the "
    "mean over all samples of the epoch.",
)
def amp_epoch_loss_of_windows(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item() / size
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples = 1
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return is scaled. What is logged must not depend on the "
    "scale.",
)
def amp_epoch_scaled_loss(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item() * scaler.get_scale()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="Windows that were skipped are left out of the mean loss. Their "
    "samples went through the model as well, and the text counts them.",
)
def amp_epoch_loss_of_good_windows(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        known = total
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        if skipped:
            total = known
        else:
            samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="For a loader that yields nothing you return 0.0, or divide by zero. "
    "A mean over nothing is NaN.",
)
def amp_epoch_zero_for_nothing(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else 0.0), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="For a loader that yields nothing your code divides by zero. A mean "
    "over nothing is NaN.",
)
def amp_epoch_fails_on_nothing(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return total / samples, skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="With a loader that yields nothing you still step or update, and the "
    "scaler raises: it has seen no gradient. Do so only for windows that "
    "hold something.",
)
def amp_epoch_updates_on_nothing(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    if not samples:
        scaler.step(optimizer)
        scaler.update()
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss, hidden_tests.skipped_windows],
    tells="You return one thing. Asked for are two: the mean loss, and how many "
    "windows were skipped.",
)
def amp_epoch_returns_the_loss(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return total / samples if samples else math.nan


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return is a tensor. Asked for is a Python float.",
)
def amp_epoch_returns_a_tensor(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.detach()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You ask the loader for its length. It may be a generator, which has "
    "none. Take windows with `itertools.islice`, or look whether there is "
    "a next one.",
)
def amp_epoch_needs_a_length(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    total_steps = len(loader)
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_disabled],
    tells="You take for granted that the scaler is enabled. A disabled one has "
    "a scale of 1 and just steps; the same calls serve both.",
)
def amp_epoch_scaler_must_be_on(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    assert scaler.is_enabled()
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_leaves_the_rest],
    tells="You call `model.train()`. Layers that were in eval mode are not any "
    "more. The mode is not yours to change here.",
)
def amp_epoch_in_train_mode(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    model.train()
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_without_gradients],
    tells="You give every parameter a gradient of zeros. The optimizer then "
    "treats frozen and unused ones as used, and weight decay moves them. "
    "Leave `None` as it is.",
)
def amp_epoch_fills_gradients(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        for p in model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_in_autocast],
    tells="The loss is 16 bit, and scaled it overflows at once: it is computed after "
    "the autocast block from 16-bit logits, or taken apart, and `log_softmax` stays "
    "16 bit on a CPU. Use `F.cross_entropy` inside the block.",
)
def amp_epoch_loss_outside(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                logits = model(x)
            loss = F.cross_entropy(logits, y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your scaler still looks at the gradients and "
    "leaves steps out. It must do nothing but `optimizer.step()` then.",
)
class ScalerOffSkips:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            held = [p for g in optimizer.param_groups for p in g["params"]]
            grads = [p.grad for p in held if p.grad is not None]
            if all(bool(g.isfinite().all()) for g in grads):
                optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="Your default `init_scale` is not 65536.0, the one in the signature. "
    "Keep the defaults that are given.",
)
class ScalerOfOtherDefaults:
    def __init__(
        self,
        init_scale=1024.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="With `max_norm=0.0` you do not clip: 0 counts as false in Python. A "
    "threshold of 0 means no step at all.",
)
def clip_not_at_zero(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    limit = max_norm or math.inf
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.step_in_autocast,
    tells="With `dtype=None` autocast is on all the same: without a dtype it "
    "takes the default of the device. Switch it off with `enabled=dtype "
    "is not None`.",
)
def clip_autocast_without_a_dtype(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.epoch_in_autocast,
    tells="With `dtype=None` autocast is on all the same: without a dtype it "
    "takes the default of the device. Switch it off with `enabled=dtype "
    "is not None`.",
)
def amp_epoch_autocast_without_a_dtype(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@accepted("clipped_step")
def clip_with_plain_floats(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(loss), float(norm)


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_loss,
    tells="You round the loss that you return. Return it as it is; round where "
    "you print.",
)
def clip_loss_rounded(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return round(loss.item(), 3), norm.item()


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You call `model.forward(x)`. Hooks of the model do not run then, and "
    "DDP does not work. Call `model(x)`.",
)
def amp_epoch_in_forward(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model.forward(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You call `model.forward(x)`. Hooks of the model do not run then, and "
    "DDP does not work. Call `model(x)`.",
)
def clip_in_forward(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model.forward(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look for an overflow only where `step` unscales by itself. After "
    "`unscale_` it is not looked for, and inf and NaN go into the "
    "weights.",
)
class ScalerTrustsUnscale:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.in_step = False
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if self.in_step and not p.grad.isfinite().all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.in_step = True
            self.unscale_(optimizer)
            self.in_step = False
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="You scale with `init_scale` for ever, and divide by the scale of "
    "now. After the first change gradients are off by that factor.",
)
class ScalerScalesByTheFirst:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.first = float(init_scale)
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * (self.first if self.enabled else 1.0)

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="Your scaler raises when a gradient overflows. That happens now and "
    "then, by design: leave the step out, and lower the scale.",
)
class ScalerRaisesOnOverflow:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        raise FloatingPointError("overflow")

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@accepted("clipped_step")
def clip_asking_the_scaler(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    if scaler.is_enabled():
        scaler.unscale_(optimizer)
    held = [p for p in model.parameters() if p.grad is not None]
    norm = nn.utils.clip_grad_norm_(held, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.clipped_loss, hidden_tests.norm_returned],
    tells="You return the norm first. Asked for is the loss, then the norm.",
)
def clip_swapped(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm.item(), loss.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.update_is_clipped,
    tells="You unscale the gradients and multiply the threshold by the scale. "
    "One of the two is enough: after `unscale_` the threshold is "
    "`max_norm`.",
)
def clip_unscaled_with_a_scaled_threshold(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    limit = max_norm * scaler.get_scale()
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.one_step_one_update],
    tells="You call `scaler.update()` twice. The second call finds no step and "
    "raises.",
)
def clip_updates_twice(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=[hidden_tests.update_is_clipped],
    tells="You clear the gradients after `backward()`: nothing is left to clip "
    "and to step on. Clear them before.",
)
def clip_clears_after_backward(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    optimizer.zero_grad(set_to_none=False)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted("train_epoch_amp")
def amp_epoch_looking_ahead(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = itertools.chain(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.epoch_loss, hidden_tests.skipped_windows],
    tells="You return the number of skipped windows first. Asked for is the "
    "loss, then the number.",
)
def amp_epoch_swapped(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return skips, (total / samples if samples else math.nan)


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler steps before the optimizer does, so each step uses the "
    "rate of the next one. Step it afterwards, if the step was made.",
)
def amp_epoch_schedule_first(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        if scheduler is not None:
            scheduler.step()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You clear the gradients before each micro-batch, so only the last "
    "one of a window is stepped on. Clear them once per window.",
)
def amp_epoch_clears_each_micro_batch(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            optimizer.zero_grad()
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=[hidden_tests.windows_use_their_mean, hidden_tests.last_window],
    tells="You divide by `accumulation_steps` times the size of one "
    "micro-batch. The others may be shorter, and the last window may have "
    "fewer. Add up the sizes of the window.",
)
def amp_epoch_by_the_first_size(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        guess = accumulation_steps * len(window[0][1])
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / guess).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You draw from PyTorch's global generator. Whatever the caller draws "
    "afterwards is another number. Nothing here is random.",
)
def amp_epoch_draws(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    torch.rand(())
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


# Found by a newcomer.


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look whether a sum or norm of a gradient is finite. Where many"
    " numbers are large it is not, and each of them is: a good step is "
    "left out. Look at every number, `isfinite().all()`.",
)
class ScalerSeesASumOverflow:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.sum().isfinite():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look whether a sum or norm of a gradient is finite. Where many"
    " numbers are large it is not, and each of them is: a good step is "
    "left out. Look at every number, `isfinite().all()`.",
)
class ScalerSeesANormOverflow:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.norm().isfinite():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="Your scale falls in `step`. Whoever compares it before and after "
    "`update()`, as a learning rate schedule must, sees no fall. Change"
    " it in `update()` alone.",
)
class ScalerFallsInStep:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if self.found_inf:
            self.factor *= self.backoff_factor
        else:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.unscale_then_clip,
    tells="A gradient that holds inf or NaN is not divided by your "
    "`unscale_`, also where it is finite. Divide all gradients; `step` "
    "leaves the step out.",
)
class ScalerDividesGoodOnes:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if torch.isfinite(p.grad).all():
                        p.grad /= self.factor
                    else:
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_grows,
    tells="Your scale has an upper bound. It has none: what is too large "
    "overflows, and the scale falls by itself.",
)
class ScalerHasACeiling:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor = min(self.factor * self.growth_factor, 2.0**24)
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scale_backs_off,
    tells="Your scale cannot fall below 1. It may: a loss can be too large "
    "for float16, too. Multiply by `backoff_factor` and leave it there.",
)
class ScalerHasAFloor:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor = max(1.0, self.factor * self.backoff_factor)
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="Your state dict rounds the scale. With factors other than 2 it is "
    "no whole number. Save it as it is.",
)
class ScalerSavesAnInt:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": float(int(self.factor)),
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.disabled_scaler_loads,
    tells="A disabled scaler of yours takes over the scale of the state dict "
    "that it loads. Its scale is always 1.0.",
)
class ScalerSwitchedByAState:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale) if enabled else 1.0
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.disabled_scaler_loads,
    tells="Your state dict switches a scaler on or off. Whether it is enabled"
    " is not part of it: who loads a checkpoint for bfloat16 wants the "
    "scaler to stay off.",
)
class ScalerSwitchedOnByAState:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "enabled": self.enabled,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.disabled_scaler_loads,
    tells="Without scaling your `state_dict()` returns no dict. A checkpoint "
    "is saved and loaded by the same code whether the scaler is enabled"
    " or not.",
)
class ScalerOffHasNoState:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        if not self.enabled:
            return None
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in (state or {}).items():
            setattr(self, name, value)


@wrong(
    "loss_scaler",
    breaks=hidden_tests.scaler_state,
    tells="`load_state_dict` keeps the very dict that it is given, and the "
    "scaler goes on in it: what was loaded is another dict afterwards. "
    "Copy it.",
)
class ScalerWorksInTheLoadedDict:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.kept = {
            "factor": float(init_scale),
            "count": 0,
            "growth_factor": growth_factor,
            "backoff_factor": backoff_factor,
            "growth_interval": growth_interval,
        }
        self.enabled = enabled
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.kept["factor"] if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.kept["factor"]
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.kept["factor"] *= self.kept["backoff_factor"]
            self.kept["count"] = 0
        else:
            self.kept["count"] += 1
            if self.kept["count"] == self.kept["growth_interval"]:
                self.kept["factor"] *= self.kept["growth_factor"]
                self.kept["count"] = 0
        self.start_anew()

    def state_dict(self):
        return dict(self.kept)

    def load_state_dict(self, state):
        self.kept = state


@wrong(
    "loss_scaler",
    breaks=hidden_tests.misuse_raises,
    tells="A second `unscale_` or `step` raises another exception in your "
    "scaler than the text asks for: a RuntimeError.",
)
class ScalerRaisesAnotherError:
    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self.count = 0
        self.start_anew()

    def start_anew(self):
        self.unscaled = self.stepped = self.found_inf = False

    def get_scale(self):
        return self.factor if self.enabled else 1.0

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        if self.unscaled or self.stepped:
            raise ValueError("call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True

    def step(self, optimizer):
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise ValueError("call update() first")
        if not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = True
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if not self.enabled:
            return
        if self.found_inf:
            self.factor *= self.backoff_factor
            self.count = 0
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        self.start_anew()

    def state_dict(self):
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, name, value)


@accepted("train_in_bf16")
def bf16_by_closure(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:

        def closure(x=x, y=y):
            with torch.enable_grad():
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                    loss = loss_fn(model(x), y)
                loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


@wrong(
    "train_in_bf16",
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You leave a hook on the optimizer. It runs at every later step, "
    "and each call adds another. Take it off with the `remove()` of its"
    " handle.",
)
def bf16_leaves_a_hook(model, optimizer, loss_fn, batches, enabled=True):
    made = []
    optimizer.register_step_post_hook(lambda *_: made.append(1))
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted("clipped_step")
def clip_in_a_step_hook(model, optimizer, scaler, x, y, max_norm, dtype=None):
    def clip(*_):
        nn.utils.clip_grads_with_norm_(kept, max_norm, norm)

    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    kept = [p for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm([p.grad for p in kept])
    handle = optimizer.register_step_pre_hook(clip)
    scaler.step(optimizer)
    handle.remove()
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You leave a hook on the optimizer. It runs at every later step, "
    "and each call adds another. Take it off with the `remove()` of its"
    " handle.",
)
def clip_leaves_a_hook(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.register_step_post_hook(lambda *_: None)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "clipped_step",
    breaks=hidden_tests.step_in_autocast,
    tells="You take the cross-entropy apart. On a CPU `log_softmax` is not on"
    " the float32 list, so the loss is 16 bit, although it is computed "
    "inside the block. Use `F.cross_entropy`.",
)
def clip_by_log_softmax(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        logs = model(x).log_softmax(1)
        loss = -logs.gather(1, y[:, None]).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You leave a hook on the optimizer. It runs at every later step, "
    "and each call adds another. Take it off with the `remove()` of its"
    " handle.",
)
def amp_epoch_leaves_a_hook(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    made = []
    optimizer.register_step_post_hook(lambda *_: made.append(1))
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        known = len(made)
        scaler.step(optimizer)
        scaler.update()
        skipped = len(made) == known
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.schedule_of_made_steps,
    tells="You take a step that moves nothing for a skipped one. With a rate "
    "of 0, as at the start of a warm-up, the schedule then never gets "
    "away from it. Compare the scale before and after `update()`.",
)
def amp_epoch_watches_the_weights(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = [p.detach().clone() for p in model.parameters()]
        scaler.step(optimizer)
        scaler.update()
        skipped = all(map(torch.equal, before, model.parameters()))
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.windows_use_their_mean,
    tells="You clip the gradients. Nobody asked for it here: where they are "
    "large, the update is another.",
)
def amp_epoch_clips(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.epoch_in_autocast,
    tells="You read micro-batches inside an autocast block. What the loader "
    "computes then, as an augmentation, is 16 bit without your knowing."
    " Read them outside.",
)
def amp_epoch_reads_inside(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while True:
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            window = list(itertools.islice(pairs, accumulation_steps))
        if not window:
            break
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@wrong(
    "train_epoch_amp",
    breaks=hidden_tests.epoch_in_autocast,
    tells="The loss is 16 bit, and scaled it overflows at once: it is computed after "
    "the autocast block from 16-bit logits, or taken apart, and `log_softmax` stays "
    "16 bit on a CPU. Use `F.cross_entropy` inside the block.",
)
def amp_epoch_by_log_softmax(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                logs = model(x).log_softmax(1)
                loss = -logs.gather(1, y[:, None]).sum()
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips
