/** A service whose answers to device login a test scripts, with the rest of what the client's commands call. */
import { newKey } from "../../src/account/key.ts";

/** Answers one poll. */
export type Answer = () => Response | Promise<Response>;

/** An error of OAuth. */
export function refuse(error: string, description = "see the specification"): Response {
  return Response.json({ error, error_description: description }, { status: 400 });
}

export class FakeService implements AsyncDisposable {
  /** Keys that the service takes. */
  readonly active = new Set<string>();
  /** Each key that it has ever known. */
  readonly keys: string[] = [];
  readonly revoked: string[] = [];
  /** Path and form of each call of OAuth, in their order. */
  readonly calls: { path: string; form: Record<string, string>; type: string | null }[] = [];
  /** What the polls are told, one after the other; after them comes a key. */
  polls: Answer[] = [];
  interval: number | undefined = 1;
  expiresIn = 900;
  private server: ReturnType<typeof Bun.serve> | undefined;
  private readonly port: number;

  constructor() {
    this.server = this.listen(0);
    this.port = this.server.port ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get polled(): number {
    return this.calls.filter(({ path }) => path === "/oauth/token").length;
  }

  makeKey(): string {
    const { key } = newKey(0);
    this.keys.push(key);
    this.active.add(key);
    return key;
  }

  async stop(): Promise<void> {
    await this.server?.stop(true);
    this.server = undefined;
  }

  restart(): void {
    this.server = this.listen(this.port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  private listen(port: number): ReturnType<typeof Bun.serve> {
    return Bun.serve({ hostname: "127.0.0.1", port, fetch: (request) => this.answer(request) });
  }

  private async answer(request: Request): Promise<Response> {
    const path = new URL(request.url).pathname;
    if (path === "/v1/models" && request.method === "GET") {
      const key = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
      if (this.active.has(key)) return Response.json({ object: "list", data: [{ id: "a" }] });
      return Response.json({ error: { code: "invalid_api_key", message: "no such key" } }, { status: 401 });
    }
    if (request.method !== "POST" || !path.startsWith("/oauth/")) return new Response("nothing here", { status: 404 });
    const form = Object.fromEntries(new URLSearchParams(await request.text()));
    this.calls.push({ path, form, type: request.headers.get("content-type") });
    if (path === "/oauth/device_authorization") {
      return Response.json({
        device_code: "the-device-code",
        user_code: "BCDF-GHJK",
        verification_uri: `${this.url}/device`,
        verification_uri_complete: `${this.url}/device?user_code=BCDF-GHJK`,
        expires_in: this.expiresIn,
        interval: this.interval,
      });
    }
    if (path === "/oauth/token") {
      const scripted = this.polls.shift();
      return scripted ? scripted() : Response.json({ access_token: this.makeKey(), token_type: "Bearer" });
    }
    this.active.delete(form.token ?? "");
    this.revoked.push(form.token ?? "");
    return new Response(null, { status: 200 });
  }
}
