"""Optional libraries, imported when they are needed."""

from importlib import import_module
from types import ModuleType

from hitin.errors import MissingExtraError


def need(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say which extra of `hitin` brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        problem = "is not installed" if is_missing else f"cannot be imported ({error})"
        raise MissingExtraError(
            f"{purpose} needs {module}, which {problem}.\nInstall it with: pip install 'hitin[{extra}]'"
        ) from error
