"""Which settings of a run go together: each is right by itself."""

from typing import TYPE_CHECKING

from hitin.encoders.interface import Sight
from hitin.encoders.names import ENCODERS
from hitin.encoders.tfidf import TfidfSettings
from hitin.encoders.transformer import TransformerSettings
from hitin.errors import printable
from hitin.methods import METHODS, NeuralMethod
from hitin.option_values import bad_option

if TYPE_CHECKING:
    from hitin.settings import Run

_SEEN: dict[Sight, str] = {
    "document": "documents",
    "tokens": "each token of a text",
    "embedding": "the embedding layer of a transformer",
}


def check_together(run: "Run") -> None:
    """Refuse what cannot go together, and what means nothing beside the rest."""
    _check_sight(run)
    _check_negatives(run)
    for problem, remedy in idle_options(run).values():
        raise bad_option(problem, remedy)


def _check_sight(run: "Run") -> None:
    """Refuse an encoder that does not show what the method has to see."""
    method = METHODS[run.method_name]
    if not isinstance(method, NeuralMethod) or isinstance(run.encoder, TfidfSettings):
        return
    seen = method.module.sight(run.method)
    if seen not in run.encoder.SIGHTS:
        name = printable(run.encoder_name)
        having = [name for name, kind in ENCODERS.items() if seen in getattr(kind, "SIGHTS", ())]
        raise bad_option(
            f"the method {run.method_name} looks at {_SEEN[seen]}, which the text encoder {name} has not",
            f"Choose {' or '.join([*having, 'the name or folder of a transformer'])}.",
        )


def _check_negatives(run: "Run") -> None:
    """Refuse to sample labels where the logit of one needs all others."""
    method = METHODS[run.method_name]
    if run.loss.negatives and not (isinstance(method, NeuralMethod) and method.module.is_linear_with(run.method)):
        problem = f"the method {run.method_name} needs all labels, not {run.loss.negatives:,} negatives of each batch"
        raise bad_option(problem, "Leave out negatives, or choose the method hitin or flat.")


def idle_options(run: "Run") -> dict[str, tuple[str, str]]:
    """Options that are not as usual and mean nothing beside the others: what is wrong with each, and the remedy."""
    method, found = run.method, _idle_beside_encoder(run)
    if run.training.sync_norm and getattr(method, "norm", None) != "batch":
        problem = "sync_norm is for the method hitin with norm=batch: nothing else looks at a whole batch"
        found["sync_norm"] = (problem, "Leave it out.")
    return found | (method.idle() if hasattr(method, "idle") else {})


def _idle_beside_encoder(run: "Run") -> dict[str, tuple[str, str]]:
    training, found = run.training, {}
    if not isinstance(run.encoder, TransformerSettings):
        problem = f"goes with a transformer as the text encoder, not with {run.encoder_name}"
        if training.shard:
            found["shard"] = (f"shard {problem}", "Leave it out: there is little to share out.")
        if training.layer_decay != 1:
            remedy = "Leave it out: encoder_learning_rate is for the whole of it."
            found["layer_decay"] = (f"layer_decay {problem}", remedy)
        return found
    if run.encoder.freeze:
        problem, remedy = "is for a text encoder that is trained, and freeze=true", "Leave it out, or leave out freeze."
        if training.layer_decay != 1:
            found["layer_decay"] = (f"layer_decay {problem}", remedy)
        if training.encoder_learning_rate not in (0, run.encoder.usual()["encoder_learning_rate"]):
            found["encoder_learning_rate"] = (f"encoder_learning_rate {problem}", remedy)
    if run.encoder.text_pooling == "pooler" and _leaves_out_vector(run):
        problem = f"the method {run.method_name} looks at tokens, not at what the pooler makes of them"
        found["text_pooling"] = (problem, "Leave it out: it is for methods that look at the document's vector.")
    return found


def _leaves_out_vector(run: "Run") -> bool:
    """Whether the method has no use for the document's vector; some published programs have weights for it still."""
    method = METHODS[run.method_name]
    is_clean = getattr(run.method, "fidelity", "clean") == "clean"
    return isinstance(method, NeuralMethod) and method.module.sight(run.method) == "tokens" and is_clean
