/** The noise of a chunk: Philox4x32-10 (Salmon et al. 2011) and Box-Muller, keyed by bundle, seed and step. */

/** `count` standard normal values; value i is part i mod 4 of block floor(i / 4). */
export function philoxNormal(exportId: string, seed: number, step: number, count: number): Float32Array {
  const bytes = Buffer.from(exportId, "hex");
  const key = [bytes.readUInt32LE(0), bytes.readUInt32LE(4)] as const;
  const values = new Float32Array(Math.ceil(count / 4) * 4);
  for (let block = 0; block * 4 < count; block += 1) {
    const words = philox([block, step, seed % 2 ** 32, Math.floor(seed / 2 ** 32)], key);
    values.set([...boxMuller(words[0], words[1]), ...boxMuller(words[2], words[3])], block * 4);
  }
  return values.subarray(0, count);
}

type Words = [number, number, number, number];

export function philox(counter: Words, key: readonly [number, number]): Words {
  let [c0, c1, c2, c3] = counter.map(BigInt) as [bigint, bigint, bigint, bigint];
  let [k0, k1] = key.map(BigInt) as [bigint, bigint];
  const mask = 0xffffffffn;
  for (let round = 0; round < 10; round += 1) {
    const first = 0xd2511f53n * c0;
    const second = 0xcd9e8d57n * c2;
    [c0, c1, c2, c3] = [(second >> 32n) ^ c1 ^ k0, second & mask, (first >> 32n) ^ c3 ^ k1, first & mask];
    k0 = (k0 + 0x9e3779b9n) & mask;
    k1 = (k1 + 0xbb67ae85n) & mask;
  }
  return [Number(c0), Number(c1), Number(c2), Number(c3)];
}

function boxMuller(first: number, second: number): [number, number] {
  const radius = Math.sqrt(-2 * Math.log((first + 1) / 2 ** 32));
  const angle = 2 * Math.PI * (second / 2 ** 32);
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}
