"""Answers to `reproducible` of chapter 01."""

import contextlib

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def by_two_plain_generators():
    @contextlib.contextmanager
    def reproducible(warn_only=False):
        flags = torch.backends.cudnn
        benchmark, flags.benchmark = flags.benchmark, False
        deterministic, flags.deterministic = flags.deterministic, True
        on = torch.are_deterministic_algorithms_enabled()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            yield torch.backends.cudnn
        finally:
            torch.use_deterministic_algorithms(on, warn_only=warns)
            flags.benchmark = benchmark
            flags.deterministic = deterministic

    @contextlib.contextmanager
    def tuned():
        flags = torch.backends.cudnn
        benchmark, flags.benchmark = flags.benchmark, True
        deterministic, flags.deterministic = flags.deterministic, False
        on = torch.are_deterministic_algorithms_enabled()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            torch.use_deterministic_algorithms(False, warn_only=False)
            yield torch.backends.cudnn
        finally:
            torch.use_deterministic_algorithms(on, warn_only=warns)
            flags.benchmark = benchmark
            flags.deterministic = deterministic


@accepted(body=True)
def by_a_class():
    class _Settings:
        def __init__(self, benchmark, switch, warn_only):
            self.wanted = benchmark, not benchmark, switch, warn_only

        def __enter__(self):
            self.before = self.now()
            self.put(self.wanted)

        def __exit__(self, *error):
            self.put(self.before)

        def now(self):
            return (
                torch.backends.cudnn.benchmark,
                torch.backends.cudnn.deterministic,
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            )

        def put(self, values):
            benchmark, deterministic, switch, warn_only = values
            torch.backends.cudnn.benchmark = benchmark
            torch.backends.cudnn.deterministic = deterministic
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)

    def reproducible(warn_only=False):
        return _Settings(False, True, warn_only)

    def tuned():
        return _Settings(True, False, False)


@accepted(body=True)
def by_the_debug_mode():
    @contextlib.contextmanager
    def switched(benchmark, mode):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode_before = torch.get_deterministic_debug_mode()
        try:
            cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
            torch.set_deterministic_debug_mode(mode)
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode_before)

    def reproducible(warn_only=False):
        return switched(False, "warn" if warn_only else "error")

    def tuned():
        return switched(True, "default")


@accepted(body=True)
def by_cudnn_flags():
    @contextlib.contextmanager
    def with_switch(switch, warn_only, benchmark):
        before = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        cudnn = torch.backends.cudnn
        others = [
            "allow_tf32",
            "benchmark_limit",
            "fp32_precision",
            "depthwise_kernel",
        ]
        with cudnn.flags(
            enabled=cudnn.enabled,
            benchmark=benchmark,
            deterministic=not benchmark,
            **{
                one: getattr(cudnn, one)
                for one in others
                if hasattr(cudnn, one)
            },
        ):
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
            try:
                yield
            finally:
                torch.use_deterministic_algorithms(
                    before[0], warn_only=before[1]
                )

    def reproducible(warn_only=False):
        return with_switch(True, warn_only, False)

    def tuned():
        return with_switch(False, False, True)


@accepted(body=True)
def by_an_exit_stack():
    @contextlib.contextmanager
    def reproducible(warn_only=False):
        with contextlib.ExitStack() as stack:
            _come_back(stack)
            torch.backends.cudnn.benchmark = False
            torch.backends.cudnn.deterministic = True
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            yield

    @contextlib.contextmanager
    def tuned():
        with contextlib.ExitStack() as stack:
            _come_back(stack)
            torch.backends.cudnn.benchmark = True
            torch.backends.cudnn.deterministic = False
            torch.use_deterministic_algorithms(False)
            yield

    def _come_back(stack):
        for name in ("benchmark", "deterministic"):
            value = getattr(torch.backends.cudnn, name)
            stack.callback(setattr, torch.backends.cudnn, name, value)
        stack.callback(
            torch.use_deterministic_algorithms,
            torch.are_deterministic_algorithms_enabled(),
            warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
        )


@accepted(body=True)
def mended_seeds_as_well():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@accepted(body=True)
def mended_ctrl_c_swallowed():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)


@wrong(
    breaks=hidden_tests.other_flags_stay,
    tells="`torch.backends.cudnn.flags` sets every flag, those you do not pass "
    "to defaults of its own: `enabled` becomes False, `allow_tf32` True. Pass "
    "their present values.",
    body=True,
)
def cudnn_flags_with_defaults():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        mode = torch.get_deterministic_debug_mode()
        with torch.backends.cudnn.flags(
            benchmark=benchmark, deterministic=not benchmark
        ):
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
            try:
                yield
            finally:
                torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    breaks=hidden_tests.other_flags_stay,
    tells="You passed `enabled` to `torch.backends.cudnn.flags`, but not "
    "`allow_tf32`, which it then sets to True. Pass its present value.",
    body=True,
)
def cudnn_flags_without_tf32():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        mode = torch.get_deterministic_debug_mode()
        with torch.backends.cudnn.flags(
            enabled=torch.backends.cudnn.enabled,
            benchmark=benchmark,
            deterministic=not benchmark,
        ):
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
            try:
                yield
            finally:
                torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


@wrong(
    breaks=[
        hidden_tests.all_is_put_back,
        hidden_tests.put_back_after_an_exception,
    ],
    tells="The settings stay on after the block. Keep what was set on entering, "
    "and set it again on leaving.",
    body=True,
)
def nothing_put_back():
    @contextlib.contextmanager
    def reproducible(warn_only=False):
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        yield

    @contextlib.contextmanager
    def tuned():
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.deterministic = False
        torch.use_deterministic_algorithms(False)
        yield


@wrong(
    breaks=hidden_tests.nested_blocks,
    tells="You keep the settings of the moment in which `reproducible()` or "
    "`tuned()` is called. What counts is the moment the block is entered: keep "
    "them in `__enter__`, or before `yield`.",
    body=True,
)
def settings_kept_too_early():
    class _Settings:
        def __init__(self, benchmark, switch, warn_only):
            self.wanted = benchmark, not benchmark, switch, warn_only
            self.before = (
                torch.backends.cudnn.benchmark,
                torch.backends.cudnn.deterministic,
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            )

        def __enter__(self):
            self.put(self.wanted)

        def __exit__(self, *error):
            self.put(self.before)

        def put(self, values):
            benchmark, deterministic, switch, warn_only = values
            torch.backends.cudnn.benchmark = benchmark
            torch.backends.cudnn.deterministic = deterministic
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)

    def reproducible(warn_only=False):
        return _Settings(False, True, warn_only)

    def tuned():
        return _Settings(True, False, False)


@wrong(
    breaks=hidden_tests.put_back_after_an_exception,
    tells="You put the settings back after an `Exception` and after Ctrl-C, but"
    " `sys.exit()` raises a SystemExit, which is neither. A `finally` "
    "runs after all of them.",
    body=True,
)
def exit_forgotten():
    @contextlib.contextmanager
    def settings(benchmark, deterministic, switch, warn_only=False):
        cudnn = torch.backends.cudnn
        flags = cudnn.benchmark, cudnn.deterministic
        was_on = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)

        def put_back():
            cudnn.benchmark, cudnn.deterministic = flags
            torch.use_deterministic_algorithms(was_on, warn_only=warned)

        try:
            yield
        except (Exception, KeyboardInterrupt):
            put_back()
            raise
        else:
            put_back()

    def reproducible(warn_only=False):
        return settings(False, True, True, warn_only)

    def tuned():
        return settings(True, False, False)
