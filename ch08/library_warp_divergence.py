"""Library: torch.nn.RNN on packed sequences, cuDNN's on a GPU."""
# allows: sync

import torch
from torch.nn.utils.rnn import pack_padded_sequence


def prepare(x, u, lengths):
    width = x.shape[2]
    rnn = torch.nn.RNN(width, width, bias=False, device=x.device, dtype=x.dtype)
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(torch.eye(width))  # a product more than sides have: they add x itself
        rnn.weight_hh_l0.copy_(u.T)
    rnn.requires_grad_(False).eval().flatten_parameters()

    def step():
        packed = pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False)  # sorts; the host waits for the lengths
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # both sides multiply in full float32
            return rnn(packed)[1][0]

    return step
