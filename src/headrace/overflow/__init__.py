"""What happens to a newcomer when the queue is full: a policy is a value that the queue obeys."""

from .policies import Block, DropNewest, DropOldest, Overflow, Reject, named

__all__ = ["Block", "DropNewest", "DropOldest", "Overflow", "Reject", "named"]
