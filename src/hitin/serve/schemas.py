"""What is asked and answered, as the OpenAPI document describes it. What is asked is strict: no unknown fields, no
numbers in place of text."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hitin.cells import whole_characters
from hitin.decisions import Policy
from hitin.decisions.policies import WITH_THRESHOLDS

_MOST = 1_000_000
MOST_LABELS = 16
"""Labels that are explained in one request."""


def _sound(value: object) -> object:
    """Halves of characters, which JSON can hold and UTF-8 cannot, as the sign for what is unknown."""
    return whole_characters(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_sound)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Asked(BaseModel):
    """What every request may say of the model and of how labels are chosen."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: Text | None = Field(None, description="The model by name; without, the first of /v1/models.")
    policy: Policy | None = Field(None, description="How labels are chosen, if not as the model has it.")
    threshold: Probability | None = Field(
        None,
        description="The probability above which a label is given, one for all, in place of what was tuned. The "
        "policies single-path and top-k have none.",
    )
    k: int | None = Field(
        None,
        ge=1,
        le=_MOST,
        description="How many labels the policy top-k gives, which must be asked for or be the model's own.",
    )
    stop: Probability | None = Field(None, description="Give no label less probable than this, nor what is below it.")


def _what_goes_together(schema: dict[str, Any]) -> None:
    """Only some policies have a threshold, and one has a k. Without a policy, the model's own is meant."""
    schema["allOf"] = [_only_with("threshold", *WITH_THRESHOLDS), _only_with("k", "top-k")]


def _only_with(field: str, *policies: Policy) -> dict[str, Any]:
    """That a field which is not null goes with some policies."""
    is_given = {"required": [field], "properties": {field: {"not": {"type": "null"}}}}
    return {"if": is_given, "then": {"properties": {"policy": {"enum": [*policies, None]}}}}


def _one_of_text_and_texts(schema: dict[str, Any]) -> None:
    _what_goes_together(schema)
    for name in ("text", "texts"):
        schema["properties"][name].pop("default", None)
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]


class PredictRequest(Asked):
    """One text, or many."""

    model_config = ConfigDict(json_schema_extra=_one_of_text_and_texts)

    text: Text = Field(default="", description="One text; or `texts`.")
    # The first text that is none is told: of millions of them, a list would take minutes and all memory.
    texts: list[Text] = Field(default=[], min_length=1, fail_fast=True, description="Many texts; or `text`.")
    top: int = Field(0, ge=0, le=_MOST, description="Tell so many of the most probable labels besides.")
    deepest: bool = Field(False, description="Whether only the ends of the paths are told in `labels`.")
    all_scores: bool = Field(
        False, description="Adds `probabilities`, of all labels in the order of /v1/taxonomy. Texts times labels are "
        "limited."
    )  # fmt: skip
    limits: bool = Field(
        False,
        description="Adds `limits`, in the order of /v1/taxonomy: the highest threshold at which each label is given "
        "under the policy (of a policy without thresholds: the highest `stop`), in steps of 0.01; -1: none. At most "
        "16 texts.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({"text", "texts"} & self.model_fields_set) != 1:
            raise PydanticCustomError("one_of_two", "text or texts is needed, and not both")
        return self

    @property
    def all_texts(self) -> list[str]:
        return [self.text] if "text" in self.model_fields_set else self.texts


class ExplainRequest(Asked):
    """A text, and the labels to be explained."""

    model_config = ConfigDict(json_schema_extra=_what_goes_together)

    text: Text
    labels: list[Text] | None = Field(
        None,
        fail_fast=True,
        min_length=1,
        max_length=MOST_LABELS,
        description="Labels by name; without, those that are given, or where none is, the most probable path.",
    )
    most: int | None = Field(None, ge=1, le=_MOST, description="So many words at most, the weightiest.")
    units: Literal["characters", "utf-16"] = Field(
        "characters", description="What `start` and `end` count: Unicode characters, or JavaScript's units."
    )


# What is answered.


class DecisionsAnswer(BaseModel):
    """How labels were chosen."""

    policy: Policy
    calibration: str
    stop: float
    threshold: float | list[float] | None = Field(None, description="Not told where each label has its own.")
    k: int | None = None
    words: str = Field(description="The same for people.")


class DocumentAnswer(BaseModel):
    """What is told of a text."""

    labels: list[str] = Field(description="From the top down.")
    paths: list[str] = Field(description="To the deepest labels, `A > B > C`.")
    scores: dict[str, float] = Field(description="The probabilities of the labels.")
    unsure: dict[str, float] | None = Field(None, description="Labels that only `stop` keeps from being given.")
    top: dict[str, float] | None = None
    probabilities: list[float] | None = None
    limits: list[float] | None = None


class PredictAnswer(BaseModel):
    model: str
    taxonomy: str = Field(description="The `id` of the taxonomy, whose order `probabilities` and `limits` have.")
    decisions: DecisionsAnswer
    documents: list[DocumentAnswer] = Field(description="In the order of the texts.")


class WordAnswer(BaseModel):
    start: int
    end: int
    text: str
    weight: float = Field(description="How much it speaks for the label; below 0: against it.")


class ExplanationAnswer(BaseModel):
    label: str
    probability: float
    score: float = Field(description="The logit of the label.")
    baseline: float = Field(description="That of no text.")
    error: float = Field(description="How far the weights are from score - baseline, as a part of it.")
    words: list[WordAnswer]


class ExplainAnswer(BaseModel):
    model: str
    explanations: list[ExplanationAnswer]


class TaxonomyAnswer(BaseModel):
    id: str = Field(description="Of these labels in this order; answers of /v1/predict name it.")
    model: str
    labels: list[str] = Field(description="Level by level from the top.")
    edges: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(
        description="Parent and child, as positions in `labels`."
    )
    level_sizes: list[int]


class ModelAnswer(BaseModel):
    name: str
    method: str
    encoder: str
    runtime: Literal["torch", "onnx", "onnx-int8"]
    labels: int
    levels: list[int]
    documents: int | None = Field(description="How many it was trained on, where that is known.")
    decisions: DecisionsAnswer
    policies: list[Policy]
    explains: bool = Field(description="Whether /v1/explain answers for it.")
    loaded: str = Field(description="When, in UTC.")
    problem: str | None = Field(description="What is wrong with its folder now, where it could not be loaded anew.")


class ModelsAnswer(BaseModel):
    models: list[ModelAnswer] = Field(description="The first is the one that is meant without a name.")


class StateAnswer(BaseModel):
    status: str


class ErrorTold(BaseModel):
    kind: str = Field(description="A short name, for programs.")
    message: str
    remedy: str | None = None


class ErrorAnswer(BaseModel):
    error: ErrorTold
