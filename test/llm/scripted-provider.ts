/**
 * An LLM provider for tests: a real HTTP server on loopback that speaks both protocols, `POST /v1/chat/completions` and
 * `POST /v1/responses`, and answers as it is told. It writes to its sockets itself, so every byte and every cut is its own.
 */
import { createServer, type Server } from "node:net";
import { Connection } from "./connection.ts";
import type { HttpRequest } from "./http-request.ts";
import { type Asked, errorBody, perform } from "./performance.ts";
import type { Script } from "./script.ts";

/** One request and what became of its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** undefined: no JSON object. */
  readonly body: Readonly<Record<string, unknown>> | undefined;
  /** The caller ended the connection before the answer was over. */
  readonly closed: Promise<void>;
  /** `answered`: the script is over, with a correct end or the fault that it names. */
  readonly state: "open" | "answered" | "left";
}

/** A script that looks at the request first. */
export type Play = Script | ((exchange: Exchange) => Script);

const PROTOCOLS: Readonly<Record<string, Asked["protocol"]>> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
};

export class ScriptedProvider implements AsyncDisposable {
  /** All requests in the order in which they were whole. */
  readonly exchanges: Exchange[] = [];
  /** Connections ever accepted. */
  accepted = 0;
  /** What a request gets for which nothing was planned. */
  otherwise: Play = { kind: "answer" };
  private readonly open = new Set<Connection>();
  private readonly planned: Play[] = [];

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {
    server.on("connection", (socket) => {
      const connection = new Connection(socket);
      this.accepted += 1;
      this.open.add(connection);
      socket.on("close", () => this.open.delete(connection));
      this.serve(connection).catch((error: unknown) => {
        connection.destroy();
        throw error;
      });
    });
  }

  static async start(): Promise<ScriptedProvider> {
    const server = createServer();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
    await promise;
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    return new ScriptedProvider(server, `http://127.0.0.1:${port}/v1`);
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.open.size;
  }

  /** The next requests get these, in order. */
  play(...scripts: readonly Play[]): void {
    this.planned.push(...scripts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.server.close(() => resolve());
    for (const connection of this.open) connection.destroy();
    await promise;
  }

  private async serve(connection: Connection): Promise<void> {
    for (;;) {
      const request = await connection.requests.next();
      if (request === undefined) return connection.end();
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      const exchange = { ...request, body: objectOf(request.body), closed, state: "open" as Exchange["state"] };
      this.exchanges.push(exchange);
      const after = await this.answer(connection, request, exchange);
      if (after === "hang") await connection.gone;
      exchange.state = connection.isGone ? "left" : "answered";
      if (connection.isGone) resolve();
      if (after === "keep") continue;
      return after === "reset" ? connection.reset() : connection.end();
    }
  }

  private async answer(connection: Connection, request: HttpRequest, exchange: Exchange) {
    const protocol = PROTOCOLS[request.path];
    const { body } = exchange;
    const asked: Asked = {
      protocol: protocol ?? "chat",
      stream: body?.stream === true,
      includeUsage: (body?.stream_options as { include_usage?: unknown } | null)?.include_usage === true,
      id: `${protocol === "responses" ? "resp" : "chatcmpl"}_${this.exchanges.length}`,
      model: typeof body?.model === "string" ? body.model : "scripted",
    };
    return await perform(connection, asked, this.scriptOf(request, exchange));
  }

  private scriptOf(request: HttpRequest, exchange: Exchange): Script {
    const refuse = (status: number, message: string): Script => ({ kind: "refuse", status, body: errorBody(message) });
    if (request.method !== "POST" || PROTOCOLS[request.path] === undefined) return refuse(404, "No such route.");
    if (exchange.body === undefined) return refuse(400, "The body is no JSON object.");
    const play = this.planned.shift() ?? this.otherwise;
    return typeof play === "function" ? play(exchange) : play;
  }
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
