"""Answers to `token_rnn` of chapter 00."""

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
class with_a_buffer(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted()
class with_a_buffer_that_is_not_saved(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        decay = torch.linspace(0.5, 1, width)
        self.register_buffer("decay", decay, persistent=False)

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros(
            len(tokens), like.shape[1], device=like.device, dtype=like.dtype
        )
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted()
class with_apply(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.decay = torch.linspace(0.5, 1, width)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.decay = fn(self.decay)
        return self

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


with_a_device_context = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": """
        with torch.device(tokens.device):
            zeros = torch.zeros(len(tokens), like.shape[1], dtype=like.dtype)
        """,
    },
)

with_zeros_like = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = torch.zeros_like(like[:1]).expand(len(tokens), -1).detach()",
    },
)


@accepted()
class with_one_tensor_of_states(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.Sequential()
        for i in range(num_layers):
            self.layers.add_module(str(i), nn.Linear(width, width))
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        shape = len(self.layers), len(tokens), self.embed.embedding_dim
        states = self.decay.new_zeros(shape).unbind(0)
        for x in self.embed(tokens).unbind(1):
            new = []
            for layer, state in zip(self.layers, states):
                x = layer(torch.addcmul(x, state, self.decay)).tanh()
                new.append(x)
            states = new
        return states[-1]


@accepted()
class with_decay_worked_out(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.Sequential(*layers)
        self.width = width

    @property
    def decay(self):
        like = self.embed.weight
        return torch.linspace(0.5, 1, self.width).to(like)

    def forward(self, tokens):
        shape = len(self.layers), tokens.shape[0], self.width
        state = list(torch.zeros(shape).to(self.embed.weight))
        for column in tokens.T:
            x = self.embed(column)
            for i, layer in enumerate(self.layers):
                state[i] = x = layer(x + self.decay * state[i]).tanh()
        return state[-1]


@accepted()
class with_its_own_apply(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(nn.Linear(width, width))
        self.decay = torch.linspace(0.5, 1, width)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.decay = fn(self.decay)
        return self

    def forward(self, tokens):
        embedded = self.embed(tokens.long())
        start = torch.zeros_like(
            embedded.new_empty(embedded[:, :0].sum(1).shape)
        )
        state = {i: start for i in range(len(self.layers))}
        for t in range(tokens.shape[1]):
            x = embedded[:, t]
            for i, layer in enumerate(self.layers):
                state[i] = torch.tanh(layer(x + self.decay * state[i]))
                x = state[i]
        return state[len(state) - 1]


zeros_on_the_cpu = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = torch.zeros(tokens.shape[0], like.shape[1])",
    },
    breaks=[
        hidden_tests.works_on_another_device,
        hidden_tests.works_in_another_dtype,
    ],
    tells="The first state is made by `torch.zeros` without a device or a "
    "dtype: on the CPU, in float32, wherever the model is. Take both "
    "from a weight: `self.embed.weight.new_zeros(...)`.",
)

zeros_in_float32 = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = torch.zeros(len(tokens), like.shape[1], device=like.device)",
    },
    breaks=[hidden_tests.works_in_another_dtype, hidden_tests.no_token_at_all],
    tells="The first state is on the right device and in float32, whatever "
    "the weights are. Take the dtype from a weight too: "
    "`dtype=self.embed.weight.dtype`.",
)

zeros_on_the_cpu_with_dtype = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = torch.zeros(len(tokens), like.shape[1], dtype=like.dtype)",
    },
    breaks=hidden_tests.works_on_another_device,
    tells="The first state has the right dtype and stays on the CPU, or "
    "wherever the model was made. The model has moved since: ask a "
    "weight in `forward`, `device=self.embed.weight.device`.",
)

zeros_of_the_tokens = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = tokens.new_zeros(tokens.shape[0], like.shape[1])",
    },
    breaks=hidden_tests.no_token_at_all,
    tells="You made the first state from the tokens: `tokens.new_zeros(...)` "
    "has their dtype, integers. Ask a weight of the model.",
)

zeros_of_the_tokens_as_float = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = tokens.new_zeros(tokens.shape[0], like.shape[1]).float()",
    },
    breaks=[hidden_tests.works_in_another_dtype, hidden_tests.no_token_at_all],
    tells="The first state is on the right device and in float32, whatever "
    "the weights are. Take the dtype from a weight too: "
    "`dtype=self.embed.weight.dtype`.",
)

device_of_the_constructor = edit(
    with_a_buffer_that_is_not_saved,
    {
        """
        decay = torch.linspace(0.5, 1, width)
        self.register_buffer("decay", decay, persistent=False)
        """: """
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        self.device = self.embed.weight.device
        """,
        "device=like.device, dtype=like.dtype": "dtype=like.dtype, device=self.device",
    },
    breaks=hidden_tests.works_on_another_device,
    tells="The first state has the right dtype and stays on the CPU, or "
    "wherever the model was made. The model has moved since: ask a "
    "weight in `forward`, `device=self.embed.weight.device`.",
)

decay_as_an_attribute = edit(
    with_a_buffer,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': "self.decay = torch.linspace(0.5, 1, width)",
    },
    breaks=[
        hidden_tests.moves_as_a_whole,
        hidden_tests.works_on_another_device,
    ],
    tells="`decay` is only an attribute: it stays where and as it was born "
    'when the model moves. Register it: `self.register_buffer("decay", '
    "...)`.",
)

decay_moved_in_to = edit(
    with_apply,
    {
        """
        def _apply(self, fn, recurse=True):
            super()._apply(fn, recurse)
            self.decay = fn(self.decay)
        """: """
        def to(self, *args, **kwargs):
            super().to(*args, **kwargs)
            self.decay = self.decay.to(*args, **kwargs)
        """,
    },
    breaks=[hidden_tests.moves_as_a_part, hidden_tests.moves_as_a_whole],
    tells="You moved `decay` in a `to` of your own. Nobody calls it on "
    "`.double()`, or when a module around this one moves. A buffer is "
    "there for that.",
)

decay_moved_in_forward = edit(
    with_a_buffer,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': "self.decay = torch.linspace(0.5, 1, width)",
        "x = torch.tanh(layer(x + self.decay * states[i]))": "x = torch.tanh(layer(x + self.decay.to(x) * states[i]))",
    },
    breaks=hidden_tests.moves_as_a_whole,
    tells="`decay` moves only when `forward` brings it along, call by call. "
    "Until then it stays where it was born. A buffer moves with the "
    "module.",
)

decay_as_a_parameter = edit(
    with_a_buffer,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': "self.decay = nn.Parameter(torch.linspace(0.5, 1, width))",
    },
    breaks=hidden_tests.owns_its_parts,
    tells="`decay` is a parameter, so an optimizer would train it. A tensor "
    "that belongs to the module and is not trained is a buffer.",
)

decay_as_a_frozen_parameter = edit(
    with_a_buffer,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': """
        decay = torch.linspace(0.5, 1, width)
        self.decay = nn.Parameter(decay, requires_grad=False)
        """,
    },
    breaks=hidden_tests.owns_its_parts,
    tells="`decay` is a parameter, though a frozen one. Whoever thaws or counts the "
    "parameters meets it there. A tensor that belongs to the module and is not trained "
    "is a buffer.",
)

decay_from_zero = edit(
    with_a_buffer,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': 'self.register_buffer("decay", torch.linspace(0, 1, width))',
    },
    breaks=[hidden_tests.owns_its_parts, hidden_tests.reads_the_tokens],
    tells="`decay` has other numbers: it goes from 0.5 to 1, both included.",
)

layers_in_a_list = edit(
    with_a_buffer,
    {
        """
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        """: "self.layers = [nn.Linear(width, width) for _ in range(num_layers)]",
    },
    breaks=[hidden_tests.owns_its_parts, hidden_tests.reads_the_tokens],
    tells="Your layers stand in a Python list, which hides them from the "
    "module: not moved, not saved, not trained. Use `nn.ModuleList`.",
)

one_layer_many_times = edit(
    with_a_buffer,
    {"for _ in range(num_layers)]": "] * num_layers"},
    breaks=hidden_tests.reads_the_tokens,
    tells="All your layers are one and the same, put into the list several "
    "times. Each needs weights of its own: make them in a "
    "comprehension.",
)

without_a_bias = edit(
    with_a_buffer,
    {", width) for": ", width, bias=False) for"},
    breaks=hidden_tests.owns_its_parts,
    tells="Your layers have no bias, so `layers.0.bias` is missing. A plain "
    "`nn.Linear(width, width)` has one.",
)

first_layers_state = edit(
    with_a_buffer,
    {"return states[-1]": "return states[0]"},
    breaks=hidden_tests.reads_the_tokens,
    tells="You returned the state of the first layer. The last one's is asked "
    "for.",
)

decay_outside_the_layer = edit(
    with_a_buffer,
    {
        "x = torch.tanh(layer(x + self.decay * states[i]))": "x = self.decay * torch.tanh(layer(x + states[i]))",
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="`decay` is multiplied with $h$ before the layer, not with its "
    "result.",
)

no_decay = edit(
    with_a_buffer,
    {
        "x = torch.tanh(layer(x + self.decay * states[i]))": "x = torch.tanh(layer(x + states[i]))",
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="You left `decay` out of the step.",
)


@wrong(
    breaks=hidden_tests.reads_the_tokens,
    tells="The states stay zero: the new $h_l$ is never stored, so every "
    "token is read as if it were the first.",
)
class states_never_kept(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
            last = x
        return last if tokens.shape[1] else zeros


layers_side_by_side = edit(
    with_a_buffer,
    {
        """
        x = torch.tanh(layer(x + self.decay * states[i]))
        states[i] = x
        """: "states[i] = torch.tanh(layer(x + self.decay * states[i]))",
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="Every layer gets the embedding. The result of a layer is the $x$ "
    "of the next.",
)

rows_and_tokens_swapped = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = like.new_zeros(tokens.shape[1], like.shape[1])",
        """
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
        """: """
        for t in range(tokens.shape[0]):
            x = self.embed(tokens[t])
        """,
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="You went through the rows instead of the tokens. `tokens` has "
    "shape (N, T): the tokens at time t are `tokens[:, t]`.",
)

backwards = edit(
    with_a_buffer,
    {
        "for t in range(tokens.shape[1]):": "for t in reversed(range(tokens.shape[1])):",
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="You read the tokens from the last to the first.",
)

no_token_raises = edit(
    with_a_buffer,
    {"return states[-1]": "return x"},
    breaks=hidden_tests.no_token_at_all,
    tells="Without a token your `forward` has nothing to return and raises. "
    "The beginning of the state is what it is to return then.",
)

beginning_is_trained = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = like.new_zeros(tokens.shape[0], like.shape[1]).requires_grad_()",
    },
    breaks=hidden_tests.no_token_at_all,
    tells="The beginning of the states needs a gradient. It is zeros, and "
    "nobody trains it.",
)

state_kept_between_calls = edit(
    with_a_buffer,
    {
        "states = [zeros for _ in self.layers]": """
        old = getattr(self, "states", None)
        states = old or [zeros for _ in self.layers]
        self.states = states
        if states[0].shape != zeros.shape or states[0].device != zeros.device:
            self.states = states = [zeros for _ in self.layers]
        """,
    },
    breaks=hidden_tests.begins_anew,
    tells="Your states go on from one call to the next. Each call begins with "
    "zeros: keep them in `forward`, not in the module.",
)

first_zeros_kept = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": """
        if getattr(self, "zeros", None) is None:
            self.zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        zeros = self.zeros
        """,
    },
    breaks=hidden_tests.begins_anew,
    tells="You keep the zeros of the first call. The next one has another "
    "number of rows: make them in each call.",
)

cut_off_between_tokens = edit(
    with_a_buffer,
    {
        "states[i] = x": "states[i] = x.detach()",
        "return states[-1]": "return x if tokens.shape[1] else zeros",
    },
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="You detached the state after each token. The gradient then sees "
    "only the last one. Keep the states as they are.",
)

without_gradients = edit(
    with_a_buffer,
    {"return states[-1]": "return states[-1].detach()"},
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="No gradient reaches the weights: `forward` runs under `no_grad`, "
    "or its result is detached.",
)

tokens_reversed_in_place = edit(
    with_a_buffer,
    {
        "return states[-1]": """
        tokens.zero_()
        return states[-1]
        """,
    },
    breaks=hidden_tests.kinds_of_tokens,
    tells="You changed the caller's tokens in place. They are the caller's.",
)

int64_only = edit(
    with_a_buffer,
    {
        "def forward(self, tokens):": """
        def forward(self, tokens):
            if tokens.dtype != torch.int64:
                raise TypeError("tokens must be int64")
        """,
    },
    breaks=hidden_tests.kinds_of_tokens,
    tells="You refuse tokens that are not int64. int32 is asked for as well.",
)

default_dtype_changed = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": """
        torch.set_default_dtype(like.dtype)
        zeros = torch.zeros(len(tokens), like.shape[1], device=like.device)
        """,
    },
    breaks=hidden_tests.works_in_another_dtype,
    tells="You changed the default dtype of the whole process to make your "
    "zeros. Give `dtype=` to what you make.",
)

default_device_changed = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": """
        torch.set_default_device(like.device)
        zeros = torch.zeros(len(tokens), like.shape[1], dtype=like.dtype)
        """,
    },
    breaks=hidden_tests.works_on_another_device,
    tells="You changed the default device of the whole process to make your "
    "zeros, and left it so. Give `device=` to what you make.",
)

result_as_float = edit(
    with_a_buffer,
    {"return states[-1]": "return states[-1].float()"},
    breaks=hidden_tests.works_in_another_dtype,
    tells="The result is float32 whatever the weights are. It is to have "
    "their dtype.",
)

cast_inside = edit(
    with_a_buffer,
    {
        "x = torch.tanh(layer(x + self.decay * states[i]))": "x = torch.tanh(layer((x + self.decay * states[i]).float()))",
    },
    breaks=hidden_tests.works_in_another_dtype,
    tells="You compute in float32 and cast the result: with weights in "
    "another dtype that raises or loses digits. Take the states' dtype "
    "from the weights and leave the rest to them.",
)

a_row_for_padding = edit(
    SOLUTION,
    {
        "self.embed = nn.Embedding(num_tokens, width)": "self.embed = nn.Embedding(num_tokens, width, padding_idx=0)",
    },
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="`padding_idx` keeps a row of the table from being trained. "
    "No token is for padding here: a plain "
    "`nn.Embedding(num_tokens, width)` is asked for.",
)

a_sparse_table = edit(
    SOLUTION,
    {
        "self.embed = nn.Embedding(num_tokens, width)": "self.embed = nn.Embedding(num_tokens, width, sparse=True)",
    },
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="`sparse=True` gives the table a sparse gradient, which most "
    "optimizers refuse. A plain `nn.Embedding(num_tokens, width)` "
    "is asked for.",
)

a_table_of_short_rows = edit(
    SOLUTION,
    {
        "self.embed = nn.Embedding(num_tokens, width)": "self.embed = nn.Embedding(num_tokens, width, max_norm=1.0)",
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="`max_norm` shortens the rows of the table as they are read, "
    "in place. A plain `nn.Embedding(num_tokens, width)` is asked "
    "for.",
)

zeros_kept_by_rows = edit(
    SOLUTION,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': """
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        self.starts = {}
        """,
        "start = self.embed.weight.new_zeros(rows, width)": """
        if rows not in self.starts:
            self.starts[rows] = self.embed.weight.new_zeros(rows, width)
        start = self.starts[rows]
        """,
    },
    breaks=[
        hidden_tests.works_on_another_device,
        hidden_tests.works_in_another_dtype,
    ],
    tells="You keep tensors from the first call: after a move or a cast "
    "they are out of date. Make the zeros in each call, and use "
    "`decay` as it is then.",
)

decay_of_the_first_call = edit(
    SOLUTION,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': """
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        self.decay_here = None
        """,
        "def forward(self, tokens: Tensor) -> Tensor:": """
        def forward(self, tokens):
            if self.decay_here is None:
                self.decay_here = self.decay.clone()
        """,
        "x = torch.tanh(layer(x + self.decay * state[i]))": "x = torch.tanh(layer(x + self.decay_here * state[i]))",
    },
    breaks=[
        hidden_tests.works_on_another_device,
        hidden_tests.works_in_another_dtype,
    ],
    tells="You keep tensors from the first call: after a move or a cast "
    "they are out of date. Make the zeros in each call, and use "
    "`decay` as it is then.",
)

zeros_drawn = edit(
    SOLUTION,
    {
        "start = self.embed.weight.new_zeros(rows, width)": """
        start = self.embed.weight.detach().new_empty(rows, width)
        start = 0 * torch.rand_like(start)
        """,
    },
    breaks=hidden_tests.begins_anew,
    tells="Your `forward` draws random numbers, and so moves the global "
    "random state. Nothing in it is random: `torch.zeros` draws "
    "none.",
)


worked_out_in_float32 = edit(
    with_a_buffer,
    {
        "zeros = like.new_zeros(tokens.shape[0], like.shape[1])": "zeros = like.new_zeros(len(tokens), like.shape[1]).float()",
        "x = self.embed(tokens[:, t])": "x = self.embed(tokens[:, t]).float()",
        "x = torch.tanh(layer(x + self.decay * states[i]))": """
        x = x + self.decay.float() * states[i]
        w, b = layer.weight.float(), layer.bias.float()
        x = torch.tanh(nn.functional.linear(x, w, b))
        """,
        "return states[-1]": "return states[-1].to(like.dtype)",
    },
    breaks=hidden_tests.works_in_another_dtype,
    tells="You work in float32 and cast the result. A model in float64 then "
    "has float32's rounding errors: let each operation run in the dtype of "
    "the weights.",
)

seeded_in_the_constructor = edit(
    with_a_buffer,
    {
        "self.embed = nn.Embedding(num_tokens, width)": """
        torch.manual_seed(0)
        self.embed = nn.Embedding(num_tokens, width)
        """,
    },
    breaks=hidden_tests.built_quietly,
    tells="Your constructor sets a seed. All models are then alike, and all "
    "that the caller draws afterwards is, too. The seed is the caller's.",
)

default_dtype_in_the_constructor = edit(
    with_a_buffer,
    {
        "self.embed = nn.Embedding(num_tokens, width)": """
        torch.set_default_dtype(torch.float32)
        self.embed = nn.Embedding(num_tokens, width)
        """,
    },
    breaks=hidden_tests.built_quietly,
    tells="Your constructor sets the default dtype. That changes every tensor "
    "that the caller makes afterwards.",
)

default_device_in_the_constructor = edit(
    with_a_buffer,
    {
        "self.embed = nn.Embedding(num_tokens, width)": """
        torch.set_default_device("cpu")
        self.embed = nn.Embedding(num_tokens, width)
        """,
    },
    breaks=hidden_tests.built_quietly,
    tells="Your constructor sets the default device. That changes every "
    "tensor that the caller makes afterwards.",
)

weights_of_its_own = edit(
    with_a_buffer,
    {
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': """
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        for layer in self.layers:
            nn.init.orthogonal_(layer.weight)
        """,
    },
    breaks=hidden_tests.built_quietly,
    tells="You draw the first weights in another way than PyTorch. The task "
    "leaves them as `nn.Embedding` and `nn.Linear` made them.",
)

embedded_by_way_of_float32 = edit(
    SOLUTION,
    {
        "x = self.embed(ids)": "x = self.embed(ids).float().to(self.embed.weight.dtype)"
    },
    breaks=hidden_tests.works_in_another_dtype,
    tells="You take the embedding through float32. Weights in float64 lose half of their "
    "digits.",
)

copies_of_one_layer = edit(
    SOLUTION,
    {
        "layers = [nn.Linear(width, width) for _ in range(num_layers)]": """
        import copy
        first = nn.Linear(width, width)
        layers = [copy.deepcopy(first) for _ in range(num_layers)]
        """,
    },
    breaks=hidden_tests.built_quietly,
    tells="All layers are copies of one, and begin with the same weights. Make each "
    "anew: `nn.Linear(width, width) for _ in range(num_layers)`.",
)

cut_after_eight_tokens = edit(
    SOLUTION,
    {
        "for ids in tokens.unbind(1):": """
        for place, ids in enumerate(tokens.unbind(1)):
            if place and place % 8 == 0:
                state = [one.detach() for one in state]
        """,
    },
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="You detach the states after some tokens: no gradient reaches what was "
    "read before. Detach nothing here.",
)

one_row_squeezed = edit(
    SOLUTION,
    {
        "return state[-1]": "return state[-1].squeeze(0) if tokens.numel() == 1 else state[-1]",
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="For one row of one token you drop the axis of rows. The result has it, "
    "whatever its size: (N, width).",
)

no_gradient_in_eval_mode = edit(
    SOLUTION,
    {
        "state[i] = x": """
        state[i] = x
        if not self.training:
            state = [one.detach() for one in state]
        """
    },
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="In eval mode your result has no graph. The mode changes dropout and batch norm, "
    "not autograd: `torch.no_grad()` is the caller's choice.",
)

with_layers_first = edit(
    with_a_buffer,
    {
        "self.embed = nn.Embedding(num_tokens, width)": "",
        'self.register_buffer("decay", torch.linspace(0.5, 1, width))': """
        self.embed = nn.Embedding(num_tokens, width)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        """,
    },
)

width_of_one_squeezed = edit(
    SOLUTION,
    {"return state[-1]": "return state[-1].squeeze(-1)"},
    breaks=hidden_tests.reads_the_tokens,
    tells="For a width of 1 you drop the last axis. The result has it, whatever its size: "
    "(N, width).",
)

no_row_refused = edit(
    SOLUTION,
    {
        "rows, width = tokens.shape[0], self.embed.embedding_dim": """
        rows, width = tokens.shape[0], self.embed.embedding_dim
        if rows == 0:
            raise ValueError("no rows")
        """
    },
    breaks=hidden_tests.reads_the_tokens,
    tells="You refuse a batch without rows. Nothing in the text excludes it: the result has "
    "shape (0, width).",
)
