/** A scanned body: its skeleton, and the long strings that stand in it as placeholders. */
import { BODY_TEXT, BodyResult, BodyText } from "../engine/abi.ts";
import { memoryAt } from "../engine/binding.ts";
import { assert, present } from "../std/assert.ts";

/** First character of a placeholder; the index follows. No other string in a skeleton begins with it. */
const TAG = 0x7f;

export class ScannedBody {
  /** JSON with a placeholder for each long string; short, with few escapes. */
  readonly skeleton: string;
  /** A key may be a placeholder. */
  readonly keys: boolean;
  readonly texts: number;
  private bytes: ArrayBuffer | undefined;
  private readonly images: ArrayBuffer;
  /** The entries of all texts; every field is a u32. */
  private readonly table: Uint32Array;
  private readonly narrow: string;
  private readonly wide: string;

  constructor(
    found: DataView,
    private readonly free: () => void,
  ) {
    const length = (at: number) => found.getUint32(at, true);
    const part = (at: number, bytes: number) =>
      bytes === 0 ? new ArrayBuffer(0) : memoryAt(found.getBigUint64(at, true), bytes);
    const text = (at: number, bytes: number, encoding: "utf8" | "latin1" | "utf16le") =>
      Buffer.from(part(at, bytes)).toString(encoding);
    this.skeleton = text(BodyResult.skeleton, length(BodyResult.skeleton_len), "utf8");
    this.narrow = text(BodyResult.narrow, length(BodyResult.narrow_len), "latin1");
    this.wide = text(BodyResult.wide, 2 * length(BodyResult.wide_len), "utf16le");
    this.keys = length(BodyResult.keys) === 1;
    this.texts = length(BodyResult.table_len);
    this.table = new Uint32Array(part(BodyResult.table, this.texts * BodyText.size));
    this.images = part(BodyResult.images, length(BodyResult.images_len));
    this.bytes = part(BodyResult.bytes, length(BodyResult.bytes_len));
  }

  /** The long string of a placeholder; undefined for every other value. */
  longText(value: unknown): LongText | undefined {
    if (typeof value !== "string" || !this.isLong(value)) return undefined;
    const index = Number(value.slice(1));
    assert(index < this.texts, "a placeholder names a text of its body");
    return new LongText(this, index);
  }

  /** The same of a body whose texts are wanted, as a string; thousands of them may be read. */
  text(value: string): string {
    if (!this.isLong(value)) return value;
    const index = Number(value.slice(1));
    const start = this.field(index, BodyText.start);
    const from = this.field(index, BodyText.form) === BODY_TEXT.narrow ? this.narrow : this.wide;
    return from.slice(start, start + this.field(index, BodyText.len));
  }

  /** The value is the placeholder of a long text. */
  isLong(value: string): boolean {
    return value.charCodeAt(0) === TAG;
  }

  field(index: number, offset: number): number {
    present(this.bytes, "a body that is not released");
    return present(this.table[(index * BodyText.size + offset) / 4], "a text of its body");
  }

  /** JSON as it came; a view, valid until `release`. */
  json(start: number, length: number): Uint8Array {
    return new Uint8Array(present(this.bytes, "a body that is not released"), start, length);
  }

  /** A view, valid until `release`. */
  image(start: number, length: number): Uint8Array {
    present(this.bytes, "a body that is not released");
    return new Uint8Array(this.images, start, length);
  }

  /** Gives the memory back: no text and no view of it may be used any more. A second call does nothing. */
  release(): void {
    if (this.bytes === undefined) return;
    this.bytes = undefined;
    this.free();
  }
}

/** The JPEG of a data URL. */
export interface BodyJpeg {
  /** The size that the length of its base64 gives. */
  readonly bytes: number;
  /** A view, valid until the body is released. Undefined: not base64, or too large, and so not decoded. */
  readonly file: Uint8Array | undefined;
}

/** A string of a body whose images are wanted that is not in the skeleton. */
export class LongText {
  constructor(
    private readonly body: ScannedBody,
    private readonly index: number,
  ) {}

  /** UTF-16 units, as a string counts. */
  get length(): number {
    return this.field(BodyText.units);
  }

  /** `trim` would leave nothing. */
  get isBlank(): boolean {
    return this.field(BodyText.blank) === 1;
  }

  /** Undefined where the string is no data URL of a JPEG. */
  get jpeg(): BodyJpeg | undefined {
    const form = this.field(BodyText.form);
    const bytes = this.field(BodyText.jpeg_len);
    if (form === BODY_TEXT.jpegBytes) {
      return { bytes, file: this.body.image(this.field(BodyText.image), this.field(BodyText.image_len)) };
    }
    return form === BODY_TEXT.jpeg || form === BODY_TEXT.jpegDamaged ? { bytes, file: undefined } : undefined;
  }

  /** Its escapes are read only here, which is not for texts of many thousand characters. */
  toString(): string {
    const [start, length] = [this.field(BodyText.start), this.field(BodyText.len)];
    return JSON.parse(Buffer.from(this.body.json(start - 1, length + 2)).toString("utf8"));
  }

  private field(offset: number): number {
    return this.body.field(this.index, offset);
  }
}
