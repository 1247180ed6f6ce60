"""Configuration of Sphinx; nothing is downloaded during a build."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import warnings
from pathlib import Path

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer

import ortlearn
from docs import browser_digits, browser_training, layout_picture

project = "ortlearn"
author = "The ortlearn developers"
copyright = "the ortlearn developers, MIT licence"
version = release = ortlearn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "reference_pages", "browser_digits", "browser_training", "**/*.py.md5"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = False

# Markdown: tables, definition lists and notes; headings can be linked to.
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # functions among the gallery's settings

# Reference: every name of __all__ has a page, generated from its docstring.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # numpydoc has the types
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False


class ReadingOrder:
    """Sort key of the gallery: what to read first; examples that are not listed come last."""

    names = (
        "retrain",
        "every_night",
        "custom_loss",
        "quantile_boosting",
        "quantiles",
        "intervals",
        "adaptive_intervals",
        "image_sets",
        "intervals_in_node",
        "images",
        "text_columns",
        "fine_tune",
        "lora",
        "sgd_simple_function",
        "grid_search",
        "search_together",
        "stream_parquet",
        "shards",
        "dask",
        "optimise_process",
        "digit_gradients",
        "counterfactual_credit",
        "attribution_file",
        "resume",
        "browser_training",
        "forest_to_network",
        "int8_digits",
    )

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        name = Path(filename).stem.removeprefix("plot_")
        return (self.names.index(name) if name in self.names else len(self.names), name)


# Gallery: files that begin with plot_ run in every build.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(demo|demo_dask|__init__)\.py",
    "within_subsection_order": ReadingOrder,
    "parallel": True,  # as many as -j
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e6,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "doc_module": ("ortlearn",),
    "backreferences_dir": "gallery/backreferences",
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
}
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg", category=UserWarning)

#: References to pages and to the glossary of another documentation.
ELSEWHERE = re.compile(r":(?:ref|term):`([^`<]*[^`<\s])(?:\s*<[^`>]*>)?`")
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "ortlearn"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
}
# Single pages have no list of neighbours.
html_sidebars = {path.stem: [] for path in Path(__file__).parent.glob("*.md")}


def tidy(app, document):
    """Name the pictures of the gallery's index, and end code where its last line ends."""
    for image in document.findall(nodes.image):
        if not image.get("alt") and image["uri"].endswith("_thumb.png"):
            name = Path(image["uri"]).stem.removeprefix("sphx_glr_plot_").removesuffix("_thumb")
            image["alt"] = f"Last picture of the example {name.replace('_', ' ')}"
    for block in document.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if block.rawsource == block.astext():  # or else it is highlighted already
            block.rawsource = text
            block.children = [nodes.Text(text)]


def describe_constant(app, what, name, obj, options, lines):
    """Take the comment above a constant, in its module, one of its package or a neighbour, for its text."""
    if what != "data":
        return
    package, _, constant = name.rpartition(".")
    modules = [package]
    for folder in (package, package.rpartition(".")[0]):
        path = getattr(importlib.import_module(folder), "__path__", ()) if folder else ()
        modules += [module.name for module in pkgutil.iter_modules(path, f"{folder}.")]
    modules = [m for m in modules if getattr(sys.modules.get(m), constant, None) is obj]
    found = (ModuleAnalyzer.for_module(module).find_attr_docs() for module in modules)
    lines[:] = next((docs["", constant] for docs in found if ("", constant) in docs), [])


def unlink(app, what, name, obj, options, lines):
    """Make text of what docstrings of scikit-learn, which our classes inherit, refer to in its own pages."""
    lines[:] = [ELSEWHERE.sub(r"``\1``", line) for line in lines]


def draw_layout(app):
    """Draw the picture of the layout from the imports of the package as it is."""
    layout_picture.draw(Path(app.srcdir) / "images" / "layout.png")


#: Addresses of pages that have moved.
MOVED = {
    "decisions/graphs": "decisions/functions.html",
    "decisions/inputs": "decisions/models.html#inputs",
    "decisions/sample-order": "decisions/data.html#order-of-samples",
    "decisions/updates": "decisions/training.html",
    "good_first_issues": "limits.html",
    "howto/boosters": "howto/boosting_loss.html",
    "howto/command_line": "guide/command_line.html",
    "howto/dask": "howto/clusters.html",
    "howto/from_skorch": "howto/from_torch.html#parameters-of-skorch",
    "howto/large_data": "howto/out_of_core.html",
    "howto/other_clusters": "howto/clusters.html#other-clusters",
    "release_checks": "explanation/commands.html#before-a-release",
}


def redirect(app):
    """Yield a page for each address that has moved, which leads to the new one."""
    for old, new in MOVED.items():
        yield old, {"target": f"{'../' * old.count('/')}{new}"}, "moved.html"


def write_browser_pages(app, error):
    """Write the pages that train and predict in the browser beside the others."""
    if error is None and app.builder.name == "html":
        written = [
            browser_training.write(Path(app.outdir) / "browser_training"),
            browser_digits.write(Path(app.outdir) / "browser_digits"),
        ]
        if not all(written):  # printed, since -W makes errors of warnings, and -q hides information
            print("The live pages lack ONNX Runtime Web: run make test-runtimes, then make site.")


def setup(app):
    app.connect("html-collect-pages", redirect)
    app.connect("build-finished", write_browser_pages)
    app.connect("builder-inited", draw_layout)
    app.connect("doctree-read", tidy)
    app.connect("autodoc-process-docstring", describe_constant, priority=900)  # after numpydoc
    app.connect("autodoc-process-docstring", unlink, priority=901)
