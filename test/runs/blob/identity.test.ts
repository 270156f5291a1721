/** The mark beside the blobs that says to which store of records they belong, in a folder and on S3. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { folderBackend } from "../../../src/runs/blob/folder.ts";
import { s3Backend } from "../../../src/runs/blob/s3.ts";
import { type TemporaryFolder, temporaryFolder } from "../../store/temporary.ts";
import { nonce } from "./bytes.ts";
import { S3, S3Server } from "./s3-server.ts";

let server: S3Server;
let dir: TemporaryFolder;

beforeAll(async () => {
  dir = await temporaryFolder();
  if (!S3.absent) server = await S3Server.start();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

/** Each call opens one place, which another place has nothing to do with. */
const BACKENDS = [
  {
    name: "folder",
    absent: false,
    place: () => {
      const path = join(dir.path, nonce());
      return () => folderBackend(path, nonce);
    },
  },
  {
    name: S3.title,
    absent: S3.absent,
    place: () => {
      const options = server.options();
      return () => s3Backend(options);
    },
  },
];

for (const { name, absent, place } of BACKENDS) {
  describe.skipIf(absent)(name, () => {
    test("the first store of records that says its name has the blobs; asking claims nothing", async () => {
      const open = place();
      const backend = open();
      await backend.check();
      expect(await backend.identity(undefined)).toBeUndefined();
      expect(await backend.identity("store_1")).toBe("store_1");
      expect(await backend.identity("store_2")).toBe("store_1");
      expect(await open().identity("store_2")).toBe("store_1");
      expect(await open().identity(undefined)).toBe("store_1");
      const { blobs, next } = await backend.list(undefined);
      expect([blobs, next === undefined || (await backend.list(next)).blobs]).toEqual([[], next === undefined || []]);
    });
  });
}
