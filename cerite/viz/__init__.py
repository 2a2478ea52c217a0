"""Pictures of automata, in plain Python: Graphviz DOT, Mermaid, a text table, and a self-contained SVG."""

from cerite.viz.dot_text import dot
from cerite.viz.mermaid_text import mermaid
from cerite.viz.plain_table import table
from cerite.viz.svg_picture import svg

__all__ = ["dot", "mermaid", "svg", "table"]
