"""`Parameters`: what a classifier is made with, every setting of a run by its name, as scikit-learn asks for."""

import inspect
from pathlib import Path
from typing import Any, Self

from hitin.settings import all_options
from hitin.taxonomy import Taxonomy


class Parameters:
    """Those of `HierarchicalTextClassifier`. A setting that was given is an attribute, and may be changed as one."""

    def __init__(
        self,
        taxonomy: Taxonomy | str | Path | None = None,
        *,
        method: str | None = None,
        encoder: str | None = None,
        preset: str | Path | None = None,
        device: str = "auto",
        **options: object,
    ) -> None:
        self.taxonomy = taxonomy
        self.method = method
        self.encoder = encoder
        self.preset = preset
        self.device = device
        self._options = dict(options)

    def __getattr__(self, name: str) -> Any:
        """A setting that was given."""
        options = self.__dict__.get("_options", {})
        if name not in options:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return options[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name in all_options() and name not in _parameters(type(self)):
            self._options = self._options | {name: value}
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        params = self.get_params()
        given = [f"{name}={value!r}" for name, value in params.items() if value is not None]
        return f"{type(self).__name__}({', '.join(given)})"

    # What scikit-learn asks of an estimator.

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """What it was made with."""
        return {name: getattr(self, name) for name in _parameters(type(self))} | self._options

    def set_params(self, **params: Any) -> Self:
        """Change what it was made with."""
        for name, value in params.items():
            if name in _parameters(type(self)):
                setattr(self, name, value)
            else:
                self._options = self._options | {name: value}  # a copy of the classifier has the same until then
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,  # labels are sets of names, which scikit-learn's classifiers do not know
            target_tags=TargetTags(required=True, multi_output=True),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
        )


def _parameters(kind: type) -> tuple[str, ...]:
    """What a classifier is made with by name, also one that someone derived."""
    made = (vars(each)["__init__"] for each in kind.__mro__[:-1] if "__init__" in vars(each))
    found = (inspect.signature(each).parameters.values() for each in made)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(dict.fromkeys(each.name for some in found for each in list(some)[1:] if each.kind in named))
