/** A plain reader of `tokenizer.json`: byte-level BPE without a splitting pattern, as the reference bundles have it. */
import { byteAlphabet } from "../../src/bundle/tokenizer.ts";
import { present } from "../../src/std/assert.ts";

interface File {
  readonly model: { readonly vocab: Readonly<Record<string, number>>; readonly merges: readonly [string, string][] };
}

export class Bpe {
  private readonly vocab: Map<string, number>;
  private readonly texts: Map<number, string>;
  private readonly ranks: Map<string, number>;
  private readonly bytes = byteAlphabet();

  constructor(json: string) {
    const { model } = JSON.parse(json) as File;
    this.vocab = new Map(Object.entries(model.vocab));
    this.texts = new Map([...this.vocab].map(([text, id]) => [id, text]));
    this.ranks = new Map(model.merges.map((pair, rank) => [pair.join(" "), rank]));
  }

  get size(): number {
    return this.vocab.size;
  }

  id(token: string): number | undefined {
    return this.vocab.get(token);
  }

  /** Merges the pair of lowest rank, the leftmost first, until none is left. A text that does not begin with a space gets one. */
  encode(text: string): number[] {
    const spaced = text === "" || text.startsWith(" ") ? text : ` ${text}`;
    const tokens = [...new TextEncoder().encode(spaced)].map((byte) => present(this.bytes[byte], "byte"));
    for (;;) {
      let best = -1;
      let bestRank = Number.POSITIVE_INFINITY;
      for (let index = 0; index + 1 < tokens.length; index += 1) {
        const rank = this.ranks.get(`${tokens[index]} ${tokens[index + 1]}`) ?? Number.POSITIVE_INFINITY;
        if (rank < bestRank) [best, bestRank] = [index, rank];
      }
      if (best < 0) return tokens.map((token) => present(this.vocab.get(token), `token ${token}`));
      tokens.splice(best, 2, `${tokens[best]}${tokens[best + 1]}`);
    }
  }

  /** The text of byte tokens and merged pairs. */
  decode(ids: readonly number[]): string {
    const characters = ids.flatMap((id) => [...present(this.texts.get(id), `token ${id}`)]);
    return new TextDecoder().decode(Uint8Array.from(characters, (character) => this.bytes.indexOf(character)));
  }
}
