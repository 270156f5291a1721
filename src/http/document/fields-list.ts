/** A JSON Schema as a list of fields for people: name, type, whether required, range, text, and what is inside. */
import { type Html, html } from "../../web/markup.ts";
import { prose } from "./markdown.ts";

/** The part of JSON Schema that the document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly contains?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly contentSchema?: Schema;
}

/** The fields of an object, or nothing. */
export function fieldsList({ properties, required = [] }: Schema): Html {
  if (!properties) return html``;
  const rows = Object.entries(properties).map(([name, schema]) => {
    const need = required.includes(name) ? html` <span class="need">required</span>` : undefined;
    return html`<dt><code class="name">${name}</code> <span class="type">${typeText(schema)}</span>${need}</dt><dd>${text(schema)}${inside(schema)}</dd>`;
  });
  return html`<dl>${rows}</dl>`;
}

function text({ description, pattern }: Schema): Html {
  const shown = pattern === undefined ? undefined : html`<p class="pattern">Pattern <code>${pattern}</code></p>`;
  return html`${description === undefined ? undefined : prose(description)}${shown}`;
}

/** What an object, the items of an array, or one of several forms hold. */
function inside(schema: Schema): Html {
  const { anyOf, items, contains, contentSchema } = schema;
  if (anyOf) return html`${anyOf.filter((form) => form.properties).map(form)}`;
  if (contains?.properties) return form(contains);
  if (items?.anyOf || items?.properties) return inside(items);
  if (contentSchema?.$ref) return html`<p>Content: ${refLink(contentSchema.$ref)}</p>`;
  return fieldsList(schema);
}

function form(schema: Schema): Html {
  const title = schema.title === undefined ? undefined : html`<p class="form">${schema.title}</p>`;
  return html`<div class="inside">${title}${text(schema)}${fieldsList(schema)}</div>`;
}

/** A link to a named schema of the document. */
export function refLink(ref: string): Html {
  const name = ref.slice(ref.lastIndexOf("/") + 1);
  return html`<a href="#${name}">${name}</a>`;
}

/** `integer or null, 1 to 30, default 0`, for example. */
export function typeText(schema: Schema): Html {
  const { $ref, items, minItems, maxItems } = schema;
  if ($ref !== undefined) return refLink($ref);
  const parts = [kind(schema), range(schema), count(minItems, maxItems)];
  if (items && typeof items.type === "string" && !items.properties) parts.push(range(items) && `each ${range(items)}`);
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`);
  return html`${parts.filter((part) => part !== undefined && part !== "").join(", ")}`;
}

function kind({ type, anyOf, items, const: constant, enum: values }: Schema): string {
  if (constant !== undefined) return JSON.stringify(constant);
  if (values) return values.map((value) => JSON.stringify(value)).join(" or ");
  if (anyOf) return [...new Set(anyOf.map(kind))].join(" or ");
  if (type === "array" && items?.type !== undefined) return `array of ${kind(items)}`;
  return type === undefined ? "anything" : [type].flat().join(" or ");
}

function range({ minimum, maximum, exclusiveMinimum }: Schema): string | undefined {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `at least ${minimum}`;
  // A negative bound is there only to keep a float32 finite, which is of no interest to people.
  if (exclusiveMinimum !== undefined && exclusiveMinimum >= 0) return `above ${exclusiveMinimum}`;
  return undefined;
}

function count(min: number | undefined, max: number | undefined): string | undefined {
  if (max === undefined) return min === undefined ? undefined : `at least ${min}`;
  return min === max ? `exactly ${max}` : `${min ?? 0} to ${max}`;
}
