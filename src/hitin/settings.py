"""A run: which encoder, which method, which loss, how it is trained. Defaults, TOML files and options by name."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from hitin.decisions.settings import DecisionSettings
from hitin.encoders.bag import BagSettings
from hitin.encoders.names import ENCODERS, TEXTRCNN, TFIDF
from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.encoders.tfidf import TfidfSettings
from hitin.encoders.transformer import TransformerSettings
from hitin.errors import InputError, first_line, listed, printable, shown
from hitin.losses import LossSettings
from hitin.methods import METHODS, Known, NeuralMethod, WholeMethod
from hitin.option_values import TOML_ERRORS, bad_option, coerced, toml_value, types_of
from hitin.options_together import check_together

Selection = Literal["sum", "micro", "macro"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is trained."""

    epochs: int = 30
    """At most; `patience` may end it earlier."""
    batch_size: int = 64
    """Documents of a batch. Several processes share each of them."""
    batch_tokens: int = 0
    """The most tokens of a batch, padding counted: fewer documents where they are long; 0: any."""
    accumulate: int = 1
    """Batches before each step of the optimiser."""
    learning_rate: float = 2e-3
    encoder_learning_rate: float = 0.0
    """That of the text encoder; 0: the same."""
    layer_decay: float = 1.0
    """The rate of each layer of a transformer, as a part of that of the layer above; 1: a single rate."""
    optimiser: Literal["adamw", "adam"] = "adamw"
    weight_decay: float = 0.01
    """Of tables of weights, with HiTIN's B_H; not of biases, normalisations and other vectors, such as its W_d."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rate falls after the warm-up."""
    warmup: float = 0.05
    """The part of all steps in which the learning rate rises."""
    gradient_clip: float = 1.0
    """The longest gradient; 0: any."""
    precision: Precision = "auto"
    """`auto`: bf16 on a GPU that has it, fp32 otherwise."""
    compile: bool = False
    """Whether the network is compiled (`torch.compile`), which takes a minute at first. Where that fails, it is not."""
    record: bool = True
    """Whether steps on a GPU are recorded as CUDA graphs and replayed, where the method allows it."""
    select: Selection = "sum"
    """The model of which epoch is kept: with the best micro-F1, macro-F1, or sum of both, on validation data."""
    patience: int = 5
    """Epochs without a better model after which training ends; 0: never."""
    validation: float = 0.1
    """The part of the training documents held out when there are no validation documents; 0: none."""
    prior_start: bool = True
    """Whether each label begins as probable as it is frequent."""
    seed: int = 0
    checkpoint_seconds: float = 60.0
    """Between checkpoints, which let a killed run go on; there is one after each epoch, too."""
    tensorboard: bool = False
    """Whether to write events for TensorBoard."""
    sync_norm: bool = False
    """Whether the batch normalisation of HiTIN's tree looks at the documents of all processes, or at its own alone."""
    shard: bool = False
    """Whether several processes share out the weights of a transformer among them (FSDP), in place of one copy each."""

    def __post_init__(self) -> None:
        low = {"epochs": 1, "batch_size": 1, "accumulate": 1, "patience": 0, "seed": 0, "learning_rate": 0}
        low |= {
            "batch_tokens": 0,
            "encoder_learning_rate": 0,
            "weight_decay": 0,
            "gradient_clip": 0,
            "checkpoint_seconds": 0,
        }
        for name, least in low.items():
            if not least <= getattr(self, name) < float("inf"):
                raise bad_option(f"{name} is {getattr(self, name)}", f"It is at least {least}.")
        for name in ("warmup", "validation"):
            if not 0 <= getattr(self, name) < 1:
                raise bad_option(f"{name} is {getattr(self, name)}", "It is a part of the whole, from 0 to below 1.")
        if not 0 < self.layer_decay <= 1:
            raise bad_option(f"layer_decay is {self.layer_decay}", "It is above 0 and at most 1.")
        if self.shard and (self.compile or self.precision == "fp16"):
            raise bad_option("shard goes neither with compile nor with fp16", "Set precision to bf16 or fp32.")
        if self.seed >= 2**63:
            raise bad_option(f"seed is {self.seed}", "It is below 2^63.")


@dataclass(frozen=True)
class Run:
    """All settings of a model and its training. Some methods have no use for `loss` and most of `training`."""

    encoder: TextRCNNSettings | BagSettings | TransformerSettings | TfidfSettings = field(
        default_factory=TextRCNNSettings
    )
    method: Any = field(default_factory=METHODS["hitin"].settings)
    loss: LossSettings = field(default_factory=LossSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    decisions: DecisionSettings = field(default_factory=DecisionSettings)

    @property
    def method_name(self) -> str:
        return next(name for name, method in METHODS.items() if type(self.method) is method.settings)

    @property
    def encoder_name(self) -> str:
        if isinstance(self.encoder, TransformerSettings):
            return self.encoder.encoder
        return next(name for name, settings in ENCODERS.items() if type(self.encoder) is settings)

    @classmethod
    def of(
        cls,
        /,
        *,
        method: str | None = None,
        encoder: str | None = None,
        preset: str | Path | None = None,
        **options: object,
    ) -> "Run":
        """Defaults; over them what suits the encoder, then a preset or a TOML file, then options by name.

        `encoder` is `textrcnn`, `bag`, or the name or folder of a Hugging Face model; `tfidf` goes with `linear`.
        What is `None` is not given.
        """
        given = {} if preset is None else read_preset(preset)
        chosen = _without_none({"method": method, "encoder": encoder})
        try:
            return _run(given | _without_none(options) | chosen)
        except InputError as error:
            if given and _is_wrong_in(given | chosen, error) and not _is_wrong_in(chosen, error):
                error.file = str(preset)
            raise

    @classmethod
    def unchecked(cls, options: Mapping[str, object]) -> "Run":
        """Of options each of which is right, whether or not they go together."""
        return _run_of(options)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Sections of plain values, those that mean something to the method."""
        names = {"encoder": {"encoder": self.encoder_name}, "method": {"method": self.method_name}}
        sections = {
            section: names.get(section, {})
            | _without_none({name: getattr(getattr(self, section), name) for name in known})
            for section, known in _options_of(self.method_name, type(self.encoder)).items()
        }
        return {section: values for section, values in sections.items() if values}

    def to_toml(self) -> str:
        """A file that `Run.of(preset=...)` reads back."""
        sections = []
        for name, section in self.to_dict().items():
            lines = [f"{key} = {toml_value(value)}" for key, value in section.items()]
            sections.append("\n".join([f"[{name}]", *lines]))
        return "\n\n".join(sections) + "\n"

    def with_training(self, **changes: Any) -> "Run":
        return replace(self, training=replace(self.training, **changes))


_SECTIONS: dict[str, tuple[Any, ...]] = {
    "encoder": (TextRCNNSettings, BagSettings, TransformerSettings, TfidfSettings),
    "method": tuple(method.settings for method in METHODS.values()),
    "loss": (LossSettings,),
    "training": (TrainingSettings,),
    "decisions": (DecisionSettings,),
}
"""The sections of a TOML file, and the dataclasses whose options may stand there."""


def options_of(run: Run) -> frozenset[str]:
    """The options that mean something to a run, given or not."""
    sections = _options_of(run.method_name, type(run.encoder)).values()
    return frozenset({"method", "encoder"}.union(*sections))


def all_options() -> frozenset[str]:
    """Every option that some method or text encoder knows."""
    return frozenset({"method", "encoder"}.union(*map(_names, _SECTIONS.values())))


def is_plain(section: str, name: str, value: object) -> bool:
    """Whether an option of a section has the value that it has by itself, whatever else is chosen."""
    known = (each for settings in _SECTIONS.get(section, ()) for each in fields(settings))
    defaults = [each.default for each in known if each.name == name]
    return any(value == (list(default) if isinstance(default, tuple) else default) for default in defaults)


def presets() -> list[str]:
    """The names of the runs that come with `hitin`."""
    folder = resources.files("hitin") / "presets"
    if not folder.is_dir():
        return []
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_preset(preset: str | Path) -> dict[str, object]:
    """The options of a preset by name, or of a TOML file."""
    name = str(preset)
    if name in presets():
        text = (resources.files("hitin") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    else:
        text = _file_text(Path(name))
    try:
        sections = tomllib.loads(text)
    except TOML_ERRORS as error:
        raise InputError(f"this is not TOML ({first_line(error)})", kind="bad-run", file=name) from error
    options: dict[str, object] = {}
    for section, values in sections.items():
        _check_section(section, values, name)
        options |= values
    return options


def _check_section(section: str, values: object, file: str) -> None:
    """Refuse what belongs elsewhere. Names that no section knows are left to those who know the method."""
    if not isinstance(values, dict) or section not in _SECTIONS:
        is_section = isinstance(values, dict)
        raise InputError(
            f"there is no section [{printable(section)}]"
            if is_section
            else f"{shown(section)} stands outside of the sections",
            kind="bad-run",
            file=file,
            remedy=f"The sections are {', '.join(f'[{name}]' for name in _SECTIONS)}.",
        )
    for name in values:
        homes = [home for home, settings in _SECTIONS.items() if name in _names(settings) or name == home]
        if homes and section not in homes:
            raise InputError(
                f"{name} stands in [{section}]", kind="bad-run", file=file, remedy=f"Its section is [{homes[0]}]."
            )


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # which is not UTF-8, or a name that no file can have
        raise InputError(
            f"the settings cannot be read ({getattr(error, 'strerror', None) or error})",
            kind="missing-file",
            file=str(path),
            remedy=f"Name a TOML file, or one of the presets: {', '.join(presets())}.",
        ) from error


def _run(options: Mapping[str, object]) -> Run:
    run = _run_of(options)
    check_together(run)
    return run


def _run_of(options: Mapping[str, object]) -> Run:
    """The run, without a look at what goes with what."""
    given = dict(options)
    method_name = str(given.pop("method", "hitin"))
    if method_name not in METHODS:
        raise bad_option(f"there is no method {shown(method_name)}", f"The methods are {', '.join(METHODS)}.")
    _check_settings_are_its_own(method_name)
    encoder_name = _encoder_of(method_name, given.pop("encoder", None))
    encoder_type = ENCODERS.get(encoder_name, TransformerSettings)
    if encoder_type is TransformerSettings:
        _check_spelling(encoder_name)
        given["encoder"] = encoder_name
    sections = _options_of(method_name, encoder_type)
    known = {name for section in sections.values() for name in section}
    for name in given:
        if name not in known:
            problem = f"there is no option {shown(name)} for {printable(encoder_name)} and {method_name}"
            raise bad_option(problem, _remedy(name, method_name, known))
    given = encoder_type.usual() | given
    settings: dict[str, Any] = {"encoder": encoder_type, "method": METHODS[method_name].settings} | _COMMON
    values = {
        section: {name: coerced(name, given[name], kind) for name, kind in kinds.items() if name in given}
        for section, kinds in sections.items()
    }
    return Run(**{section: settings[section](**values[section]) for section in sections})


_COMMON: dict[str, Any] = {"loss": LossSettings, "training": TrainingSettings, "decisions": DecisionSettings}
"""The sections that are the same for all."""


def _check_settings_are_its_own(method_name: str) -> None:
    """Refuse a method that shares its settings with another: a run knows its method by them."""
    settings = METHODS[method_name].settings
    others = [name for name, method in METHODS.items() if method.settings is settings and name != method_name]
    if others:
        problem = f"the methods {method_name} and {others[0]} have the same class of settings, {settings.__name__}"
        raise bad_option(problem, f"Derive one from it: class OwnSettings({settings.__name__}).")


def _encoder_of(method_name: str, encoder: object) -> str:
    """The text encoder that is wanted, or the usual one of the method."""
    method = METHODS[method_name]
    only = method.encoder if isinstance(method, WholeMethod) else None
    if encoder is None:
        return only or _usual_encoder(method)
    if only and encoder != only:
        problem = f"the method {method_name} goes with the text encoder {only}, not with {shown(encoder)}"
        raise bad_option(problem, "Leave out the encoder, or choose another method.")
    if not only and encoder == TFIDF:
        problem = f"the text encoder {TFIDF} does not go with the method {method_name}"
        raise bad_option(problem, "It goes with the method linear.")
    return str(encoder)


def _check_spelling(encoder: str) -> None:
    """Refuse a misspelt name, before a hub is asked for a model that is called so."""
    near = get_close_matches(encoder.casefold(), ENCODERS, n=1, cutoff=0.8)
    if near and not Path(encoder).exists():
        remedy = f"Did you mean {near[0]}? The folder of a transformer may be called as you like, with its path."
        raise bad_option(f"there is no text encoder {shown(encoder)}", remedy)


def _usual_encoder(method: Known) -> str:
    """TextRCNN, unless the method sees more of a text than it shows."""
    seen = method.module.sight(method.settings()) if isinstance(method, NeuralMethod) else "document"
    return TEXTRCNN if seen in TextRCNNSettings.SIGHTS else TransformerSettings.encoder


def _options_of(method_name: str, encoder_type: Any) -> dict[str, dict[str, Any]]:
    """The options of each section that mean something to a method, with their types."""
    method = METHODS[method_name]
    settings: Any = method.settings
    options = {"encoder": types_of(encoder_type), "method": types_of(settings)}
    options |= {section: types_of(settings) for section, settings in _COMMON.items()}
    if isinstance(method, WholeMethod):
        options["loss"] = {}
        options["training"] = {name: kind for name, kind in options["training"].items() if name in method.training}
    return options


def _remedy(name: str, method_name: str, known: set[str]) -> str:
    """What may have been meant by an unknown option."""
    methods = [method for method, found in METHODS.items() if name in _names((found.settings,))]
    if methods:
        return f"It is an option of the method{'s' * (len(methods) > 1)} {_in_a_row(methods)}."
    encoders = ENCODERS | {"transformers": TransformerSettings}
    having = [encoder for encoder, found in encoders.items() if name in types_of(found)]
    if having:
        return f"It goes with {_in_a_row(having)} as the text encoder."
    section = next((section for section, settings in _COMMON.items() if name in types_of(settings)), None)
    if section:
        own = ", ".join(_options_of(method_name, TfidfSettings)["training"])
        return f"It is an option of [{section}] for networks. Of [training], {method_name} has {own}."
    near = get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"The options are {listed(sorted(known), most=100)}."


def _in_a_row(names: list[str]) -> str:
    """`flat, hgclr and hitin`"""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _is_wrong_in(given: Mapping[str, object], error: InputError) -> bool:
    """Whether options are wrong in the same way by themselves."""
    try:
        _run(given)
    except InputError as again:
        return again.message == error.message
    return False


def _names(settings: tuple[Any, ...]) -> set[str]:
    return {name for each in settings for name in types_of(each)}


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
