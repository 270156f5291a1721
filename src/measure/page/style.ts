/** The style sheet of a report's page: light and dark, one column of text, tables and figures; no outside fonts. */

/** Colours for lines and bars; a chart with more of them begins again. */
export const TONES = 8;

export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b636c; --line: #dfe3e8; --axis: #aab2bb; --paper: #fff; --ground: #f5f7f9;
  --tone-0: #0b5cad; --tone-1: #cf6a17; --tone-2: #0f8577; --tone-3: #8b3f8f; --tone-4: #8a7a0a; --tone-5: #b3261e; --tone-6: #3f7d20; --tone-7: #6f7881; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --soft: #9ba4ad; --line: #32383f; --axis: #57606a; --paper: #1e2226; --ground: #15181b;
    --tone-0: #5ba3f5; --tone-1: #f0a05a; --tone-2: #4cc3b0; --tone-3: #cf8fd6; --tone-4: #d3c355; --tone-5: #f2827a; --tone-6: #8fcf6b; --tone-7: #9aa4ae; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; letter-spacing: -.01em; }
h2 { margin: 0 0 .25rem; font-size: 1.1rem; line-height: 1.3; }
h3 { margin: 1.5rem 0 .25rem; font-size: .95rem; }
p { margin: .4rem 0; }
.lead { font-size: 1.1rem; margin: .25rem 0 1rem; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; font-size: .9rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
section { margin-top: 1.5rem; padding: 1rem 1.25rem 1.25rem; background: var(--paper); border: 1px solid var(--line); border-radius: 8px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin-top: .5rem; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); text-align: right; vertical-align: bottom; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; line-height: 1.25; white-space: normal; }
.left { text-align: left; }
figure { margin: .75rem 0 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; }
svg .name { fill: var(--ink); font-size: 13px; font-weight: 600; }
svg .end { text-anchor: end; } svg .mid { text-anchor: middle; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .frame { stroke: var(--axis); stroke-width: 1; }
svg .trace { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .dashed { stroke-dasharray: 6 4; }
${Array.from({ length: TONES }, (_, tone) => `.stroke-${tone} { stroke: var(--tone-${tone}); } .fill-${tone} { fill: var(--tone-${tone}); }`).join("\n")}
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0 0; padding: 0; list-style: none; font-size: .9rem; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend svg { width: 26px; height: 12px; flex: none; }
.meaning { max-width: 52rem; margin: .5rem 0 0; padding-left: 1.2rem; }
@media print { section { break-inside: avoid; } body { background: none; } }
`;
