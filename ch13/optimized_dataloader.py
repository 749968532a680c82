"""Optimized: workers count words ahead, into pinned batches."""
# guess: 5x, of eight workers, each batch of which passes through shared memory and a thread that pins it
# allows: processes, threads

from shared_documents import loader_of, training


def prepare(file, order, labels, hidden, out, length, features, batch, workers):
    loader = loader_of(
        file,
        order,
        length,
        features,
        batch,
        num_workers=workers,
        prefetch_factor=4,
        persistent_workers=True,
        pin_memory=labels.is_cuda,
    )
    return training(loader, labels, hidden, out)
