"""Answers to `guarded_epoch` of chapter 08."""

import copy
import math

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def epoch_with_a_snapshot(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        model.zero_grad()
        before = {k: b.detach().clone() for k, b in model.named_buffers()}
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        inputs = torch.isfinite(x).all() and torch.isfinite(y).all()
        if inputs and loss.isfinite() and norm.isfinite():
            optimizer.step()
            norms.append(float(norm))
            losses.append(float(loss.detach()))
        else:
            skipped.append(i)
            for k, b in model.named_buffers():
                b.data.copy_(before[k])
    optimizer.zero_grad()
    model.zero_grad()
    return dict(norms=norms, losses=losses, skipped=skipped)


@accepted()
def epoch_with_copied_buffers(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"losses": [], "skipped": [], "norms": []}
    parameters = list(model.parameters())
    for p in parameters:
        p.grad = None
    position = -1
    for x, y in loader:
        position += 1
        if not math.isfinite(float((x * 0.0).sum() + (y * 0.0).sum())):
            report["skipped"].append(position)
            continue
        saved = copy.deepcopy(dict(model.named_buffers()))
        loss = loss_function(model(x), y)
        good = bool(torch.isfinite(loss))
        if good:
            loss.backward()
            grads = [p.grad for p in parameters if p.grad is not None]
            norm = nn.utils.get_total_norm(grads)
            good = bool(torch.isfinite(norm))
        if good:
            nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
            optimizer.step()
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            for name, value in saved.items():
                model.get_buffer(name).set_(value)
            report["skipped"].append(position)
        for p in parameters:
            p.grad = None
    return report


@accepted()
def epoch_by_autograd_grad(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    wanted = [p for p in model.parameters() if p.requires_grad]
    model.zero_grad()
    for i, (x, y) in enumerate(loader):
        finite = bool(x.isfinite().all()) and bool(y.isfinite().all())
        kept = [b.clone() for b in model.buffers()]
        norm = torch.tensor(math.nan)
        if finite:
            loss = loss_function(model(x), y)
            finite = math.isfinite(loss.item())
        if finite:
            grads = torch.autograd.grad(loss, wanted, allow_unused=True)
            # two parameters that are added up get one tensor
            grads = [None if g is None else g.clone() for g in grads]
            for p, g in zip(wanted, grads):
                p.grad = g
            norm = torch.cat([g.flatten() for g in grads if g is not None])
            norm = torch.linalg.vector_norm(norm)
        if finite and math.isfinite(norm.item()):
            if norm > max_norm:
                for g in grads:
                    if g is not None:
                        g.mul_(max_norm / (norm + 1e-6))
            optimizer.step()
            norms.append(norm.item())
            losses.append(loss.item())
        else:
            skipped.append(i)
            with torch.no_grad():
                for b, old in zip(model.buffers(), kept):
                    b.copy_(old)
        for p in wanted:
            p.grad = None
    return {"norms": norms, "losses": losses, "skipped": skipped}


@accepted()
def epoch_with_errors(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    class NotFinite(Exception):
        pass

    def must_be_finite(tensor):
        if not torch.isfinite(tensor).all():
            raise NotFinite

    for i, (x, y) in enumerate(loader):
        model.zero_grad(set_to_none=True)
        kept = [buffer.clone() for buffer in model.buffers()]
        try:
            must_be_finite(x)
            must_be_finite(y)
            loss = loss_function(model(x), y)
            must_be_finite(loss)
            loss.backward()
            try:
                norm = nn.utils.clip_grad_norm_(
                    model.parameters(), max_norm, error_if_nonfinite=True
                )
            except RuntimeError as not_finite:
                raise NotFinite from not_finite
        except NotFinite:
            for buffer, old in zip(model.buffers(), kept):
                buffer.copy_(old)
            report["skipped"] += [i]
        else:
            optimizer.step()
            report["norms"] += [norm.item()]
            report["losses"] += [loss.item()]
    model.zero_grad(set_to_none=True)
    return report


@accepted()
def epoch_filling_zeros(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for i, (x, y) in enumerate(loader):
        state = {k: v.clone() for k, v in model.named_buffers()}
        good = all(bool(t.isfinite().all()) for t in (x, y))
        if good:
            loss = loss_function(model(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            good = bool(loss.isfinite() & norm.isfinite())
        if good:
            optimizer.step()
            report["norms"].append(norm.detach().item())
            report["losses"].append(loss.detach().item())
        else:
            with torch.no_grad():
                for k, v in model.named_buffers():
                    v.copy_(state[k])
            report["skipped"].append(i)
        model.zero_grad()
    return report


@accepted()
def epoch_on_buffers_by_name(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    names = [name for name, _ in model.named_buffers()]
    number = 0
    model.zero_grad()
    for x, y in loader:
        everything = torch.stack([(t.double() * 0).sum() for t in (x, y)])
        fine = not everything.isnan().any()
        if fine:
            old = [model.get_buffer(name).clone() for name in names]
            loss = loss_function(model(x), y)
            loss.backward()
            total = nn.utils.clip_grad_norm_(
                model.parameters(), max_norm, foreach=False
            )
            fine = math.isfinite(loss.item()) and math.isfinite(total.item())
            if fine:
                optimizer.step()
                norms.append(total.item())
                losses.append(loss.item())
            else:
                for name, value in zip(names, old):
                    model.get_buffer(name).copy_(value)
            model.zero_grad()
        if not fine:
            skipped.append(number)
        number += 1
    return {"skipped": skipped, "losses": losses, "norms": norms}


@wrong(
    breaks=hidden_tests.buffers_as_before,
    tells="The step is skipped, but the forward pass of the bad batch has already "
    "written its statistics into batch norm. One NaN there stays for good, and "
    "the model fails in eval. Put the buffers back.",
)
def epoch_with_poisoned_buffers(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}
    for position, (x, y) in enumerate(loader):
        model.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        good = x.isfinite().all() and y.isfinite().all()
        if good and loss.isfinite() and norm.isfinite():
            optimizer.step()
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            report["skipped"].append(position)
    model.zero_grad()
    return report


@wrong(
    breaks=hidden_tests.optimizer_as_before,
    tells="For a bad batch you clear the gradients to zeros and step all the same. "
    "Momentum and weight decay move the weights in that step, and Adam counts it. "
    "Do not call `step()`.",
)
def epoch_steps_with_zeros(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        good = x.isfinite().all() and y.isfinite().all()
        if good and loss.isfinite() and norm.isfinite():
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            report["skipped"].append(position)
            model.zero_grad(set_to_none=False)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        optimizer.step()
        model.zero_grad()
    return report


@wrong(
    breaks=hidden_tests.bad_inputs,
    tells="You end the epoch at the first bad batch. The batches after it are "
    "good: skip one and go on (`continue`, not `break`).",
)
def epoch_ends_at_the_first(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        good = takes_step(x, y)
        if not good:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
        if not good:
            break
    return report


@wrong(
    breaks=hidden_tests.gradients_are_cleared,
    tells="After a bad batch its gradient stays in `.grad`, and the next batch's "
    "is added to it: NaN from then on, or a wrong step. Clear the gradients when "
    "you skip, too.",
)
def epoch_keeps_bad_gradients(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        good = x.isfinite().all() and y.isfinite().all()
        if good:
            loss = loss_function(model(x), y)
            good = loss.isfinite()
        if good:
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            good = norm.isfinite()
        if not good:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
            continue
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        model.zero_grad()
    return report


@wrong(
    breaks=hidden_tests.gradients_are_cleared,
    tells="You never clear the gradients: each step uses the sum of all batches so "
    "far. Clear them before each backward pass.",
)
def epoch_never_cleared(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
    return report


@wrong(
    breaks=hidden_tests.gradients_are_cleared,
    tells="You clear the gradients after each batch alone. What was in `.grad` "
    "before the epoch is then part of its first step. Clear before the first "
    "backward pass as well.",
)
def epoch_cleared_afterwards(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if takes_step(x, y):
            model.zero_grad()
        else:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
            model.zero_grad()
    return report


@wrong(
    breaks=hidden_tests.optimizer_of_a_part,
    tells="`optimizer.zero_grad()` clears the parameters that the "
    "optimizer holds. The gradients of the others pile up from batch "
    "to batch, and they count in the norm. Use `model.zero_grad()`.",
)
def epoch_clears_by_the_optimizer(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    optimizer.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        optimizer.zero_grad()
    return report


@wrong(
    breaks=hidden_tests.stale_gradients,
    tells="You set old gradients to zero. For the optimizer a zero is a "
    "gradient, and weight decay moves frozen and unused parameters. "
    "Set them to None, as `model.zero_grad()` does.",
)
def epoch_with_zeros_for_none(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad(set_to_none=False)
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad(set_to_none=False)
    return report


@wrong(
    breaks=hidden_tests.stale_gradients,
    tells="You clear the gradients of parameters that require one. A "
    "frozen parameter may have an old gradient, and the optimizer "
    "then moves it. Clear all.",
)
def epoch_clears_what_is_trained(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.grad = None
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        for p in trained:
            p.grad = None
    return report
