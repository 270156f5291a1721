/** The OpenAPI document as one page for people: no scripts, nothing from elsewhere, so it works offline and as text. */
import { type Html, html } from "../../web/markup.ts";
import type { Response } from "../operation.ts";
import type { Surface } from "../surface.ts";
import type { Document, Documented } from "./document.ts";
import { fieldsList, refLink, type Schema, typeText } from "./fields-list.ts";
import { prose } from "./markdown.ts";
import { shell } from "./shell.ts";

export function page(document: Document, surfaces: readonly Surface[]): string {
  const first = surfaces.find(({ firstRequest }) => firstRequest)?.firstRequest?.();
  const pages = surfaces.flatMap(({ page }) => (page ? [page] : []));
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
${pages.map(({ name, title }) => html`<li><a href="docs/${name}">${title}</a></li>`)}
</ul>
<ul>${operations.map(({ method, path, operation }) => html`<li><a href="#${operation.operationId}">${method} ${path}</a></li>`)}</ul>
<ul>
${schemas.map(([name]) => html`<li><a href="#${name}">${name}</a></li>`)}
<li><a href="#headers">Response headers</a></li>
</ul>`,
    main: html`<h2 id="about">About</h2>
${prose(info.description)}
${Object.values(components.securitySchemes).map(({ description }) => prose(`**Key.** ${description}`))}
${first === undefined ? undefined : html`<h2 id="first">A first request</h2>\n${first}`}
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
