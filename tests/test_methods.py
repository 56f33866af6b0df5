"""What holds for every method that stands on a text encoder, whatever it makes of the hierarchy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.batches import Batch
from hitin.chance import own_chance
from hitin.encoders.interface import Encoded, TextEncoder, Widths
from hitin.errors import InputError
from hitin.methods import METHODS, NeuralMethod
from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.interface import AUXILIARY, Method, Seen, trainable
from hitin.network import for_use, logits_of
from hitin.neural import NeuralModel
from hitin.option_values import types_of
from hitin.settings import Run
from tests.training_harness import (
    BERT,
    TAXONOMY,
    TINY,
    are_equal,
    as_seen,
    documents,
    network_of,
    tiny_bert,
    weights,
)

NEURAL = {name: method for name, method in METHODS.items() if isinstance(method, NeuralMethod)}
ON_TRANSFORMERS_ONLY = {"hgclr"}


def options_known(name: str) -> set[str]:
    settings: Any = NEURAL[name].settings
    return {*types_of(settings)}


FORMS = [
    (name, fidelity)
    for name in NEURAL
    for fidelity in (("clean", "upstream") if "fidelity" in options_known(name) else (None,))
]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")


def options_of(name: str, bert: str, *, on_bert: bool = False, **options: Any) -> dict[str, Any]:
    """Tiny settings of a method, on TextRCNN where it can stand on it."""
    known = options_known(name)
    on_bert = on_bert or name in ON_TRANSFORMERS_ONLY
    tiny = BERT | {"encoder": bert, "learning_rate": 0.02} if on_bert else TINY
    heads = {"heads": 4, "attention_heads": 4}
    small = {option: value for option, value in (tiny | heads | {"match_width": 8}).items() if _means(option, known)}
    return {"method": name} | small | {option: value for option, value in options.items() if value is not None}


def _means(option: str, known: set[str]) -> bool:
    return option in known or option not in {"width", "heads", "attention_heads", "match_width"}


def built(name: str, bert: str, taxonomy: Taxonomy = TAXONOMY, **options: Any) -> tuple[NeuralModel, Batch]:
    """A model that has been told what it is told before training, and a batch of training documents."""
    run = Run.of(**options_of(name, bert, **options))
    texts, labels = documents(12)
    ids = [taxonomy.closure([taxonomy.index(label) for label in names]) for names in labels]
    model = NeuralModel.build(taxonomy, run, texts)
    examples = model.examples(texts, ids)
    model.network.method.prepare(model.facts(examples, examples))
    return model, examples.batch(np.arange(12))


def loss_of(model: NeuralModel, batch: Batch) -> Tensor:
    network = model.network
    text, logits = network(batch)
    found: Tensor = nn.functional.binary_cross_entropy_with_logits(logits, batch.targets)
    for extra in network.method.losses(as_seen(network.encoder, batch, text, logits)).values():
        found = found + extra
    return found


@pytest.mark.parametrize("on_bert", [False, True])
@pytest.mark.parametrize(("name", "fidelity"), FORMS)
def test_every_method_gives_a_logit_for_each_label_of_each_document(
    name: str, fidelity: str | None, on_bert: bool, bert: str
) -> None:
    model, batch = built(name, bert, on_bert=on_bert, fidelity=fidelity)
    for training in (True, False):
        _, logits = model.network.train(training)(batch)
        assert logits.shape == (12, len(TAXONOMY))
        assert logits.isfinite().all()


def without_gradient(model: NeuralModel, batch: Batch) -> list[str]:
    """Parameters that should learn and do not, after a step back."""
    with own_chance(0):  # of all that dropouts could leave out, a part may be everything
        torch.autograd.backward(loss_of(model, batch))
    return [
        name
        for name, parameter in model.network.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.any())
    ]


@pytest.mark.parametrize("on_bert", [False, True])
@pytest.mark.parametrize(("name", "fidelity"), FORMS)
def test_what_counts_as_trainable_gets_a_gradient(name: str, fidelity: str | None, on_bert: bool, bert: str) -> None:
    model, batch = built(name, bert, on_bert=on_bert, fidelity=fidelity)
    assert without_gradient(model, batch) == []
    counts = [parameter.numel() for parameter in model.network.parameters() if parameter.grad is not None]
    assert trainable(model.network) == sum(counts)


def test_a_bias_before_a_batch_norm_which_takes_the_mean_away_has_a_gradient_of_exactly_0(bert: str) -> None:
    model, batch = built("hitin", bert, norm="batch")
    before_norms = [f"method.layers.{layer}.{part}.bias" for layer in range(2) for part in ("first", "second")]
    assert without_gradient(model, batch) == before_norms


@pytest.mark.parametrize("name", NEURAL)
def test_every_method_learns_64_documents_by_heart(name: str, bert: str) -> None:
    texts, labels = documents(64)
    options = options_of(name, bert) | {"epochs": 60, "batch_size": 16, "learning_rate": 0.01, "policy": "raw"}
    if name in ON_TRANSFORMERS_ONLY:
        options |= {"encoder_learning_rate": 0.01, "text_pooling": "mean"}  # it begins at random
    else:
        options |= {"embedding": 32, "hidden": 16, "filters": 16}
    known = options_known(name)
    options |= {option: value for option, value in {"width": 16, "dropout": 0.1}.items() if option in known}
    trained = HierarchicalTextClassifier(TAXONOMY, device="cpu", **options).fit(texts, labels)
    scores = trained.evaluate(texts, labels)
    assert min(scores.micro_f1, scores.macro_f1) > 0.99


@pytest.mark.parametrize("name", NEURAL)
def test_padding_changes_no_logit(name: str, bert: str) -> None:
    model, _ = built(name, bert)
    texts = ["purr", "bark leash bone fin gill swim damp green soft"]
    together = logits_of(model.network, model.examples(texts, [(), ()]))
    alone = [logits_of(model.network, model.examples([text], [()])) for text in texts]
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-5)


@pytest.mark.parametrize("name", NEURAL)
def test_a_saved_model_scores_the_same_without_what_only_training_needs(name: str, bert: str, tmp_path: Path) -> None:
    texts, _ = documents(10, seed=3)
    trained = HierarchicalTextClassifier(TAXONOMY, device="cpu", **options_of(name, bert)).fit(*documents(24))
    trained.save(tmp_path)
    loaded = HierarchicalTextClassifier.load(tmp_path, device="cpu")
    np.testing.assert_array_equal(trained.predict_proba(texts), loaded.predict_proba(texts))
    network = network_of(loaded)
    assert network.method.auxiliary is None
    assert not [key for key in network.state_dict() if key.startswith(f"method.{AUXILIARY}.")]
    assert network.state_dict().keys() == for_use(weights(trained)).keys()


@pytest.mark.parametrize("name", NEURAL)
def test_the_same_seed_gives_the_same_weights(name: str, bert: str) -> None:
    options = options_of(name, bert, epochs=2)
    first, second = (
        HierarchicalTextClassifier(TAXONOMY, device="cpu", **options).fit(*documents(24)) for _ in range(2)
    )
    assert are_equal(weights(first), weights(second))


@pytest.mark.parametrize("name", NEURAL)
@pytest.mark.parametrize(
    "taxonomy",
    [
        Taxonomy.from_edges([], labels=["Cat", "Dog", "Fish", "Moss", "Tree", "Stone"]),
        Taxonomy.from_edges(
            [("Top", "Cat"), ("Top", "Dog"), ("Cat", "Moss"), ("Dog", "Moss"), ("Moss", "Tree")],
            labels=["Fish", "Stone"],
            root=None,
        ),
    ],
    ids=["one level", "several parents"],
)
def test_every_method_takes_any_taxonomy(name: str, taxonomy: Taxonomy, bert: str) -> None:
    model, batch = built(name, bert, taxonomy)
    assert loss_of(model, batch).isfinite()


@pytest.mark.parametrize("name", NEURAL)
def test_a_batch_of_one_document_is_no_trouble(name: str, bert: str) -> None:
    model, batch = built(name, bert)
    assert batch.ids is not None
    assert batch.lengths is not None
    one = Batch(batch.ids[:1, : int(batch.lengths[0])], batch.lengths[:1], batch.targets[:1], None)
    assert loss_of(model, one).isfinite()


def test_a_method_is_refused_on_an_encoder_that_does_not_show_what_it_looks_at() -> None:
    with pytest.raises(InputError, match=r"hiagm-la looks at each token.*\n.*textrcnn"):
        Run.of(method="hiagm-la", encoder="bag")
    with pytest.raises(InputError, match=r"hgclr looks at the embedding layer of a transformer"):
        Run.of(method="hgclr", encoder="textrcnn")
    assert Run.of(method="hgclr").encoder_name == "bert-base-uncased"


class Prompted(Flat):
    """A method with a prompt, in the place of the first token: what those that come later will do."""

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: FlatSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.prompt = nn.Parameter(torch.randn(widths.word))

    def score(self, encoder: TextEncoder, batch: Batch) -> tuple[Encoded, Tensor]:
        assert batch.ids is not None
        words = encoder.words_of(batch.ids)  # (B, L, e)
        words = torch.cat([self.prompt.expand(len(words), 1, -1), words[:, 1:]], dim=1)
        text = encoder(batch.ids, batch.lengths, words)
        return text, self(text)


class Counting(Flat):
    """A method with a loss of its own in place of the common one."""

    replaces_loss = True

    def losses(self, seen: Seen) -> dict[str, Tensor]:
        return {"count": (seen.logits.sigmoid().sum(dim=1) - seen.targets.sum(dim=1)).square().mean()}


@pytest.mark.parametrize("kind", [Prompted, Counting])
@pytest.mark.parametrize("on_bert", [False, True])
def test_there_is_room_for_prompts_and_for_other_losses(
    kind: type[Method], on_bert: bool, bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "flat", NeuralMethod(FlatSettings, kind))
    options = options_of("flat", bert, on_bert=on_bert)
    trained = HierarchicalTextClassifier(TAXONOMY, device="cpu", **options).fit(*documents(24))
    assert isinstance(network_of(trained).method, kind)


def test_a_method_with_the_settings_of_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "own", NeuralMethod(FlatSettings, Counting))
    with pytest.raises(InputError, match=r"own and flat have the same class(.|\n)*class OwnSettings\(FlatSettings\)"):
        Run.of(method="own")
    kind = type("OwnSettings", (FlatSettings,), {})
    monkeypatch.setitem(METHODS, "own", NeuralMethod(kind, Counting))
    assert Run.of(method="own").method_name == "own"


def test_only_methods_without_losses_of_their_own_are_recorded() -> None:
    modules = {name: known.module for name, known in METHODS.items() if isinstance(known, NeuralMethod)}
    recorded = {name for name, module in modules.items() if module.repeats}
    assert recorded == {"flat", "hitin", "hiagm-tp", "hiagm-la"}
    assert all(modules[name].losses is Method.losses for name in recorded)
