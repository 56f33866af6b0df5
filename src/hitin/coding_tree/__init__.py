"""Coding trees: a graph of labels becomes a tree of fixed height with the least structural entropy."""

from hitin.coding_tree.construction import Method, coding_tree
from hitin.coding_tree.entropy import structural_entropy
from hitin.coding_tree.graph import Graph
from hitin.coding_tree.tree import CodingTree

__all__ = ["CodingTree", "Graph", "Method", "coding_tree", "structural_entropy"]
