"""Taxonomies: the labels, which stands under which; built, read and written."""

from hitin.taxonomy.taxonomy import Taxonomy as Taxonomy
