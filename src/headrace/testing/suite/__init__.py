"""The conformance suite, a mix-in class for each subject; ``headrace.testing.QueueContract`` is all of them."""

from __future__ import annotations

import pkgutil

import pytest

# Before any of them is imported: without it, a failed assert of theirs would not say what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))
