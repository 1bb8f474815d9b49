"""Answers to `loss_scaler` of chapter 10."""

import torch

from course_grader.bank import accepted


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
