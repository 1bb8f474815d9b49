"""Answers to `one_hot` of chapter 03."""

import torch
import torch.nn.functional as F

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_the_library(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes).to(dtype)


@accepted()
def by_scatter_out_of_place(labels, num_classes, dtype=torch.float32):
    index = labels[..., None].long()
    rows = labels.new_zeros((*labels.shape, num_classes), dtype=dtype)
    return rows.scatter(-1, index, torch.ones_like(index, dtype=dtype))


@accepted()
def by_checked_eye(labels, num_classes, dtype=torch.float32):
    labels = labels.to(torch.int64)
    if labels.numel() and (labels.min() < 0 or labels.max() >= num_classes):
        raise ValueError("a label is no class")
    return torch.eye(num_classes, dtype=dtype, device=labels.device)[labels]


@accepted()
def by_eye_moved_to_the_device(labels, num_classes, dtype=torch.float32):
    labels = labels.long()
    if not ((labels >= 0) & (labels < num_classes)).all():
        raise IndexError(f"labels must be in 0..{num_classes - 1}")
    eye = torch.eye(num_classes).to(labels.device)
    return (
        eye.index_select(0, labels.reshape(-1).int())
        .to(dtype)
        .reshape(labels.shape + (num_classes,))
    )


@accepted()
def by_checked_comparison(labels, num_classes, dtype=torch.float32):
    classes = torch.arange(num_classes, device=labels.device)
    hits = labels.unsqueeze(-1) == classes
    if not hits.any(dim=-1).all():
        raise ValueError("a label is no class")
    return hits.to(dtype)


@accepted()
def by_asserted_comparison(labels, num_classes, dtype=torch.float32):
    classes = torch.arange(num_classes, device=labels.device)
    rows = (labels[..., None] == classes).to(dtype)
    torch._assert_async((rows.sum(-1) == 1).all())
    return rows


@accepted()
def by_flat_positions(labels, num_classes, dtype=torch.float32):
    flat = labels.long().flatten()
    if any(not 0 <= label < num_classes for label in flat.tolist()):
        raise ValueError("a label is no class")
    rows = torch.zeros(flat.numel() * num_classes, dtype=dtype)
    rows = rows.to(labels.device)
    start = torch.arange(flat.numel(), device=labels.device) * num_classes
    rows[start + flat] = 1
    return rows.view(*labels.shape, num_classes)


@accepted()
def by_a_range_of_rows(labels, num_classes, dtype=torch.float32):
    index = labels.long().reshape(-1)
    if ((index < 0) | (index >= num_classes)).any():
        raise ValueError("a label is no class")
    rows = torch.zeros(
        len(index), num_classes, dtype=dtype, device=labels.device
    )
    rows[range(len(index)), index] = 1
    return rows.reshape(*labels.shape, num_classes)


@accepted()
def by_a_list_of_rows(labels, num_classes, dtype=torch.float32):
    index = labels.long().flatten()
    if not all(0 <= one < num_classes for one in index.tolist()):
        raise IndexError("a label is no class")
    rows = index.new_zeros((len(index), num_classes), dtype=dtype)
    rows[list(range(len(index))), index] = 1
    return rows.view(*labels.shape, num_classes)


@accepted()
def by_a_loop(labels, num_classes, dtype=torch.float32):
    rows = []
    for label in labels.reshape(-1).tolist():
        if label not in range(num_classes):
            raise ValueError(f"{label} is no class")
        rows.append([float(label == c) for c in range(num_classes)])
    made = torch.tensor(rows, dtype=dtype, device=labels.device)
    return made.reshape(*labels.shape, num_classes)


@accepted()
def by_embedding(labels, num_classes, dtype=torch.float32):
    eye = torch.eye(num_classes, dtype=dtype, device=labels.device)
    return F.embedding(labels.long(), eye)


@wrong(
    breaks=hidden_tests.dtype_as_asked,
    tells="Your result is int64, as `F.one_hot` makes it, whatever dtype was "
    "asked for. A loss wants the dtype of the scores: end with `.to(dtype)`.",
)
def always_int64(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes)


@wrong(
    breaks=hidden_tests.dtype_as_asked,
    tells="Your result is float32 whatever dtype was asked for. Pass `dtype` on "
    "to the function that makes the zeros.",
)
def always_float32(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes).float()


@wrong(
    breaks=hidden_tests.ones_at_labels,
    tells="You return a NumPy array. It has left the device and the graph, and "
    "no loss takes it. Return the tensor itself.",
)
def as_numpy(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes).to(dtype).numpy()


@wrong(
    breaks=hidden_tests.bad_labels_raise,
    tells="You index with the labels, and an index of -1 means the last row: a "
    "label of -1 silently becomes the last class. Check the labels first, or "
    "use `scatter_`, which takes no negative index.",
)
def by_unchecked_indexing(labels, num_classes, dtype=torch.float32):
    flat = labels.reshape(-1).long()
    rows = torch.zeros(
        flat.numel(), num_classes, dtype=dtype, device=labels.device
    )
    rows[torch.arange(flat.numel(), device=labels.device), flat] = 1
    return rows.reshape(*labels.shape, num_classes)


@wrong(
    breaks=hidden_tests.bad_labels_raise,
    tells="You force bad labels into range, with `clamp` or `%`, so a mistake in "
    "the data turns into a class. Let them raise an error.",
)
def with_clamped_labels(labels, num_classes, dtype=torch.float32):
    labels = labels.long().clamp(0, num_classes - 1)
    return F.one_hot(labels, num_classes).to(dtype)


@wrong(
    breaks=hidden_tests.bad_labels_raise,
    tells="You force bad labels into range, with `clamp` or `%`, so a mistake in "
    "the data turns into a class. Let them raise an error.",
)
def with_labels_modulo(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long() % num_classes, num_classes).to(dtype)


@wrong(
    breaks=hidden_tests.bad_labels_raise,
    tells="You catch labels past the last class but let negative ones through: "
    "they wrap around and count from the last class. Check both ends.",
)
def with_half_a_check(labels, num_classes, dtype=torch.float32):
    if (labels >= num_classes).any():
        raise ValueError("a label is no class")
    eye = torch.eye(num_classes, dtype=dtype, device=labels.device)
    return eye[labels.long() % num_classes]


@wrong(
    breaks=hidden_tests.labels_of_any_integer_dtype,
    tells="You pass the labels on as they are. `F.one_hot` takes int64 alone: "
    "turn them into that dtype first, with `labels.long()`.",
)
def for_int64_only(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels, num_classes).to(dtype)


@wrong(
    breaks=hidden_tests.ones_at_labels,
    tells="Your classes are the first dimension. The result has the shape of the "
    "labels and then the classes: `(*labels.shape, num_classes)`.",
)
def with_classes_first(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.long(), num_classes).to(dtype)
    return rows.movedim(-1, 0).contiguous()


@wrong(
    breaks=hidden_tests.results_of_their_own,
    tells="You keep the zeros from one call to the next and hand out the same "
    "tensor again. The rows of the last batch change when the next one is "
    "encoded. Make the zeros anew in every call.",
    body=True,
)
def into_a_kept_buffer():
    kept = {}

    def one_hot(labels, num_classes, dtype=torch.float32):
        key = (labels.shape, num_classes, dtype, labels.device)
        if key not in kept:
            shape = (*labels.shape, num_classes)
            kept[key] = torch.zeros(shape, dtype=dtype, device=labels.device)
        index = labels.long().unsqueeze(-1)
        return kept[key].zero_().scatter_(-1, index, 1)


@wrong(
    body=True,
    breaks=hidden_tests.results_of_their_own,
    tells="You keep results and hand the same tensor out again. A caller who "
    "writes over it changes what the next one gets. Make a new tensor in "
    "every call.",
)
def results_from_a_cache():
    made = {}

    def one_hot(labels, num_classes, dtype=torch.float32):
        key = (tuple(labels.shape), *labels.flatten().tolist(), num_classes)
        key = (*key, dtype, labels.device, labels.dtype)
        if key not in made:
            made[key] = F.one_hot(labels.long(), num_classes).to(dtype)
        return made[key]


@wrong(
    body=True,
    breaks=hidden_tests.results_of_their_own,
    tells="For a single label you hand out a row of an identity matrix that you "
    "keep. It is a view: a caller who writes over it changes the matrix. Make "
    "a new tensor in every call.",
)
def a_view_of_a_kept_identity():
    identities = {}

    def one_hot(labels, num_classes, dtype=torch.float32):
        if ((labels < 0) | (labels.long() >= num_classes)).any():
            raise ValueError("a label is no class")
        key = num_classes, dtype, labels.device
        if key not in identities:
            eye = torch.eye(num_classes, dtype=dtype)
            identities[key] = eye.to(labels.device)
        if labels.dim() == 0:
            return identities[key][int(labels)]
        return identities[key][labels.long()]


@wrong(
    breaks=hidden_tests.bad_labels_raise,
    tells="You look for bad labels in int64 alone. Others come in smaller dtypes.",
)
def checks_int64_alone(labels, num_classes, dtype=torch.float32):
    wide = labels.long()
    bad = (wide < 0) | (wide >= num_classes)
    if labels.dtype == torch.int64 and bad.any():
        raise ValueError("a label is no class")
    classes = torch.arange(num_classes, device=labels.device)
    return (wide.unsqueeze(-1) == classes).to(dtype)


@wrong(
    breaks=hidden_tests.dtype_as_asked,
    tells="A whole-number dtype other than int64 is not heeded.",
)
def casts_to_floats_alone(labels, num_classes, dtype=torch.float32):
    out = F.one_hot(labels.long(), num_classes)
    return out.to(dtype) if dtype.is_floating_point else out


@wrong(
    breaks=hidden_tests.results_of_their_own,
    tells="Where all labels are alike you return one row, expanded: its rows share "
    "their memory, and nobody can write into one of them. Return rows of their own.",
)
def one_row_expanded(labels, num_classes, dtype=torch.float32):
    index = labels.long()
    if index.numel() and (index.min() < 0 or index.max() >= num_classes):
        raise ValueError("a label is no class")
    if index.numel() > 1 and (index == index.flatten()[0]).all():
        row = F.one_hot(index.flatten()[0], num_classes).to(dtype)
        return row.expand(*labels.shape, num_classes)
    return F.one_hot(index, num_classes).to(dtype)
