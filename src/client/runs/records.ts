/** What the routes of run storage answer with (contract section 7), as far as a client needs it. */
import { type Static, Type } from "@sinclair/typebox";

const text = Type.String();
const bytes = Type.Integer({ minimum: 0 });
const many = Type.Integer({ minimum: 1 });
const sha256 = Type.String({ pattern: "^[0-9a-f]{64}$" });

export const StoredFile = Type.Object({ path: text, size: bytes, sha256 });
export type StoredFile = Static<typeof StoredFile>;

export const Manifest = Type.Object({
  object: Type.Literal("robot.run"),
  robot: text,
  run: text,
  completed_at: Type.Number(),
  size: bytes,
  files: Type.Array(Type.Object({ path: text, size: bytes, sha256, content_type: text })),
  metadata: Type.Record(text, Type.Unknown()),
});
export type Manifest = Static<typeof Manifest>;

const ListedRun = Type.Object({ robot: text, run: text, size: bytes, files: bytes, completed_at: Type.Number() });
export type ListedRun = Static<typeof ListedRun>;

export const RunList = Type.Object({
  object: Type.Literal("list"),
  data: Type.Array(ListedRun),
  has_more: Type.Boolean(),
  /** For `?after=`. */
  next: Type.Union([text, Type.Null()]),
});
export type RunList = Static<typeof RunList>;

export const RunUsage = Type.Object({
  object: Type.Literal("robot.usage"),
  stored_bytes: bytes,
  reserved_bytes: bytes,
  quota_bytes: bytes,
  runs: bytes,
  month: Type.Object({ start: Type.Number(), uploaded_bytes: bytes, downloaded_bytes: bytes, requests: bytes }),
});
export type RunUsage = Static<typeof RunUsage>;

export const StartedUpload = Type.Object({ upload_id: text, part_size: many, parts: many });
export type StartedUpload = Static<typeof StartedUpload>;

export const UploadedPart = Type.Object({ part: many, size: bytes, sha256 });

const upload = { upload_id: text, size: bytes, part_size: many };
export const OpenUpload = Type.Object({ ...upload, received: Type.Array(UploadedPart) });
export type OpenUpload = Static<typeof OpenUpload>;

export const OpenUploads = Type.Object({ data: Type.Array(Type.Object(upload)) });
export type OpenUploads = Static<typeof OpenUploads>;
