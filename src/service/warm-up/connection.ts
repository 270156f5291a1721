/** One connection to a listener of this process. It is written here because what programs have for it knows of proxies. */

const HEAD_END = Buffer.from("\r\n\r\n");

interface Answer {
  readonly status: number;
  readonly text: string;
}

export class Connection {
  private received = Buffer.alloc(0);
  private answered: PromiseWithResolvers<Answer> | undefined;
  private socket: Bun.Socket | undefined;
  private isOver = false;
  private unsent: Uint8Array = Buffer.alloc(0);

  private constructor() {}

  static async to({ hostname, port }: { hostname: string; port: number }): Promise<Connection> {
    const one = new Connection();
    const over = () => one.over();
    one.socket = await Bun.connect({
      hostname,
      port,
      socket: { data: (_, bytes) => one.receive(bytes), drain: () => one.send(), close: over, end: over, error: over },
    });
    return one;
  }

  /** One after the other; the status is 0 when the connection has ended. */
  async post(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<Answer> {
    const bytes = Buffer.from(body);
    const lines = Object.entries({ host: "localhost", "content-length": String(bytes.length), ...headers });
    const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
    this.answered = Promise.withResolvers();
    this.unsent = Buffer.concat([Buffer.from(head), bytes]);
    if (this.isOver) this.over();
    else this.send();
    return await this.answered.promise;
  }

  close(): void {
    this.socket?.end();
  }

  private send(): void {
    const sent = this.socket?.write(this.unsent) ?? 0;
    this.unsent = this.unsent.subarray(Math.max(0, sent));
  }

  private receive(bytes: Uint8Array): void {
    this.received = Buffer.concat([this.received, bytes]);
    const end = this.received.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.received.toString("latin1", 0, end);
    const whole = end + HEAD_END.length + Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    if (this.received.length < whole) return;
    const text = this.received.toString("utf8", end + HEAD_END.length, whole);
    this.received = this.received.subarray(whole);
    this.answered?.resolve({ status: Number(head.split(" ")[1]), text });
  }

  private over(): void {
    this.isOver = true;
    this.answered?.resolve({ status: 0, text: "the connection has ended" });
  }
}
