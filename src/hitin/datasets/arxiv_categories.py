"""The categories of arXiv as paths of labels."""

from collections.abc import Iterable

PHYSICS = "physics"
GROUPS = {
    "cs": "Computer_Science",
    "econ": "Economics",
    "eess": "EESS",
    "math": "Mathematics",
    "q-bio": "Quantitative_Biology",
    "q-fin": "Quantitative_Finance",
    "stat": "Statistics",
}
"""Archives that are groups of their own; their categories stand right under them."""
PHYSICS_ARCHIVES = ("astro-ph", "cond-mat", "nlin", PHYSICS)
"""Archives of the group of physics that have categories."""
PHYSICS_CATEGORIES = ("gr-qc", "hep-ex", "hep-lat", "hep-ph", "hep-th", "math-ph", "nucl-ex", "nucl-th", "quant-ph")
"""Archives of the group of physics that are categories themselves."""
NOW_CALLED = {
    "acc-phys": "physics.acc-ph",
    "adap-org": "nlin.AO",
    "alg-geom": "math.AG",
    "ao-sci": "physics.ao-ph",
    "atom-ph": "physics.atom-ph",
    "bayes-an": "physics.data-an",
    "chao-dyn": "nlin.CD",
    "chem-ph": "physics.chem-ph",
    "cmp-lg": "cs.CL",
    "comp-gas": "nlin.CG",
    "dg-ga": "math.DG",
    "funct-an": "math.FA",
    "mtrl-th": "cond-mat.mtrl-sci",
    "patt-sol": "nlin.PS",
    "plasm-ph": "physics.plasm-ph",
    "q-alg": "math.QA",
    "solv-int": "nlin.SI",
    "supr-con": "cond-mat.supr-con",
}
"""Archives of the nineties, which arXiv itself counts to these categories since."""

Path = tuple[str, ...]


def current(category: str) -> str:
    """A category by the name that it has now."""
    return NOW_CALLED.get(category, category)


def archive_path(category: str) -> Path:
    """Archive > category, as `cs > cs.CL`; those of physics without a dot under it, as `physics > hep-th`."""
    if category in PHYSICS_CATEGORIES:
        return PHYSICS, category
    archive, dot, _ = category.partition(".")
    return (archive, category) if dot else (archive,)


def group_path(category: str) -> Path:
    """Group > category, as `Computer_Science > cs.CL`; with the archive in between in physics."""
    archive, dot, _ = category.partition(".")
    if archive in GROUPS:
        above: Path = (GROUPS[archive],)
    elif archive in (*PHYSICS_ARCHIVES, *PHYSICS_CATEGORIES):
        above = ("Physics", archive)
    else:
        above = (archive,)  # one that arXiv did not have when this was written
    return (*above, category) if dot else above


def labels_of(paths: Iterable[Path]) -> Path:
    """The labels of all paths, each once."""
    return tuple(dict.fromkeys(label for path in paths for label in path))
