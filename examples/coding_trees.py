"""Coding trees of a taxonomy: which labels belong together, by each method and height, and a picture of the best.

HiTIN works on such a tree. The less its structural entropy, the better the groups describe the taxonomy.

    python examples/coding_trees.py
    python examples/coding_trees.py my-taxonomy.tsv --heights 2 3 4 --out runs/my-tree.html

The default is the taxonomy of tickets, 20 labels.
"""

import argparse
import sys
import time
from pathlib import Path

from hitin import CodingTree, HitinError, Taxonomy, structural_entropy
from hitin.coding_tree import Graph, coding_tree
from hitin.coding_tree.construction import Method

HERE = Path(__file__).resolve().parent
METHODS: tuple[Method, ...] = ("optimal", "paper", "taxonomy", "random")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("taxonomy", nargs="?", default=HERE / "tickets" / "taxonomy.tsv", help="the file of labels")
    parser.add_argument("--heights", type=int, nargs="+", default=[2, 3], help="of the trees")
    parser.add_argument("--seeds", type=int, default=5, help="random trees to take the mean of")
    parser.add_argument("--out", type=Path, default=Path("runs/coding-trees.html"), help=".html or .svg")
    chosen = parser.parse_args()
    if chosen.out.suffix not in (".html", ".svg"):
        parser.error(f"--out ends in .html or .svg, not in {chosen.out.suffix or chosen.out.name}")
    return chosen


def table(taxonomy: Taxonomy, heights: list[int], seeds: int) -> None:
    """The entropy of each method's tree at each height, in bits; less is better."""
    print(f"{taxonomy}, {coding_tree(taxonomy, 1).entropy:.4f} bits without groups\n")
    print("K  method     bits     nodes of each layer     ms")
    for height in heights:
        for method in METHODS:
            count = seeds if method == "random" else 1
            start = time.perf_counter()
            trees = [coding_tree(taxonomy, height, method, seed=seed) for seed in range(count)]
            milliseconds = 1000 * (time.perf_counter() - start) / count
            entropy = sum(tree.entropy for tree in trees) / count
            layers = " > ".join(map(str, trees[0].layer_sizes))
            print(f"{height}  {method:<9} {entropy:.4f}   {layers:<22} {milliseconds:5.1f}")


def show_groups(taxonomy: Taxonomy, tree: CodingTree, most: int = 8) -> None:
    """The labels of the largest groups. A group need not be a family of the taxonomy."""
    groups = sorted(tree.groups(), key=len, reverse=True)
    print(f"\nthe largest of {len(groups)} groups:")
    for group in groups[:most]:
        names = [taxonomy.labels[label] for label in group]
        print(f"  {', '.join(names[:6])}{f' and {len(names) - 6} more' if len(names) > 6 else ''}")


def show_edges(taxonomy: Taxonomy, tree: CodingTree) -> None:
    """How much of the taxonomy the groups keep together. A step along any other edge has to name a group."""
    inside = {label: place for place, group in enumerate(tree.groups()) for label in group}
    kept = sum(inside[parent] == inside[child] for parent, child in taxonomy.edges.tolist())
    print(f"\n{kept} of {len(taxonomy.edges)} edges of the taxonomy lie within a group")


def main() -> None:
    chosen = options()
    taxonomy = Taxonomy.read(chosen.taxonomy)
    table(taxonomy, chosen.heights, chosen.seeds)
    tree = coding_tree(taxonomy, chosen.heights[0])
    show_groups(taxonomy, tree)
    show_edges(taxonomy, tree)
    again = structural_entropy(Graph.from_taxonomy(taxonomy), tree)  # Eq. 6 of the paper, for any graph and tree
    print(f"{again:.4f} bits under the tree of height {tree.height}")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    is_page = chosen.out.suffix == ".html"
    chosen.out.write_text(tree.to_html(taxonomy) if is_page else tree.to_svg(), encoding="utf-8")
    print(f"the tree of height {tree.height} is drawn in {chosen.out}")


if __name__ == "__main__":
    try:
        main()
    except (HitinError, ValueError) as error:  # what is wrong with the input, and the remedy
        sys.exit(f"error: {error}")
