"""``python -m headrace.cli``: the same as ``headrace``, for a Python that is named."""

from . import main

main()
