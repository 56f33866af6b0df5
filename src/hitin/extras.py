"""Optional libraries, imported when they are needed."""

from importlib import import_module
from types import ModuleType

from hitin.errors import MissingExtraError


def need(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say which extra of `hitin` brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module}, which is not installed.\nInstall it with: pip install 'hitin[{extra}]'"
        ) from error
