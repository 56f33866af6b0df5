"""`NeuralModel`: a text encoder and a method, trained together by the loop of `hitin.training`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.batches import Examples
from hitin.chance import own_chance
from hitin.damage import telling
from hitin.decisions import Decisions
from hitin.decisions.best import Found
from hitin.devices import is_main_process
from hitin.encoders import (
    AnyTokenizer,
    EncoderSettings,
    build_encoder,
    encoder_config,
    kept_numbers,
    numbers_of,
    read_tokenizer,
    restore_encoder,
)
from hitin.encoders.bag import BagSettings
from hitin.encoders.tfidf import TfidfSettings
from hitin.encoders.transformer import TransformerSettings, need_transformers
from hitin.encoders.vectors import Coverage
from hitin.inputs import Documents
from hitin.many_labels import best_of_documents
from hitin.methods import METHODS, NeuralMethod
from hitin.methods.interface import Facts, Method
from hitin.model import Advance, Model
from hitin.names import PATH_SEPARATOR
from hitin.network import Network, for_use, logits_of
from hitin.own_process import process_to_itself
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.teaching import check_teacher, judgements
from hitin.token_cache import TokenCache
from hitin.tokens import Ragged
from hitin.training.loop import CHECKPOINT, train
from hitin.training.progress import History
from hitin.training.shortage import shortage_told
from hitin.trust import Bounded
from hitin.watcher import Watcher

TOKENIZER = "tokenizer.json"
ENCODER = "encoder.json"


@dataclass(frozen=True)
class NeuralModel(Model):
    """A network with what it takes to use it: the taxonomy, the tokenizer and the settings."""

    network: Network
    tokenizer: AnyTokenizer
    taxonomy: Taxonomy
    run: Run
    coverage: Coverage | None = None
    """What the word vectors it began with cover."""

    FILES: ClassVar = (TOKENIZER,)
    SOME_FILES: ClassVar = (ENCODER,)

    @classmethod
    def build(
        cls,
        taxonomy: Taxonomy,
        run: Run,
        texts: Sequence[str],
        watcher: Watcher | None = None,
        cache: TokenCache | None = None,
    ) -> Self:
        """A model to train, its vocabulary from these texts. Its start depends on the seed of the run alone."""
        module = _module(run)
        with own_chance(run.training.seed):
            encoder, tokenizer, coverage = build_encoder(_encoder_settings(run), texts, cache)
            module.adapt(encoder, run.method)
            warning = module.warning(taxonomy, encoder.widths, run.method)
            if warning and watcher:
                watcher.note(f"warning: {warning}")
            method = module(taxonomy, encoder.widths, run.method)
        return cls(Network(encoder, method), tokenizer, taxonomy, run, coverage)

    @classmethod
    def check_needs(cls, run: Run) -> None:
        if isinstance(run.encoder, TransformerSettings):
            need_transformers()
        if run.loss.linear_teacher:
            check_teacher()

    @classmethod
    @process_to_itself()
    def trained(
        cls,
        taxonomy: Taxonomy,
        run: Run,
        given: Documents,
        held: Documents | None,
        *,
        folder: Path,
        device: str,
        resume: bool,
        resumable: bool,
        watcher: Watcher,
    ) -> tuple[Self, History]:
        cache = TokenCache.usual(watcher, writes=is_main_process())
        watcher.note(f"preparing the text encoder {run.encoder_name}")
        with shortage_told(run):
            model = cls.build(taxonomy, run, given.texts, watcher, cache)
        if model.coverage is not None:
            watcher.note(str(model.coverage))
        learnt = model.examples(*given, cache)
        if told := _cut_told(run, learnt.tokens):
            watcher.note(told)
        if run.loss.linear_teacher and len(given.texts) > 1 and not learnt.in_pairs:
            learnt = learnt.judged(judgements(taxonomy, given, run.loss.linear_teacher, cache, watcher))
        with shortage_told(run, folder / CHECKPOINT):
            history = train(
                model,
                learnt,
                None if held is None else model.examples(*held, cache),
                folder=folder,
                device=device,
                resume=resume,
                resumable=resumable,
                watcher=watcher,
            )
        return model, history

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def to(self, device: torch.device) -> None:
        self.network.to(device)

    def tokens(self, texts: Sequence[str]) -> Ragged:
        return numbers_of(self.tokenizer, texts, _encoder_settings(self.run).max_length)

    def examples(
        self, texts: Sequence[str], labels: Sequence[Sequence[int]], cache: TokenCache | None = None
    ) -> Examples:
        """Their tokens perhaps from a cache."""
        tokens = self.tokens(texts) if cache is None else self._kept_tokens(texts, cache)
        return Examples(tokens, Ragged.of(labels), len(self.taxonomy), in_pairs=self._is_in_blocks)

    @property
    def _is_in_blocks(self) -> bool:
        """Whether labels are so many that the last layer is computed some labels at a time, or not for all of them."""
        loss = self.run.loss
        return self.network.method.is_linear and (bool(loss.negatives) or len(self.taxonomy) > loss.labels_at_once)

    def _kept_tokens(self, texts: Sequence[str], cache: TokenCache) -> Ragged:
        return kept_numbers(cache, self.tokenizer, texts, _encoder_settings(self.run).max_length)

    def facts(self, train: Examples, val: Examples | None) -> Facts:
        """What the method is told before training on these documents."""
        names = [name.rsplit(PATH_SEPARATOR, 1)[-1] for name in self.taxonomy.labels]
        counts = None if val is None else val.label_counts()
        return Facts(train, counts, self.tokens(names), self.tokens([""])[0])

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(documents, |Y|)"""
        return self.prepared_logits(self.prepared(texts))

    def prepared(self, texts: Sequence[str]) -> Examples:
        unlabelled: list[tuple[int, ...]] = [()] * len(texts)
        return self.examples(texts, unlabelled)

    def prepared_logits(self, prepared: Examples, advance: Advance | None = None) -> NDArray[np.float32]:
        return logits_of(self.network, prepared, advance)

    def best(self, prepared: Examples, decisions: Decisions, advance: Advance | None = None) -> list[Found] | None:
        """Of very many labels, where `top-k` decides."""
        if decisions.policy != "top-k" or not self._is_in_blocks:
            return None
        return best_of_documents(self.network, prepared, decisions, self.taxonomy, advance)

    def tensors(self) -> Mapping[str, Tensor]:
        return for_use(self.network.state_dict())

    def texts(self) -> dict[str, str]:
        config = encoder_config(self.network.encoder)
        return {TOKENIZER: self.tokenizer.to_str()} | ({} if config is None else {ENCODER: config})

    @classmethod
    def restored(cls, taxonomy: Taxonomy, run: Run, tensors: Mapping[str, Tensor], files: Mapping[str, Path]) -> Self:
        with telling(files[TOKENIZER]):
            tokenizer = read_tokenizer(_encoder_settings(run), files[TOKENIZER])
        config = files[ENCODER].read_text(encoding="utf-8") if ENCODER in files else None
        return cls(_restored_network(run, taxonomy, tokenizer, tensors, config), tokenizer, taxonomy, run)


def _restored_network(
    run: Run, taxonomy: Taxonomy, tokenizer: AnyTokenizer, tensors: Mapping[str, Tensor], config: str | None
) -> Network:
    own = {name.removeprefix("method."): tensor for name, tensor in tensors.items() if name.startswith("method.")}
    width = tensors["encoder.embedding.weight"].shape[1] if "encoder.embedding.weight" in tensors else 0
    with own_chance(), Bounded(tensors):
        encoder = restore_encoder(_encoder_settings(run), tokenizer, config, width)
        _module(run).adapt(encoder, run.method)
        method = _module(run).restored(taxonomy, encoder.widths, run.method, own)
    network = Network(encoder, method)
    network.fill(tensors)
    return network.eval()


def _cut_told(run: Run, tokens: Ragged) -> str:
    """Of how many documents the end is perhaps not read; nothing where there is none, or numbers are no tokens."""
    most = _encoder_settings(run).max_length
    count = int((tokens.lengths >= most).sum())
    if not count or isinstance(run.encoder, BagSettings):
        return ""
    share = f"{count:,} of {len(tokens):,} training documents ({count / len(tokens):.0%})"
    return f"{share} reach max_length, {most:,} tokens: what comes after is not read"


def _module(run: Run) -> type[Method]:
    method = METHODS[run.method_name]
    assert isinstance(method, NeuralMethod)
    return method.module


def _encoder_settings(run: Run) -> EncoderSettings:
    assert not isinstance(run.encoder, TfidfSettings)
    return run.encoder
