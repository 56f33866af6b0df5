"""The engine `ray`: actors of Ray Data, each with the model, on one machine or many."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hitin.bulk.ledger import Ledger
from hitin.bulk.request import Request
from hitin.bulk.scoring import Advance, Outcome
from hitin.bulk.shards import Shard


@dataclass(frozen=True)
class Cluster:
    """Where Ray runs, and how many workers do."""

    address: str | None = None
    """Of a cluster that runs; none starts Ray on this machine."""
    workers: int | None = None


def score_on_ray(
    shards: Sequence[Shard], request: Request, ledger: Ledger, cluster: Cluster, advance: Advance
) -> Iterator[Outcome]:
    """What became of each shard, as it comes."""
    raise NotImplementedError
