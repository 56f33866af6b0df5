"""A pretrained transformer reads the documents, and HiTIN knows the tree.

The encoder is a folder with a Hugging Face model (`config.json`, `model.safetensors`, `tokenizer.json`), or the name of
one, which is then downloaded. It needs the extra `bert`.

    python examples/pretrained.py FOLDER
    python examples/pretrained.py sentence-transformers/all-MiniLM-L6-v2 --pooling mean --freeze

With `--freeze` the transformer reads every document once and stays as it is, for machines without a GPU. Without it all
is fine-tuned. The default data is a chapter of ICD-10-CM, 1,174 diagnoses.
"""

import argparse
import sys
import time
from pathlib import Path

from hitin import HierarchicalTextClassifier, HitinError, read_documents
from hitin.label_paths import taxonomy_of
from hitin.watcher import Watcher

DATA = Path(__file__).resolve().parent / "diagnoses"


class Report(Watcher):
    """Says after each epoch how it goes."""

    def note(self, message: str) -> None:
        print(message)

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        scores = f"micro-F1 {record['micro_f1']:.3f}, macro-F1 {record['macro_f1']:.3f}" if "micro_f1" in record else ""
        print(
            f"epoch {record['epoch']:.0f}: loss {record['loss']:.4f} {scores}{', the best so far' if is_best else ''}"
        )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", help="the folder or the name of a transformer")
    parser.add_argument("--train", default=DATA / "train.csv", help="documents whose labels are paths")
    parser.add_argument("--test", default=DATA / "test.csv", help="documents to score")
    parser.add_argument("--text-key", help="the column of the texts, if not text")
    parser.add_argument("--label-key", help="the column of the labels, if not label")
    parser.add_argument("--pooling", default="cls", choices=["cls", "mean", "pooler"], help="the document's vector")
    parser.add_argument("--max-length", type=int, default=64, help="tokens of a document")
    parser.add_argument("--freeze", action="store_true", help="leave the transformer as it is")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", default="runs/pretrained", help="the folder of the model")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    keys = {"text_key": chosen.text_key, "label_key": chosen.label_key}
    train, test = list(read_documents(chosen.train, **keys)), list(read_documents(chosen.test, **keys))
    classifier = HierarchicalTextClassifier(
        taxonomy_of([*train, *test]),
        encoder=chosen.encoder,
        text_pooling=chosen.pooling,
        max_length=chosen.max_length,
        freeze=chosen.freeze,
        epochs=chosen.epochs,
        # The transformer moves slowly, what is new moves fast. Of a frozen one, only the latter counts.
        learning_rate=1e-3,
        encoder_learning_rate=5e-5,
    )
    start = time.perf_counter()
    # With `out`, what was trained so far is on disk: the same command goes on after Ctrl-C.
    classifier.fit([each.text for each in train], [each.labels for each in train], out=chosen.out, watcher=Report())
    print(f"trained in {time.perf_counter() - start:.0f} s, kept in {chosen.out}")

    scores = classifier.evaluate([each.text for each in test], [each.labels for each in test])
    print(f"test documents: micro-F1 {scores.micro_f1:.3f}, macro-F1 {scores.macro_f1:.3f}")
    for level in scores.levels:
        print(f"  level {level.level}: {level.labels} labels, micro-F1 {level.micro_f1:.3f}")
    print(f"for programs without torch: hitin export {chosen.out} --to onnx --int8")


if __name__ == "__main__":
    try:
        main()
    except HitinError as error:  # what is wrong with the input, and the remedy
        sys.exit(f"error: {error}")
