"""Library: FlashInfer's paged decode."""
# needs: gpus 1, package flashinfer

from shared_flashinfer import decoder


def prepare(q, keys, values, table, lengths):
    return decoder(q, keys, values, table, lengths)
