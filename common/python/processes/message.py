"""What every message between parent and children is: a frozen type, asked with a nonce that its answer echoes."""

from __future__ import annotations

import secrets
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from common.python.errors import Status


class Message(BaseModel):
    """Base of all messages. A number keeps its type on the way: 1 stays an int, True stays a bool."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(Message):
    """Something a child is asked to do."""

    nonce: str = Field(default_factory=lambda: secrets.token_hex(8))

    def for_rank(self, rank: int, ranks: int) -> Self:
        """What process `rank` of the `ranks` of a side is asked: the same as any other, unless the request says which it is."""
        fields = {"rank": rank, "ranks": ranks}
        return self.model_copy(update=fields) if fields.keys() <= type(self).model_fields.keys() else self


class Answer(Message):
    """What came of a request."""

    nonce: str


class Failed(Answer):
    """The request ended with a status and one sentence."""

    kind: Literal["failed"] = "failed"
    status: Status
    reason: str
