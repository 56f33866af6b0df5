"""Explanations: they add up, agree with a slow integral, hold for every encoder and method, and change nothing."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.batches import Batch
from hitin.encoders.interface import Encoded, TextEncoder
from hitin.errors import InputError
from hitin.explain import Explanation, explain
from hitin.explain.explaining import integrals
from hitin.explain.quadrature import Array, integrated
from hitin.explain.reading import read_by_network
from hitin.explain.reference import reference_of
from hitin.methods.linear import LinearModel
from hitin.neural import NeuralModel
from hitin.settings import Run
from tests.exports import BAG, trained_on_bag, trained_on_bert, trained_on_words
from tests.strategies import taxonomies
from tests.test_methods import FORMS, built
from tests.test_transformer import KINDS, tiny
from tests.training_harness import TAXONOMY, documents, network_of, tiny_bert, weights

TEXT = "the bark, swim GILL and a grey leaf"
LABELS = range(len(TAXONOMY))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")


@pytest.fixture(scope="module")
def on_words() -> HierarchicalTextClassifier:
    return trained_on_words()


@pytest.fixture(scope="module")
def on_bag() -> HierarchicalTextClassifier:
    return trained_on_bag()


@pytest.fixture(scope="module")
def on_bert(bert: str) -> HierarchicalTextClassifier:
    return trained_on_bert(bert)


@pytest.fixture(scope="module")
def linear() -> HierarchicalTextClassifier:
    chosen = HierarchicalTextClassifier(TAXONOMY, method="linear", min_df=1, ngrams=2)
    return chosen.fit(*documents(60), documents(40, seed=1))


def missed(each: Explanation) -> float:
    """By how much the words miss the difference, as a part of it."""
    difference = each.score - each.baseline
    return abs(sum(word.weight for word in each.words) - difference) / max(abs(difference), 1e-3)


def check(model: NeuralModel, text: str = TEXT, labels: Any = LABELS) -> None:
    """The words of every label add up to what the network says, less what it says of the reference."""
    model.network.eval()
    reading, found = integrals(model, text, list(labels))
    assert (found.errors <= 0.01).all()
    np.testing.assert_allclose(found.scores, model.logits([text])[0, list(labels)], atol=1e-4)
    for shares, score, baseline in zip(found.weights, found.scores, found.baselines, strict=True):
        total = sum(word.weight for word in reading.words(shares))
        assert total == pytest.approx(score - baseline, abs=0.01 * max(abs(score - baseline), 1e-3) + 1e-6)


# Completeness.


@pytest.mark.parametrize(("name", "fidelity"), FORMS)
def test_words_add_up_for_every_method(name: str, fidelity: str | None, bert: str) -> None:
    check(built(name, bert, fidelity=fidelity)[0])


@pytest.mark.parametrize("name", ["flat", "hitin", "hiagm-la", "himatch"])
def test_words_add_up_on_a_transformer(name: str, bert: str) -> None:
    check(built(name, bert, on_bert=True)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_words_add_up_on_the_kin_of_bert(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path, kind)
    run = Run.of(method="flat", encoder=str(tmp_path), max_length=16, text_pooling="mean")
    check(NeuralModel.build(TAXONOMY, run, []), "a b, zebra c d e")


@settings(max_examples=20)
@given(taxonomies(), st.sampled_from(["hitin", "flat"]), st.integers(0, 5))
def test_words_add_up_on_a_bag_whatever_the_taxonomy(taxonomy: Taxonomy, method: str, seed: int) -> None:
    chosen = {name: value for name, value in BAG.items() if name != "width" or method == "hitin"}
    model = NeuralModel.build(taxonomy, Run.of(method=method, seed=seed, **chosen), documents(40)[0])
    check(model, labels=range(len(taxonomy)))


def test_words_of_trained_models_add_up(on_words: Any, on_bag: Any, linear: Any, on_bert: Any) -> None:
    for classifier in (on_words, on_bag, linear, on_bert):
        for text in documents(8, seed=3)[0]:
            for each in explain(classifier, text, TAXONOMY.labels):
                assert missed(each) <= 0.01
                assert each.error == pytest.approx(missed(each), abs=1e-6)


# Against a slow integral.


class Words(TextEncoder):
    """An encoder whose words were replaced."""

    def __init__(self, encoder: TextEncoder, words: torch.Tensor) -> None:
        super().__init__()
        self.inner, self.words, self.widths = encoder, words, encoder.widths

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor, words: torch.Tensor | None = None) -> Encoded:
        assert words is None
        found: Encoded = self.inner(ids, lengths, words=self.words)
        return found


def slow_weights(model: NeuralModel, text: str, label: int, points: int = 200) -> NDArray[np.float64]:
    """(tokens,): a sum over equal steps, one gradient of all vectors at a time."""
    ids = torch.from_numpy(model.tokens([text])[0].astype(np.int64))[None]
    own = model.network.encoder.words_of(ids).detach()
    start = reference_of(model).expand_as(own).clone()
    _, reading = read_by_network(model, text)
    for place, spans in enumerate(reading.tokens):
        if not spans:
            start[0, place] = own[0, place]
    total = torch.zeros(ids.shape[1], dtype=torch.float64)
    for point in range(points):
        words = (start + (point + 0.5) / points * (own - start)).requires_grad_()
        batch = Batch(ids, torch.tensor([ids.shape[1]]), torch.zeros(1, 0), None)
        _, logits = model.network.method.score(Words(model.network.encoder, words), batch)
        (slope,) = torch.autograd.grad(logits[0, label], words)
        total += ((own - start) * slope)[0].sum(dim=1).double() / points
    return total.numpy()


@pytest.mark.parametrize("kind", ["words", "bag", "bert"])
def test_weights_are_those_of_a_slow_sum(kind: str, on_words: Any, on_bag: Any, on_bert: Any) -> None:
    classifier = {"words": on_words, "bag": on_bag, "bert": on_bert}[kind]
    model, label = classifier.model_, TAXONOMY.index("Fish")
    model.network.eval()
    slow = slow_weights(model, TEXT, label)
    _, found = integrals(model, TEXT, [label])
    np.testing.assert_allclose(found.weights[0], slow, atol=0.03 * np.abs(slow).sum())


class Bent:
    """F(t) = sum over tokens of a ReLU of a t - b: gradients jump where each begins."""

    def __init__(self, slopes: list[list[float]], bends: list[float]) -> None:
        self.rates, self.bends = np.array(slopes), np.array(bends)  # (labels, tokens), (tokens,)
        self.asked = 0

    def values(self, points: Array) -> Array:
        found: Array = np.maximum(points[:, None] - self.bends, 0) @ self.rates.T
        return found

    def slopes(self, points: Array, labels: Any) -> Array:
        self.asked += len(points)
        found: Array = self.rates[labels][:, None, :] * (points[:, None] > self.bends)
        return found


@given(
    st.lists(st.tuples(st.floats(0.1, 5), st.floats(-5, 5), st.floats(0, 0.95)), min_size=1, max_size=6),
    st.sampled_from([0.01, 0.001]),
)
@example([(0.328125, 3.28125e-07, 0.5)], 0.01)
def test_bends_are_found_and_weights_are_exact_to_the_tolerance(
    tokens: list[tuple[float, float, float]], tolerance: float
) -> None:
    way = Bent([[each[0] for each in tokens], [each[1] for each in tokens]], [each[2] for each in tokens])
    found = integrated(way, tolerance=tolerance, most_points=4096)
    exact = way.rates * (1 - way.bends)
    differences = np.maximum(np.abs(exact.sum(axis=1)), 1e-3)  # of less, as much as of this may be wrong
    assert (found.errors <= tolerance).all() or (found.points >= 4096).any()
    most = 0.2 * np.maximum(np.abs(exact).sum(axis=1), 1e-3)
    assert (np.abs(found.weights - exact).sum(axis=1) <= most + 1e-9).all()
    wrong = np.abs(found.weights.sum(axis=1) - exact.sum(axis=1))
    assert (wrong <= tolerance * differences + 1e-9)[found.points < 4096].all()


def test_what_few_points_miss_is_told() -> None:
    way = Bent([[1.0]], [0.3])
    rough, fine = integrated(way, tolerance=1e-9, most_points=16), integrated(way, tolerance=1e-9, most_points=200)
    assert rough.points.tolist() == [16]
    assert fine.points[0] >= 200
    for found in (rough, fine):
        assert found.errors[0] == pytest.approx(abs(found.weights.sum() - 0.7) / 0.7)
    assert rough.errors[0] > 1e-4 > fine.errors[0] > 0


@pytest.mark.parametrize("most", [100, 1024])
@pytest.mark.parametrize("seed", range(5))
def test_labels_explained_together_are_explained_as_alone_within_the_same_limit(seed: int, most: int) -> None:
    chance = np.random.default_rng(seed)
    rates, bends = chance.normal(size=(3, 6)).tolist(), chance.random(6).tolist()
    together = integrated(Bent(rates, bends), tolerance=1e-4, most_points=most)
    for label, own in enumerate(rates):
        alone = integrated(Bent([own], bends), tolerance=1e-4, most_points=most)
        assert together.points[label] == alone.points[0] <= most
        np.testing.assert_allclose(together.weights[label], alone.weights[0], atol=1e-9)


def test_labels_that_are_right_cost_no_more_gradients() -> None:
    found = integrated(Bent([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.3]), tolerance=1e-6)
    assert found.points[0] == 16 < found.points[1]
    np.testing.assert_allclose(found.weights, [[1.0, 0.0], [0.0, 0.7]], atol=1e-6)


# The linear model.


def test_a_linear_model_is_explained_exactly(linear: HierarchicalTextClassifier) -> None:
    """Each word as scikit-learn's own row and the weights of its label have it, one by one."""
    model = linear.model_
    assert isinstance(model, LinearModel)
    text, label = "the bark bark leash, purr", TAXONOMY.index("Dog")
    (each,) = explain(linear, text, ["Dog"])
    row, terms = model.tfidf.rows([text]).toarray()[0], model.tfidf.terms
    coefficients = np.zeros(len(terms))
    some = slice(*model.margins.starts[label : label + 2])
    coefficients[model.margins.columns[some]] = model.margins.values[some]
    words = ["the", "bark", "bark", "leash", "purr"]
    expected = [0.0] * len(words)
    for term, value, coefficient in zip(terms, row, coefficients, strict=True):
        parts = term.split()
        places = [at for at in range(len(words)) if words[at : at + len(parts)] == parts]
        for place in places:
            for step in range(len(parts)):
                expected[place + step] += value * coefficient / len(places) / len(parts)
    assert [word.text for word in each.words] == words
    np.testing.assert_allclose([word.weight for word in each.words], expected, atol=1e-5)
    assert each.baseline == pytest.approx(float(model.margins.intercepts[label]))
    assert each.score == pytest.approx(float(model.logits([text])[0, label]))
    assert each.points == 0


# What is explained.


def test_the_labels_that_are_given_are_explained(on_words: HierarchicalTextClassifier) -> None:
    text = "purr whisker mew purr"
    scored = on_words.scored([text])
    found = explain(on_words, text)
    names = [each.label for each in found]
    given = [TAXONOMY.labels[number] for number in np.flatnonzero(scored.given[0])]
    assert names == given
    for each in found:
        assert each.probability == pytest.approx(float(scored.probabilities[0, TAXONOMY.index(each.label)]), abs=1e-6)


def test_other_decisions_may_be_asked_for_and_where_none_is_given_it_is_the_likeliest_path(on_bag: Any) -> None:
    never = on_bag.decisions_.with_options(policy="raw", threshold=1.0)
    names = {each.label for each in explain(on_bag, "fin gill swim", decisions=never)}
    path = on_bag.decisions_.with_options(policy="single-path", stop=0.0)
    expected = on_bag.decided(on_bag.model_.logits(["fin gill swim"]), path).given[0]
    assert names == {TAXONOMY.labels[number] for number in np.flatnonzero(expected)}
    everything = on_bag.decisions_.with_options(policy="raw", threshold=0.0)
    assert [each.label for each in explain(on_bag, "fin", decisions=everything)] == list(TAXONOMY.labels)


def test_the_words_that_tell_a_label_have_the_greatest_weights(on_words: Any, on_bag: Any, linear: Any) -> None:
    for classifier in (on_words, on_bag, linear):
        (each,) = explain(classifier, "the gill and is", ["Fish"])
        assert max(each.words, key=lambda word: word.weight).text == "gill"


def test_labels_may_be_named_by_their_paths_and_unknown_ones_are_refused(on_bag: HierarchicalTextClassifier) -> None:
    assert [each.label for each in explain(on_bag, TEXT, ["Animal > Dog", "Stone"])] == ["Dog", "Stone"]
    with pytest.raises(InputError, match="Doog") as caught:
        explain(on_bag, TEXT, ["Doog"])
    assert caught.value.kind == "unknown-label"
    assert "'Dog'" in (caught.value.remedy or "")
    assert explain(on_bag, TEXT, []) == []


def test_only_the_weightiest_words_are_told_where_that_is_wanted(on_bag: HierarchicalTextClassifier) -> None:
    (whole,), (some,) = explain(on_bag, TEXT, ["Dog"]), explain(on_bag, TEXT, ["Dog"], most=2)
    assert len(some.words) == 2
    assert some.words == sorted(some.words)
    assert {*some.words} == {*sorted(whole.words, key=lambda word: -abs(word.weight))[:2]}
    assert some.error == whole.error


@pytest.mark.parametrize("text", ["", "   ", "...", "unheard wörds ☃", "\ud83d purr \udc00", "bark " * 60])
def test_any_text_can_be_explained(text: str, on_words: Any, on_bag: Any, linear: Any, on_bert: Any) -> None:
    for classifier in (on_words, on_bag, linear, on_bert):
        for each in explain(classifier, text, ["Animal", "Dog"]):
            assert missed(each) <= 0.01
            assert all(text[word.start : word.end] == word.text for word in each.words)


def test_a_text_of_nothing_has_no_words_and_is_its_own_reference(on_words: Any, on_bag: Any, on_bert: Any) -> None:
    for classifier in (on_words, on_bag, on_bert):
        (each,) = explain(classifier, " \n ", ["Dog"])
        assert each.words == []
        assert (each.score, each.error) == (each.baseline, 0)


def test_what_is_cut_off_has_no_words() -> None:
    short = trained_on_bag(max_length=3)
    (each,) = explain(short, "purr bark fin swim", ["Fish"])
    assert [word.text for word in each.words] == ["purr", "bark", "fin"]


# Nothing is changed.


def test_mode_weights_and_gradients_stay_as_they_are(on_words: HierarchicalTextClassifier) -> None:
    network, before = network_of(on_words), {name: value.clone() for name, value in weights(on_words).items()}
    was_training = network.training
    try:
        for training in (True, False):
            network.train(training)
            found = explain(on_words, TEXT, ["Dog"])
            assert {module.training for module in network.modules()} == {training}
            assert found == explain(on_words, TEXT, ["Dog"])  # without dropout
    finally:
        network.train(was_training)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in network.parameters())
    assert all(torch.equal(before[name], value) for name, value in weights(on_words).items())


def test_predictions_in_another_thread_are_not_disturbed(on_words: HierarchicalTextClassifier) -> None:
    network_of(on_words).eval()
    texts, stop, wrong = documents(30, seed=5)[0], threading.Event(), []
    expected, reasons = on_words.predict_proba(texts), explain(on_words, TEXT, ["Dog"])

    def predict() -> None:
        while not stop.is_set():
            if not np.array_equal(on_words.predict_proba(texts), expected):
                wrong.append("another answer")

    thread = threading.Thread(target=predict)
    thread.start()
    try:
        assert all(explain(on_words, TEXT, ["Dog"]) == reasons for _ in range(5))
    finally:
        stop.set()
        thread.join()
    assert not wrong
