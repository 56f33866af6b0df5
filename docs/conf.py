"""How the documents are built: `make docs`."""

import hitin

project = "hitin"
release = hitin.__version__
extensions = ["myst_parser"]
myst_heading_anchors = 3  # pages may link to sections of each other
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "hitin"
html_copy_source = False
