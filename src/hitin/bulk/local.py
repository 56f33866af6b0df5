"""The local engine: shard after shard in this process."""

from collections.abc import Iterable, Iterator

from hitin.answers import Answers
from hitin.bulk.ledger import Ledger
from hitin.bulk.request import Request
from hitin.bulk.scoring import Outcome, score_shard
from hitin.bulk.shards import Shard
from hitin.model import Advance


def score_here(
    shards: Iterable[Shard], request: Request, answers: Answers, ledger: Ledger, advance: Advance
) -> Iterator[Outcome]:
    """What became of each shard, as it comes."""
    for shard in shards:
        yield score_shard(shard, request, answers, ledger, advance)
