"""Library: cuFFT, as torch.fft.fft calls it."""

import torch


def prepare(x):
    signals = torch.view_as_complex(x)

    def step():
        return torch.view_as_real(torch.fft.fft(signals, dim=1))

    return step
