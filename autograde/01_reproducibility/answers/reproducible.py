"""Answers to `reproducible` of chapter 01."""

import contextlib

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


enable_for_the_tuner = edit(
    mended_seeds_as_well,
    {
        "def switched(switch, warn_only, benchmark):": "def switched(switch, warn_only, **flags):",
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": """
        for name, value in flags.items():
            setattr(cudnn, name, value)
        """,
        "return switched(True, warn_only, False)": "return switched(True, warn_only, benchmark=False, deterministic=True)",
        "return switched(False, False, True)": "return switched(False, False, enable=True, deterministic=False)",
    },
    breaks=hidden_tests.cudnn_is_tuned,
    tells="In `tuned()` you set `cudnn.enable`, a flag that does not exist: "
    "Python adds an attribute, and nothing is tuned. The tuner is "
    "`cudnn.benchmark`.",
)

misspelt_benchmark = edit(
    mended_seeds_as_well,
    {
        "before = cudnn.benchmark, cudnn.deterministic": "before = cudnn.deterministic",
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": "cudnn.benchmrk, cudnn.deterministic = benchmark, not benchmark",
        "cudnn.benchmark, cudnn.deterministic = before": "cudnn.deterministic = before",
    },
    breaks=[hidden_tests.cudnn_is_deterministic, hidden_tests.cudnn_is_tuned],
    tells="A flag is misspelt. Assigning to a name that `torch.backends.cudnn` "
    "does not have raises nothing and does nothing; look at the flag again: "
    "`benchmark`.",
)

cudnn_disabled = edit(
    mended_seeds_as_well,
    {
        "def switched(switch, warn_only, benchmark):": "def switched(switch, warn_only, benchmark, enabled):",
        "before = cudnn.benchmark, cudnn.deterministic": "before = cudnn.benchmark, cudnn.deterministic, cudnn.enabled",
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": """
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        cudnn.enabled = enabled
        """,
        "cudnn.benchmark, cudnn.deterministic = before": "cudnn.benchmark, cudnn.deterministic, cudnn.enabled = before",
        "return switched(True, warn_only, False)": "return switched(True, warn_only, False, False)",
        "return switched(False, False, True)": "return switched(False, False, True, torch.backends.cudnn.enabled)",
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You turned cuDNN off altogether. It need not go: `deterministic = "
    "True` keeps it and leaves out its nondeterministic algorithms. `enabled` "
    "stays as it was.",
)

cudnn_enabled_for_all = edit(
    mended_seeds_as_well,
    {
        "before = cudnn.benchmark, cudnn.deterministic": "before = cudnn.benchmark, cudnn.deterministic, cudnn.enabled",
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": """
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        cudnn.enabled = True
        """,
        "cudnn.benchmark, cudnn.deterministic = before": "cudnn.benchmark, cudnn.deterministic, cudnn.enabled = before",
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You turn cuDNN on where it was off. Somebody had a reason for that; "
    "`enabled` stays as it was.",
)


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


flags_swapped = edit(
    mended_seeds_as_well,
    {
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": "cudnn.benchmark, cudnn.deterministic = not benchmark, benchmark",
    },
    breaks=[hidden_tests.cudnn_is_deterministic, hidden_tests.cudnn_is_tuned],
    tells="`benchmark` and `deterministic` are swapped. `deterministic` keeps to "
    "repeatable kernels; `benchmark` looks for the fastest.",
)

without_the_switch = edit(
    mended_seeds_as_well,
    {
        "def switched(switch, warn_only, benchmark):": "def switched(benchmark):",
        "mode = torch.get_deterministic_debug_mode()": "",
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": "",
        "torch.set_deterministic_debug_mode(mode)": "",
        "return switched(True, warn_only, False)": "return switched(False)",
        "return switched(False, False, True)": "return switched(True)",
    },
    breaks=hidden_tests.switch_is_on,
    tells="You set cuDNN's flags alone. They reach nothing outside cuDNN; "
    "`torch.use_deterministic_algorithms` does.",
)

tuned_with_the_switch_on = edit(
    mended_seeds_as_well,
    {
        "def switched(switch, warn_only, benchmark):": "def switched(benchmark):",
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": "",
        "def reproducible(warn_only=False):": """
        @contextlib.contextmanager
        def reproducible(warn_only=False):
        """,
        "return switched(True, warn_only, False)": """
        with switched(False):
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            yield
        """,
        "return switched(False, False, True)": "return switched(True)",
    },
    breaks=hidden_tests.switch_is_off,
    tells="In `tuned()` you leave the switch as it is. If it was on, PyTorch "
    "keeps to deterministic kernels, and tuning has nothing to choose from: "
    "turn it off inside.",
)

warn_only_ignored = edit(
    mended_seeds_as_well,
    {
        "def switched(switch, warn_only, benchmark):": "def switched(switch, benchmark):",
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": "torch.use_deterministic_algorithms(switch)",
        "return switched(True, warn_only, False)": "return switched(True, False)",
        "return switched(False, False, True)": "return switched(False, True)",
    },
    breaks=hidden_tests.warns_if_asked,
    tells="You do not pass `warn_only` on: operations without a deterministic "
    "kernel raise although the caller asked for a warning.",
)

always_warns = edit(
    mended_seeds_as_well,
    {
        "def switched(switch, warn_only, benchmark):": "def switched(switch, benchmark):",
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": "torch.use_deterministic_algorithms(switch, warn_only=True)",
        "return switched(True, warn_only, False)": "return switched(True, False)",
        "return switched(False, False, True)": "return switched(False, True)",
    },
    breaks=[hidden_tests.switch_is_on, hidden_tests.warns_if_asked],
    tells="Your `reproducible()` only warns. `warn_only` is False by default: "
    "then an operation without a deterministic kernel raises.",
)

switch_left_if_on = edit(
    mended_seeds_as_well,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        if torch.are_deterministic_algorithms_enabled() != switch:
            torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        """,
    },
    breaks=hidden_tests.warns_if_asked,
    tells="If the switch was on already you leave it as it is, so that it warns "
    "or raises as before. The argument `warn_only` decides, whatever was set.",
)


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
    breaks=hidden_tests.all_is_put_back,
    tells="On leaving you set always the same values: PyTorch's defaults, or "
    "what stood there when the cell ran. The program may have set others since: "
    "keep the values on entering.",
    body=True,
)
def defaults_put_back():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        try:
            yield
        finally:
            cudnn.benchmark = cudnn.deterministic = False
            torch.use_deterministic_algorithms(False)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


switch_not_put_back = edit(
    mended_seeds_as_well,
    {
        "mode = torch.get_deterministic_debug_mode()": "",
        "torch.set_deterministic_debug_mode(mode)": "",
    },
    breaks=hidden_tests.all_is_put_back,
    tells="cuDNN's flags are put back, the switch of "
    "`torch.use_deterministic_algorithms` is not. It goes on for the rest of "
    "the program.",
)

warn_only_not_put_back = edit(
    mended_seeds_as_well,
    {
        "mode = torch.get_deterministic_debug_mode()": "was_on = torch.are_deterministic_algorithms_enabled()",
        "torch.set_deterministic_debug_mode(mode)": "torch.use_deterministic_algorithms(was_on)",
    },
    breaks=hidden_tests.all_is_put_back,
    tells="You put the switch back, but not whether it only warned: where it "
    "warned before, it raises now. Keep "
    "`is_deterministic_algorithms_warn_only_enabled()` too.",
)


@wrong(
    breaks=hidden_tests.put_back_after_an_exception,
    tells="After an exception in the block the settings are not put back: what "
    "stands after `yield` does not run then. Put it into a `finally`.",
    body=True,
)
def without_finally():
    @contextlib.contextmanager
    def switched(switch, warn_only, benchmark):
        cudnn = torch.backends.cudnn
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        yield
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)

    def reproducible(warn_only=False):
        return switched(True, warn_only, False)

    def tuned():
        return switched(False, False, True)


swallows_the_exception = edit(
    mended_seeds_as_well,
    {
        "try:": "with contextlib.suppress(Exception):",
        """
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)
        """: """
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)
        """,
    },
    breaks=hidden_tests.put_back_after_an_exception,
    tells="Your block swallows exceptions: the program around it goes on as if "
    "nothing had happened. Put the settings back in a `finally` and let the "
    "exception through.",
)


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


one_place_for_all_blocks = edit(
    mended_seeds_as_well,
    {
        "@contextlib.contextmanager": """
        kept = []

        @contextlib.contextmanager
        """,
        """
        before = cudnn.benchmark, cudnn.deterministic
        mode = torch.get_deterministic_debug_mode()
        """: """
        if not kept:
            kept.append(
                (
                    cudnn.benchmark,
                    cudnn.deterministic,
                    torch.get_deterministic_debug_mode(),
                )
            )
        """,
        "deterministic = before": "deterministic, mode = kept[0]",
    },
    breaks=[
        hidden_tests.nested_blocks,
        hidden_tests.all_is_put_back,
    ],
    tells="You keep the settings once, in a variable that all blocks share. An "
    "inner block then puts back, or overwrites, what belongs to the outer one. "
    "Keep them for each block.",
)


put_back_only_own_changes = edit(
    mended_seeds_as_well,
    {
        """
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)
        """: """
        if cudnn.benchmark == benchmark:
            cudnn.benchmark = before[0]
        if cudnn.deterministic != benchmark:
            cudnn.deterministic = before[1]
        if torch.are_deterministic_algorithms_enabled() == switch:
            torch.set_deterministic_debug_mode(mode)
        """,
    },
    breaks=hidden_tests.put_back_what_the_block_sets,
    tells="You put back only what you changed yourself, and only if it still "
    "has your value. The block may have set it as well: put back all that "
    "stood there on entering.",
)


interrupts_forgotten = edit(
    mended_seeds_as_well,
    {
        """
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)
        """: """
        except Exception:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)
            raise
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)
        """,
    },
    breaks=hidden_tests.put_back_after_an_exception,
    tells="You put the settings back after an `Exception`, but an interrupt "
    "(Ctrl-C) is none. A `finally` runs after both.",
)


switch_outside_of_finally = edit(
    mended_seeds_as_well,
    {
        """
        finally:
            cudnn.benchmark, cudnn.deterministic = before
            torch.set_deterministic_debug_mode(mode)
        """: """
        finally:
            cudnn.benchmark, cudnn.deterministic = before
        torch.set_deterministic_debug_mode(mode)
        """,
    },
    breaks=hidden_tests.put_back_after_an_exception,
    tells="After an exception cuDNN's flags are put back, the switch is not: it "
    "has to stand in the `finally` as well.",
)

seeds_as_well = edit(
    mended_seeds_as_well,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.manual_seed(0)
        """,
    },
    breaks=hidden_tests.all_is_put_back,
    tells="Your blocks seed, or draw. That is not asked here, and it changes "
    "the random numbers of whoever uses them: set flags, nothing else.",
)

ctrl_c_swallowed = edit(
    mended_ctrl_c_swallowed,
    {
        "finally:": """
        except KeyboardInterrupt:
            pass
        finally:
        """,
    },
    breaks=hidden_tests.put_back_after_an_exception,
    tells="Your block swallows an interrupt: Ctrl-C then does not stop the "
    "program. Restore in a `finally` and let it through.",
)


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


another_exception_raised = edit(
    mended_ctrl_c_swallowed,
    {
        "finally:": """
        except Exception as error:
            raise RuntimeError(str(error)) from error
        finally:
        """,
    },
    breaks=hidden_tests.put_back_after_an_exception,
    tells="You raise an exception of your own in place of the block's. Whoever "
    "catches the one does not catch the other: let it through.",
)

warns_where_it_warned = edit(
    mended_ctrl_c_swallowed,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(
            switch, warn_only=warn_only or warned
        )
        """,
    },
    breaks=hidden_tests.warns_if_asked,
    tells="Where the switch only warned before, it only warns in your block, "
    "too. The argument `warn_only` decides, whatever was set.",
)

one_thread_inside = edit(
    mended_ctrl_c_swallowed,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.set_num_threads(1)
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You set the number of threads as well. The exercise names three "
    "settings; all others stay as they were.",
)

no_filling_inside = edit(
    mended_ctrl_c_swallowed,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = False
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You set `fill_uninitialized_memory` as well. The exercise names three "
    "settings; all others stay as they were.",
)

full_precision_inside = edit(
    mended_ctrl_c_swallowed,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.set_float32_matmul_precision("highest")
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You change the precision of matrix products as well. The exercise names"
    " three settings; all others stay as they were.",
)

tuner_without_limit = edit(
    mended_ctrl_c_swallowed,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        cudnn.benchmark_limit = 0
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You set `benchmark_limit` as well. The exercise names three settings; "
    "all others stay as they were.",
)

draws_in_the_block = edit(
    mended_ctrl_c_swallowed,
    {
        "torch.use_deterministic_algorithms(switch, warn_only=warn_only)": """
        torch.use_deterministic_algorithms(switch, warn_only=warn_only)
        torch.rand(1)
        """,
    },
    breaks=hidden_tests.all_is_put_back,
    tells="Your blocks seed, or draw. That is not asked here, and it changes "
    "the random numbers of whoever uses them: set flags, nothing else.",
)


cudnn_flags_of_an_older_release = edit(
    by_cudnn_flags,
    {
        """
            "benchmark_limit",
            "fp32_precision",
            "depthwise_kernel",
        """: "",
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You did not pass all that `torch.backends.cudnn.flags` takes: "
    "`fp32_precision` and `depthwise_kernel` are then set to defaults. "
    "`help(torch.backends.cudnn.flags)` lists its parameters.",
)

switched_on_by_a_debug_mode = edit(
    by_a_class,
    {
        "self.put(self.before)": """
        self.put(self.before)
        torch.set_deterministic_debug_mode(
            1 if self.before[3] else 2 if self.before[2] else 0
        )
        """,
    },
    breaks=hidden_tests.all_is_put_back,
    tells="A switch that was off is on after your block: you looked at whether "
    "it only warns first. That is remembered while it is off, too. Ask first "
    "whether it is on.",
)

onednn_as_well = edit(
    SOLUTION,
    {
        "backend.benchmark, backend.deterministic = False, True": """
        backend.benchmark, backend.deterministic = False, True
        torch.backends.mkldnn.deterministic = True
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You set a fourth flag, that of oneDNN, and leave it so.",
)

workspace_in_the_environment = edit(
    SOLUTION,
    {
        "torch.use_deterministic_algorithms(True, warn_only=warn_only)": """
        import os

        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You write a variable into the environment, and it stays there after the "
    "block.",
)

warnings_silenced = edit(
    SOLUTION,
    {
        "torch.use_deterministic_algorithms(mode=False)": """
        import warnings

        warnings.filterwarnings("ignore", message="TF32")
        torch.use_deterministic_algorithms(mode=False)
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You leave a filter of warnings behind: it silences others from then on.",
)

the_end_of_an_iterator_swallowed = edit(
    SOLUTION,
    {
        """
        torch.use_deterministic_algorithms(mode=False)
        try:
            yield
        finally:
        """: """
        torch.use_deterministic_algorithms(mode=False)
        try:
            yield
        except StopIteration:
            pass
        finally:
        """,
    },
    breaks=hidden_tests.put_back_after_an_exception,
    tells="A StopIteration in the block is swallowed. It reaches the caller as any "
    "other exception does.",
)

benchmark_alone = edit(
    mended_seeds_as_well,
    {
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": """
        cudnn.benchmark = benchmark
        if benchmark:
            cudnn.deterministic = False
        """,
    },
    breaks=hidden_tests.cudnn_is_deterministic,
    tells="In `reproducible()` you turn the tuner off and leave `deterministic` as "
    "it was. Every run then picks the same kernel, which may be a "
    "nondeterministic one. Set `cudnn.deterministic = True` as well.",
)

deterministic_alone = edit(
    mended_seeds_as_well,
    {
        "cudnn.benchmark, cudnn.deterministic = benchmark, not benchmark": """
        cudnn.deterministic = not benchmark
        if benchmark:
            cudnn.benchmark = True
        """,
    },
    breaks=hidden_tests.cudnn_is_deterministic,
    tells="In `reproducible()` you leave the tuner as it was. If it was on, each "
    "run may choose another kernel by the clock. Set "
    "`cudnn.benchmark = False` as well.",
)

fast_products_while_tuned = edit(
    SOLUTION,
    {
        """
        torch.use_deterministic_algorithms(mode=False)
        try:
            yield
        finally:
        """: """
        torch.use_deterministic_algorithms(mode=False)
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(precision)
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You set the precision of matrix products inside `tuned()`. The block changes "
    "three settings; all others stay as they were, inside too. Leave this one alone.",
)

no_flash_kernel_inside = edit(
    SOLUTION,
    {
        """
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
            yield
        finally:
        """: """
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        flash = torch.backends.cuda.flash_sdp_enabled()
        torch.backends.cuda.enable_flash_sdp(False)
        try:
            yield
        finally:
            torch.backends.cuda.enable_flash_sdp(flash)
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You switch a kernel of attention off. The block changes three settings; all "
    "others stay as they were, inside too. The switch itself chooses or refuses kernels.",
)

no_reduced_precision_inside = edit(
    SOLUTION,
    {
        """
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
            yield
        finally:
        """: """
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        matmul = torch.backends.cuda.matmul
        reduced = matmul.allow_bf16_reduced_precision_reduction
        matmul.allow_bf16_reduced_precision_reduction = False
        try:
            yield
        finally:
            matmul.allow_bf16_reduced_precision_reduction = reduced
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You set `allow_bf16_reduced_precision_reduction`, too. It makes results more "
    "precise, not more deterministic, and all other settings stay as they were.",
)

warnings_always_shown = edit(
    SOLUTION,
    {
        """
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
        """: """
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        if warn_only:
            import warnings
            warnings.simplefilter("always")
        try:
        """,
    },
    breaks=hidden_tests.other_flags_stay,
    tells="You put a filter in front of the caller's filters of warnings, and leave it "
    "there. PyTorch warns by itself: leave the filters alone.",
)

cudnn_flags_with_cudnn_on = edit(
    by_cudnn_flags,
    {
        """
            "allow_tf32",
            "benchmark_limit",
            "fp32_precision",
            "depthwise_kernel",
        """: "",
        "enabled=cudnn.enabled": "enabled=True",
    },
    breaks=hidden_tests.other_flags_stay,
    tells="`torch.backends.cudnn.flags` sets every flag of cuDNN. You turn cuDNN on where "
    "it was off, and what you do not pass, such as `allow_tf32` and `fp32_precision`, gets "
    "a default. Pass the present value of each.",
)
