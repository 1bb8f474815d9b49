"""Answers to `loss_scaler` of chapter 10."""

import torch

from course_grader.bank import accepted, edit

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted()
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


ScalerByForeach = edit(
    ScalerByHand,
    {
        """
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not torch.isfinite(p.grad).all():
                        self.found_inf = True
        """: """
        grads = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        torch._foreach_mul_(grads, 1 / self.factor)
        self.found_inf = not all(bool(g.isfinite().all()) for g in grads)
        """,
    },
)

ScalerWithNewGradients = edit(
    ScalerByHand,
    {
        """
        p.grad /= self.factor
        if not torch.isfinite(p.grad).all():
            self.found_inf = True
        """: """
        bad = p.grad.isnan().any() or p.grad.isinf().any()
        self.found_inf = self.found_inf or bool(bad)
        p.grad = p.grad / self.factor
        """,
    },
)

ScalerWithTensors = edit(
    ScalerByHand,
    {
        "self.factor = float(init_scale)": "self.kept = torch.tensor(float(init_scale), dtype=torch.float64)",
        "return self.factor if self.enabled else 1.0": "return self.kept.item() if self.enabled else 1.0",
        "p.grad /= self.factor": "p.grad.mul_(1.0 / self.kept.item())",
        "self.factor *= self.backoff_factor": "self.kept = self.kept * self.backoff_factor",
        "self.factor *= self.growth_factor": "self.kept = self.kept * self.growth_factor",
        '"factor": self.factor': '"kept": self.kept',
    },
)


@accepted()
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


ScalerOfOne = edit(
    ScalerByHand,
    {
        "return loss * self.get_scale()": "return loss",
        "p.grad /= self.factor": "",
    },
    breaks=[hidden_tests.loss_is_scaled, hidden_tests.small_gradients_arrive],
    tells="Your scaler does not scale the loss, so the backward pass runs on "
    "the small numbers, and what float16 makes 0 stays 0, also if "
    "gradients are multiplied afterwards. Return `loss` times the scale.",
)

ScalerOfGradients = edit(
    ScalerByHand,
    {
        "return loss * self.get_scale()": "return loss",
        "p.grad /= self.factor": """
        p.grad *= self.factor
        p.grad /= self.factor * (1 + 1e-9)
        """,
    },
    breaks=[hidden_tests.loss_is_scaled, hidden_tests.small_gradients_arrive],
    tells="Your scaler does not scale the loss, so the backward pass runs on "
    "the small numbers, and what float16 makes 0 stays 0, also if "
    "gradients are multiplied afterwards. Return `loss` times the scale.",
)

ScalerNeverUnscales = edit(
    ScalerByHand,
    {
        """
        if not self.unscaled:
            self.unscale_(optimizer)
        """: """
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and not p.grad.isfinite().all():
                    self.found_inf = True
        """,
    },
    breaks=hidden_tests.weights_as_without,
    tells="The gradients are never divided by the scale: each step is larger by "
    "that factor. `step` must do it if `unscale_` was not called.",
)


ScalerUnscalesTwice = edit(
    ScalerByHand,
    {
        """
        def unscale_(self, optimizer):
            if not self.enabled:
                return
            if self.unscaled or self.stepped:
                raise RuntimeError("call update() first")
            self.unscaled = True
        """: """
        def unscale_(self, optimizer):
            if not self.enabled:
                return
            if self.unscaled or self.stepped:
                raise RuntimeError("call update() first")
            self.unscaled = True
            self.divide(optimizer)

        def divide(self, optimizer):
        """,
        """
        if not self.unscaled:
            self.unscale_(optimizer)
        """: "self.divide(optimizer)",
    },
    breaks=hidden_tests.unscale_then_clip,
    tells="After `unscale_` your `step` divides by the scale a second time. "
    "Remember that it has been done, until `update()`.",
)


ScalerUnscalesTheFirstTime = edit(
    ScalerByHand,
    {
        "self.unscaled = self.stepped = self.found_inf = False": """
        self.unscaled = getattr(self, "unscaled", False)
        self.stepped = self.found_inf = False
        """,
        """
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        """: """
        if self.unscaled:
            return
        """,
    },
    breaks=[hidden_tests.weights_as_without, hidden_tests.unscale_then_clip],
    tells="Only the first iteration divides by the scale: that it has been done "
    "is never forgotten. `update()` ends an iteration, and with it all "
    "that belongs to one.",
)

ScalerSeesNaNAlone = edit(
    ScalerByHand,
    {"if not torch.isfinite(p.grad).all():": "if torch.isnan(p.grad).any():"},
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look for NaN alone. An overflow is inf at first, and "
    "`isnan(inf)` is False. `isfinite` finds both.",
)

ScalerSeesInfAlone = edit(
    ScalerByHand,
    {"if not torch.isfinite(p.grad).all():": "if torch.isinf(p.grad).any():"},
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look for inf alone. An inf in the forward or backward pass often "
    "becomes NaN on its way (inf - inf, 0 * inf). `isfinite` finds both.",
)

ScalerSeesPlusInf = edit(
    ScalerByHand,
    {"if not torch.isfinite(p.grad).all():": "if (p.grad == math.inf).any():"},
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You compare with inf: -inf and NaN pass. Nothing equals NaN, itself "
    "included. Use `isfinite`.",
)

ScalerSeesTheLast = edit(
    ScalerByHand,
    {
        """
        if not torch.isfinite(p.grad).all():
            self.found_inf = True
        """: "self.found_inf = not torch.isfinite(p.grad).all()",
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="Each parameter overwrites what was found for the one before, so only "
    "the last one counts. Once one gradient is not finite, it stays "
    "found.",
)

ScalerSeesTheFirstGroup = edit(
    ScalerByHand,
    {
        "for group in optimizer.param_groups:": "for group in optimizer.param_groups[:1]:",
    },
    breaks=[
        hidden_tests.overflow_skips_the_step,
        hidden_tests.scaler_without_gradients,
    ],
    tells="You go through the first group of parameters alone. An optimizer may "
    "have several: the others are neither unscaled nor looked at.",
)

ScalerCleansUp = edit(
    ScalerByHand,
    {
        "self.found_inf = True": """
        self.found_inf = True
        p.grad.nan_to_num_(0.0, 0.0, 0.0)
        """,
        """
        if not self.found_inf:
            optimizer.step()
        """: "optimizer.step()",
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You replace inf and NaN by numbers and step all the same. That is a "
    "step in a made-up direction. Leave the step out, and lower the "
    "scale.",
)

ScalerStepsWithZeros = edit(
    ScalerByHand,
    {
        """
        if not self.found_inf:
            optimizer.step()
        """: """
        if self.found_inf:
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        """,
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You set the gradients to zero and step. With momentum or weight "
    "decay a step with zero gradients moves the weights. Do not call "
    "`optimizer.step()` at all.",
)

ScalerStepsAnyway = edit(
    ScalerByHand,
    {
        """
        if not self.found_inf:
            optimizer.step()
        """: "optimizer.step()",
    },
    breaks=[hidden_tests.overflow_skips_the_step],
    tells="You lower the scale after an overflow, and step as well: inf and NaN "
    "go into the weights. Leave that step out.",
)

ScalerStopsForGood = edit(
    ScalerByHand,
    {
        "self.enabled = enabled": """
        self.enabled = enabled
        self.found_inf = False
        """,
        "self.unscaled = self.stepped = self.found_inf = False": "self.unscaled = self.stepped = False",
    },
    breaks=[hidden_tests.overflow_skips_the_step, hidden_tests.scale_backs_off],
    tells="After one overflow no step is made any more: what was found is never "
    "cleared. It belongs to one iteration; `update()` ends it.",
)

ScalerNeverBacksOff = edit(
    ScalerByHand,
    {"self.factor *= self.backoff_factor": ""},
    breaks=hidden_tests.scale_backs_off,
    tells="The scale stays what it was after an overflow, so the next step will "
    "overflow again. Multiply it by `backoff_factor` in `update()`.",
)

ScalerHalves = edit(
    ScalerByHand,
    {"self.factor *= self.backoff_factor": "self.factor /= 2"},
    breaks=hidden_tests.scale_backs_off,
    tells="After an overflow you halve the scale, whatever `backoff_factor` is. "
    "Multiply by that.",
)

ScalerDividesByBackoff = edit(
    ScalerByHand,
    {
        "self.factor *= self.backoff_factor": "self.factor /= self.backoff_factor",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="You divide by `backoff_factor`. It is below 1, so the scale grows "
    "after an overflow. Multiply.",
)

ScalerNeverGrows = edit(
    ScalerByHand,
    {
        """
        if self.count == self.growth_interval:
            self.factor *= self.growth_factor
            self.count = 0
        """: "",
    },
    breaks=hidden_tests.scale_grows,
    tells="The scale never grows. After one overflow it stays low for ever, and "
    "small gradients are lost again. Count the good steps in `update()`.",
)

ScalerDoubles = edit(
    ScalerByHand,
    {"self.factor *= self.growth_factor": "self.factor *= 2"},
    breaks=hidden_tests.scale_grows,
    tells="You double the scale, whatever `growth_factor` is. Multiply by that.",
)

ScalerGrowsOneLate = edit(
    ScalerByHand,
    {
        "if self.count == self.growth_interval:": "if self.count > self.growth_interval:",
    },
    breaks=hidden_tests.scale_grows,
    tells="The scale grows one step late: after `growth_interval` + 1 good "
    "steps. Add to the count first, then compare.",
)

ScalerGrowsOneLateEach = edit(
    ScalerByHand,
    {
        "self.count += 1": "",
        """
        if self.count == self.growth_interval:
            self.factor *= self.growth_factor
            self.count = 0
        """: """
        if self.count == self.growth_interval:
            self.factor *= self.growth_factor
            self.count = 0
        else:
            self.count += 1
        """,
    },
    breaks=hidden_tests.scale_grows,
    tells="The scale grows one step late: after `growth_interval` + 1 good "
    "steps. Add to the count first, then compare.",
)

ScalerGrowsOnAndOn = edit(
    ScalerByHand,
    {
        "if self.count == self.growth_interval:": "if self.count >= self.growth_interval:",
        """
        self.factor *= self.growth_factor
        self.count = 0
        """: "self.factor *= self.growth_factor",
    },
    breaks=hidden_tests.scale_grows,
    tells="After the first growth the count is not set to 0, so the scale grows "
    "only once, or at every step from then on. Start the count anew.",
)

ScalerCountsAcross = edit(
    ScalerByHand,
    {
        """
        self.factor *= self.backoff_factor
        self.count = 0
        """: "self.factor *= self.backoff_factor",
    },
    breaks=hidden_tests.scale_grows,
    tells="You count good steps, but not in a row: a step left out must set the "
    "count to 0.",
)

ScalerCountsAll = edit(
    ScalerByHand,
    {
        """
        if self.found_inf:
            self.factor *= self.backoff_factor
        """: """
        if self.found_inf:
            self.factor *= self.backoff_factor
        self.count += 1
        if self.count == self.growth_interval:
            if not self.found_inf:
                self.factor *= self.growth_factor
        """,
        """
        else:
            self.count += 1
            if self.count == self.growth_interval:
                self.factor *= self.growth_factor
                self.count = 0
        """: "",
    },
    breaks=hidden_tests.scale_grows,
    tells="You count all iterations, those left out too. The scale grows after "
    "`growth_interval` good steps in a row.",
)

ScalerForgives = edit(
    ScalerByHand,
    {
        """
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        """: """
        if self.unscaled:
            return
        """,
        """
        if self.stepped:
            raise RuntimeError("call update() first")
        """: "",
    },
    breaks=hidden_tests.misuse_raises,
    tells="A second `unscale_` before `update()` does nothing in your scaler, "
    "and a second `step` steps again. Both are mistakes of the caller: "
    "raise a RuntimeError.",
)

ScalerRaisesWhereItIsOff = edit(
    ScalerByHand,
    {
        """
        if not self.enabled:
            optimizer.step()
            return
        if self.stepped:
            raise RuntimeError("call update() first")
        """: """
        if self.stepped:
            raise RuntimeError("call update() first")
        if not self.enabled:
            self.stepped = True
            optimizer.step()
            return
        """,
    },
    breaks=hidden_tests.misuse_raises,
    tells="Your scaler refuses a second `step` where it is disabled. There is "
    "no scale that could be wrong then: `step` is `optimizer.step()`.",
)

ScalerAsksTheLastGroup = edit(
    ScalerByHand,
    {
        'for p in group["params"]:': """
        self.found_inf = False
        for p in group["params"]:
        """,
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="Each group of the optimizer overwrites what was found in the one "
    "before it, so only an overflow of the last group counts.",
)

ScalerForgivesASecondStep = edit(
    ScalerByHand,
    {
        """
        if self.stepped:
            raise RuntimeError("call update() first")
        """: "",
    },
    breaks=hidden_tests.misuse_raises,
    tells="A second `step` before `update()` steps again with the same "
    "gradients. Raise a RuntimeError instead.",
)

ScalerAsserts = edit(
    ScalerByHand,
    {
        """
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        """: """
        assert not self.unscaled
        assert not self.stepped
        """,
        """
        if self.stepped:
            raise RuntimeError("call update() first")
        """: "assert not self.stepped",
    },
    breaks=hidden_tests.misuse_raises,
    tells="A second `unscale_` or `step` raises an AssertionError in your "
    "scaler. Asserts disappear under `python -O`, and the text asks for a "
    "RuntimeError.",
)

ScalerNeedsGradients = edit(
    ScalerByHand,
    {
        """
        if p.grad is not None:
            p.grad /= self.factor
            if not torch.isfinite(p.grad).all():
                self.found_inf = True
        """: """
        p.grad /= self.factor
        if not torch.isfinite(p.grad).all():
            self.found_inf = True
        """,
    },
    breaks=hidden_tests.scaler_without_gradients,
    tells="Your `unscale_` takes for granted that each parameter has a "
    "gradient. That of a frozen or unused one is `None`: leave it out.",
)

ScalerFillsInZeros = edit(
    ScalerByHand,
    {
        "if p.grad is not None:": """
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        else:
        """,
    },
    breaks=hidden_tests.scaler_without_gradients,
    tells="You give parameters without a gradient one of zeros. The optimizer "
    "then treats them as used, and weight decay or momentum moves them. "
    "`None` stays `None`.",
)

ScalerChangesTheLoss = edit(
    ScalerByHand,
    {"return loss * self.get_scale()": "return loss.mul_(self.get_scale())"},
    breaks=hidden_tests.loss_is_scaled,
    tells="Your `scale` changes the loss in place: what is logged afterwards is "
    "the scaled one. Return a new tensor, `loss * scale`.",
)

ScalerInFloat32 = edit(
    ScalerByHand,
    {
        "return loss * self.get_scale()": "return loss.float() * self.get_scale()",
    },
    breaks=[hidden_tests.loss_is_scaled],
    tells="`scale` changes the dtype of the loss. Multiply by a Python float, "
    "which keeps the dtype.",
)

ScalerAlwaysOn = edit(
    ScalerByHand,
    {"self.enabled = enabled": "self.enabled = True"},
    breaks=hidden_tests.scaler_disabled,
    tells="Your scaler ignores `enabled`. With `enabled=False` it must do "
    "nothing but `optimizer.step()`, so that one loop serves float32, "
    "bfloat16 and float16.",
)

ScalerOffTellsItsScale = edit(
    ScalerByHand,
    {
        "return self.factor if self.enabled else 1.0": "return self.factor",
        "return loss * self.get_scale()": "return loss * (self.factor if self.enabled else 1.0)",
    },
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your `get_scale()` returns `init_scale`. "
    "Nothing is scaled, so it is 1.0.",
)

ScalerOffNeverSteps = edit(
    ScalerByHand,
    {
        """
        if not self.enabled:
            optimizer.step()
        """: "if not self.enabled:",
    },
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your `step` returns without a step. It must be "
    "`optimizer.step()` then.",
)

ScalerForgetsTheCount = edit(
    ScalerByHand,
    {
        '"count": self.count,': "",
    },
    breaks=hidden_tests.scaler_state,
    tells="Your state dict holds no count of good steps. After each restart the "
    "scale grows too late, and with frequent restarts never.",
)

ScalerSavesTheScaleAlone = edit(
    ScalerByHand,
    {
        """
        "growth_factor": self.growth_factor,
        "backoff_factor": self.backoff_factor,
        "growth_interval": self.growth_interval,
        """: "",
    },
    breaks=hidden_tests.scaler_state,
    tells="Your state dict holds the scale and the count, and not factors and "
    "interval. A scaler made with other arguments then goes on with "
    "those.",
)

ScalerSavesItself = edit(
    ScalerByHand,
    {
        """
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }
        """: "return self.__dict__",
        """
        for name, value in state.items():
            setattr(self, name, value)
        """: "self.__dict__ = state",
    },
    breaks=hidden_tests.scaler_state,
    tells="Your state dict is the scaler's own `__dict__`: it changes with the "
    "scaler, and two scalers then share it. Return a new dict.",
)

ScalerSavesAnObject = edit(
    ScalerByHand,
    {
        """
        return {
            "factor": self.factor,
            "count": self.count,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }
        """: 'return {"scaler": copy.copy(self)}',
        """
        for name, value in state.items():
            setattr(self, name, value)
        """: 'vars(self).update(vars(state["scaler"]))',
    },
    breaks=hidden_tests.scaler_state,
    tells="Your state dict holds an object of a class of its own. `torch.load` "
    "refuses such a file by default. Put numbers into it.",
)

ScalerLoadsNothing = edit(
    ScalerByHand,
    {
        """
        for name, value in state.items():
            setattr(self, name, value)
        """: "state = dict(state)",
    },
    breaks=hidden_tests.scaler_state,
    tells="Your `load_state_dict` takes nothing over from the state.",
)

ScalerOfTheClass = edit(
    ScalerByHand,
    {
        "self.factor = float(init_scale)": "type(self).factor = float(init_scale)",
        "self.factor *= self.backoff_factor": "type(self).factor *= self.backoff_factor",
        "self.factor *= self.growth_factor": "type(self).factor *= self.growth_factor",
    },
    breaks=hidden_tests.two_scalers,
    tells="Scale and count belong to your class: all scalers share them. Set "
    "them on `self`, in `__init__`.",
)

ScalerRoundsUp = edit(
    ScalerByHand,
    {
        "self.factor = float(init_scale)": "self.factor = 2.0 ** round(math.log2(init_scale))",
    },
    breaks=hidden_tests.loss_is_scaled,
    tells="You round the scale to a power of two. The scale that was given is "
    "the one to use: the gradients are divided by the same number.",
)

ScalerAtLeastOne = edit(
    ScalerByHand,
    {
        "self.factor = float(init_scale)": "self.factor = max(1.0, float(init_scale))",
        "self.factor *= self.backoff_factor": "self.factor = max(1.0, self.factor * self.backoff_factor)",
    },
    breaks=[hidden_tests.loss_is_scaled],
    tells="Your scale cannot fall below 1. It may: a loss can be too large for "
    "float16, too. Multiply by `backoff_factor` and leave it there.",
)

ScalerReturnsATensor = edit(
    ScalerByHand,
    {
        "return self.factor if self.enabled else 1.0": "return torch.tensor(self.factor if self.enabled else 1.0)",
        "return loss * self.get_scale()": "return loss * (self.factor if self.enabled else 1.0)",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="`get_scale()` returns a tensor. Asked for is a Python float: "
    "`.item()`.",
)

ScalerSeeds = edit(
    ScalerByHand,
    {
        "self.enabled = enabled": """
        self.enabled = enabled
        torch.manual_seed(0)
        """,
    },
    breaks=hidden_tests.scaler_leaves_the_rest,
    tells="You seed PyTorch's global generator. What the caller draws "
    "afterwards is drawn again and again. Nothing here needs a seed.",
)

ScalerLeavesGradModeOff = edit(
    ScalerByHand,
    {
        "self.unscaled = True": """
        self.unscaled = True
        torch.set_grad_enabled(False)
        """,
    },
    breaks=[hidden_tests.scaler_leaves_the_rest],
    tells="You switch gradients off and do not switch them on again. Use `with "
    "torch.no_grad():`, or nothing: changing `.grad` in place needs "
    "neither.",
)

ScalerOfLossAlone = edit(
    ScalerByHand,
    {
        "def scale(self, loss):": """
        def scale(self, loss):
            self.found_inf = self.enabled and not loss.isfinite().item()
        """,
        """
        if not torch.isfinite(p.grad).all():
            self.found_inf = True
        """: "",
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look at the loss for inf and NaN, and not at the gradients. The "
    "loss is a float32 number and mostly finite when a float16 gradient "
    "overflows.",
)

ScalerOffSkips = edit(
    ScalerByHand,
    {
        """
        if not self.enabled:
            optimizer.step()
        """: """
        if not self.enabled:
            held = [p for g in optimizer.param_groups for p in g["params"]]
            grads = [p.grad for p in held if p.grad is not None]
            if all(bool(g.isfinite().all()) for g in grads):
                optimizer.step()
        """,
    },
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your scaler still looks at the gradients and "
    "leaves steps out. It must do nothing but `optimizer.step()` then.",
)

ScalerOfOtherDefaults = edit(
    ScalerByHand,
    {"init_scale=65536.0,": "init_scale=1024.0,"},
    breaks=hidden_tests.scale_backs_off,
    tells="Your default `init_scale` is not 65536.0, the one in the signature. "
    "Keep the defaults that are given.",
)

ScalerOfAnotherInterval = edit(
    ScalerByHand,
    {"growth_interval=2000,": "growth_interval=1000,"},
    breaks=hidden_tests.scale_grows,
    tells="Your default `growth_interval` is not 2000, the one in the signature. "
    "Keep the defaults that are given.",
)

ScalerTrustsUnscale = edit(
    ScalerByHand,
    {
        "self.enabled = enabled": """
        self.enabled = enabled
        self.in_step = False
        """,
        "if not torch.isfinite(p.grad).all():": "if self.in_step and not p.grad.isfinite().all():",
        "if not self.unscaled:": """
        if not self.unscaled:
            self.in_step = True
        """,
        "self.unscale_(optimizer)": """
        self.unscale_(optimizer)
        self.in_step = False
        """,
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look for an overflow only where `step` unscales by itself. After "
    "`unscale_` it is not looked for, and inf and NaN go into the "
    "weights.",
)

ScalerScalesByTheFirst = edit(
    ScalerByHand,
    {
        "self.enabled = enabled": """
        self.enabled = enabled
        self.first = float(init_scale)
        """,
        "return loss * self.get_scale()": "return loss * (self.first if self.enabled else 1.0)",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="You scale with `init_scale` for ever, and divide by the scale of "
    "now. After the first change gradients are off by that factor.",
)

ScalerRaisesOnOverflow = edit(
    ScalerByHand,
    {"self.found_inf = True": 'raise FloatingPointError("overflow")'},
    breaks=hidden_tests.overflow_skips_the_step,
    tells="Your scaler raises when a gradient overflows. That happens now and "
    "then, by design: leave the step out, and lower the scale.",
)

ScalerSeesASumOverflow = edit(
    ScalerByHand,
    {
        "if not torch.isfinite(p.grad).all():": "if not p.grad.sum().isfinite():",
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look whether a sum or norm of a gradient is finite. Where many"
    " numbers are large it is not, and each of them is: a good step is "
    "left out. Look at every number, `isfinite().all()`.",
)

ScalerSeesANormOverflow = edit(
    ScalerByHand,
    {
        "if not torch.isfinite(p.grad).all():": "if not p.grad.norm().isfinite():",
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You look whether a sum or norm of a gradient is finite. Where many"
    " numbers are large it is not, and each of them is: a good step is "
    "left out. Look at every number, `isfinite().all()`.",
)

ScalerFallsInStep = edit(
    ScalerByHand,
    {
        "if not self.found_inf:": """
        if self.found_inf:
            self.factor *= self.backoff_factor
        else:
        """,
        "self.factor *= self.backoff_factor": "",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="Your scale falls in `step`. Whoever compares it before and after "
    "`update()`, as a learning rate schedule must, sees no fall. Change"
    " it in `update()` alone.",
)

ScalerDividesGoodOnes = edit(
    ScalerByHand,
    {
        """
        p.grad /= self.factor
        if not torch.isfinite(p.grad).all():
        """: """
        if torch.isfinite(p.grad).all():
            p.grad /= self.factor
        else:
        """,
    },
    breaks=hidden_tests.unscale_then_clip,
    tells="A gradient that holds inf or NaN is not divided by your "
    "`unscale_`, also where it is finite. Divide all gradients; `step` "
    "leaves the step out.",
)

ScalerHasACeiling = edit(
    ScalerByHand,
    {
        "self.factor *= self.growth_factor": "self.factor = min(self.factor * self.growth_factor, 2.0**24)",
    },
    breaks=hidden_tests.scale_grows,
    tells="Your scale has an upper bound. It has none: what is too large "
    "overflows, and the scale falls by itself.",
)

ScalerHasAFloor = edit(
    ScalerByHand,
    {
        "self.factor *= self.backoff_factor": "self.factor = max(1.0, self.factor * self.backoff_factor)",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="Your scale cannot fall below 1. It may: a loss can be too large "
    "for float16, too. Multiply by `backoff_factor` and leave it there.",
)

ScalerSavesAnInt = edit(
    ScalerByHand,
    {": self.factor,": ": float(int(self.factor)),"},
    breaks=hidden_tests.scaler_state,
    tells="Your state dict rounds the scale. With factors other than 2 it is "
    "no whole number. Save it as it is.",
)

ScalerSwitchedByAState = edit(
    ScalerByHand,
    {
        "self.factor = float(init_scale)": "self.factor = float(init_scale) if enabled else 1.0",
        "return self.factor if self.enabled else 1.0": "return self.factor",
    },
    breaks=hidden_tests.disabled_scaler_loads,
    tells="A disabled scaler of yours takes over the scale of the state dict "
    "that it loads. Its scale is always 1.0.",
)

ScalerSwitchedOnByAState = edit(
    ScalerByHand,
    {
        '"count": self.count,': """
        "count": self.count,
        "enabled": self.enabled,
        """,
    },
    breaks=hidden_tests.disabled_scaler_loads,
    tells="Your state dict switches a scaler on or off. Whether it is enabled"
    " is not part of it: who loads a checkpoint for bfloat16 wants the "
    "scaler to stay off.",
)

ScalerOffHasNoState = edit(
    ScalerByHand,
    {
        "def state_dict(self):": """
        def state_dict(self):
            if not self.enabled:
                return None
        """,
        "for name, value in state.items():": "for name, value in (state or {}).items():",
    },
    breaks=hidden_tests.disabled_scaler_loads,
    tells="Without scaling your `state_dict()` returns no dict. A checkpoint "
    "is saved and loaded by the same code whether the scaler is enabled"
    " or not.",
)

ScalerWorksInTheLoadedDict = edit(
    ScalerThatCountsDown,
    {
        """
        self.factor = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        """: """
        self.kept = {
            "factor": float(init_scale),
            "count": 0,
            "growth_factor": growth_factor,
            "backoff_factor": backoff_factor,
            "growth_interval": growth_interval,
        }
        """,
        "self.to_go = growth_interval": "",
        "return self.factor if self.enabled else 1.0": 'return self.kept["factor"] if self.enabled else 1.0',
        "p.grad /= self.factor": 'p.grad /= self.kept["factor"]',
        """
        self.factor *= self.backoff_factor
        self.to_go = self.growth_interval
        """: """
        self.kept["factor"] *= self.kept["backoff_factor"]
        self.kept["count"] = 0
        """,
        """
        self.to_go -= 1
        if not self.to_go:
            self.factor *= self.growth_factor
            self.to_go = self.growth_interval
        """: """
        self.kept["count"] += 1
        if self.kept["count"] == self.kept["growth_interval"]:
            self.kept["factor"] *= self.kept["growth_factor"]
            self.kept["count"] = 0
        """,
        """
        return {
            "factor": self.factor,
            "to_go": self.to_go,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }
        """: "return dict(self.kept)",
        """
        for name, value in state.items():
            setattr(self, name, value)
        """: "self.kept = state",
    },
    breaks=hidden_tests.scaler_state,
    tells="`load_state_dict` keeps the very dict that it is given, and the "
    "scaler goes on in it: what was loaded is another dict afterwards. "
    "Copy it.",
)

ScalerRaisesAnotherError = edit(
    ScalerByHand,
    {
        """
        if self.unscaled or self.stepped:
            raise RuntimeError("call update() first")
        """: """
        if self.unscaled or self.stepped:
            raise ValueError("call update() first")
        """,
        """
        if self.stepped:
            raise RuntimeError("call update() first")
        """: """
        if self.stepped:
            raise ValueError("call update() first")
        """,
    },
    breaks=hidden_tests.misuse_raises,
    tells="A second `unscale_` or `step` raises another exception in your "
    "scaler than the text asks for: a RuntimeError.",
)

ScalerOfTwoGroups = edit(
    ScalerByHand,
    {
        "for group in optimizer.param_groups:": "for group in optimizer.param_groups[:2]:",
    },
    breaks=[
        hidden_tests.scaler_without_gradients,
        hidden_tests.overflow_skips_the_step,
    ],
    tells="You divide the gradients of two groups of parameters, and an optimizer "
    "may have more. Go through all of `optimizer.param_groups`.",
)

ScalerSkipsZeros = edit(
    ScalerByHand,
    {
        "if not self.found_inf:": """
        held = [p for g in optimizer.param_groups for p in g["params"]]
        moved = any(p.grad is not None and p.grad.any() for p in held)
        if not self.found_inf and moved:
        """,
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You leave the step out where all gradients are 0. Weight decay and "
    "momentum move the weights there, too. Only inf, -inf and NaN leave a step out.",
)

ScalerForgetsWhenItRaises = edit(
    ScalerByHand,
    {
        "if self.stepped:": """
        if self.stepped:
            self.found_inf = False
        """,
    },
    breaks=hidden_tests.misuse_raises,
    tells="A second `step` that raises forgets the overflow that was found, and "
    "`update()` does not lower the scale. A call that raises changes nothing.",
)

ScalerRaisesAfterMadeStepsAlone = edit(
    ScalerByHand,
    {
        """
        self.stepped = True
        if not self.found_inf:
            optimizer.step()
        """: """
        if not self.found_inf:
            optimizer.step()
            self.stepped = True
        """,
    },
    breaks=hidden_tests.misuse_raises,
    tells="After a step that was left out, a second `step` does not raise. It is "
    "the same mistake of the caller, whether the first one moved the weights or not.",
)

ScalerClampsTheLoss = edit(
    ScalerByHand,
    {
        "return loss * self.get_scale()": "return (loss * self.get_scale()).clamp(max=3e38)",
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You clamp the scaled loss. Where it is clamped its gradient is 0: the "
    "overflow is not seen, the step is made and the scale never falls. Let it be inf.",
)

ScalerHasATinyFloor = edit(
    ScalerByHand,
    {
        "self.factor *= self.backoff_factor": "self.factor = max(1e-4, self.factor * self.backoff_factor)",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="Your scale has a lower bound. The text sets none: multiply by "
    "`backoff_factor` and leave it there.",
)

ScalerKeepsAnInt = edit(
    ScalerByHand,
    {"self.factor = float(init_scale)": "self.factor = init_scale"},
    breaks=hidden_tests.scale_backs_off,
    tells="If `init_scale` is an int, your `get_scale()` returns an int. Asked for "
    "is a Python float: `float(init_scale)`.",
)

ScalerRoundsWhatItTells = edit(
    ScalerByHand,
    {
        "return self.factor if self.enabled else 1.0": "return round(self.factor, 6) if self.enabled else 1.0",
        "return loss * self.get_scale()": "return loss * (self.factor if self.enabled else 1.0)",
    },
    breaks=hidden_tests.scale_backs_off,
    tells="Your `get_scale()` rounds. A scale may be small: return it as it is, and "
    "round where you print.",
)

ScalerClearsGradients = edit(
    ScalerByHand,
    {
        """
        if not self.found_inf:
            optimizer.step()
        """: """
        if not self.found_inf:
            optimizer.step()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.unscale_then_clip,
    tells="Your `step` clears the gradients. That is the caller's: whoever logs a "
    "norm after the step finds nothing. PyTorch's `step` leaves them.",
)

ScalerForgetsThatItUnscaled = edit(
    ScalerByHand,
    {
        "if self.unscaled or self.stepped:": "if self.unscaled:",
        "self.unscale_(optimizer)": """
        self.unscale_(optimizer)
        self.unscaled = False
        """,
    },
    breaks=hidden_tests.misuse_raises,
    tells="After a `step` that unscaled by itself, your `unscale_` divides the gradients "
    "once more. Raise a RuntimeError there as well: ask whether there was a `step`.",
)

ScalerStopsAtAnOverflow = edit(
    ScalerByHand,
    {
        """
        p.grad /= self.factor
        if not torch.isfinite(p.grad).all():
            self.found_inf = True
        """: """
        if not torch.isfinite(p.grad).all():
            self.found_inf = True
            return
        p.grad /= self.factor
        """,
    },
    breaks=hidden_tests.unscale_then_clip,
    tells="Your `unscale_` ends at the first gradient that is not finite. That one and all "
    "after it stay scaled, and whoever looks at them next sees some that are true and some "
    "that are not. Divide them all, and note what you found.",
)

ScalerAsksTheLossToo = edit(
    ScalerByHand,
    {
        "return loss * self.get_scale()": """
        scaled = loss * self.get_scale()
        if self.enabled and not torch.isfinite(scaled).all():
            self.found_inf = True
        return scaled
        """,
    },
    breaks=hidden_tests.overflow_skips_the_step,
    tells="You take a loss that is infinite, or is so when scaled, for an overflow. A "
    "constant in it may be so large, and the gradients know nothing of it. Look at the "
    "gradients alone.",
)

ScalerOfWhatIsTrained = edit(
    ScalerByHand,
    {
        "if p.grad is not None:": "if p.grad is not None and p.requires_grad:",
    },
    breaks=hidden_tests.unscale_then_clip,
    tells="You leave out parameters that do not require a gradient. One that was frozen "
    "after the backward pass has a gradient, still scaled, and the optimizer steps on "
    "it. Ask for `p.grad is not None` alone.",
)

ScalerOffCleansUp = edit(
    ScalerByHand,
    {
        """
        if not self.enabled:
            optimizer.step()
        """: """
        if not self.enabled:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None and not p.grad.isfinite().all():
                        p.grad = None
            optimizer.step()
        """,
    },
    breaks=hidden_tests.scaler_disabled,
    tells="With `enabled=False` your scaler throws away gradients that are not finite. "
    "It must do nothing but `optimizer.step()` then, and a NaN shows in the weights.",
)
