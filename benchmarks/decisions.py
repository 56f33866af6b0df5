"""What decisions are worth: the same scores at a threshold of 0.5, and decided in every way that can be tuned.

    python benchmarks/decisions.py DATA OUT.jsonl -- method=linear
    python benchmarks/decisions.py DATA OUT.jsonl -- method=hitin encoder=FOLDER text_pooling=mean epochs=6 seed=0
    python benchmarks/decisions.py --show OUT.jsonl

DATA holds taxonomy.tsv and train, val and test.jsonl.xz. Everything is tuned on validation documents; test documents
are only scored. Each run adds a line to OUT.jsonl; --show prints their tables in Markdown.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Reliability
from hitin.decisions import Decisions, DecisionSettings, tune
from hitin.decisions.fitting import candidates
from hitin.decisions.goals import Metric
from hitin.estimator import HierarchicalTextClassifier
from hitin.evaluation import logits_in_parts, truth_table
from hitin.inputs import documents_of
from hitin.metrics import Tally
from hitin.option_values import parse_option
from hitin.taxonomy import Taxonomy
from real_data import Lines, split

Table = NDArray[Any]


def scores_of(decisions: Decisions, logits: Table, truth: Table, taxonomy: Taxonomy) -> dict[str, float]:
    tally, reliability = Tally(taxonomy, blocks=0), Reliability(taxonomy)
    tally.add(decisions.decide(logits, taxonomy), truth)
    reliability.add(decisions.probabilities(logits, taxonomy), truth)
    found = tally.scores(resamples=0)
    names = ("micro_f1", "macro_f1", "hierarchical_f1", "precision", "recall", "path_consistency")
    return {name: getattr(found, name) for name in names} | {"ece": reliability.ece()}


def ways(logits: Table, truth: Table, taxonomy: Taxonomy) -> Iterator[tuple[str, Decisions]]:
    """Each way to decide, tuned for the mean of micro and macro F1; and the best of them for each goal."""
    yield "0.5, as in papers", Decisions("raw")
    for one in candidates(DecisionSettings(), taxonomy):
        if one.stops:
            continue
        settings = DecisionSettings(policy=one.policy, thresholds=one.thresholds or "auto")
        yield f"{one.policy} {one.thresholds or ''}".strip(), tune(logits, truth, taxonomy, settings).decisions
    goals: tuple[Metric, ...] = get_args(Metric)
    for goal in goals:
        for policy in ("raw", "consistent", "auto"):
            settings = DecisionSettings(policy=policy, tune_for=goal)
            yield f"{policy}, best for {goal}", tune(logits, truth, taxonomy, settings).decisions


def measure(data: Path, options: dict[str, Any]) -> dict[str, Any]:
    classifier = HierarchicalTextClassifier(data / "taxonomy.tsv", **options)
    classifier.fit(*split(data, "train"), split(data, "val"), watcher=Lines())
    taxonomy, tables = classifier.taxonomy_, {}
    for name in ("val", "test"):
        documents = documents_of(taxonomy, *split(data, name), name)
        logits = logits_in_parts(classifier.model_, documents.texts, lambda _: None)
        tables[name] = (logits, truth_table(documents.labels, taxonomy))
    started = time.process_time()
    tune(*tables["val"], taxonomy)
    found: dict[str, Any] = {"data": data.name, "options": options, "tuning_seconds": time.process_time() - started}
    found["training_seconds"] = round(classifier.history_.seconds, 1)
    found["auto"] = classifier.decisions_.describe()
    found["rows"] = [
        {"way": way, "decisions": decisions.describe()}
        | {name: scores_of(decisions, *tables[name], taxonomy) for name in tables}
        for way, decisions in ways(*tables["val"], taxonomy)
    ]
    return found


def show(found: dict[str, Any]) -> Iterator[str]:
    """The table of a run, in Markdown."""
    options = " ".join(f"{name}={value}" for name, value in found["options"].items())
    yield f"### {found['data']}: {options}"
    yield ""
    yield f"Chosen after training: {found['auto']}. Tuning took {found['tuning_seconds']:.1f} processor seconds."
    yield ""
    yield "| decided | val micro / macro | test micro / macro | test gain over 0.5 | hierarchical F1 | closed | ECE |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    base = found["rows"][0]["test"]
    for row in found["rows"]:
        val, test = row["val"], row["test"]
        gain = [100 * (test[name] - base[name]) for name in ("micro_f1", "macro_f1")]
        yield (
            f"| {row['way']} | {100 * val['micro_f1']:.2f} / {100 * val['macro_f1']:.2f} "
            f"| {100 * test['micro_f1']:.2f} / {100 * test['macro_f1']:.2f} | {gain[0]:+.2f} / {gain[1]:+.2f} "
            f"| {100 * test['hierarchical_f1']:.2f} | {test['path_consistency']:.3f} | {test['ece']:.4f} |"
        )
    yield ""


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[0] == "--show":
        for line in Path(arguments[1]).read_text(encoding="utf-8").splitlines():
            print("\n".join(show(json.loads(line))))
        return
    at = arguments.index("--")
    data, out = map(Path, arguments[:at])
    np.seterr(all="raise", under="ignore")
    found = measure(data, dict(parse_option(option) for option in arguments[at + 1 :]))
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")
    print("\n".join(show(found)))


if __name__ == "__main__":
    main()
