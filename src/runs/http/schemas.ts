/** What the routes of run storage take and answer, as documented JSON Schema. The checks decide. */
import { Type } from "@sinclair/typebox";
import { optional } from "../../http/check.ts";
import type { Header } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { NAME } from "../../std/run-names.ts";

const seconds = (description: string) => Type.Integer({ description: `${description} Unix seconds.` });
const bytes = (description: string) => Type.Integer({ minimum: 0, description });
const sha256 = Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256, hexadecimal." });
const path = Type.String({ minLength: 1, description: `At most ${LIMITS.runPathBytesMax} bytes of UTF-8.` });

export const Name = Type.String({ pattern: NAME.source });

const size = bytes("Bytes.");
const StoredFile = Type.Object({ path, size, sha256 }, { title: "A stored file" });

const run = {
  robot: Name,
  run: Name,
  size: bytes("Of all files."),
  completed_at: seconds("When it was completed."),
};

const NewUpload = Type.Object(
  {
    size: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.runBytesMax,
        description: "Bytes of the whole file. Starts an upload.",
      }),
    ),
    sha256: optional(
      Type.String({ pattern: "^[0-9a-fA-F]{64}$", description: "Of the whole file; checked at the end." }),
    ),
    parts: optional(
      Type.Array(Type.Object({ part: Type.Integer({ minimum: 1 }), sha256 }), {
        description: "With `upload_id`: what the parts are, checked before they are put together.",
      }),
    ),
  },
  { title: "Start or finish", additionalProperties: true },
);

const facts = {
  upload_id: Type.String(),
  size: bytes("Of the whole file."),
  part_size: bytes("Of each part but the last."),
  expires_at: seconds("An unfinished upload goes then."),
};

const StartedUpload = Type.Object(
  {
    upload_id: facts.upload_id,
    part_size: facts.part_size,
    parts: Type.Integer({ minimum: 1, description: "How many." }),
    expires_at: facts.expires_at,
  },
  { title: "A started upload" },
);

const Part = Type.Object({ part: Type.Integer({ minimum: 1 }), size, sha256 }, { title: "A part" });

const UploadState = Type.Object({ ...facts, received: Type.Array(Part) }, { title: "What has come of an upload" });
const UploadList = Type.Object({ data: Type.Array(Type.Object(facts)) }, { title: "Unfinished uploads of a path" });

const metadata = Type.Object(
  {},
  {
    additionalProperties: true,
    description:
      "Any object of at most 65,536 bytes as JSON without spaces; kept as JSON values: numbers are IEEE 754 doubles, so whole ones are exact to 2^53, and keys may change their order.",
  },
);

const RunListing = Type.Object(
  {
    files: Type.Array(Type.Object({ path, size, sha256: optional(Type.String({ pattern: "^[0-9a-fA-F]{64}$" })) }), {
      minItems: 1,
      maxItems: LIMITS.runFilesMax,
      description: "Every file of the run.",
    }),
    metadata: optional(metadata),
  },
  { title: "The files of a run", additionalProperties: true },
);

const RunManifest = Type.Object(
  {
    object: Type.Literal("robot.run"),
    ...run,
    files: Type.Array(
      Type.Object({ path, size, sha256, content_type: Type.String({ description: "By the file's name." }) }),
    ),
    metadata,
  },
  { title: "A completed run" },
);

const RunList = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(Type.Object({ ...run, files: Type.Integer({ minimum: 1, description: "How many." }) })),
    has_more: Type.Boolean(),
    next: Type.Union([Type.String({ description: "For `after`." }), Type.Null()]),
  },
  { title: "Completed runs" },
);

const RunUsage = Type.Object(
  {
    object: Type.Literal("robot.usage"),
    stored_bytes: bytes(
      "Of all files, those of unfinished runs too, of the manifests of completed runs, and 1,024 for each run, file and unfinished upload.",
    ),
    reserved_bytes: bytes("For uploads that are on their way, and 1,024 for each file that comes in one request."),
    quota_bytes: bytes("What both together may be."),
    runs: Type.Integer({ minimum: 0, description: "Completed ones." }),
    month: Type.Object({
      start: seconds("Beginning of this month, UTC."),
      uploaded_bytes: bytes("Of files and parts that were stored."),
      downloaded_bytes: bytes("Of the files and ranges that were answered."),
      requests: Type.Integer({ minimum: 0, description: "Accepted ones on these routes, to the last seconds." }),
    }),
  },
  { title: "What an account stores" },
);

export const RUN_SCHEMAS = {
  StoredFile,
  NewUpload,
  StartedUpload,
  UploadPart: Part,
  UploadState,
  UploadList,
  RunListing,
  RunManifest,
  RunList,
  RunUsage,
};

export const RUN_HEADERS: Readonly<Record<string, Header>> = {
  ETag: { description: "The file's SHA-256: `sha256-HEX` in quotes.", schema: Type.String() },
  "Repr-Digest": { description: "RFC 9530: the SHA-256 of the whole file, also with a range.", schema: Type.String() },
  "Content-Range": { description: "`bytes FROM-TO/SIZE`, or `bytes */SIZE` with 416.", schema: Type.String() },
  "Accept-Ranges": { description: "`bytes`.", schema: Type.Literal("bytes") },
  "Last-Modified": { description: "When the file was stored.", schema: Type.String() },
  "Content-Disposition": { description: "`attachment`, with the last segment of the path.", schema: Type.String() },
};
