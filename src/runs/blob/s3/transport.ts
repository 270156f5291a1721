/**
 * The way of a signed request to the store: Bun's fetch. The client library's own way is Node's `http`, which takes more memory for
 * a body, and whose time-outs are several that do not end a body half-way.
 */

/** A request as the client library hands it over, signed. */
interface SignedRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}

interface Received {
  readonly response: {
    readonly statusCode: number;
    readonly reason: string;
    readonly headers: Record<string, string>;
    readonly body: ReadableStream<Uint8Array> | Uint8Array;
  };
}

/** What the library calls; the other two functions of its interface do nothing. */
export const fetchTransport = {
  handle: async (request: SignedRequest, { abortSignal }: { abortSignal?: AbortSignal } = {}): Promise<Received> => {
    const { method, headers, body } = request;
    const response = await fetch(addressOf(request), {
      method,
      // The bytes must be those that are stored, and a redirect was not signed.
      headers: { ...headers, "accept-encoding": "identity" },
      decompress: false,
      redirect: "manual",
      // The watch of the request has the time; the default of fetch would end a long one.
      timeout: false,
      ...(abortSignal && { signal: abortSignal }),
      ...(body !== undefined && method !== "GET" && method !== "HEAD" && { body }),
    } as RequestInit);
    return {
      response: {
        statusCode: response.status,
        reason: response.statusText,
        headers: Object.fromEntries(response.headers),
        body: response.body ?? new Uint8Array(),
      },
    };
  },
  updateHttpClientConfig: () => {},
  httpHandlerConfigs: () => ({}),
};

function addressOf({ protocol, hostname, port, path, query = {} }: SignedRequest): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => {
    const values: readonly (string | null)[] = Array.isArray(value) ? value : [value as string | null];
    return values.map((one) => (one === null ? encoded(name) : `${encoded(name)}=${encoded(one)}`));
  });
  const search = pairs.length === 0 ? "" : `?${pairs.join("&")}`;
  return `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}${search}`;
}

/** As the signature has it: more is escaped than `encodeURIComponent` does. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
