"""Answers to `token_rnn` of chapter 00."""

import torch
from torch import nn

from course_grader.bank import accepted


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
