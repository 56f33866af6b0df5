"""A text for each label, made of tokens of its training documents, for methods that read labels like documents."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.methods.interface import Facts, Fidelity
from hitin.taxonomy.taxonomy import Ids
from hitin.tokens import Ragged

_AT_ONCE = 16 * 1024  # documents whose tokens are counted together
_FEWEST, _MOST = 0.1, 0.8  # the part of a label's documents that have a token, in the published program

Tokens = NDArray[np.int32]


class _Weighed(NamedTuple):
    """Each document's tokens, every one once, and what it weighs there."""

    tokens: Ragged
    weights: NDArray[np.float64]

    def of(self, documents: Ids) -> tuple[Tokens, NDArray[np.float64]]:
        """Those of some documents, one after the other."""
        places = self.tokens.places_of(documents)
        return self.tokens.values[places], self.weights[places]


def label_texts(facts: Facts, words: int, fidelity: Fidelity) -> Ragged:
    """The tokens that stand for each label, as long as the longest document at most.

    They are the `words` tokens with the highest mean TF-IDF over the label's documents, the best one first; in the
    published program all that 10 % to 80 % of these documents have, by their number. A label without such tokens has
    those of its name.
    """
    before, after = split_frame(facts.frame, facts.train.tokens)
    room = max(1, int(facts.train.tokens.lengths.max()) - len(before) - len(after))
    chosen = (tokens[:room] for tokens in _chosen(facts, words, fidelity))
    return Ragged.of(
        np.concatenate([before, tokens, after]) if len(tokens) else facts.names[label]
        for label, tokens in enumerate(chosen)
    )


def _chosen(facts: Facts, words: int, fidelity: Fidelity) -> Iterator[Tokens]:
    """The tokens of each label, without a frame."""
    weighed = _counted(facts.train.tokens, facts.frame)
    if fidelity == "clean":
        weighed = _tf_idf(weighed)
    by_label = facts.train.labels.rows_by_value(facts.train.label_count)
    for label in range(len(by_label)):
        documents = by_label[label].astype(np.int64)
        tokens, weights = weighed.of(documents)
        if fidelity == "clean":
            yield _heaviest(tokens, weights)[:words]
        else:
            yield _neither_rare_nor_common(tokens, len(documents))


def split_frame(frame: Tokens, documents: Ragged) -> tuple[Tokens, Tokens]:
    """What of the frame stands before every document, and what after it.

    What a tokenizer makes of no text is no frame if documents do not have it: some answer with the unknown token.
    """
    for cut in range(len(frame) + 1):
        before, after = frame[:cut], frame[cut:]
        ends = documents.starts[1:] - len(after)
        if _all_have(documents, documents.starts[:-1], before) and _all_have(documents, ends, after):
            return before, after
    return frame[:0], frame[:0]


def _all_have(documents: Ragged, places: Ids, wanted: Tokens) -> bool:
    """Whether these tokens stand at a place of each document."""
    if int(documents.lengths.min()) < len(wanted):
        return False
    found = documents.values[places[:, None] + np.arange(len(wanted))]
    return bool((found == wanted).all())


def _counted(tokens: Ragged, left_out: Tokens) -> _Weighed:
    """Each token of a document once, with how often it stands there."""
    size = int(tokens.values.max(initial=0)) + 1
    values, counts, lengths = [], [], []
    for start in range(0, len(tokens), _AT_ONCE):
        bounds = tokens.starts[start : start + _AT_ONCE + 1]
        some = tokens.values[bounds[0] : bounds[-1]].astype(np.int64)
        owners = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        kept = ~np.isin(some, left_out)
        distinct, often = np.unique(owners[kept] * size + some[kept], return_counts=True)
        values.append((distinct % size).astype(np.int32))
        counts.append(often.astype(np.float64))
        lengths.append(np.bincount(distinct // size, minlength=len(bounds) - 1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return _Weighed(Ragged(np.concatenate(values), starts), np.concatenate(counts))


def _tf_idf(counted: _Weighed) -> _Weighed:
    """How often a token stands in a document, times log(documents / documents that have it).

    The weights of a document are of length 1, so that a long one says no more of its labels than a short one.
    """
    tokens, counts = counted
    with_token = np.bincount(tokens.values)
    weights = counts * np.log(len(tokens) / np.maximum(with_token, 1))[tokens.values]
    owners = np.repeat(np.arange(len(tokens)), tokens.lengths)
    norms = np.sqrt(np.bincount(owners, weights**2, minlength=len(tokens)))
    return _Weighed(tokens, weights / np.where(norms > 0, norms, 1)[owners])


def _heaviest(tokens: Tokens, weights: NDArray[np.float64]) -> Tokens:
    """The tokens by what they weigh in all documents together; not those that weigh nothing."""
    totals = np.bincount(tokens, weights)
    found = np.flatnonzero(totals > 0)
    return found[np.argsort(-totals[found], kind="stable")].astype(np.int32)


def _neither_rare_nor_common(tokens: Tokens, documents: int) -> Tokens:
    having = np.bincount(tokens)
    kept = (having > 0) & (having >= _FEWEST * documents) & (having <= _MOST * documents)
    return np.flatnonzero(kept).astype(np.int32)
