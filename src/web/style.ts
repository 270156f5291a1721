/** The style sheet of the pages for people: light and dark, one column on a phone, one accent. */
const SERIES = [0, 1, 2, 3, 4, 5].map((n) => `.series-${n} { fill: var(--series-${n}); }`).join("\n");

export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b636c; --line: #dfe3e8; --edge: #838b94; --paper: #fff; --ground: #f5f7f9; --link: #0b5cad; --press: #084a8c; --on-link: #fff; --tint: #e9f1fa; --need: #a3420b; --need-tint: #fdf1ea;
  --series-0: #0b5cad; --series-1: #cf6a17; --series-2: #0f8577; --series-3: #8b3f8f; --series-4: #8a7a0a; --series-5: #6f7881; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --soft: #9ba4ad; --line: #32383f; --edge: #727c86; --paper: #1e2226; --ground: #15181b; --link: #79b8ff; --press: #a5d0ff; --on-link: #0b1a2a; --tint: #1c2c3d; --need: #f0a070; --need-tint: #33251d;
    --series-0: #5ba3f5; --series-1: #f0a05a; --series-2: #4cc3b0; --series-3: #cf8fd6; --series-4: #d3c355; --series-5: #9aa4ae; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.7rem; line-height: 1.25; letter-spacing: -.01em; text-wrap: balance; }
h2 { margin: 0 0 .75rem; font-size: 1.15rem; line-height: 1.3; }
h3 { margin: 2rem 0 .75rem; font-size: 1rem; }
p { margin: .6rem 0; }
a { color: var(--link); text-underline-offset: .18em; }
a:hover { color: var(--press); }
code, .key, .code { font-family: ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; }
code { font-size: .875em; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 4px; }
main:focus { outline: none; }
.soft, .hint { color: var(--soft); }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; padding: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: .75rem; top: -4rem; z-index: 1; padding: .5rem 1rem; background: var(--paper); border-radius: 6px; }
.skip:focus { top: .75rem; }

header { background: var(--paper); border-bottom: 1px solid var(--line); }
.bar { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0 1rem; max-width: 66rem; min-height: 3.75rem; margin: 0 auto; padding: .25rem 1rem; }
.brand { display: inline-flex; align-items: center; gap: .5rem; min-height: 2.75rem; color: var(--ink); font-size: 1.15rem; font-weight: 650; letter-spacing: -.01em; text-decoration: none; }
.brand:hover { color: var(--ink); }
.mark { color: var(--link); }
nav ul { display: flex; margin: 0 -.4rem; padding: 0; list-style: none; }
nav a, .plain { display: inline-flex; align-items: center; min-height: 2.75rem; padding: 0 .4rem; border: 0; background: none; color: var(--soft); font: inherit; font-size: .95rem; white-space: nowrap; text-decoration: none; cursor: pointer; }
nav a:hover, .plain:hover { color: var(--ink); text-decoration: underline; }
nav a[aria-current] { color: var(--ink); font-weight: 600; }

main { margin: 0 auto; padding: 2rem 1rem 5rem; }
.card { max-width: 30rem; }
.sections { max-width: 66rem; }
.top { margin-bottom: 1.5rem; }
.top p { margin: .35rem 0 0; color: var(--soft); }
.panel { margin: 0 0 1.25rem; padding: 1.25rem; background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
.panel > :first-child { margin-top: 0; }
.panel > :last-child { margin-bottom: 0; }
.below { margin: 0; color: var(--soft); text-align: center; }
.banner, .warning { padding: .75rem 1rem; border-left: 4px solid var(--need); border-radius: 6px; background: var(--need-tint); }
.banner { margin: 0 0 1.25rem; }
.banner p { margin: 0; }
.problem { color: var(--need); font-weight: 600; }
.notice { border-color: var(--link); background: var(--tint); }

.field { margin: 0 0 1.1rem; }
.ask { margin: 0 0 1rem; padding: 0; border: 0; }
.ask + .hint { margin-bottom: .9rem; }
.ask legend { padding: 0; margin-bottom: .3rem; font-weight: 600; }
.ask input { width: auto; min-height: 0; flex: none; }
.ask label { display: flex; align-items: baseline; gap: .5rem; min-height: 2.75rem; margin: 0; font-weight: 400; }
label { display: block; margin-bottom: .3rem; font-weight: 600; }
input { width: 100%; min-height: 2.75rem; padding: .5rem .75rem; border: 1px solid var(--edge); border-radius: 8px; background: var(--paper); color: var(--ink); font: inherit; }
input[readonly] { background: var(--ground); }
input[hidden], input[type=hidden] { display: none; }
input:focus-visible { outline-offset: 0; border-radius: 8px; }
.hint { margin: .35rem 0 0; font-size: .9rem; line-height: 1.45; }
.hint strong { color: var(--ink); }
.code { font-size: 1.5rem; letter-spacing: .12em; text-align: center; text-transform: uppercase; }
.key { font-size: .95rem; }
button { min-height: 2.75rem; padding: .5rem 1.1rem; border: 1px solid transparent; border-radius: 8px; font: inherit; font-weight: 600; cursor: pointer; }
button:focus-visible { border-radius: 8px; }
.primary { width: 100%; background: var(--link); color: var(--on-link); }
.primary:hover { background: var(--press); }
.second { border-color: var(--edge); background: var(--paper); color: var(--ink); }
.second:hover { border-color: var(--ink); background: var(--ground); }
.danger { border-color: var(--need); background: none; color: var(--need); }
.danger:hover { background: var(--need-tint); }
.plain { font-weight: 400; }
.narrow { max-width: 26rem; }

.compare { margin: 0 0 1.25rem; padding: 1.1rem .5rem; border-radius: 8px; background: var(--tint); text-align: center; }
.compare code { font-size: clamp(1.9rem, 9vw, 2.6rem); font-weight: 650; letter-spacing: .08em; line-height: 1.2; overflow-wrap: normal; }
.choice { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem; margin-top: 1.25rem; }
.tick { display: block; color: var(--link); margin-bottom: 1rem; }
.facts { margin: 1rem 0; border-top: 1px solid var(--line); }
.facts div { display: flex; justify-content: space-between; gap: 1.5rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
.facts dt { flex: none; color: var(--soft); }
.facts dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.panel > .facts:last-child div:last-child { border-bottom: 0; padding-bottom: 0; }

.new-key { border: 2px solid var(--link); }
.new-key .field { margin-bottom: 0; }
.figure { margin: 0; color: var(--soft); }
.large { margin-right: .15rem; color: var(--ink); font-size: 2rem; font-weight: 650; letter-spacing: -.02em; line-height: 1.2; font-variant-numeric: tabular-nums; }
.more { display: block; margin-top: .15rem; font-size: .95rem; }
.exact { margin: 0; font-size: .9rem; font-variant-numeric: tabular-nums; }
.progress { display: block; margin: .75rem 0 1.25rem; }
.track { fill: var(--line); }
.part { fill: var(--link); }
.full { fill: var(--need); }
.line { margin-top: 1.25rem; }
.line .field { margin-bottom: .9rem; }

table { width: 100%; margin: 1.25rem 0; border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { padding-bottom: .35rem; color: var(--soft); font-size: .9rem; text-align: left; }
caption strong { color: var(--ink); font-size: 1rem; font-weight: 600; }
th, td { padding: .6rem .75rem .6rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: baseline; font-weight: 400; }
th:last-child, td:last-child { padding-right: 0; }
thead th { border-top: 0; color: var(--soft); font-size: .9rem; font-weight: 600; }
tfoot th, tfoot td { font-weight: 600; }
.group th { padding-top: 1.1rem; font-weight: 600; }
.group + tr > * { border-top: 0; }
.number { text-align: right; white-space: nowrap; }
time { white-space: nowrap; }
.what { display: none; }
.called { font-weight: 600; }
.revoked th, .revoked td { color: var(--soft); }
.revoked .called { text-decoration: line-through; }
summary { display: inline-flex; align-items: center; min-height: 2.75rem; color: var(--link); cursor: pointer; }
summary:hover { color: var(--press); text-decoration: underline; }
summary::before { content: "+"; width: 1.1rem; font-family: ui-monospace, monospace; }
[open] > summary::before { content: "−"; }
.revoke summary { min-height: 1.5rem; color: var(--soft); }
.revoke p { max-width: 16rem; }

.chart { margin: 0; }
.plot { display: flex; margin: 1.25rem 1.1rem 0 0; }
.plot svg { display: block; overflow: visible; }
.axis { flex: none; }
.bars { flex: 1; min-width: 0; }
.grid { stroke: var(--line); }
.label { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.hit { fill: transparent; }
.day:hover .hit { fill: var(--ink); fill-opacity: .07; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; margin: .75rem 0 0; padding: 0; list-style: none; font-size: .9rem; }
.legend li { display: flex; align-items: baseline; gap: .45rem; }
.legend svg { flex: none; }
${SERIES}

@media (max-width: 47.99rem) {
  nav a, .plain { padding: 0 .3rem; font-size: .875rem; }
  table { font-size: .95rem; }
  .cards, .cards tbody { display: block; }
  .cards thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .cards caption { display: block; }
  .cards tr { display: grid; grid-template-columns: 1fr 1fr; gap: .25rem 1rem; padding: .9rem 0; border-top: 1px solid var(--line); }
  .cards th, .cards td { padding: 0; border: 0; }
  .cards .called { order: -1; }
  .cards th { text-align: right; }
  .cards .end { grid-column: 1 / -1; }
  .cards .what { display: block; color: var(--soft); font-size: .85rem; font-weight: 400; }
  .usage tfoot { display: block; }
  .usage tr { grid-template-columns: 1fr 1fr 1fr; }
  .usage th { grid-column: 1 / -1; text-align: left; font-weight: 600; }
  .usage .number { text-align: left; }
  .usage .group { padding-bottom: 0; }
  .usage .group + tr { border-top: 0; }
}
@media (min-width: 48rem) {
  main { padding-top: 3rem; }
  .cards code { white-space: nowrap; }
  nav ul { gap: 1rem; }
  .card { padding-top: 4.5rem; }
  .panel { padding: 1.75rem; }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1.25rem; }
  .pair .panel { margin-bottom: 1.25rem; }
  #keys .line { display: flex; align-items: flex-start; gap: .75rem; max-width: 40rem; }
  #keys .line .field { flex: 1; margin: 0; }
  #keys .line button { margin-top: 1.85rem; }
}
@media (prefers-reduced-motion: no-preference) {
  button, a, input { transition: background-color .12s, border-color .12s, color .12s; }
}

.reserved { fill: var(--soft); fill-opacity: .45; }
.pages { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; }
.path { font-weight: 400; }
select { min-height: 2.75rem; padding: .4rem .6rem; border: 1px solid var(--edge); border-radius: 8px; background: var(--paper); color: var(--ink); font: inherit; }
kbd { padding: 0 .35rem; border: 1px solid var(--edge); border-radius: 4px; font: inherit; font-size: .85em; }
.wide { max-width: 88rem; }
header:has(+ .wide) .bar { max-width: 88rem; }
.player [hidden] { display: none; }
.cameras { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
.camera { min-width: 0; margin: 0; }
.camera video, .camera img { display: block; width: 100%; max-height: 60vh; border-radius: 6px; background: #000; object-fit: contain; }
.camera img { min-height: 6rem; }
.camera figcaption { margin-top: .35rem; color: var(--soft); font-size: .9rem; }
.absent { margin: 0; padding: 2rem 1rem; border-radius: 6px; background: var(--ground); color: var(--soft); text-align: center; }
.transport { position: sticky; top: 0; bottom: 0; z-index: 1; box-shadow: 0 2px 10px rgb(0 0 0 / .12); padding-top: .5rem; padding-bottom: .9rem; }
.scrubber { display: block; width: 100%; min-height: 2.75rem; margin: 0; padding: 0; border: 0; background: none; accent-color: var(--link); }
.buttons { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; }
.buttons #play { min-width: 5.5rem; }
.clock { flex: 1 0 11rem; font-variant-numeric: tabular-nums; }
.pair-up { white-space: nowrap; }
.pick { display: inline; margin: 0 .25rem 0 0; font-weight: 400; color: var(--soft); }
.readout { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .5rem 1.25rem; margin: 0; }
.readout dt::first-letter { text-transform: uppercase; }
.readout dt { color: var(--soft); font-size: .85rem; }
.readout dd { margin: 0; font-variant-numeric: tabular-nums; }
.readout .problem { grid-column: 1 / -1; }
.trace-head { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .5rem 1rem; }
.trace-head h2 { margin: 0; }
.traces { margin: .75rem 0 0; }
.traces caption { padding-bottom: .5rem; }
.traces caption #span { float: right; font-variant-numeric: tabular-nums; }
.swatch { margin-right: 1rem; white-space: nowrap; }
.traces th, .traces td { padding: .15rem .75rem .15rem 0; vertical-align: middle; font-size: .9rem; }
.traces .number { width: 5.5rem; }
.traces tbody th { width: 1%; min-width: 6rem; white-space: nowrap; }
.trace-plot { position: relative; }
.trace-plot svg { display: block; width: calc(100% - 4rem); height: 3.25rem; border-radius: 4px; background: var(--ground); cursor: crosshair; touch-action: pan-y; }
.trace-range { position: absolute; top: 50%; right: 0; width: 3.6rem; transform: translateY(-50%); color: var(--soft); font-size: .75rem; line-height: 1.7; font-variant-numeric: tabular-nums; }
.trace-state { fill: none; stroke: var(--series-0); stroke-width: 1.75; }
.trace-action { fill: none; stroke: var(--series-1); stroke-width: 1.75; stroke-dasharray: 5 3; }
.trace-cursor { stroke: var(--ink); stroke-width: 1.25; }
@media (max-width: 47.99rem) {
  .transport { padding: .25rem .9rem .6rem; }
  .transport .hint, .transport .pick, .whole { display: none; }
  .transport button { min-width: 2.5rem; padding: .4rem .5rem; }
  .transport select { padding: .4rem .3rem; }
  .buttons { flex-wrap: nowrap; gap: .4rem; }
  .buttons #play { min-width: 4.5rem; }
  .clock { flex: 1 1 4.5rem; font-size: .95rem; text-align: center; }
  .traces, .traces tbody { display: block; }
  .traces thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .traces caption { display: block; }
  .traces caption #span { float: none; display: block; }
  .traces tr { display: grid; grid-template-columns: 1fr 4.5rem 4.5rem; padding: .4rem 0; border-top: 1px solid var(--line); }
  .traces th, .traces td { padding: 0; border: 0; }
  .traces tbody th { width: auto; }
  .traces .number { width: auto; }
  .trace-plot { grid-column: 1 / -1; }
  .files .number { text-align: right; }
  .files th, .runs th { grid-column: 1 / -1; text-align: left; }
  .runs .number { text-align: left; }
}
@media (min-width: 48rem) {
  .filter { display: flex; align-items: flex-end; gap: .75rem; max-width: 28rem; }
  .filter .field { flex: 1; margin: 0; }
}
`;
