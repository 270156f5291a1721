/** What the operations of the document are made of. */
import { type TSchema, Type } from "@sinclair/typebox";
import { wireCodes } from "../../error/core.ts";
import { EVERY } from "../../error/every-route.ts";
import { ROBOT } from "../../error/robot.ts";
import { type HeaderName, headers } from "./headers.ts";
import { MEANINGS } from "./meanings.ts";
import type { SCHEMAS } from "./schemas.ts";

interface Media {
  readonly schema: TSchema | object;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, object>>;
}

export interface Response {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, Media>>;
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly description: string;
  readonly schema: TSchema;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly object[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly description: string;
    readonly required: true;
    readonly content: Record<string, Media>;
  };
  readonly responses: Readonly<Record<string, Response>>;
}

export function json(name: keyof typeof SCHEMAS): Record<string, Media> {
  return { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } };
}

/** The error responses of a route that may give `codes`: per status the codes of the table, each with its meaning. */
export function failures(codes: readonly string[]): Record<string, Response> {
  const byStatus = Map.groupBy(
    wireCodes(EVERY, ROBOT).filter(({ code }) => codes.includes(code)),
    ({ status }) => status,
  );
  const responses = [...byStatus].map(([status, rows]): [string, Response] => {
    const names = [...new Set(rows.map(({ code }) => code))];
    const code = Type.Object({ error: Type.Object({ code: Type.String({ enum: names }) }) });
    return [
      String(status),
      {
        description: names.map((name) => `- \`${name}\`: ${MEANINGS[name]}`).join("\n"),
        headers: headers(...failureHeaders(status)),
        content: { "application/json": { schema: { allOf: [{ $ref: "#/components/schemas/Failure" }, code] } } },
      },
    ];
  });
  return Object.fromEntries(responses);
}

function failureHeaders(status: number): HeaderName[] {
  if (status === 401) return ["WWW-Authenticate"];
  if (status === 402) return ["X-Should-Retry"];
  return status === 429 || status === 503 ? ["Retry-After"] : [];
}

export const KEY = [{ key: [] }];
export const OPEN: object[] = [];
