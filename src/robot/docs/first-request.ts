/** The first request, on the page of the API: commands, frames, and the body with its frames cut. */
import { type Html, html } from "../../web/markup.ts";
import { EXAMPLE, EXAMPLE_FRAMES } from "./example.ts";

const COMMANDS = `curl -s "$TENDON_BASE_URL/openapi.json" | jq .components.examples.observation.value > request.json
curl -s "$TENDON_BASE_URL/v1/chat/completions" \\
  -H "Authorization: Bearer $TENDON_API_KEY" -d @request.json`;

/** The example with its frames as pictures, and their base64 cut in the text. */
export function firstRequest(): Html {
  return html`<p>With this service's address in <code>TENDON_BASE_URL</code> and a key in <code>TENDON_API_KEY</code>:</p>
<pre>${COMMANDS}</pre>
<p>The same request, with larger frames, is what <code>tendon sample</code> writes.</p>
<div class="frames">${EXAMPLE_FRAMES.map(
    (url, at) =>
      html`<figure><img src="${url}" alt="A drawn camera frame" width="320" height="180"><figcaption>image part ${at + 1}</figcaption></figure>`,
  )}</div>
<pre>${compact(JSON.parse(JSON.stringify(EXAMPLE).replace(/(;base64,.{12})[^"]+/g, "$1…")))}</pre>`;
}

/** JSON for people: what fits into a line stands on one. */
function compact(value: unknown, indent = ""): string {
  const line = JSON.stringify(value, null, 1).replace(/\s*\n\s*/g, " ");
  if (indent.length + line.length <= 100 || typeof value !== "object" || value === null) return line;
  const deeper = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => compact(item, deeper))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${compact(item, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${deeper}${parts.join(`,\n${deeper}`)}\n${indent}${close}`;
}
