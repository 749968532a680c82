"""The experts of a layer in BF16: two grouped products over tokens that lie sorted by expert, and what reads their input first."""

from torch.nn.functional import grouped_mm, silu


def as_it_is(x):
    return x


def experts(x, gate_up, down, ends, rounded=as_it_is):
    """[rows, hidden] for rows sorted by expert; `ends`, int32 [experts], is where each expert's rows end. Weights are [experts, out, in].

    `rounded` is applied to what each product reads beside its weights.
    """
    gate, up = grouped_mm(rounded(x), gate_up.mT, offs=ends).chunk(2, dim=-1)
    return grouped_mm(rounded(silu(gate) * up), down.mT, offs=ends)
