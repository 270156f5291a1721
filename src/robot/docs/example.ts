/**
 * The request that the document shows: the one that `tendon sample` writes, with its frames scaled from 640 × 360 to
 * 320 × 180 so that the document stays small. A test draws the frames anew and compares.
 */
import { present } from "../../std/assert.ts";
import { type Html, html } from "../../web/markup.ts";
import example from "./example.json" with { type: "json" };

const [text, ...images] = example.messages[0]?.content ?? [];

export const EXAMPLE = example;
export const EXAMPLE_INSTRUCTION: string = present(text?.text, "the example's instruction");
/** Data URLs of the three frames. */
export const EXAMPLE_FRAMES: readonly string[] = images.map((part) =>
  present(part.image_url?.url, "the URL of an example's frame"),
);

const COMMANDS = `curl -s "$TENDON_BASE_URL/openapi.json" | jq .components.examples.observation.value > request.json
curl -s "$TENDON_BASE_URL/v1/chat/completions" \\
  -H "Authorization: Bearer $TENDON_API_KEY" -d @request.json`;

/** The first request on the page of the API: commands, the frames as pictures, and the body with their base64 cut. */
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

/** JSON for people: numbers of a list stand on one line. */
function compact(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/\[[\s\d.,-]+\]/g, (list) => list.replace(/\s+/g, " "));
}
