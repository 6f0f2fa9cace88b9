"""The memory core once more, compiled by ``setup.py`` from the same files; empty where there was no C compiler."""
