"""Any Hugging Face encoder, by name or folder: BERT and its kin (Eq. 3-5)."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths, mean_of_tokens, token_mask
from hitin.errors import InputError, first_line, listed
from hitin.extras import need
from hitin.files import is_folder

TextPooling = Literal["cls", "mean", "pooler"]
_PURPOSE = "A transformer encoder"
_REMEDY = (
    "Give the name of a model of the Hugging Face hub, or a folder with config.json, model.safetensors and "
    "tokenizer.json; or textrcnn, with a method that can do without a transformer."
)


@dataclass(frozen=True)
class TransformerSettings:
    SIGHTS: ClassVar[tuple[Sight, ...]] = ("document", "tokens", "embedding")
    encoder: str = "bert-base-uncased"
    """The name of a model of the hub, or a folder that holds one."""
    text_pooling: TextPooling = "mean"
    """The document's vector: the mean of all tokens', that of the first (the paper), or the pooler's output."""
    max_length: int = 512
    """Tokens of a document, the first and last among them; what comes after is cut off."""
    freeze: bool = False
    """Train the rest alone: for machines without a GPU. Methods that look at nothing but the document's vector read
    each document once, the others in every epoch."""

    def __post_init__(self) -> None:
        if self.max_length < 3:
            raise InputError("a document needs room for at least 3 tokens", kind="bad-option")

    @staticmethod
    def usual() -> dict[str, object]:
        """What suits fine-tuning (benchmarks/results/recipe.md)."""
        return {
            "learning_rate": 1e-3,
            "encoder_learning_rate": 5e-5,
            "warmup": 0.1,
            "epochs": 8,
            "batch_size": 32,
            "consistency": 3.0,
            "dropout": 0.1,
            "match_dropout": 0.1,
        }


def need_transformers() -> Any:
    return need("transformers", extra="bert", purpose=_PURPOSE)


class Transformer(TextEncoder):
    """H from the last layer of a pretrained encoder."""

    repeats = True

    def __init__(self, model: Any, settings: TransformerSettings) -> None:
        super().__init__()
        self.model = model
        self.text_pooling = settings.text_pooling
        if settings.text_pooling == "pooler" and getattr(model, "pooler", None) is None:
            raise _no_pooler(settings)
        if settings.text_pooling != "pooler" and getattr(model, "pooler", None) is not None:
            model.pooler = None  # weights that would get no gradient
        self.padding = int(model.config.pad_token_id or 0)
        width = int(model.config.hidden_size)
        self.widths = Widths(width, width, getattr(model.get_input_embeddings(), "embedding_dim", width))
        self.is_frozen = settings.freeze
        if settings.freeze:
            self.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """A frozen encoder reads without dropout, as it did where its vectors were made once."""
        return super().train(mode and not self.is_frozen)

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> Encoded:
        mask = token_mask(lengths, (ids if words is None else words).shape[1], ids.device)
        if words is None:
            found = self.model(input_ids=ids.masked_fill(~mask, self.padding), attention_mask=mask.long())
        else:
            found = self.model(inputs_embeds=words, attention_mask=mask.long())
        tokens = found.last_hidden_state  # (B, L, d)
        if self.text_pooling == "cls":
            return Encoded(tokens[:, 0], tokens, mask)
        if self.text_pooling == "pooler":
            return Encoded(found.pooler_output, tokens, mask)
        return Encoded(mean_of_tokens(tokens, mask), tokens, mask)

    def words_of(self, ids: Tensor) -> Tensor:
        words: Tensor = self.model.get_input_embeddings()(ids)
        return words

    def embedded(self, ids: Tensor) -> Tensor:
        found: Tensor = self.model.embeddings(ids)
        return found

    def check_embedding(self) -> None:
        was_training = self.training
        try:
            is_shown = self.eval()._reads_words()
        except (AttributeError, NotImplementedError, TypeError, ValueError, RuntimeError):  # each kind in its own way
            is_shown = False
        finally:
            self.train(was_training)
        if not is_shown:
            raise _no_embedding(self.model.config.model_type)

    @torch.no_grad()
    def _reads_words(self) -> bool:
        """Whether tokens are read alike by number and by vector, and are as wide with their places as without."""
        ids, lengths = torch.full((1, 2), int(self.padding == 0)), torch.tensor([2])  # some token that is not padding
        words = self.words_of(ids)
        by_number, by_vector = self(ids, lengths), self(ids, lengths, words)
        return self.embedded(ids).shape == words.shape and torch.allclose(by_number.tokens, by_vector.tokens, atol=1e-4)

    def leave_out_vector(self, *, keep: bool = False) -> None:
        self.text_pooling = "cls"
        if getattr(self.model, "pooler", None) is None:
            return
        if keep:
            self.model.pooler.requires_grad_(False)
        else:
            self.model.pooler = None

    def depths(self) -> Iterator[tuple[str, nn.Parameter, int]]:
        """The top layer is 0, the embeddings are below the first layer."""
        layers = int(self.model.config.num_hidden_layers)
        tables = [each for each in self.modules() if isinstance(each, nn.Embedding)]
        embeddings = {id(parameter) for table in tables for parameter in table.parameters()}
        for name, parameter in self.named_parameters():
            is_below = "embedding" in name or id(parameter) in embeddings
            yield name, parameter, layers if is_below else _distance(name, layers)


def _distance(name: str, layers: int) -> int:
    """From the top, by the number in `encoder.layer.3.attention...` (or `layers`, `block`, ...)."""
    number = next((int(part) for part in name.split(".") if part.isdigit()), layers - 1)
    return layers - 1 - number


def load_pretrained(settings: TransformerSettings) -> tuple[Transformer, Tokenizer]:
    """The encoder and its tokenizer, from a folder or the hub; half-precision weights become full ones."""
    transformers = need_transformers()
    check_folder(settings.encoder)
    try:
        with _quiet(transformers):
            model, found = transformers.AutoModel.from_pretrained(settings.encoder, output_loading_info=True)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise _unloadable(settings.encoder, first_line(error)) from error
    _check_kind(settings.encoder, model.config)
    _check_weights(settings, found["missing_keys"])
    _check_length(settings, model)
    _check_first_token(settings, model.float())
    return Transformer(model, settings), _tokenizer(settings.encoder, transformers, model.config.vocab_size)


def restore(settings: TransformerSettings, config: str) -> Transformer:
    """The encoder as `config_of` described it, before its weights are filled in."""
    transformers = need_transformers()
    values = {key: value for key, value in json.loads(config).items() if not _is_from_elsewhere(key)}
    values.pop("chunk_size_feed_forward", None)  # it changes nothing of the result, and must divide every length
    configuration = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    _check_kind(settings.encoder, configuration)
    with _quiet(transformers), _offline():
        model = transformers.AutoModel.from_config(configuration, trust_remote_code=False)
    encoder = Transformer(model.float(), settings).eval()
    with torch.no_grad():  # what is wrong with a configuration may show only now
        encoder(torch.zeros(1, 2, dtype=torch.int64), torch.tensor([2]))
    return encoder.train()


def _is_from_elsewhere(key: str) -> bool:
    """What names code or weights that the library would fetch, or choose by itself."""
    return key.startswith("_") or any(
        word in key for word in ("auto_map", "backbone", "implementation", "quantization")
    )


@contextmanager
def _offline() -> Iterator[None]:
    """Nothing is fetched to restore a model, whatever its configuration says."""
    constants: Any = need("huggingface_hub.constants", extra="bert", purpose=_PURPOSE)
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def config_of(encoder: Transformer) -> str:
    """The configuration of the architecture, as JSON."""
    values = encoder.model.config.to_dict()
    for key in ("_name_or_path", "transformers_version", "dtype", "torch_dtype"):  # of where it came from
        values.pop(key, None)
    return json.dumps(values, indent=2, sort_keys=True) + "\n"


def _tokenizer(name: str, transformers: Any, vocabulary: int) -> Tokenizer:
    file = Path(name) / "tokenizer.json"
    try:
        if file.is_file():
            tokenizer = Tokenizer.from_file(str(file))
        else:
            with _quiet(transformers):
                slow_or_fast = transformers.AutoTokenizer.from_pretrained(name)
            tokenizer = Tokenizer.from_str(slow_or_fast.backend_tokenizer.to_str())
    except AttributeError as error:
        raise _unloadable(name, "it has no fast tokenizer") from error
    except Exception as error:  # tokenizers raises bare Exceptions
        raise _unloadable(name, first_line(error)) from error
    tokens = tokenizer.get_vocab_size()
    if tokens <= len(tokenizer.get_added_tokens_decoder()):  # transformers makes an empty one where there are no files
        raise _unloadable(name, "it has no tokenizer")
    if tokens > vocabulary:
        raise _unloadable(name, f"its tokenizer has {tokens:,} tokens, of which it knows {vocabulary:,}")
    return tokenizer


def check_folder(name: str) -> None:
    """What can only be a path must be there: the library would take it for a bad name of the hub."""
    is_path = name.startswith((".", "~", "/")) or name.count("/") > 1 or "\\" in name
    if is_path and not is_folder(name):
        raise InputError("there is no such folder", kind="missing-file", file=name, remedy=_REMEDY)


def _check_kind(name: str, config: Any) -> None:
    is_text = all(hasattr(config, size) for size in ("hidden_size", "num_hidden_layers", "vocab_size"))
    if not is_text or getattr(config, "is_encoder_decoder", False):
        raise _unloadable(name, f"it is of the kind {config.model_type}, which is no text encoder")


def _check_first_token(settings: TransformerSettings, model: Any) -> None:
    """Refuse the vector of a token that sees itself alone, as the first one in decoders: it would be that of all."""
    if settings.text_pooling == "cls" and not _looks_ahead(model):
        raise InputError(
            f"the first token of {settings.encoder}, a decoder, sees nothing of what comes after it",
            kind="bad-option",
            remedy="Set text_pooling=mean, or choose an encoder.",
        )


@torch.no_grad()
def _looks_ahead(model: Any) -> bool:
    """Whether the vector of a token depends on the one after it."""
    token, *others = [number for number in range(4) if number != model.config.pad_token_id][:3]
    found = [model(input_ids=torch.tensor([[token, other]])).last_hidden_state[0, 0] for other in others]
    return not torch.allclose(*found)


def _check_weights(settings: TransformerSettings, missing: Iterable[str]) -> None:
    """What the file does not have would begin at random, without a word; a pooler that is not used may."""
    without = sorted(name for name in missing if settings.text_pooling == "pooler" or "pooler" not in name)
    if without and all("pooler" in name for name in without):
        raise _no_pooler(settings)
    if without:
        raise _unloadable(settings.encoder, f"its weights lack {listed(without)}")


def _check_length(settings: TransformerSettings, model: Any) -> None:
    most = getattr(model.config, "max_position_embeddings", None)
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    if most and padding is not None:  # RoBERTa and its kin count places from behind that of padding
        most -= padding + 1
    if most and settings.max_length > most:
        raise InputError(
            f"{settings.encoder} reads at most {most} tokens, not {settings.max_length}",
            kind="bad-option",
            remedy=f"Set max_length={most} or less.",
        )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without the progress bars and remarks of the library."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _unloadable(name: str, reason: str) -> InputError:
    return InputError(f"the text encoder {name} cannot be loaded ({reason})", kind="bad-encoder", remedy=_REMEDY)


def _no_embedding(kind: str) -> InputError:
    return InputError(
        f"the embedding layer of a transformer of the kind {kind} cannot be looked at",
        kind="bad-encoder",
        remedy="Choose another text encoder, such as BERT, RoBERTa, DistilBERT or ELECTRA; or another method.",
    )


def _no_pooler(settings: TransformerSettings) -> InputError:
    return InputError(f"{settings.encoder} has no pooler", kind="bad-option", remedy="Choose text_pooling cls or mean.")
