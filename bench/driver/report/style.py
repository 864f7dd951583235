"""The page's style sheet."""

from .palette import declarations

# Without a script: the theme is the system's unless a radio button says otherwise. A browser that does not know :has() shows no buttons.
THEME = f"""
:root{{color-scheme:light;{declarations(0)}}}
@media (prefers-color-scheme:dark){{:root{{color-scheme:dark;{declarations(1)}}}}}
:root:has(#theme-light:checked){{color-scheme:light;{declarations(0)}}}
:root:has(#theme-dark:checked){{color-scheme:dark;{declarations(1)}}}
.theme{{display:none}}
@supports selector(:has(*)){{.theme{{display:flex}}}}
"""

LAYOUT = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;
overflow-wrap:anywhere}
header,main,footer{max-width:84rem;margin:0 auto;padding:0 12px}
header{padding-top:18px}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .4rem}
h2{font-size:1.3rem;line-height:1.25;margin:2.2rem 0 .6rem}
h3{font-size:1.1rem;margin:1.8rem 0 .5rem}
h4{font-size:1rem;margin:1.2rem 0 .4rem}
p,ul{margin:.5rem 0;max-width:46rem}
a{color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.lead{font-size:1.05rem}
.muted,figcaption small,.unit{color:var(--muted)}
.theme{border:0;margin:.8rem 0 0;padding:0;flex-wrap:wrap;gap:.2rem 1rem;font-size:.95rem;color:var(--muted)}
.theme legend{float:left;margin-right:.2rem;padding:0}
.theme label{display:inline-flex;gap:.35rem;align-items:center;min-height:32px;cursor:pointer}
.theme input{accent-color:var(--accent);width:18px;height:18px;margin:0}
.notice{border-left:5px solid var(--missed);background:var(--surface);padding:.6rem .8rem;border-radius:4px}
.bars{list-style:none;padding:0}
.bars li{background:var(--surface);border:1px solid var(--line);border-radius:6px;padding:.45rem .7rem;margin:.4rem 0}
.bars ul{margin:.2rem 0 0;padding-left:1.2rem;list-style:disc}
.bars ul li{border:0;padding:0;margin:0}
.met{color:var(--met);font-weight:700}
.missed{color:var(--missed);font-weight:700}
.box{overflow-x:auto;background:var(--surface);border:1px solid var(--line);border-radius:6px;margin:.6rem 0;max-width:max-content}
table{border-collapse:collapse;font-size:.9375rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.5rem .6rem;color:var(--muted);position:sticky;left:0;max-width:min(90vw,46rem)}
th,td{padding:.35rem .6rem;text-align:right;vertical-align:top;border-top:1px solid var(--line);overflow-wrap:normal}
td{white-space:nowrap}
thead th{border-top:0;vertical-align:bottom;min-width:4.6rem}
th[scope=row]{position:sticky;left:0;z-index:1;background:var(--surface);text-align:left;font-weight:500;min-width:7.2rem;max-width:11rem}
thead th:first-child{text-align:left;position:sticky;left:0;z-index:2;background:var(--surface)}
th[scope=rowgroup]{text-align:left;color:var(--muted);font-weight:600;padding-top:.8rem}
th[scope=rowgroup] span{position:sticky;left:.6rem}
td.text{white-space:normal;min-width:7rem}
.level-4{background:var(--level-4)}.level-3{background:var(--level-3)}.level-2{background:var(--level-2)}.level-1{background:var(--level-1)}
.best{display:block;font-size:.875rem;font-weight:600}
.unit{display:block;font-size:.875rem;font-weight:400}
.key{display:flex;flex-wrap:wrap;gap:.4rem .6rem;list-style:none;padding:0}
.key li{padding:.1rem .6rem;border-radius:4px;border:1px solid var(--line)}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,336px),1fr));gap:12px;align-items:start;margin:.6rem 0}
figure{margin:0;background:var(--surface);border:1px solid var(--line);border-radius:6px;max-width:440px}
figcaption{padding:.6rem .7rem .3rem;font-weight:600;line-height:1.3}
figcaption small{display:block;font-size:.875rem;font-weight:400}
figure svg{display:block;width:100%;height:auto;padding-bottom:4px}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;padding:0;max-width:none}
nav a,summary{display:inline-block;min-height:32px;line-height:32px}
summary{display:list-item;cursor:pointer;font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.6rem 0;max-width:60rem}
dt{color:var(--muted)}
dd{margin:0}
pre{background:var(--surface);border:1px solid var(--line);border-radius:6px;padding:.6rem .7rem;margin:.4rem 0;max-width:60rem;
white-space:pre-wrap;user-select:all;-webkit-user-select:all;font:.9375rem/1.5 ui-monospace,'DejaVu Sans Mono',monospace}
code{font:.9375rem ui-monospace,'DejaVu Sans Mono',monospace}
pre code{font:inherit}
footer{padding-bottom:2rem;color:var(--muted)}
@media (max-width:480px){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
@media (min-width:700px){header,main,footer{padding-left:24px;padding-right:24px}th[scope=row]{max-width:18rem}}
@media print{.theme,nav{display:none}.box{overflow:visible}details>*{display:block}}
"""

SHEET = (THEME + LAYOUT).strip()
