"""Processes that train together read their own files, each on its machine: what they have read must be the same."""

from collections.abc import Iterable

from hitin.devices import has_company, is_same_everywhere
from hitin.errors import InputError
from hitin.inputs import Documents, fingerprint
from hitin.taxonomy import Taxonomy


def check_same_task(taxonomy: Taxonomy, splits: Iterable[Documents | None], said: object) -> None:
    """Refuse other documents, or another of what is `said`, before the processes wait for each other's work."""
    if has_company():
        check_same(fingerprint(taxonomy, [each for each in splits if each is not None], said=said))


def check_same(fingerprint: str) -> None:
    """Refuse, in all processes, to train where one has something else."""
    if not is_same_everywhere(fingerprint):
        raise InputError(
            "a process has other documents, settings or word vectors than the main one",
            kind="other-run",
            remedy="Every machine needs the same files and the same command.",
        )
