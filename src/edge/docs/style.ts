/** The page's style sheet: light and dark, one column on a phone, two on a screen. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b636c; --line: #dfe3e8; --paper: #fff; --inset: #f5f7f9; --link: #0b5cad; --need: #a3420b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --soft: #9ba4ad; --line: #32383f; --paper: #15181b; --inset: #1e2226; --link: #79b8ff; --need: #f0a070; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0 auto; max-width: 78rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { margin: 0; font-size: 1.7rem; }
h2 { margin: 3rem 0 .5rem; font-size: 1.3rem; }
h3 { margin: 2.2rem 0 .4rem; font-size: 1.05rem; }
p, ul, dl, pre { margin: .5rem 0; }
ul { padding-left: 1.2rem; }
li { margin: .3rem 0; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; font-size: .875em; }
code { overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; background: var(--inset); border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; line-height: 1.45; }
dl { border-top: 1px solid var(--line); }
dt { margin-top: .6rem; }
dd { margin: 0 0 .6rem; padding-left: 1rem; }
dd > p:first-child { margin-top: .15rem; }
.name { font-weight: 600; }
.type, .pattern, .soft { color: var(--soft); font-size: .9rem; }
.need { color: var(--need); font-size: .85rem; }
.inside { margin: .6rem 0; padding-left: .8rem; border-left: 3px solid var(--line); }
.form { font-weight: 600; }
.path { font-size: 1.05rem; font-weight: 600; }
.method { display: inline-block; margin-right: .4rem; padding: .1rem .5rem; border-radius: 4px; background: var(--ink); color: var(--paper); font: 600 .8rem/1.5 ui-monospace, monospace; vertical-align: .1em; }
.status { font-weight: 600; }
.frames { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0; }
.frames figure { margin: 0; }
.frames img { display: block; width: 13rem; max-width: 100%; height: auto; border-radius: 4px; }
.frames figcaption { color: var(--soft); font-size: .85rem; }
nav ul { margin: .3rem 0 1rem; padding: 0; list-style: none; }
nav li { margin: .15rem 0; font-size: .9rem; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
@media (min-width: 62rem) {
  .page { display: grid; grid-template-columns: 16rem minmax(0, 1fr); gap: 3rem; }
  nav { position: sticky; top: 1.5rem; align-self: start; max-height: calc(100vh - 3rem); overflow-y: auto; }
  main > :first-child { margin-top: 0; }
}
`;
