"""How the page looks: on paper, on a phone, by day and by night."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --card: #f6f7f9; --ink: #1b2330; --soft: #556070; --line: #d5dae1; --link: #0b5394;
  --blue: #2f6db3; --pale: #a9c6e6; --orange: #b3500a; --grey: #7b8594; --good: #1c6b3c; --bad: #a3231b;
  --e0: #e8f1ea; --e1: #c9e2d0; --e2: #f6e7b4; --e3: #f0bf78; --e4: #df8350; --e5: #b3402e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161c; --card: #1b2129; --ink: #e7eaef; --soft: #a7b1be; --line: #36404c; --link: #8cbdf2;
    --blue: #6fa8e6; --pale: #2f4f74; --orange: #f0a35e; --grey: #7c8795; --good: #7fd1a0; --bad: #ff9d92;
    --e0: #1d2f26; --e1: #2a4f3a; --e2: #6b5a1e; --e3: #92611c; --e4: #b4552c; --e5: #e0654f;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
header, main, footer { max-width: 66rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 3rem; }
footer { padding-top: 2rem; padding-bottom: 3rem; color: var(--soft); font-size: .9rem; }
h1 { font-size: clamp(1.7rem, 1.2rem + 2.4vw, 2.6rem); line-height: 1.15; margin: .2rem 0 .6rem;
  letter-spacing: -.015em; }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .6rem; letter-spacing: -.01em; }
h3 { font-size: 1.1rem; line-height: 1.35; margin: 2rem 0 .5rem; }
h4 { font-size: .95rem; line-height: 1.35; margin: 0 0 .25rem; }
p, ul, ol { max-width: 44rem; margin: 0 0 .9rem; }
section { padding: 2.6rem 0 0; margin-top: 2.6rem; border-top: 1px solid var(--line); }
a { color: var(--link); text-underline-offset: .15em; }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible {
  outline: 3px solid var(--orange); outline-offset: 2px; border-radius: 2px;
}
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .3rem .6rem; }
.kicker { color: var(--soft); font-size: .85rem; letter-spacing: .06em; text-transform: uppercase; margin: 0; }
.lead { font-size: 1.15rem; color: var(--soft); }
.note { color: var(--soft); font-size: .92rem; }
nav ul { list-style: none; padding: 0; margin: 1.6rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem;
  max-width: none; }
dl.facts {
  display: flex; flex-wrap: wrap; gap: 1px; margin: 2rem 0 0;
  background: var(--line); border: 1px solid var(--line); border-radius: 8px; overflow: hidden;
}
dl.facts div { background: var(--paper); padding: 1rem 1.1rem; flex: 1 1 9rem; }
dl.facts dt { color: var(--soft); font-size: .85rem; }
dl.facts dd { margin: .1rem 0 0; font-size: 1.4rem; line-height: 1.25; font-weight: 600; letter-spacing: -.01em; }
dl.facts dd small { display: block; font-size: .82rem; font-weight: 400; color: var(--soft); line-height: 1.4;
  margin-top: .2rem; letter-spacing: 0; }
.promise { border-left: 4px solid var(--blue); padding: .2rem 0 .2rem 1.1rem; margin: 1.2rem 0 1.4rem;
  max-width: 44rem; }
.promise p { font-size: 1.08rem; margin: 0; }
figure { margin: 1.4rem 0; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 44rem; margin-top: .5rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--soft); font-family: inherit; }
svg text.strong { fill: var(--ink); }
svg.strip { height: 2.2rem; border-radius: 4px; }
svg.strip .s-pale { stroke: none; }
svg.middle { max-width: 29rem; }
svg.fixed { width: auto; max-width: none; }
.s-blue { fill: var(--blue); } .s-orange { fill: var(--orange); }
.s-grey { fill: var(--grey); }
.s-pale { fill: var(--pale); stroke: var(--blue); stroke-width: .6; vector-effect: non-scaling-stroke; }
.s-line { fill: var(--line); stroke: var(--grey); stroke-width: 1; vector-effect: non-scaling-stroke; }
.l-axis { stroke: var(--line); stroke-width: 1; } .l-orange { stroke: var(--orange); stroke-width: 1.5; }
.l-soft { stroke: var(--soft); stroke-width: 1; fill: none; }
.e0 { fill: var(--e0); } .e1 { fill: var(--e1); } .e2 { fill: var(--e2); } .e3 { fill: var(--e3); }
.e4 { fill: var(--e4); } .e5 { fill: var(--e5); } .unknown { fill: var(--card); stroke: var(--line);
  stroke-width: .7; }
.edge { stroke: var(--blue); fill: none; stroke-opacity: .75; } .node { fill: var(--ink); }
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; margin: .6rem 0 0;
  max-width: none; font-size: .92rem; }
ul.legend svg { display: inline-block; width: .85rem; height: .85rem; margin-right: .45rem;
  vertical-align: -.08rem; }
.bars > p { margin: 1.2rem 0 .3rem; font-weight: 600; font-size: .95rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18.5rem), 1fr)); gap: 1rem;
  margin: 1.2rem 0; }
.packed { column-width: 18.5rem; column-gap: 1rem; margin: 1.2rem 0; }
.packed .card { break-inside: avoid; margin-bottom: 1rem; }
.card { background: var(--card); border-radius: 8px; padding: 1rem; min-width: 0; margin: 0; }
.card p { color: var(--soft); font-size: .88rem; margin: 0 0 .5rem; line-height: 1.45; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: var(--link); font-size: .92rem; width: fit-content; max-width: 100%; }
.scroll { overflow-x: auto; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-size: .9rem; line-height: 1.45; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; font-weight: 600; }
tbody th { font-weight: 400; }
tbody td:not(.number) { min-width: 7.5rem; }
.number { text-align: right; }
td.number, tbody th.number { white-space: nowrap; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
pre { background: var(--card); border-radius: 6px; padding: .9rem 1rem; white-space: pre-wrap;
  font-size: .88rem; line-height: 1.5; max-width: 44rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: .92em; }
@media print {
  :root {
    --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --link: #000; --blue: #2f6db3;
    --pale: #a9c6e6; --orange: #b3500a; --grey: #8b95a3; --good: #1c6b3c; --bad: #a3231b;
    --e0: #e8f1ea; --e1: #c9e2d0; --e2: #f6e7b4; --e3: #f0bf78; --e4: #df8350; --e5: #b3402e;
  }
  @page { margin: 18mm 16mm; }
  body { font-size: 9.5pt; } nav, .skip { display: none; }
  header { padding-top: 0; } header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  section { padding-top: 1.2rem; margin-top: 1.2rem; } h2, h3, h4 { break-after: avoid; }
  figure, .card, tr, dl.facts { break-inside: avoid; } .card { border: 1px solid var(--line); }
  .grid { grid-template-columns: repeat(3, 1fr); } .packed { columns: 3; } table { font-size: 8pt; }
  details:not([open], .printed), .printed > summary { display: none; }
  details.printed::details-content { content-visibility: visible; display: block; height: auto;
    } .scroll { overflow: visible; }
  svg, .unknown { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
