"""How the documents are built: `make docs`."""

import hitin

project = "hitin"
release = hitin.__version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "hitin"
html_copy_source = False
