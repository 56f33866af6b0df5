"""`labels.json`: all that a program which does not know hitin needs to make labels of logits, as plain numbers."""

import json
from hashlib import sha256
from typing import Any

from hitin.bags import Bags
from hitin.calibration import Calibration
from hitin.decisions import Decisions
from hitin.encoders import AnyTokenizer
from hitin.export.graph import IDS, LENGTHS, LOGITS
from hitin.taxonomy import Taxonomy
from hitin.tokens import PAD, UNKNOWN

FORMAT = 1


def labels_json(taxonomy: Taxonomy, decisions: Decisions, tokenizer: AnyTokenizer, max_length: int) -> str:
    """Labels in the order of the logits, parents before children; and how they are chosen, all by number."""
    found = {
        "format": FORMAT,
        "labels": list(taxonomy.labels),
        "parents": [taxonomy.parents(label).tolist() for label in range(len(taxonomy))],
        "levels": taxonomy.levels.tolist(),
        "policy": decisions.policy,
        "thresholds": decisions.thresholds(taxonomy).tolist(),
        "k": decisions.k,
        "stop": decisions.stop,
        "calibration": _calibration(decisions.calibration, taxonomy),
        "tokenizer": "bag" if isinstance(tokenizer, Bags) else "tokenizers",
        "max_length": max_length,
        "padding": PAD,
        "unknown": UNKNOWN,
        "inputs": [IDS, LENGTHS],
        "output": LOGITS,
        "decisions_sha256": sha256(decisions.to_json().encode()).hexdigest(),
    }
    return json.dumps(found, ensure_ascii=False) + "\n"


def _calibration(calibration: Calibration, taxonomy: Taxonomy) -> dict[str, Any]:
    """For each level a temperature, and the knots of a curve where it has one."""
    none = calibration.kind == "none"
    return {
        "kind": calibration.kind,
        "temperatures": [1.0] * taxonomy.depth if none else list(calibration.temperatures),
        "curves": [[list(knot) for knot in knots] for knots in calibration.curves] or [[]] * taxonomy.depth,
    }
