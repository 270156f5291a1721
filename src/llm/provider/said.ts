/** What a provider says about a request that it refused, as far as a client may know it. */
import { LIMITS } from "../../limits.ts";
import { safeText } from "./fault.ts";

export class Said {
  private readonly pieces: Uint8Array[] = [];
  private length = 0;

  /** More than an error object needs is not read. */
  add(piece: Uint8Array): void {
    this.length += piece.length;
    if (this.length <= LIMITS.llmErrorBytesMax) this.pieces.push(piece.slice());
  }

  /** The message of the error object, in the forms that servers have for it. */
  message(secret: string | undefined): string | undefined {
    let said: unknown;
    try {
      said = JSON.parse(Buffer.concat(this.pieces).toString("utf8"));
    } catch {
      return undefined;
    }
    const { error, message } = Object(said) as { error?: unknown; message?: unknown };
    const text = typeof error === "string" ? error : (Object(error) as { message?: unknown }).message;
    const found = text ?? message;
    return typeof found === "string" ? safeText(found, secret) : undefined;
  }
}
