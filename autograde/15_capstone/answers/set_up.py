# ruff: noqa: F821 - names of the set-up cells
"""Answers to `set_up` of chapter 15."""

import math

import numpy as np
import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted(body=True)
def by_names_of_parameters():
    def frozen_part(name, config):
        return any(
            name == part or name.startswith(part + ".")
            for part in config["frozen"]
        )

    def set_up(model, config):
        groups = {True: [], False: []}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if frozen_part(name, config):
                parameter.requires_grad = False
        for parameter in model.parameters():
            if parameter.requires_grad:
                groups[parameter.dim() >= 2].append(parameter)
        optimizer = torch.optim.AdamW(
            [
                {
                    "params": members,
                    "weight_decay": config["weight_decay"] if decays else 0,
                }
                for decays, members in groups.items()
                if members
            ],
            lr=config["lr"],
        )
        warmup, total = config["warmup_steps"], config["num_steps"]

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            if step >= total:
                return 0.0
            share = (step - warmup) / (total - warmup)
            return (1 + math.cos(math.pi * share)) / 2

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

    def train_mode(model, config):
        model.train()
        for name, module in model.named_modules(remove_duplicate=False):
            if frozen_part(name, config):
                module.eval()


@accepted(body=True)
def by_a_group_for_each_parameter():
    def set_up(model, config):
        for name in config["frozen"]:
            for parameter in model.get_submodule(name).parameters():
                parameter.requires_grad = False
        optimizer = torch.optim.AdamW(
            [
                {
                    "params": [one],
                    "weight_decay": config["weight_decay"] * (one.ndim > 1),
                }
                for one in model.parameters()
                if one.requires_grad
            ],
            lr=config["lr"],
        )
        w, n = config["warmup_steps"], config["num_steps"]
        table = [(t + 1) / w for t in range(w)]
        table += [
            0.5 + 0.5 * math.cos(math.pi * (t - w) / (n - w))
            for t in range(w, n)
        ]
        return optimizer, torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda t: table[t] if t < n else 0.0
        )

    def train_mode(model, config):
        model.train(True)
        for name in config["frozen"]:
            for module in model.get_submodule(name).modules():
                module.training = False


@accepted(body=True)
def by_a_schedule_of_its_own():
    class WarmupCosine:
        def __init__(self, optimizer, config):
            self.optimizer, self.config, self.t = optimizer, config, 0
            self.apply()

        def apply(self):
            w, n = self.config["warmup_steps"], self.config["num_steps"]
            if self.t < w:
                share = (self.t + 1) / w
            else:
                way = (min(self.t, n) - w) / (n - w)
                share = math.cos(math.pi * way / 2) ** 2
            for group in self.optimizer.param_groups:
                group["lr"] = self.config["lr"] * share

        def step(self):
            self.t += 1
            self.apply()

        def state_dict(self):
            return {"t": self.t}

        def load_state_dict(self, state):
            self.t = state["t"]
            self.apply()

    def set_up(model, config):
        for name in config["frozen"]:
            model.get_submodule(name).requires_grad_(False)
        wide = [
            p for p in model.parameters() if p.requires_grad and p.dim() > 1
        ]
        thin = [
            p for p in model.parameters() if p.requires_grad and p.dim() < 2
        ]
        optimizer = torch.optim.AdamW(
            [{"params": wide}],
            lr=config["lr"],
            weight_decay=config["weight_decay"],
        )
        optimizer.add_param_group({"params": thin, "weight_decay": 0.0})
        return optimizer, WarmupCosine(optimizer, config)

    def train_mode(model, config):
        model.train()
        for name in config["frozen"]:
            model.get_submodule(name).train(False)


@accepted(body=True)
def by_a_subclass_of_lr_scheduler():
    class Plan(torch.optim.lr_scheduler.LRScheduler):
        def __init__(self, optimizer, warmup, num_steps):
            self.warmup, self.num_steps = warmup, num_steps
            super().__init__(optimizer)

        def get_lr(self):
            t = self.last_epoch
            if t < self.warmup:
                share = (t + 1) / self.warmup
            else:
                way = (t - self.warmup) / (self.num_steps - self.warmup)
                share = 0.5 * (1 + math.cos(math.pi * min(way, 1)))
            return [share * base for base in self.base_lrs]

    def set_up(model, config):
        frozen = set()
        for name in config["frozen"]:
            frozen |= {id(p) for p in model.get_submodule(name).parameters()}
        decays, others = [], []
        for parameter in model.parameters():
            parameter.requires_grad_(
                parameter.requires_grad and id(parameter) not in frozen
            )
            if parameter.requires_grad:
                (decays if parameter.dim() > 1 else others).append(parameter)
        optimizer = torch.optim.AdamW(
            [
                {"params": decays, "weight_decay": config["weight_decay"]},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=config["lr"],
        )
        plan = Plan(optimizer, config["warmup_steps"], config["num_steps"])
        return optimizer, plan

    def train_mode(model, config):
        model.train()
        frozen = [model.get_submodule(name) for name in config["frozen"]]
        for module in frozen:
            module.apply(lambda one: one.train(False))


@accepted(body=True)
def by_an_object_as_factor():
    class Share:
        def __init__(self, config):
            self.warmup = config["warmup_steps"]
            self.rest = config["num_steps"] - config["warmup_steps"]

        def __call__(self, t):
            if t < self.warmup:
                return (t + 1) / self.warmup
            angle = torch.tensor(
                math.pi * min(1.0, (t - self.warmup) / self.rest)
            ).double()
            return (0.5 + 0.5 * angle.cos()).item()

    def set_up(model, config):
        for name, module in model.named_modules():
            if name in config["frozen"]:
                module.requires_grad_(False)
        trained = list(filter(lambda p: p.requires_grad, model.parameters()))
        by_decay = {}
        for one in trained:
            decay = config["weight_decay"] if len(one.shape) > 1 else 0.0
            by_decay.setdefault(decay, []).append(one)
        optimizer = torch.optim.AdamW(
            [
                {"params": params, "weight_decay": decay}
                for decay, params in by_decay.items()
            ],
            lr=config["lr"],
        )
        share = Share(config)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for name, module in model.named_modules(remove_duplicate=False):
            if name in config["frozen"]:
                module.eval()


@accepted(body=True)
def by_a_table_of_shares():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [one for one in trained if one.dim() > 1],
                "weight_decay": config["weight_decay"],
            },
            {
                "params": [one for one in trained if one.dim() <= 1],
                "weight_decay": 0.0,
            },
        ]
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        warmup, num_steps = config["warmup_steps"], config["num_steps"]

        up = (np.arange(warmup) + 1) / max(1, warmup)
        down = 0.5 * (1 + np.cos(np.linspace(0, np.pi, num_steps - warmup + 1)))
        table = np.concatenate([up, down])

        def share(t: int) -> float:
            return float(table[min(t, num_steps)])

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        parts = [model.get_submodule(name) for name in config["frozen"]]
        still = {id(one) for part in parts for one in part.modules()}
        for one in model.modules():
            one.training = id(one) not in still


by_one_function_per_group = edit(
    SOLUTION,
    {
        "return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)": """
        shares = [share] * len(optimizer.param_groups)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, shares)
        """,
    },
)


@accepted(body=True)
def mended_decay_by_the_word_bias():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [
                    one for one in trained if one.dim() > 1 and one is not None
                ],
                "weight_decay": config["weight_decay"],
            },
            {
                "params": [one for one in trained if one.dim() <= 1],
                "weight_decay": 0.0,
            },
        ]
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        warmup, num_steps = config["warmup_steps"], config["num_steps"]

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


without_freezing = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        """: "",
    },
    breaks=hidden_tests.frozen_parts,
    tells="Nothing is frozen: eval mode alone keeps statistics still, not "
    "weights. Call requires_grad_(False) on the parts.",
)

freezing_by_the_start_of_names = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        """: """
        for name, one in model.named_parameters():
            if name.startswith(tuple(config["frozen"])):
                one.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="You froze every parameter whose name begins with the text of a "
    "part's name, so stem froze stem2 as well. A name goes on with a "
    "dot; get_submodule finds the very part.",
)

unfreezing_all_others = edit(
    mended_decay_by_the_word_bias,
    {
        "def set_up(model, config):": """
        def set_up(model, config):
            model.requires_grad_(True)
        """,
        "1 and one is not None": "1",
    },
    breaks=hidden_tests.frozen_parts,
    tells="You made everything trainable first, also what somebody had frozen "
    "before. Parameters outside the named parts keep their flag.",
)

freezing_one_level = edit(
    SOLUTION,
    {
        "model.get_submodule(part).requires_grad_(False)": """
        for one in model.get_submodule(part).parameters(recurse=False):
            one.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="You froze the parameters of the part itself and not those of the "
    "layers within it: parameters(recurse=False) does not look inside.",
)

all_parameters_in_the_optimizer = edit(
    SOLUTION,
    {
        "trained = [one for one in model.parameters() if one.requires_grad]": "trained = list(model.parameters())",
    },
    breaks=hidden_tests.decay_groups,
    tells="Frozen parameters stand in your optimizer. Whoever gives them a "
    "gradient, or has left one, lets weight decay and moments move "
    "them. Give the optimizer the trainable ones.",
)

decay_for_all = edit(
    SOLUTION,
    {'"weight_decay": 0.0,': '"weight_decay": config["weight_decay"],'},
    breaks=hidden_tests.decay_groups,
    tells="Biases and norms are decayed as well. Parameters with fewer than "
    "two dimensions get a weight decay of 0.",
)


decay_by_the_word_bias = edit(
    mended_decay_by_the_word_bias,
    {
        "one for one in trained if one.dim() > 1 and one is not None": """
        p
        for n, p in model.named_parameters()
        if p.requires_grad and "bias" not in n
        """,
        '"params": [one for one in trained if one.dim() <= 1],': """
        "params": [
            p
            for n, p in model.named_parameters()
            if p.requires_grad and "bias" in n
        ],
        """,
    },
    breaks=hidden_tests.decay_groups,
    tells="You decided about weight decay by the word bias in the name. "
    "Norms' weights are called weight, and a matrix may be called a "
    "bias: count dimensions.",
)


default_decay = edit(
    mended_decay_by_the_word_bias,
    {
        """
        "params": [
            one for one in trained if one.dim() > 1 and one is not None
        ],
        "weight_decay": config["weight_decay"],
        """: '"params": [one for one in trained if one.dim() > 1],',
    },
    breaks=hidden_tests.decay_groups,
    tells="The matrices have AdamW's default weight decay of 0.01 and not "
    "that of the config.",
)


adam_with_l2 = edit(
    SOLUTION,
    {
        'optimizer = torch.optim.AdamW(groups, lr=config["lr"])': 'optimizer = torch.optim.Adam(groups, lr=config["lr"])',
    },
    breaks=hidden_tests.decay_groups,
    tells="This is Adam. It adds the weight decay to the gradient, where the "
    "moments scale it away; AdamW decays the weights themselves.",
)

warm_up_from_zero = edit(
    SOLUTION,
    {"return (t + 1) / warmup": "return t / warmup"},
    breaks=hidden_tests.rates_of_the_plan,
    tells="Your warm-up begins with a rate of 0: the first step does nothing. "
    "The share of step t is (t + 1) / W.",
)

cosine_from_the_first_step = edit(
    SOLUTION,
    {
        "way = min(1.0, (t - warmup) / (num_steps - warmup))": "way = min(1.0, t / num_steps)",
    },
    breaks=hidden_tests.rates_of_the_plan,
    tells="Your cosine began with the run and is under way when the warm-up "
    "ends, so the rate jumps down there. Count from the end of the "
    "warm-up: (t - W) / (N - W).",
)

a_line_down = edit(
    SOLUTION,
    {"return 0.5 * (1 + math.cos(math.pi * way))": "return 1 - way"},
    breaks=hidden_tests.rates_of_the_plan,
    tells="After the warm-up your rate falls along a straight line, not along "
    "a cosine.",
)

rate_rises_again = edit(
    SOLUTION,
    {
        "way = min(1.0, (t - warmup) / (num_steps - warmup))": "way = (t - warmup) / (num_steps - warmup)",
    },
    breaks=hidden_tests.corners_of_the_plan,
    tells="Beyond the plan your rate rises again, as a cosine does. Let the "
    "share of the way that is done not exceed 1.",
)

never_below_a_hundredth = edit(
    SOLUTION,
    {
        "return 0.5 * (1 + math.cos(math.pi * way))": "return max(0.01, 0.5 * (1 + math.cos(math.pi * way)))",
    },
    breaks=hidden_tests.corners_of_the_plan,
    tells="Your rate does not fall to 0 but stays at a hundredth of its peak. "
    "The plan ends with 0.",
)

division_by_no_warm_up = edit(
    SOLUTION,
    {
        "def share(t: int) -> float:": """
        def share(t: int) -> float:
            up = min(1.0, (t + 1) / warmup)
        """,
        "return (t + 1) / warmup": "return up",
    },
    breaks=hidden_tests.corners_of_the_plan,
    tells="Without a warm-up you divide by its length, 0. Divide only while t "
    "is below W.",
)

counting_by_itself = edit(
    SOLUTION,
    {
        "def share(t: int) -> float:": """
        calls = iter(range(10**9))

        def share(_: int) -> float:
            t = next(calls)
        """,
    },
    breaks=hidden_tests.from_state_dicts,
    tells="Your schedule counts its calls in a variable of its own, which is "
    "not in its state dict: after a restart the warm-up comes again. "
    "Use the number that the schedule passes in.",
)

only_the_matrices_follow_the_plan = edit(
    SOLUTION,
    {
        "return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)": """
        return optimizer, torch.optim.lr_scheduler.LambdaLR(
            optimizer, [share, lambda t: 1.0]
        )
        """,
    },
    breaks=hidden_tests.rates_of_the_plan,
    tells="Only one group follows the plan; biases and norms keep the full "
    "rate. Give the schedule one function, and it holds for all groups.",
)

set_up_chooses_the_modes = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        """: """
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
            model.get_submodule(part).eval()
        model.body.train()
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="Your set_up changes modes. It only freezes and makes the "
    "optimizer; train_mode is called before every epoch and chooses the "
    "modes.",
)

all_in_training_mode = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).eval()
        """: "",
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="Frozen parts are in training mode: their normalization uses the "
    "batch and moves its statistics, though no weight moves. Put them "
    "into eval mode after model.train().",
)

only_batch_norm_in_eval = edit(
    SOLUTION,
    {
        "model.get_submodule(part).eval()": """
        for one in model.get_submodule(part).modules():
            if isinstance(one, nn.BatchNorm1d):
                one.eval()
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="Only the normalization of the frozen parts is in eval mode; their "
    "dropout still draws. Call eval() on the whole part.",
)

only_the_outermost_module = edit(
    SOLUTION,
    {
        "model.get_submodule(part).eval()": "model.get_submodule(part).training = False",
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="You set the flag of the frozen part itself. Modes are kept by "
    "every layer within: eval() reaches them all.",
)

the_rest_is_left_alone = edit(
    SOLUTION,
    {"model.train()": ""},
    breaks=hidden_tests.modes_of_the_parts,
    tells="You put the frozen parts into eval mode and nothing into training "
    "mode: after an evaluation the rest stays in eval mode too.",
)

eval_before_train = edit(
    SOLUTION,
    {
        "model.train()": "",
        """
        for part in config["frozen"]:
            model.get_submodule(part).eval()
        """: """
        for part in config["frozen"]:
            model.get_submodule(part).eval()
        model.train()
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="Frozen parts are in training mode: their normalization uses the "
    "batch and moves its statistics, though no weight moves. Put them "
    "into eval mode after model.train().",
)

freezing_without_shared_parameters = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        """: """
        for name, one in model.named_parameters():
            parts = [part + "." for part in config["frozen"]]
            if name.startswith(tuple(parts)):
                one.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="named_parameters gives a parameter that layers share one name "
    "only, its first. By names you miss it in the frozen part; "
    "get_submodule finds it.",
)

another_eps = edit(
    SOLUTION,
    {
        'optimizer = torch.optim.AdamW(groups, lr=config["lr"])': 'optimizer = torch.optim.AdamW(groups, lr=config["lr"], eps=1e-6)',
    },
    breaks=hidden_tests.decay_groups,
    tells="You gave AdamW an eps of your own. What the exercise does not say "
    "is as by default.",
)

modes_by_the_flags_of_parameters = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).eval()
        """: """
        for module in model.modules():
            flags = [one.requires_grad for one in module.parameters()]
            if flags and not any(flags):
                module.eval()
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="You tell the frozen parts by requires_grad. Dropout and "
    "activations have no parameters to tell it by, and others may be "
    'frozen that the config does not name. Go by config["frozen"].',
)

modes_remembered_by_set_up = edit(
    SOLUTION,
    {
        "trained = [one for one in model.parameters() if one.requires_grad]": """
        model.still = list(config["frozen"])
        trained = [one for one in model.parameters() if one.requires_grad]
        """,
        """
        model.train()
        for part in config["frozen"]:
        """: """
        model.train()
        for part in model.still:
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="train_mode uses what set_up has left on the model and not its "
    "own config. It must do for a model that set_up has not seen, and "
    "follow a config that names other parts.",
)

frozen_for_ever = edit(
    SOLUTION,
    {
        "model.get_submodule(part).eval()": """
        for one in model.get_submodule(part).modules():
            one.training = False
            one.train = lambda mode=True, one=one: one
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="You replace the frozen layers' own train method, so nobody can "
    "ever put them into training mode again: not a config that names "
    "other parts, either. Only set the mode.",
)

names_used_up = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        """: """
        while config["frozen"]:
            model.get_submodule(config["frozen"].pop()).requires_grad_(False)
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="You take the names out of the caller's list while you go through "
    "it: train_mode then finds nothing frozen. Read the config and "
    "leave it as it is.",
)

another_implementation = edit(
    SOLUTION,
    {
        'optimizer = torch.optim.AdamW(groups, lr=config["lr"])': 'optimizer = torch.optim.AdamW(groups, lr=config["lr"], fused=True)',
    },
    breaks=hidden_tests.decay_groups,
    tells="You chose another implementation of AdamW (foreach, fused). What "
    "the exercise does not say is as by default.",
)

only_matrices_frozen = edit(
    mended_decay_by_the_word_bias,
    {
        "model.get_submodule(part).requires_grad_(False)": """
        for one in model.get_submodule(part).parameters():
            if one.dim() > 1:
                one.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="Only the matrices of the frozen parts are frozen; their biases "
    "and norms still train. Every parameter of a part counts.",
)


@wrong(
    breaks=hidden_tests.decay_groups,
    tells="The frozen parameters stand in the optimizer with a rate of 0. "
    "They do not belong there: the optimizer gets the trainable ones "
    "only.",
    body=True,
)
def frozen_ones_at_rate_zero():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [one for one in trained if one.dim() > 1],
                "weight_decay": config["weight_decay"],
            },
            {
                "params": [one for one in trained if one.dim() <= 1],
                "weight_decay": 0.0,
            },
        ]
        still = [one for one in model.parameters() if not one.requires_grad]
        groups.append({"params": still, "weight_decay": 0.0, "lr": 0.0})
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        warmup, num_steps = config["warmup_steps"], config["num_steps"]

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


cosine_one_step_short = edit(
    SOLUTION,
    {
        "way = min(1.0, (t - warmup) / (num_steps - warmup))": "way = min(1.0, (t - warmup) / max(1, num_steps - warmup - 1))",
    },
    breaks=hidden_tests.rates_of_the_plan,
    tells="Your cosine reaches 0 one step too early. It takes N - W steps "
    "from its first to 0, not one less.",
)

schedule_without_a_state = edit(
    SOLUTION,
    {
        'warmup, num_steps = config["warmup_steps"], config["num_steps"]': """
        warmup, num_steps = config["warmup_steps"], config["num_steps"]

        class Own:
            def __init__(self):
                self.t = 0
                self.put()

            def put(self):
                for g in optimizer.param_groups:
                    g["lr"] = config["lr"] * share(self.t)

            def step(self):
                self.t += 1
                self.put()

            def state_dict(self):
                return {}

            def load_state_dict(self, state):
                pass
        """,
        "torch.optim.lr_scheduler.LambdaLR(optimizer, share": "Own(",
    },
    breaks=hidden_tests.from_state_dicts,
    tells="The state dict of your schedule is empty: after a restart the "
    "warm-up comes again. The number of steps belongs into it.",
)

decay_for_two_or_four_dimensions = edit(
    SOLUTION,
    {
        "if one.dim() > 1]": "if one.dim() in (2, 4)]",
        "if one.dim() <= 1]": "if one.dim() not in (2, 4)]",
    },
    breaks=hidden_tests.decay_groups,
    tells="Only weights of two or four dimensions get your decay. The weight of a "
    "Conv1d has three, that of a Conv3d five.",
)

tables_without_decay = edit(
    SOLUTION,
    {
        "groups = [": """
        tables = {
            id(one.weight)
            for one in model.modules()
            if isinstance(one, nn.Embedding)
        }
        groups = [
        """,
        "if one.dim() > 1]": "if one.dim() > 1 and id(one) not in tables]",
        "if one.dim() <= 1]": "if one.dim() <= 1 or id(one) in tables]",
    },
    breaks=hidden_tests.decay_groups,
    tells="You take the embeddings out of the decay. The number of dimensions alone "
    "decides.",
)

thawed_where_nothing_is_frozen = edit(
    SOLUTION,
    {
        '"""Freezes the parts of the model; the optimizer and the schedule."""': """
        \"\"\"Freezes the parts of the model; the optimizer and the schedule.\"\"\"
        if not config["frozen"]:
            model.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="With an empty list you thaw the whole model. What was frozen by hand "
    "keeps its flag.",
)

config_taken_apart = edit(
    SOLUTION,
    {'config["warmup_steps"], config': 'config.pop("warmup_steps"), config'},
    breaks=hidden_tests.frozen_parts,
    tells="`pop` takes the entry out of the caller's dict: the next call with it "
    "ends in a KeyError. Read it.",
)

frozen_by_a_momentum_of_zero = edit(
    SOLUTION,
    {
        "trained = [": """
        for part in config["frozen"]:
            for one in model.get_submodule(part).modules():
                if hasattr(one, "momentum"):
                    one.momentum = 0.0
        trained = [
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="You set the momentum of the frozen norms to 0, and nobody puts it back. "
    "The eval mode keeps their statistics.",
)

eval_by_the_flags = edit(
    SOLUTION,
    {
        "model.train()": """
        model.train()
        for one in model.modules():
            own = list(one.parameters())
            if own and not any(p.requires_grad for p in own):
                one.eval()
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="What somebody froze by hand goes into eval mode, too. Only the parts of "
    "the list do.",
)

each_layer_under_one_name = edit(
    SOLUTION,
    {
        """
        for part in config["frozen"]:
            model.get_submodule(part).eval()
        """: """
        for name, one in model.named_modules():
            for part in config["frozen"]:
                if f"{name}.".startswith(f"{part}."):
                    one.training = False
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="`named_modules` gives each layer once, under its first name. Of a frozen "
    "part that stands at a second place you miss all within it.",
)

one_cycle_of_section_3 = edit(
    SOLUTION,
    {
        "return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)": """
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            config["lr"],
            total_steps=num_steps,
            pct_start=warmup / num_steps,
            cycle_momentum=False,
        )
        return optimizer, cycle
        """,
    },
    breaks=[hidden_tests.rates_of_the_plan, hidden_tests.corners_of_the_plan],
    tells="You took the OneCycleLR of section 3. It begins at a 25th of the "
    "rate, rises along a cosine, and raises an error beyond its plan. Give a "
    "LambdaLR the share that the text says.",
)

a_setting_left_by_set_up = edit(
    SOLUTION,
    {
        'optimizer = torch.optim.AdamW(groups, lr=config["lr"])': """
        torch.set_num_threads(2)
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

one_of_two_names = edit(
    by_names_of_parameters,
    {
        "in model.named_modules(remove_duplicate=False)": "in model.named_modules()"
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="`named_modules()` gives a module that stands at two places once, under "
    "its first name. If the second one is frozen you miss it: "
    "`model.get_submodule(part).eval()` asks for the part itself.",
)

decay_of_zero_ignored = edit(
    SOLUTION,
    {
        '"weight_decay": config["weight_decay"],': '"weight_decay": config["weight_decay"] or 0.01,',
    },
    breaks=hidden_tests.decay_groups,
    tells='You write `config["weight_decay"] or` something: 0.0 counts as '
    "false, so who asks for no decay gets some. Take what `config` says.",
)

decay_for_a_group_alone = edit(
    SOLUTION,
    {
        'optimizer = torch.optim.AdamW(groups, lr=config["lr"])': """
        groups = [one for one in groups if one["params"]] or groups[:1]
        if len(groups) == 1:
            groups[0]["weight_decay"] = config["weight_decay"]
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        """,
    },
    breaks=hidden_tests.decay_groups,
    tells="Where all trainable parameters come into one group it gets the decay. "
    "Parameters with fewer than two dimensions have none, also if they are alone.",
)

frozen_with_an_old_gradient = edit(
    SOLUTION,
    {
        "if one.requires_grad]": "if one.requires_grad or one.grad is not None]",
    },
    breaks=hidden_tests.decay_groups,
    tells="You take each parameter with a gradient for trainable. A frozen one may "
    "have an old gradient, and AdamW would move it: ask `requires_grad` alone.",
)

training_only_after_eval = edit(
    SOLUTION,
    {
        "model.train()": """
        if not model.training:
            model.train()
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="You call `model.train()` only if the model itself is in eval mode. Its "
    "modules have modes of their own: call it always.",
)

all_unfrozen_by_train_mode = edit(
    SOLUTION,
    {
        "model.train()": """
        model.train().requires_grad_(True)
        """,
    },
    breaks=hidden_tests.modes_of_the_parts,
    tells="Your `train_mode` changes `requires_grad`. It is about modes alone: what is "
    "trained was decided in `set_up`.",
)

gradients_cleared = edit(
    SOLUTION,
    {
        "warmup, num_steps = config": """
        optimizer.zero_grad()
        warmup, num_steps = config
        """,
    },
    breaks=hidden_tests.frozen_parts,
    tells="You clear the gradients of what is trained. `set_up` leaves the rest of the "
    "model as it is.",
)
