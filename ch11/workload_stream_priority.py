"""An urgent request beside bulk work, as shared_urgent.py states it: how long the request takes while every SM is full.

Two blocks of the bulk kernel fill an SM. The request's blocks compete with the bulk blocks that still wait for an SM.
"""

from shared_urgent import URGENT

WORKLOAD = URGENT
