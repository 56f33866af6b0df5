"""What stands for a text that says nothing: where the way to a text begins."""

import torch
from tokenizers import Tokenizer
from torch import Tensor

from hitin.encoders.bag import Bag
from hitin.encoders.textrcnn import TextRCNN
from hitin.encoders.transformer import Transformer
from hitin.neural import NeuralModel

_MASKS = ("[MASK]", "<mask>")


@torch.no_grad()
def reference_of(model: NeuralModel) -> Tensor:
    """(e,): the vector that every token of a text has there; those that stand for nothing in it keep theirs.

    Of a bag and of TextRCNN it is the mean of the vectors of all features or words. Of a transformer it is that of the
    unknown word, or, where all words are known, that of the mask. Of several choices (zeros, padding, the mask, the
    unknown word, the mean) each is the one that agrees best with what leaving out words does.
    """
    encoder = model.network.encoder
    if isinstance(encoder, Bag | TextRCNN):
        return encoder.embedding.weight.mean(dim=0)
    assert isinstance(encoder, Transformer)
    number = torch.tensor([[_token_that_says_nothing(model.tokenizer, encoder)]], device=model.device)
    return encoder.words_of(number)[0, 0]


def _token_that_says_nothing(tokenizer: object, encoder: Transformer) -> int:
    assert isinstance(tokenizer, Tokenizer)
    for name in (getattr(tokenizer.model, "unk_token", None), *_MASKS):
        number = None if name is None else tokenizer.token_to_id(name)
        if number is not None:
            return int(number)
    return encoder.padding
