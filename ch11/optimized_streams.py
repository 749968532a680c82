"""Optimized: a stream per expert: the chains share the GPU."""

# predicts: baseline 0.512 ms = 4 * layers * (width / 16 * 0.375e-6 + 2e-6 + 2e-6)  (a guess: 0.375 us per 16 steps of k; 2 us for the relu)
# predicts: optimized 0.134 ms = layers * (width / 16 * 0.375e-6 + 2e-6 + 2e-6) + 6e-6  (one chain; 6 us for fork and join)
# needs: gpus 1
# proves: overlap >= 0.6
import torch


def prepare(x, w):
    streams = [torch.cuda.Stream() for _ in x]

    def chain(tokens, layers):
        for layer in layers:
            tokens = torch.relu(tokens @ layer)
        return tokens

    def step():
        caller, done = torch.cuda.current_stream(), []
        for stream, tokens, layers in zip(streams, x, w, strict=True):
            stream.wait_stream(caller)  # fork: x was written on the caller's stream
            with torch.cuda.stream(stream):
                done.append(chain(tokens, layers))
        for stream, tokens in zip(streams, done, strict=True):
            caller.wait_stream(stream)  # join
            tokens.record_stream(caller)  # read there: its memory belongs to `stream`, which must not reuse it before that
        return torch.cat(done)

    return step
