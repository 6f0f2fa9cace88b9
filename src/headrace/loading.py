"""``module:name`` -> what it names, for the command line: with errors for the person who typed it."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from types import ModuleType

from .app import App
from .errors import ConfigError


def load_app(path: str) -> App:
    """Import the app that ``package.module:name`` names; the current folder is searched too.

    ConfigError, in one line, where there is no such module or name, where it is something else, or where the
    module itself fails: then with the file and the line.
    """
    module, found = _found(path, "an app", "shop.jobs:app", _candidates)
    if not isinstance(found, App):
        raise ConfigError(f"{path!r} is of type {type(found).__name__}, not a headrace.App; {_candidates(module)}")
    return found


def load(path: str) -> object:
    """Import whatever ``package.module:name`` names, with the same errors."""
    return _found(path, "anything in a module", "shop.jobs:pool", lambda module: "is it misspelt?")[1]


def _found(path: str, what: str, example: str, hint: Callable[[ModuleType], str]) -> tuple[ModuleType, object]:
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{path!r} does not name {what}; write module:name, such as {example}")
    if module_name.endswith(".py") or "/" in module_name or os.sep in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace(os.sep, ".").replace("/", ".")
        raise ConfigError(f"{module_name!r} is a file; name it as import does: {dotted}:{name}")
    module = _import(module_name)
    found: object = module
    for step in name.split("."):
        if not hasattr(found, step):
            raise ConfigError(f"module {module_name!r} has no {name!r}; {hint(module)}")
        found = getattr(found, step)
    return module, found


def _import(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise ConfigError(
                f"no module {missing!r} to import {name!r} from; looked in {here} and in the installed packages"
            ) from None
        raise ConfigError(f"importing {name!r} failed: no module {missing!r}, wanted by {_place(error)}") from error
    except Exception as error:
        raise ConfigError(f"importing {name!r} failed: {type(error).__name__}: {error}, at {_place(error)}") from error
    except SystemExit as error:
        raise ConfigError(f"importing {name!r} ended the program (sys.exit), at {_place(error)}") from error


def _place(error: BaseException) -> str:
    """Where in the user's code it happened: a setting is refused within this package, but written outside."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not _machinery(each.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"


def _machinery(filename: str) -> bool:
    ours = os.path.dirname(__file__) + os.sep
    return filename.startswith(("<frozen importlib", ours)) or filename == importlib.__file__


def _candidates(module: ModuleType) -> str:
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    if not apps:
        return f"there is no App in {module.__name__}"
    return "there is " + " and ".join(f"{module.__name__}:{name}" for name in apps)
