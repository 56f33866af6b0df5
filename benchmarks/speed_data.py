"""What the benchmarks of speed are measured on: a text encoder, documents and taxonomies, given or made here.

A machine without pretrained weights and data sets has ICD-10-CM, which comes with a package: its phrases train a
tokenizer and make documents, and a BERT of the shape of MiniLM-L6 begins at random. Speed does not depend on what the
weights are.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from hitin import Taxonomy, read_documents
from hitin.batches import Examples
from hitin.compare.data import Splits
from hitin.datasets.icd10 import icd10
from hitin.encoders.transformer import need_transformers
from hitin.inputs import Documents, documents_of
from hitin.tokens import Ragged
from scoring import taxonomy_of

VOCABULARY = 30_522
SHAPE = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
}
TINY = SHAPE | {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WOS_TOP, WOS_BELOW = 7, 134


def options(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks of speed have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--encoder", type=Path, help="a folder with a BERT; else one of MiniLM's shape is made")
    parser.add_argument("--data", type=Path, help="taxonomy.tsv and train, val, test.jsonl.xz; else documents are made")
    parser.add_argument("--out", type=Path, help="a folder for the table and the plots")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="so small that it only shows that it runs")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a process of its own has to do
    return parser


@contextmanager
def encoder_folder(arguments: argparse.Namespace) -> Iterator[Path]:
    """The folder of a BERT: the one that was given, or one that goes away."""
    if arguments.encoder is not None:
        yield arguments.encoder
        return
    with tempfile.TemporaryDirectory(prefix="hitin-benchmark-") as folder:
        make_encoder(Path(folder), tiny=arguments.tiny, seed=arguments.seed)
        yield Path(folder)


def encoder_told(arguments: argparse.Namespace) -> str:
    if arguments.encoder is not None:
        return str(arguments.encoder.name)
    shape = "of one small layer" if arguments.tiny else "of MiniLM-L6's shape"
    return f"a BERT {shape} with random weights"


def data_told(arguments: argparse.Namespace) -> str:
    return str(arguments.data.name) if arguments.data is not None else "documents of ICD-10-CM's phrases"


def make_encoder(folder: Path, *, tiny: bool, seed: int) -> None:
    """A BERT with random weights, and a tokenizer of the phrases of ICD-10-CM."""
    transformers = need_transformers()
    phrases = [document.text for document in icd10().train[: 2_000 if tiny else None]]
    tokenizer = word_pieces(phrases, 1_000 if tiny else VOCABULARY)
    tokenizer.save(str(folder / "tokenizer.json"))
    transformers.set_seed(seed)
    transformers.utils.logging.disable_progress_bar()
    shape = (TINY if tiny else SHAPE) | {"vocab_size": 1_000 if tiny else VOCABULARY}
    transformers.BertModel(transformers.BertConfig(**shape)).save_pretrained(folder)


def word_pieces(texts: Sequence[str], size: int) -> Tokenizer:
    """A tokenizer as BERT has it."""
    tokenizer: Any = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False)
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made: Tokenizer = tokenizer
    return made


def read_data(arguments: argparse.Namespace, train: int | None = None, test: int | None = None) -> Splits:
    """The documents of the folder that was given, or made ones; of training and test ones at most so many."""
    data = _made(arguments.seed) if arguments.data is None else _given(arguments.data)
    chance = np.random.default_rng(arguments.seed)
    parts = (_some(data.train, train, chance), _some(data.val, test, chance), _some(data.test, test, chance))
    return Splits(data.taxonomy, *parts)


def _some(documents: Documents, most: int | None, chance: np.random.Generator) -> Documents:
    rows = chance.permutation(len(documents.texts))[:most]
    return documents.take(rows.tolist())


def _given(folder: Path) -> Splits:
    taxonomy = Taxonomy.read(folder / "taxonomy.tsv")

    def split(name: str) -> Documents:
        found = list(read_documents(folder / f"{name}.jsonl.xz"))
        return documents_of(taxonomy, [each.text for each in found], [each.labels for each in found], name)

    return Splits(taxonomy, split("train"), split("val"), split("test"))


def _made(seed: int) -> Splits:
    """Documents of ICD-10-CM: phrases of one chapter, their blocks the labels; as long as abstracts."""
    found, chance = icd10(), np.random.default_rng(seed)
    by_chapter: dict[str, list[Any]] = {}
    for document in found.train:
        by_chapter.setdefault(document.labels[0], []).append(document)
    chapters, texts, labels = list(by_chapter.values()), [], []
    for chapter in chance.integers(0, len(chapters), 6_000):
        phrases = [chapters[chapter][place] for place in chance.integers(0, len(chapters[chapter]), 3)]
        texts.append(". ".join(each.text for each in phrases * int(chance.integers(1, 6))))
        labels.append([each.labels[:2][-1] for each in phrases])
    paths = {each.labels[:2] for each in found.train}
    taxonomy = Taxonomy.from_paths(sorted(paths))
    whole = documents_of(taxonomy, texts, labels, "training")
    train, val, test = (whole.take(cut) for cut in (range(5_000), range(5_000, 5_500), range(5_500, 6_000)))
    return Splits(taxonomy, train, val, test)


def taxonomy_of_size(labels: int, file: Path | None = None) -> Taxonomy:
    """With 141 labels that of a file, or two levels as Web of Science has; else ten children below each label."""
    if labels != WOS_TOP + WOS_BELOW:
        return taxonomy_of(labels)
    if file is not None:
        return Taxonomy.read(file)
    top = [(None, f"top {number}") for number in range(WOS_TOP)]
    return Taxonomy.from_edges([*top, *((f"top {number % WOS_TOP}", f"area {number}") for number in range(WOS_BELOW))])


def random_examples(taxonomy: Taxonomy, documents: int, length: int, vocabulary: int, seed: int = 0) -> Examples:
    """Documents of exactly so many tokens, with a random label and its ancestors each."""
    chance = np.random.default_rng(seed)
    tokens = chance.integers(len(SPECIAL), vocabulary, (documents, length))
    labels = [taxonomy.closure([int(label)]) for label in chance.integers(0, len(taxonomy), documents)]
    return Examples(Ragged.of(list(tokens)), Ragged.of(labels), len(taxonomy))
