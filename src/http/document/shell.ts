/** What the pages of the documentation have in common: their head, their columns, and the policy that goes with their style. */
import { createHash } from "node:crypto";
import { Html, html } from "../../web/markup.ts";
import { STYLE } from "./style.ts";

/** Allows the page's own style and the pictures inside it; nothing else loads or runs. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function shell({ title, nav, main }: { title: string; nav: Html; main: Html }): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${new Html(`<style>${STYLE}</style>`)}
</head>
<body>
<div class="page">
<nav>
${nav}
</nav>
<main>
${main}
</main>
</div>
</body>
</html>
`.text;
}
