"""Text as a data set of a byte-level model holds it: letters make words, words make phrases, phrases the text, each by Zipf's law."""

import torch

LETTERS = b"etaoinshrdlucmfwypvbgkjqxz"  # the most frequent first
WORDS = PHRASES = 50_000
LONGEST = 4  # words in a phrase
SPACE = 32
RATIOS = {"lz4": 1.88, "snappy": 1.88, "deflate": 2.12}  # of this text in chunks of 64 KiB, within 4 % for all seeds tried


def text(rand, size):
    """`size` bytes of text, uint8. The words and phrases are drawn too, so texts of two seeds have none in common but by chance."""
    letters = torch.frombuffer(bytearray(LETTERS), dtype=torch.uint8)
    rank = torch.arange(max(WORDS, PHRASES))
    ends = 2 + (rank[:WORDS] + 1).float().log2().div(2).long()  # rare words are long
    words = letters[zipf(rand, len(letters), WORDS, int(ends.max()) + 1).cpu()]
    words.scatter_(1, ends[:, None], SPACE)
    phrases = zipf(rand, WORDS, PHRASES, LONGEST)
    drawn = zipf(rand, PHRASES, size // 12 + 64)  # a phrase has 15 bytes on average
    spoken = picked(phrases, 1 + rank[:PHRASES] % LONGEST, drawn)
    return picked(words.to(spoken.device), 1 + ends, spoken)[:size]


def zipf(rand, n, *shape):
    """Ranks below `n`: that of rank r is about 1 / (r + 1) as frequent as the first."""
    return (float(n) ** rand.uniform(*shape) - 1).long()


def picked(table, lengths, which):
    """What the rows `which` of `table` hold, one after the other: as many entries of each row as `lengths` says."""
    filled = torch.arange(table.shape[1]) < lengths[:, None]
    return table[which][filled.to(which.device)[which]]
