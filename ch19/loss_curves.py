"""Train byte_lm twice from the same weights on the same text, with BF16 and with FP8 linear layers, and draw both losses.

    ./setup.sh python ch19/loss_curves.py [--recipe tiles|tensor] [--steps 300] [--folder artifacts/loss_curves]

FP8 is e4m3, in all three products of a layer. `tiles` has DeepSeek-V3's scales (arXiv:2412.19437): one for each 128 values along the sum,
and one for each 128 x 128 of a weight. `tensor` has one for each tensor. Values are rounded and multiplied in BF16, on any device, so
losses are FP8's and times are not. Sums are kept as the BF16 product keeps them. A call with the same folder goes on where the last ended.
"""

import argparse
import functools
import json
import sys
from pathlib import Path

import torch
from shared_byte_text import FILES, text
from shared_byte_training import CONFIG, loss_of
from shared_loss_lines import drawn

from common.models.decoder import init
from common.models.train_byte_lm import rate_at
from common.python.child.sides.inputs import Rand

LARGEST = 448.0  # of e4m3
KEEP_EVERY = 20  # steps between two checkpoints
