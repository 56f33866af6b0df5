"""Pretrained encoders: what they give by themselves, from any folder that holds one; and what is wrong with others."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hitin.encoders import encoder_config, restore_encoder
from hitin.encoders.interface import Encoded
from hitin.encoders.transformer import (
    TextPooling,
    Transformer,
    TransformerSettings,
    config_of,
    load_pretrained,
    restore,
)
from hitin.errors import InputError
from hitin.tokens import encode
from tests.conftest import SHARED

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertModel", {"max_position_embeddings": 16}),
    "roberta": ("RobertaModel", {"max_position_embeddings": 18, "pad_token_id": 1}),
    "distilbert": ("DistilBertModel", {"max_position_embeddings": 16, "dim": 8, "n_heads": 2, "hidden_dim": 12}),
    "electra": ("ElectraModel", {"max_position_embeddings": 16, "embedding_size": 6}),
    "albert": ("AlbertModel", {"max_position_embeddings": 16, "embedding_size": 6}),
}
WORDS = ["<pad>", "<unk>", "<s>", "</s>", "a", "b", "c", "d", "e"]


def tiny(folder: Path, kind: str = "bert", *, half: bool = False, tokenizer: bool = True, words: int = 9) -> Any:
    """A random model of a kind in a folder, which reads 16 tokens; answers the model."""
    transformers = pytest.importorskip("transformers")
    bars: Any = transformers.utils.logging
    bars.disable_progress_bar()
    name, own = KINDS[kind]
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12} if "dim" not in own else {}
    config = transformers.AutoConfig.for_model(kind, vocab_size=words, num_hidden_layers=3, **sizes | own)
    torch.manual_seed(0)
    model = getattr(transformers, name)(config)
    (model.half() if half else model).save_pretrained(folder)
    if tokenizer:
        tiny_tokenizer(own.get("pad_token_id", 0)).save(str(folder / "tokenizer.json"))
    return model.float().eval()


def tiny_tokenizer(padding: int) -> Tokenizer:
    """Single letters between a beginning and an end."""
    words = WORDS if not padding else ["<s>", "<pad>", "<unk>", "</s>", *WORDS[4:]]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer: Any = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(word, vocabulary[word]) for word in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    words_between: Tokenizer = tokenizer
    return words_between


def encoded(encoder: Transformer, tokenizer: Tokenizer, texts: list[str], max_length: int = 16) -> Encoded:
    documents = encode(tokenizer, texts, max_length)
    ids = torch.from_numpy(documents.padded(np.arange(len(texts))))
    with torch.no_grad():
        found: Encoded = encoder(ids, torch.from_numpy(documents.lengths))
    return found


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_kin_of_bert_give_what_they_give_by_themselves(kind: str, pooling: str, half: bool, tmp_path: Path) -> None:
    model = tiny(tmp_path, kind, half=half)
    chosen = TransformerSettings(encoder=str(tmp_path), text_pooling=pooling, max_length=16)  # type: ignore[arg-type]
    encoder, tokenizer = load_pretrained(chosen)
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    texts = ["a b c d e", "c", "b zebra"]
    together = encoded(encoder.eval(), tokenizer, texts)
    for row, text in enumerate(texts):
        ids = torch.tensor([tokenizer.encode(text).ids])
        tokens = model(input_ids=ids).last_hidden_state[0].detach()
        expected = tokens[0] if pooling == "cls" else tokens.mean(dim=0)
        torch.testing.assert_close(together.vector[row], expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(together.tokens[row][together.mask[row]], tokens, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_may_be_as_long_as_the_places_that_an_encoder_has(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path, kind)
    encoder, tokenizer = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    assert encoded(encoder.eval(), tokenizer, ["a " * 99]).mask.sum() == 16
    with pytest.raises(InputError, match="reads at most 16 tokens, not 17") as caught:
        load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=17))
    assert caught.value.remedy == "Set max_length=16 or less."


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_transformer_is_the_same_without_its_folder(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path, kind, half=True)
    chosen = TransformerSettings(encoder=str(tmp_path), max_length=16)
    encoder, tokenizer = load_pretrained(chosen)
    config, weights = config_of(encoder), encoder.state_dict()
    shutil.rmtree(tmp_path)
    assert str(tmp_path) not in config
    assert json.loads(config)["model_type"] == kind
    again = restore(chosen, config)
    again.load_state_dict(weights)
    assert {parameter.dtype for parameter in again.parameters()} == {torch.float32}
    found, expected = (encoded(each.eval(), tokenizer, ["a b", "c"]) for each in (again, encoder))
    assert torch.equal(found.vector, expected.vector)


def test_a_pooler_is_kept_only_where_it_is_used(tmp_path: Path) -> None:
    model = tiny(tmp_path)
    without, tokenizer = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    assert not [name for name, _ in without.named_parameters() if "pooler" in name]
    pooling, _ = load_pretrained(TransformerSettings(encoder=str(tmp_path), text_pooling="pooler", max_length=16))
    assert [name for name, _ in pooling.named_parameters() if "pooler" in name]
    ids = torch.tensor([tokenizer.encode("a b").ids])
    expected = model(input_ids=ids).pooler_output.detach()
    torch.testing.assert_close(encoded(pooling.eval(), tokenizer, ["a b"]).vector, expected)


@pytest.mark.parametrize("kind", ["distilbert", "electra"])
def test_an_encoder_without_a_pooler_says_so(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path, kind)
    with pytest.raises(InputError, match="has no pooler"):
        load_pretrained(TransformerSettings(encoder=str(tmp_path), text_pooling="pooler", max_length=16))


def test_a_pooler_that_is_not_in_the_file_does_not_begin_at_random(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tiny(tmp_path)
    model = transformers.BertModel.from_pretrained(tmp_path, add_pooling_layer=False)
    model.save_pretrained(tmp_path)
    load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    with pytest.raises(InputError, match="has no pooler"):
        load_pretrained(TransformerSettings(encoder=str(tmp_path), text_pooling="pooler", max_length=16))


def test_frozen_weights_are_not_trained(tmp_path: Path) -> None:
    tiny(tmp_path)
    frozen, _ = load_pretrained(TransformerSettings(encoder=str(tmp_path), freeze=True, max_length=16))
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    free, _ = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    assert all(parameter.requires_grad for parameter in free.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_read_alike_by_number_and_by_vector(kind: str, tmp_path: Path) -> None:
    """Wherever padding begins; what a word is multiplied by changes what is read."""
    tiny(tmp_path, kind)
    encoder, tokenizer = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    encoder.eval().check_embedding()
    assert not encoder.training
    documents = encode(tokenizer, ["a b c d e", "c", "a " * 99], 16)
    ids, lengths = torch.from_numpy(documents.padded(np.arange(3))), torch.from_numpy(documents.lengths)
    words = encoder.words_of(ids)
    assert words.shape == encoder.embedded(ids).shape == (3, 16, encoder.widths.word)
    by_number, by_vector, wiped = (encoder(ids, lengths, given) for given in (None, words, 0 * words))
    torch.testing.assert_close(by_number.tokens[by_number.mask], by_vector.tokens[by_vector.mask])
    assert not torch.allclose(by_number.vector, wiped.vector, atol=1e-3)


def test_more_words_than_tokens_may_be_read(tmp_path: Path) -> None:
    """As a method with a prompt does."""
    tiny(tmp_path)
    encoder, _ = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    ids, lengths = torch.tensor([[2, 4, 3], [2, 3, 0]]), torch.tensor([5, 4])
    prompt = torch.zeros(2, 2, encoder.widths.word)
    found = encoder.eval()(ids, lengths, torch.cat([prompt, encoder.words_of(ids)], dim=1))
    assert found.tokens.shape == (2, 5, 8)
    assert found.mask.tolist() == [[True] * 5, [True] * 4 + [False]]


def test_the_first_token_of_a_decoder_is_no_vector_of_documents(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=9, n_embd=8, n_head=2, n_layer=2, n_positions=16)
    transformers.GPT2Model(config).save_pretrained(tmp_path)
    tiny_tokenizer(0).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="a decoder, sees nothing of what comes after") as caught:
        load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16, text_pooling="cls"))
    assert "text_pooling=mean" in str(caught.value.remedy)
    encoder, _ = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))  # which is usual
    depths = {name: depth for name, _, depth in encoder.depths()}
    assert depths["model.wte.weight"] == depths["model.wpe.weight"] == 2
    assert depths["model.h.0.ln_1.weight"] == 1
    assert depths["model.h.1.ln_1.weight"] == depths["model.ln_f.weight"] == 0


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("xlnet", {"d_model": 8, "n_head": 2, "d_inner": 12, "n_layer": 1}),
        ("gpt2", {"n_embd": 8, "n_head": 2, "n_layer": 1}),
        ("mobilebert", {"hidden_size": 8, "embedding_size": 6, "num_attention_heads": 2, "num_hidden_layers": 1}),
    ],
)
def test_an_embedding_layer_that_cannot_be_looked_at_is_told(kind: str, sizes: dict[str, int]) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, vocab_size=9, **sizes))
    encoder = Transformer(model, TransformerSettings())
    with pytest.raises(InputError, match=rf"embedding layer of a transformer of the kind {kind} cannot") as caught:
        encoder.check_embedding()
    assert caught.value.remedy
    assert encoder.training


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "pooler"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_that_no_one_looks_at_costs_no_training(
    kind: str, pooling: TextPooling, keep: bool, tmp_path: Path
) -> None:
    if pooling == "pooler" and getattr(tiny(tmp_path, kind), "pooler", None) is None:
        return
    tiny(tmp_path, kind)
    encoder, tokenizer = load_pretrained(
        TransformerSettings(encoder=str(tmp_path), text_pooling=pooling, max_length=16)
    )
    encoder.leave_out_vector(keep=keep)
    pooler = {name: weight for name, weight in encoder.named_parameters() if "pooler" in name}
    assert bool(pooler) == (keep and pooling == "pooler")
    assert not any(weight.requires_grad for weight in pooler.values())
    found = encoded(encoder.eval(), tokenizer, ["a b", "c"])
    assert torch.equal(found.vector, found.tokens[:, 0])


def test_a_frozen_encoder_reads_without_dropout_in_training_too(tmp_path: Path) -> None:
    tiny(tmp_path)
    for freeze in (True, False):
        encoder, tokenizer = load_pretrained(TransformerSettings(encoder=str(tmp_path), freeze=freeze, max_length=16))
        first, second = (encoded(encoder.train(), tokenizer, ["a b", "c"]).tokens for _ in range(2))
        assert torch.equal(first, second) == freeze


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"albert"}))  # whose layers share their weights
def test_embeddings_are_the_deepest_and_the_last_layer_is_the_top(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path, kind)
    encoder, _ = load_pretrained(TransformerSettings(encoder=str(tmp_path), max_length=16))
    depths = {name: depth for name, _, depth in encoder.depths()}
    assert list(depths) == [name for name, _ in encoder.named_parameters()]
    assert {depth for name, depth in depths.items() if "embeddings" in name} == {3}
    for layer in range(3):
        assert {depth for name, depth in depths.items() if f"layer.{layer}." in name} == {2 - layer}


def refused(folder: Path | str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_pretrained(TransformerSettings(encoder=str(folder), **{"max_length": 16} | options))
    return str(caught.value)


@pytest.mark.parametrize("name", ["./no-such-folder", "/no/such/folder", "some/where/else"])
def test_a_missing_folder_is_named(name: str) -> None:
    assert refused(name).startswith(f"{name}: there is no such folder\nGive the name of a model")


def test_a_folder_without_a_model_says_what_belongs_there(tmp_path: Path) -> None:
    problem = refused(tmp_path)
    assert f"the text encoder {tmp_path} cannot be loaded" in problem
    assert "a folder with config.json, model.safetensors and tokenizer.json" in problem
    assert "textrcnn, with a method that can do without a transformer" in problem  # which is not every method


def test_a_folder_without_a_tokenizer_says_so(tmp_path: Path) -> None:
    tiny(tmp_path, tokenizer=False)
    assert f"the text encoder {tmp_path} cannot be loaded (it has no tokenizer)" in refused(tmp_path)


def test_a_damaged_tokenizer_says_so(tmp_path: Path) -> None:
    tiny(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    assert f"the text encoder {tmp_path} cannot be loaded (" in refused(tmp_path)


def test_a_tokenizer_of_another_encoder_is_refused(tmp_path: Path) -> None:
    tiny(tmp_path, words=7)
    assert "its tokenizer has 9 tokens, of which it knows 7" in refused(tmp_path)


def test_weights_that_are_missing_do_not_begin_at_random(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert "its weights lack encoder.layer.1.output.dense.weight" in refused(tmp_path)


def test_what_is_no_text_encoder_is_refused(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=9)
    transformers.T5Model(config).save_pretrained(tmp_path)
    assert "it is of the kind t5, which is no text encoder" in refused(tmp_path)


def test_a_document_needs_room_for_a_beginning_a_word_and_an_end() -> None:
    with pytest.raises(InputError, match="at least 3 tokens"):
        TransformerSettings(max_length=2)


@pytest.fixture
def minilm() -> str:
    folder = SHARED / "pretrained" / "minilm-l6-fp16"
    if not folder.is_dir():
        pytest.skip("the pretrained MiniLM is not on this machine")
    return str(folder)


SENTENCES = ["Graphs with few edges.", "A", "The spin of electrons in two dimensions, and " * 6]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_minilm_gives_what_transformers_gives(pooling: str, minilm: str) -> None:
    transformers = pytest.importorskip("transformers")
    chosen = TransformerSettings(encoder=minilm, text_pooling=pooling, max_length=64)  # type: ignore[arg-type]
    encoder, tokenizer = load_pretrained(chosen)
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    together = encoded(encoder.eval(), tokenizer, SENTENCES, 64)
    own_model = transformers.AutoModel.from_pretrained(minilm).float().eval()
    own_tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    inputs = own_tokenizer(SENTENCES, padding=True, truncation=True, max_length=64, return_tensors="pt")
    with torch.no_grad():
        states = own_model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None]
    expected = states[:, 0] if pooling == "cls" else (states * mask).sum(dim=1) / mask.sum(dim=1)
    torch.testing.assert_close(together.vector, expected, rtol=1e-5, atol=1e-5)
    for row, sentence in enumerate(SENTENCES):
        alone = encoded(encoder, tokenizer, [sentence], 64)
        torch.testing.assert_close(alone.vector[0], together.vector[row], rtol=1e-5, atol=1e-5)


def test_minilm_is_restored_as_it_was(minilm: str) -> None:
    chosen = TransformerSettings(encoder=minilm, max_length=32)
    encoder, tokenizer = load_pretrained(chosen)
    config = encoder_config(encoder)
    assert config is not None
    assert "minilm" not in config.lower()
    again = restore_encoder(chosen, tokenizer, config, 0)
    assert isinstance(again, Transformer)
    again.load_state_dict(encoder.state_dict())
    found, expected = (encoded(each.eval(), tokenizer, SENTENCES, 32) for each in (again, encoder))
    assert torch.equal(found.vector, expected.vector)


def test_a_folder_is_read_without_the_hub(tmp_path: Path) -> None:
    tiny(tmp_path)
    script = (
        "import sys; from hitin.encoders.transformer import TransformerSettings, load_pretrained\n"
        "print(load_pretrained(TransformerSettings(encoder=sys.argv[1], max_length=16))[0].width)"
    )
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script, tmp_path], env=offline, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("8\n", 0), done.stderr


def test_texts_that_name_special_tokens_get_none_of_them(shared: Path) -> None:
    tokenizer = Tokenizer.from_file(str(shared.parent / "pretrained" / "minilm-l6-fp16" / "tokenizer.json"))
    first, *inside, last = encode(tokenizer, ["one [SEP] two [PAD] [MASK] [CLS]"], 64)[0].tolist()
    special = {tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]")}
    assert {first, last} <= special
    assert not special & set(inside)
