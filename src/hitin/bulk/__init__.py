"""Folders of documents scored shard by shard, here or on a cluster: every file becomes a file of answers.

To be read in this order, which is that of the data: `shards` (which files, and what becomes of them), `request` (what
is asked of each), `ledger` (which are finished), `writers` and `scoring` (one shard, whole or not at all), `local` and
`ray_engine` (where it happens), `folder` (all of it).
"""

from hitin.bulk.folder import Scored, Watcher, score_folder
from hitin.bulk.ledger import Failed, Finished
from hitin.bulk.request import Request

__all__ = ["Failed", "Finished", "Request", "Scored", "Watcher", "score_folder"]
