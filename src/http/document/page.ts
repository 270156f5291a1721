/** The OpenAPI document as one page for people: no scripts, nothing from elsewhere, so it works offline and as text. */

import { EXAMPLE, EXAMPLE_FRAMES } from "../../robot/docs/example.ts";
import { type Html, html } from "../../web/markup.ts";
import type { Response } from "../operation.ts";
import type { Document, Documented } from "./document.ts";
import { fieldsList, refLink, type Schema, typeText } from "./fields-list.ts";
import { prose } from "./markdown.ts";
import { shell } from "./shell.ts";

export function page(document: Document): string {
  const { info, components } = document;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const schemas = Object.entries(components.schemas);
  return shell({
    title: `${info.title} API`,
    nav: html`<h1>${info.title} API</h1>
<p class="soft">Interface ${info.version} · <a href="openapi.json">openapi.json</a></p>
<ul>
<li><a href="#about">About</a></li>
<li><a href="#first">A first request</a></li>
<li><a href="docs/episodes">Episodes on a WebSocket</a></li>
<li><a href="docs/language-models">Language models</a></li>
<li><a href="docs/robot-runs">Robot runs</a></li>
</ul>
<ul>${operations.map(({ method, path, operation }) => html`<li><a href="#${operation.operationId}">${method} ${path}</a></li>`)}</ul>
<ul>
${schemas.map(([name]) => html`<li><a href="#${name}">${name}</a></li>`)}
<li><a href="#headers">Response headers</a></li>
</ul>`,
    main: html`<h2 id="about">About</h2>
${prose(info.description)}
${Object.values(components.securitySchemes).map(({ description }) => prose(`**Key.** ${description}`))}
<h2 id="first">A first request</h2>
${firstRequest()}
${operations.map(operationSection)}
<h2>Schemas</h2>
${schemas.map(([name, schema]) => schemaSection(name, schema))}
<h2 id="headers">Response headers</h2>
<dl>${Object.entries(components.headers).map(
      ([name, { description, schema }]) =>
        html`<dt><code class="name">${name}</code> <span class="type">${typeText(schema)}</span></dt><dd>${prose(description)}</dd>`,
    )}</dl>`,
  });
}

const COMMANDS = `curl -s "$TENDON_BASE_URL/openapi.json" | jq .components.examples.observation.value > request.json
curl -s "$TENDON_BASE_URL/v1/chat/completions" \\
  -H "Authorization: Bearer $TENDON_API_KEY" -d @request.json`;

/** The example with its frames as pictures, and their base64 cut in the text. */
function firstRequest(): Html {
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

function operationSection({ method, path, operation }: { method: string; path: string; operation: Documented }): Html {
  const { operationId, summary, description, security, parameters = [], requestBody, responses } = operation;
  const parameterRows = parameters.map(
    (one) =>
      html`<dt><code class="name">${one.name}</code> <span class="type">in the ${one.in}, ${typeText(one.schema)}</span></dt><dd>${prose(one.description)}</dd>`,
  );
  return html`<section>
<h2 id="${operationId}">${summary}</h2>
<p class="path"><span class="method">${method}</span><code>${path}</code></p>
<p class="soft">${security.length > 0 ? "Needs a key." : "Needs no key."}</p>
${description === undefined ? undefined : prose(description)}
${parameters.length === 0 ? undefined : html`<h3>Parameters</h3><dl>${parameterRows}</dl>`}
${requestBody === undefined ? undefined : html`<h3>Body</h3>${prose(requestBody.description)}${contentLinks(requestBody.content)}`}
<h3>Answers</h3>
<dl>${Object.entries(responses).map(([status, response]) => responseRow(status, response))}</dl>
</section>
`;
}

function responseRow(status: string, { description, headers, content = {} }: Response): Html {
  // The request's id is on every answer.
  const names = Object.keys(headers).filter((name) => name !== "X-Request-Id");
  const links = names.map((name) => html` <a href="#headers"><code>${name}</code></a>`);
  return html`<dt><span class="status">${status}</span></dt><dd>${prose(description)}${contentLinks(content)}${links.length === 0 ? undefined : html`<p class="soft">Headers:${links}</p>`}</dd>`;
}

/** Media types with the schemas that they hold, and examples that are text. */
function contentLinks(content: NonNullable<Response["content"]>): Html {
  const rows = Object.entries(content).map(([type, { schema, example }]) => {
    const links = refsOf(schema).map((ref) => html` ${refLink(ref)}`);
    const shown = typeof example === "string" ? html`<pre>${example.trimEnd()}</pre>` : undefined;
    return html`<p class="soft"><code>${type}</code>${links}</p>${shown}`;
  });
  return html`${rows}`;
}

function refsOf(schema: Schema & { readonly allOf?: readonly Schema[] }): string[] {
  const forms = [schema, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])];
  return forms.flatMap(({ $ref }) => ($ref === undefined ? [] : [$ref]));
}

function schemaSection(name: string, schema: Schema): Html {
  return html`<section><h3 id="${name}">${name}</h3>${schema.description === undefined ? undefined : prose(schema.description)}${fieldsList(schema)}</section>
`;
}
