"""As ``headrace.memory``, compiled."""
