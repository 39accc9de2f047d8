"""Colours and shapes: one style sheet for objects in notebooks, pages and pictures, light and dark, without a script.

Whatever is drawn paints its own ground, so that it can be read on any page. It follows the browser's scheme, unless the
page says its own, as Jupyter, VS Code and most sites with a switch do.
"""

from __future__ import annotations

LIGHT = {
    "bg": "#ffffff",
    "fg": "#1b1f24",
    "dim": "#57606a",
    "line": "#c4ccd4",
    "head": "#eef2f6",
    "node": "#dbe9f9",
    "edge": "#fdf0d8",
    "bar": "#0b5cad",
    "good": "#116329",
    "bad": "#a8201a",
}
DARK = {
    "bg": "#15181c",
    "fg": "#e6e9ed",
    "dim": "#a3adb8",
    "line": "#4a535d",
    "head": "#22272d",
    "node": "#1d3a57",
    "edge": "#4a3814",
    "bar": "#6cb2f5",
    "good": "#6fd08c",
    "bad": "#ff9a92",
}
"""Texts have a contrast of at least 4.5 to 1 on every ground that they stand on."""
_LIGHT_PAGES = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')
_DARK_PAGES = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')
_SHAPES = """
.og{overflow-wrap:anywhere;background:var(--bg);color:var(--fg)}
.og{font:13px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
.og-card{border:1px solid var(--line);border-radius:6px;padding:10px 14px;margin:2px 0}
.og h1{font-size:22px;line-height:1.3;margin:0 0 6px}
.og h2{font-size:16px;margin:26px 0 6px}
.og h3{font-size:14px;margin:0 0 2px;font-weight:600}
.og p{margin:2px 0 8px;max-width:75em}
.og .og-dim,.og caption{color:var(--dim)}
.og .og-note{border-left:3px solid var(--bad);padding-left:8px}
.og .og-good{color:var(--good)}
.og .og-bad{color:var(--bad)}
.og dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:0 14px;margin:6px 0}
.og dt{color:var(--dim)}
.og dd{margin:0;overflow-wrap:anywhere}
.og .og-wide{overflow-x:auto;max-width:100%;margin:8px 0}
.og table{border-collapse:collapse;background:var(--bg);color:var(--fg);font-size:13px;margin:0}
.og caption{text-align:left;padding:2px 0;font-size:13px;white-space:nowrap}
.og svg{display:block}
.og th,.og td{background:var(--bg);color:var(--fg);border-bottom:1px solid var(--line);max-width:40em}
.og th,.og td{overflow-wrap:break-word;padding:2px 12px 2px 0;text-align:left;vertical-align:top}
.og th{color:var(--dim);font-weight:600;white-space:nowrap}
.og .og-num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.og code{font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;background:var(--head);color:var(--fg);padding:0 3px}
.og .og-bars{display:grid;grid-template-columns:max-content minmax(40px,1fr) max-content}
.og .og-bars{gap:4px 12px;max-width:44em;margin:8px 0}
.og .og-bar{background:var(--head);align-self:center;height:10px}
.og .og-bar>span{display:block;background:var(--bar);height:10px;min-width:1px}
"""
_DRAWN = """
.og-picture{background:var(--bg)}
.og-picture text{fill:var(--fg);font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
.og-picture .g{fill:var(--bg)}
.og-picture .n{font-weight:600}
.og-picture .d{fill:var(--dim)}
.og-picture .b{fill:var(--bg);stroke:var(--line)}
.og-picture .h{fill:var(--node)}
.og-picture .e{fill:var(--edge)}
.og-picture .l{fill:none;stroke:var(--dim)}
.og-picture .a{fill:var(--dim)}
"""
PAGE = "body.og{margin:0}.og main{max-width:1080px;margin:0 auto;padding:24px 16px 48px;overflow-wrap:anywhere}"


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _on(pages: tuple[str, ...], colours: dict[str, str]) -> str:
    selectors = ",".join(f"{page} .{each}" for page in pages for each in ("og", "og-picture"))
    return f"{selectors}{{{_variables(colours)}}}"


def _sheet(shapes: str) -> str:
    scheme = (
        f".og,.og-picture{{{_variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{.og,.og-picture{{{_variables(DARK)}}}}}"
    )
    return scheme + _on(_LIGHT_PAGES, LIGHT) + _on(_DARK_PAGES, DARK) + shapes.replace("\n", "")


PICTURE_STYLE = _sheet(_DRAWN)
"""Of a picture that stands alone."""
STYLE = _sheet(_SHAPES + _DRAWN)
"""Of everything."""
