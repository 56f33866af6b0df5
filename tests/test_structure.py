"""The structure encoders of HiAGM against loops over labels, written out from their formulas."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from hitin import Taxonomy
from hitin.batches import Examples
from hitin.errors import InputError
from hitin.methods.gcn import HierarchyGCN
from hitin.methods.interface import Facts, Fidelity
from hitin.methods.structure import StructureEncoder, StructureName, StructureSettings, build_structure
from hitin.methods.tree_lstm import Reading, TreeLSTM
from hitin.tokens import Ragged
from tests.networks import Largest, label_tree
from tests.strategies import taxonomies

WIDTH = 6
FIDELITIES = st.sampled_from(get_args(Fidelity))
NAMES = get_args(StructureName)
DAG = Taxonomy.from_edges([("A", "C"), ("B", "C"), ("A", "D"), ("C", "E"), ("A", "E")], labels=["F"], root=None)


def structure(name: StructureName, taxonomy: Taxonomy, fidelity: Fidelity, seed: int = 0) -> StructureEncoder:
    """One in double precision whose parameters have left their start, also those of pairs that are no edges."""
    torch.manual_seed(seed)
    module = build_structure(name, taxonomy, WIDTH, fidelity).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return module


def close(found: Tensor | None, expected: Tensor | None) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


class Slowly:
    """The same parameters under the same names, and a loop over labels."""

    def __init__(self, module: StructureEncoder, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self.module = module
        self.parameters: Mapping[str, Tensor] = {
            name: parameter.detach().clone().requires_grad_() for name, parameter in module.named_parameters()
        }

    def weight(self, direction: str, receiver: int, sender: int) -> Tensor:
        """That of an edge: by its place in the table, or in the list of edges."""
        weights = self.parameters[f"{direction}.weight"]
        if self.module.fidelity == "upstream":
            return weights[receiver, sender]
        parent, child = (receiver, sender) if direction == "up" else (sender, receiver)
        return weights[self.taxonomy.edges.tolist().index([parent, child])]

    def senders(self, direction: str, label: int) -> list[int]:
        found = self.taxonomy.children(label) if direction == "up" else self.taxonomy.parents(label)
        return [int(sender) for sender in found]

    def dropout(self, values: Tensor) -> Tensor:
        return functional.dropout(values, 0.05, self.module.training)

    def linear(self, name: str, values: Tensor) -> Tensor:
        return values @ self.parameters[f"{name}.weight"].T + self.parameters[f"{name}.bias"]


class SlowGCN(Slowly):
    def __call__(self, nodes: Tensor) -> Tensor:
        labels = range(len(self.taxonomy))
        up = torch.stack([self._gated("up", label, nodes) for label in labels], dim=-2)
        down = torch.stack([self._gated("down", label, nodes) for label in labels], dim=-2)
        own = torch.stack([self._gate(2, label, nodes) * nodes[..., label, :] for label in labels], dim=-2)
        return torch.relu(self.dropout(up) + self.dropout(down) + self.dropout(own))

    def _gated(self, direction: str, label: int, nodes: Tensor) -> Tensor:
        message = self.parameters[f"{direction}_bias"][label].expand(nodes[..., label, :].shape)
        for sender in self.senders(direction, label):
            message = message + self.weight(direction, label, sender) * nodes[..., sender, :]
        return self._gate(0 if direction == "up" else 1, label, nodes) * message

    def _gate(self, kind: int, label: int, nodes: Tensor) -> Tensor:
        logit = (nodes[..., label, :] * self.parameters["gates"][kind]).sum(dim=-1, keepdim=True)
        if kind < 2:
            logit = logit + self.parameters["gate_bias"][kind, label]
        return torch.sigmoid(logit)


class SlowTreeLSTM(Slowly):
    def __call__(self, nodes: Tensor) -> Tensor:
        halves = [self._half("up", "upwards", nodes), self._half("down", "downwards", nodes)]
        return torch.cat([self.dropout(half) for half in halves], dim=-1)

    def _half(self, direction: str, reading: str, nodes: Tensor) -> Tensor:
        states = [self._state(direction, reading, label, nodes) for label in range(len(self.taxonomy))]
        return torch.stack([output for _, output in states], dim=-2)

    def _state(self, direction: str, reading: str, label: int, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """c and h of a label, those of the labels that it hears of first."""
        vector = nodes[..., label, :]
        memory = output = torch.zeros_like(vector[..., : WIDTH // 2])
        for sender in self.senders(direction, label):
            weight = self.weight(direction, label, sender)
            sent_memory, sent_output = (weight * part for part in self._state(direction, reading, sender, nodes))
            forget = self.linear(f"{reading}.label_forget", vector) + self.linear(
                f"{reading}.state_forget", sent_output
            )
            memory = memory + torch.sigmoid(forget) * sent_memory
            output = output + sent_output
        gates = self.linear(f"{reading}.label", vector) + self.linear(f"{reading}.state", output)
        let_in, let_out, new = gates.chunk(3, dim=-1)
        memory = memory + torch.sigmoid(let_in) * torch.tanh(new)
        return memory, torch.sigmoid(let_out) * torch.tanh(memory)


SLOW: dict[str, Any] = {"gcn": SlowGCN, "tree-lstm": SlowTreeLSTM}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(
    taxonomy=taxonomies(),
    fidelity=FIDELITIES,
    shape=st.sampled_from([(), (1,), (3,), (2, 2)]),
    seed=st.integers(0, 2**20),
    training=st.booleans(),
)
def test_edges_at_once_and_labels_one_by_one_are_the_same(
    name: StructureName, taxonomy: Taxonomy, fidelity: Fidelity, shape: tuple[int, ...], seed: int, training: bool
) -> None:
    module = structure(name, taxonomy, fidelity, seed).train(training)
    slow = SLOW[name](module, taxonomy)
    nodes = torch.randn(*shape, len(taxonomy), WIDTH, dtype=torch.float64)
    given_nodes = [nodes.clone().requires_grad_() for _ in range(2)]
    weights = torch.randn_like(nodes)
    for way, each in zip((module, slow), given_nodes, strict=True):
        torch.manual_seed(seed)
        torch.autograd.backward((way(each) * weights).sum())
    torch.manual_seed(seed)
    found = module(nodes)
    torch.manual_seed(seed)
    close(found, slow(nodes))
    close(given_nodes[0].grad, given_nodes[1].grad)
    for parameter_name, parameter in module.named_parameters():
        expected = slow.parameters[parameter_name]
        if parameter.requires_grad:
            close(parameter.grad, torch.zeros_like(expected) if expected.grad is None else expected.grad)


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Taxonomy, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """A taxonomy, and the labels of training and of validation documents."""
    taxonomy = draw(taxonomies())
    chosen = st.lists(st.sets(st.integers(0, len(taxonomy) - 1), max_size=3), max_size=8)
    train, val = ([taxonomy.closure(labels) for labels in draw(chosen)] for _ in range(2))
    return taxonomy, train, val


def facts(taxonomy: Taxonomy, train: list[tuple[int, ...]], val: list[tuple[int, ...]] | None) -> Facts:
    def examples(labels: list[tuple[int, ...]]) -> Examples:
        return Examples(Ragged.of([[1]] * len(labels)), Ragged.of(labels), len(taxonomy))

    counts = None if val is None else examples(val).label_counts()
    return Facts(examples(train), counts, Ragged.of([[1]] * len(taxonomy)), np.array([1], dtype=np.int32))


def counted_shares(taxonomy: Taxonomy, documents: list[tuple[int, ...]]) -> NDArray[np.float64]:
    """P(c|p), edge by edge and document by document."""
    shares = []
    for parent, child in taxonomy.edges.tolist():
        both = [sum({parent, other} <= set(labels) for labels in documents) for other in taxonomy.children(parent)]
        own = sum({parent, child} <= set(labels) for labels in documents)
        shares.append(own / sum(both) if sum(both) else 0.0)
    return np.array(shares, dtype=np.float64)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(found=labelled(), fidelity=FIDELITIES, has_val=st.booleans())
def test_weights_of_edges_begin_at_what_documents_tell(
    name: StructureName,
    found: tuple[Taxonomy, list[tuple[int, ...]], list[tuple[int, ...]]],
    fidelity: Fidelity,
    has_val: bool,
) -> None:
    taxonomy, train, val = found
    module = build_structure(name, taxonomy, WIDTH, fidelity)
    module.prepare(facts(taxonomy, train, val if has_val else None))
    expected = counted_shares(taxonomy, train + val if has_val and fidelity == "upstream" else train)
    if (name, fidelity) == ("tree-lstm", "upstream"):
        expected = np.zeros(len(taxonomy.edges))
    np.testing.assert_allclose(module.up().detach().numpy(), 1)
    np.testing.assert_allclose(module.down().detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("fidelity", get_args(Fidelity))
def test_what_is_known_of_documents_is_told_again_without_harm(fidelity: Fidelity) -> None:
    module = build_structure("gcn", DAG, WIDTH, fidelity)
    for documents in ([DAG.closure([DAG.index("E")])], [DAG.closure([DAG.index("D")])]):
        module.prepare(facts(DAG, documents, None))
    np.testing.assert_allclose(module.down().detach().numpy(), counted_shares(DAG, documents))


@pytest.mark.parametrize(
    ("name", "fidelity", "expected"),
    [
        ("gcn", "upstream", 125_544),
        ("gcn", "clean", 125_544 - 2 * 141 * 141 + 2 * 134),
        ("tree-lstm", "upstream", 627_312),
        ("tree-lstm", "clean", 627_312 - 45_150 - 2 * 141 * 141 + 2 * 134),
    ],
)
def test_there_are_as_many_parameters_as_published_or_a_number_for_each_edge(
    name: StructureName, fidelity: Fidelity, expected: int
) -> None:
    edges = [(f"{label % 7}", f"{label}") for label in range(7, 141)]  # 7 labels above 134, as in Web of Science
    module = build_structure(name, Taxonomy.from_edges(edges, root=None), 300, fidelity)
    assert sum(parameter.numel() for parameter in module.parameters()) == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("taxonomy", [DAG, Taxonomy.from_edges([], labels=["A"], root=None)])
def test_in_the_clean_form_everything_is_learnt(name: StructureName, taxonomy: Taxonomy) -> None:
    module = structure(name, taxonomy, "clean")
    torch.autograd.backward(module(torch.randn(2, len(taxonomy), WIDTH, dtype=torch.float64)).sum())
    assert all(parameter.grad is not None for parameter in module.parameters())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fidelity", get_args(Fidelity))
def test_only_what_is_learnt_is_saved(name: StructureName, fidelity: Fidelity) -> None:
    module = build_structure(name, DAG, WIDTH, fidelity)
    assert set(module.state_dict()) == {parameter_name for parameter_name, _ in module.named_parameters()}


@pytest.mark.parametrize("name", NAMES)
def test_memory_grows_with_edges_and_not_with_pairs_of_labels(name: StructureName) -> None:
    taxonomy = label_tree(2_000)
    module = build_structure(name, taxonomy, 4, "clean")
    nodes = torch.randn(2, len(taxonomy), 4)
    with Largest() as largest:
        torch.autograd.backward(module(nodes).sum())
    assert largest.numbers <= 2 * nodes.numel()


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_half_precision_are_added_up_in_full(name: StructureName) -> None:
    module = build_structure(name, label_tree(300, 299), 4, "clean").eval()
    nodes = torch.rand(1, 300, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = module(nodes.bfloat16())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, module(nodes), rtol=0.03, atol=0.03)


def test_the_start_of_a_graph_convolution_has_open_and_closed_gates() -> None:
    module = HierarchyGCN(label_tree(50), 300, "clean")
    assert not module.up_bias.any()
    assert not module.down_bias.any()
    assert not module.gate_bias.any()
    bound = (6 / 301) ** 0.5
    assert 0.95 * bound < float(module.gates.detach().abs().max()) <= bound


def test_an_odd_width_has_no_half_for_each_direction() -> None:
    with pytest.raises(InputError, match=r"width 7(.|\n)*even width, or structure gcn"):
        TreeLSTM(DAG, 7, "clean")


def test_every_label_is_read_after_all_that_it_hears_of() -> None:
    """E is below C and below A, which are not on the same level."""
    module = TreeLSTM(DAG, WIDTH, "clean")
    for reading in (module.upwards, module.downwards):
        assert isinstance(reading, Reading)
        done: set[int] = set()
        for number, level in enumerate(reading.levels):
            assert {*reading.get_buffer(f"senders_{number}").tolist()} <= done
            done |= {*range(level.start, level.stop)}
        assert done == {*range(len(DAG))}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"structure": "lstm"}, "structure cannot be 'lstm'(.|\n)*gcn, tree-lstm"),
        ({"fidelity": "exact"}, "fidelity cannot be 'exact'(.|\n)*clean, upstream"),
        ({"dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        StructureSettings(**options)
