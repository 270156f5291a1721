/** The style of the pages of runs. */
export const RUNS_STYLE = `
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
