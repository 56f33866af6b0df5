"""Give texts their labels with a model that `hitin export` wrote, without hitin and torch.

python predict.py FOLDER < texts.txt        a text a line, or JSON lines with a key "text"
"""

import hashlib
import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

Table = np.ndarray[Any, Any]
About = dict[str, Any]

AT_ONCE = 32  # documents
CHARACTERS = 64  # the longest word; and what is looked at of a text for each token that may stay

# From texts to numbers.


def sound(text: str) -> str:
    """Halves of characters, which JSON may hold, become the replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def token_reader(file: Path, about: About) -> Callable[[str], list[int]]:
    """A function from texts to the numbers of their tokens."""
    if about["tokenizer"] == "bag":
        return bag_reader(json.loads(file.read_text(encoding="utf-8")), about)
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # a text that says [PAD] means these letters
    tokenizer.enable_truncation(about["max_length"])
    most = about["max_length"] * CHARACTERS
    return lambda text: tokenizer.encode(sound(text.lstrip()[:most])).ids or [about["unknown"]]


def bag_reader(bag: dict[str, Any], about: About) -> Callable[[str], list[int]]:
    """The same of a bag: words, runs of words and pieces of words, each once."""
    numbers = {term: number for number, term in enumerate(bag["terms"], start=2)}  # after padding and the unknown
    shortest, longest = bag["bags"]["pieces"]

    def read(text: str) -> list[int]:
        plain = unicodedata.normalize("NFKC", sound(text[: about["max_length"] * CHARACTERS])).lower()
        words = [word[:CHARACTERS] for word in re.findall(r"\w+", plain)[: about["max_length"]]]
        found = list(words)
        for length in range(2, bag["bags"]["runs"] + 1):
            found += (" ".join(words[start : start + length]) for start in range(len(words) - length + 1))
        for marked in (f"<{word}>" for word in words if longest):
            for length in range(shortest, longest + 1):
                found += ("#" + marked[start : start + length] for start in range(len(marked) - length + 1))
        return [numbers[each] for each in dict.fromkeys(found) if each in numbers] or [about["unknown"]]

    return read


def logits_of(session: Any, rows: list[list[int]], about: About) -> Table:
    """(labels, documents)"""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), lengths.max()), about["padding"], dtype=np.int64)
    for row, numbers in enumerate(rows):
        ids[row, : len(numbers)] = numbers
    names = about["inputs"]
    logits: Table = session.run([about["output"]], {names[0]: ids, names[1]: lengths})[0]
    return logits.T


# From logits to probabilities. Tables have a row for each label; parents stand before their children.


def log_odds_of(logits: Table, about: About) -> Table:
    """Calibrated, each level by itself: divided by a temperature, or along a rising curve."""
    calibration, levels = about["calibration"], np.array(about["levels"])
    found = logits.astype(np.float64)
    for level, temperature, knots in zip(
        sorted(set(levels)), calibration["temperatures"], calibration["curves"], strict=True
    ):
        values = found[levels == level]
        found[levels == level] = along(np.array(knots), 1 / temperature, values) if knots else values / temperature
    largest = np.finfo(np.float32).max / 2
    return np.clip(found, -largest, largest).astype(np.float32)


def along(knots: Table, slope: float, values: Table) -> Table:
    """Straight between the knots; beyond them with the slope of the temperature."""
    x, y = knots.T
    found: Table = np.interp(values, x, y)
    found = np.where(values < x[0], y[0] + slope * (values - x[0]), found)
    return np.where(values > x[-1], y[-1] + slope * (values - x[-1]), found)


def lowest_above(table: Table, parents: list[list[int]]) -> Table:
    """The lowest of each label and all its ancestors; of what is chosen, that whose ancestors are chosen, too."""
    found = table.copy()
    for label, above in enumerate(parents):
        for parent in above:
            found[label] = np.minimum(found[label], found[parent])
    return found


def highest_below(table: Table, parents: list[list[int]]) -> Table:
    """The highest of each label and all its descendants; of what is chosen, with all ancestors."""
    found = table.copy()
    for label in reversed(range(len(parents))):
        for parent in parents[label]:
            found[parent] = np.maximum(found[parent], found[label])
    return found


def decide(logits: Table, about: About) -> tuple[Table, Table]:
    """(labels, documents) twice: the probabilities, and which labels are given."""
    parents, policy = about["parents"], about["policy"]
    own = shown = log_odds_of(logits, about)
    if about["calibration"]["kind"] != "none":  # no label is shown as more probable than its parents
        shown = (lowest_above(own, parents) + highest_below(own, parents)) / 2
    small = np.exp(-np.abs(shown))
    probabilities = np.where(shown >= 0, 1, small) / (1 + small)
    with np.errstate(divide="ignore"):
        thresholds = np.array(about["thresholds"])[:, None]
        at = np.log(thresholds) - np.log1p(-thresholds)
    if policy == "raw":
        given = shown > at
    elif policy == "top-down":
        given = lowest_above(shown > at, parents)
    elif policy == "consistent":
        given = likeliest(np.clip(own.astype(np.float64) - at, -1e6, 1e6), parents)
    elif policy == "single-path":
        given = highest_below(best_end(own, parents), parents)
    else:
        given = np.zeros(own.shape, dtype=bool)
        np.put_along_axis(given, np.argsort(-own, axis=0, kind="stable")[: about["k"]], True, axis=0)
        given = highest_below(given, parents)
    if about["stop"]:
        given &= lowest_above(probabilities >= about["stop"], parents)
    return probabilities, given


def likeliest(worth: Table, parents: list[list[int]]) -> Table:
    """The likeliest set of labels that leaves out no parent: a label brings in what its children gain."""
    if any(len(above) > 1 for above in parents):
        sys.exit("The policy consistent needs a label to have one parent at most here; choose another with hitin tune.")
    for label in reversed(range(len(parents))):
        for parent in parents[label]:
            worth[parent] += np.maximum(worth[label], 0)
    return lowest_above(worth > 0, parents)


def best_end(scores: Table, parents: list[list[int]]) -> Table:
    """The lowest label whose scores, with those of its ancestors, have the highest sum."""
    lines: list[list[int]] = []  # of each label: itself and its ancestors
    for label, above in enumerate(parents):
        lines.append(sorted({label}.union(*(lines[parent] for parent in above))))
    ends = sorted(set(range(len(parents))) - {parent for above in parents for parent in above})
    sums = np.array([scores[lines[end]].sum(axis=0, dtype=np.float64) for end in ends])
    given = np.zeros(scores.shape, dtype=bool)
    given[np.array(ends)[sums.argmax(axis=0)], np.arange(scores.shape[1])] = True
    return given


# All together.


def texts_of(lines: list[str]) -> list[str]:
    """Each line, or the text of each that is JSON; among these, blank ones are passed over."""
    filled = [line for line in lines if line.strip()]
    return [json.loads(line)["text"] for line in filled] if filled and filled[0].lstrip().startswith("{") else lines


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    if not (folder / "labels.json").is_file():
        sys.exit(f"{folder} is no folder that hitin export wrote, such as MODEL/onnx")
    about = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    if hashlib.sha256((folder / "decisions.json").read_bytes()).hexdigest() != about["decisions_sha256"]:
        print("decisions.json was changed after the export, which labels.json does not know", file=sys.stderr)
    read = token_reader(folder / "tokenizer.json", about)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    has_8_bits = json.loads((folder / "export.json").read_text(encoding="utf-8"))["int8"]
    at_once = 1 if has_8_bits else AT_ONCE  # which round all that is run by one scale: others would change the answer
    texts = texts_of([line.rstrip("\r\n") for line in io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")])
    for start in range(0, len(texts), at_once):
        rows = [read(text) for text in texts[start : start + at_once]]
        probabilities, chosen = decide(logits_of(session, rows, about), about)
        for chances, given in zip(probabilities.T, chosen.T, strict=True):
            labels = np.flatnonzero(given)
            scores = {about["labels"][label]: float(f"{chances[label]:.4g}") for label in labels}
            print(json.dumps({"labels": list(scores), "scores": scores}, ensure_ascii=False))


if __name__ == "__main__":
    main()
