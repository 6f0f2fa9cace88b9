"""Completion of commands and options in the shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .root import root
from .session import common


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common(json=False)
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(headrace completion bash)"      in ~/.bashrc
    zsh:   eval "$(headrace completion zsh)"       in ~/.zshrc
    fish:  headrace completion fish | source       in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "headrace", "_HEADRACE_COMPLETE").source())
