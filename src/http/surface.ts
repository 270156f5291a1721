/**
 * A part of the interface: its routes, its failures, and what the OpenAPI document says about them. A product makes one from
 * its own narrow dependencies; the app registers what it is given and knows none of them.
 */
import type { TSchema } from "@sinclair/typebox";
import type { WebSocketHandler } from "bun";
import type { Answers, Failure, Table } from "../std/failure.ts";
import type { Html } from "../web/markup.ts";
import type { Header } from "./operation.ts";
import type { Reply, Route } from "./route.ts";

/** A surface that does not write its failures as the error object of the specification. */
export interface FailureForm {
  /** The failures that are written in this form; all others have the error object. */
  readonly table: Table;
  readonly write: (failure: Failure) => Reply;
  /** The schema of the form in the OpenAPI document. */
  readonly schema?: string;
}

type SocketOptions = Pick<
  WebSocketHandler<unknown>,
  | "maxPayloadLength"
  | "idleTimeout"
  | "sendPings"
  | "perMessageDeflate"
  | "backpressureLimit"
  | "closeOnBackpressureLimit"
>;

/** A page of the documentation. It is made when it is first asked for, so that no start waits for it. */
export interface DocumentPage {
  /** Its last segment: the page is at `/docs/NAME`. */
  readonly name: string;
  readonly operationId: string;
  readonly title: string;
  readonly description: string;
  readonly make: () => Promise<string>;
}

/** One part of the interface. */
export interface Surface {
  /** The tag of its operations in the OpenAPI document. */
  readonly tag: string;
  readonly answers: Answers;
  readonly failureForm?: FailureForm;
  readonly routes: readonly Route[];
  /** How Bun serves its WebSockets; one surface of an app has some. */
  readonly socket?: SocketOptions;
  /** What its operations refer to in the document, by name. */
  readonly schemas?: Readonly<Record<string, TSchema>>;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
  /** The page about it. */
  readonly page?: DocumentPage;
  /** A first request, as HTML, for the page of the API. */
  readonly firstRequest?: () => Html;
}
