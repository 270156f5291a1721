/** The routes of run storage in words: what they do, take and answer. */
import { type TSchema, Type } from "@sinclair/typebox";
import { errorContent, headers, json, type Operation, type Response } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { RUNS } from "../errors.ts";
import { Name } from "./schemas.ts";

const MiB = 2 ** 20;
const fileMiB = LIMITS.runFileBytesMax / MiB;

const inPath = (name: string, description: string, schema: TSchema) => {
  return { name, in: "path" as const, required: true, description, schema };
};
const inQuery = (name: string, required: boolean, description: string, schema: TSchema) => {
  return { name, in: "query" as const, required, description, schema };
};
const inHeader = (name: string, description: string) => {
  return { name, in: "header" as const, required: false, description, schema: Type.String() };
};

const ROBOT = inPath("robot", "The robot's name.", Name);
const RUN = inPath("run", "The run's name.", Name);
const PATH = inPath(
  "path",
  `The file's path: at most ${LIMITS.runPathBytesMax} bytes and ${LIMITS.runPathSegmentsMax} segments, none empty, \`.\` or \`..\`; each percent-encoded.`,
  Type.String({ minLength: 1 }),
);
const UPLOAD_ID = (required: boolean) =>
  inQuery("upload_id", required, "Of the upload, as its start answered.", Type.String());
const DIGESTS = [
  inHeader("Content-Digest", "RFC 9530: `sha-256=:BASE64:` of this body. With it a damaged body is refused."),
  inHeader("X-Content-Sha256", "The same in hexadecimal."),
];

const BYTES = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };

function ok(description: string, name: string, ...named: readonly string[]): Response {
  return { description, headers: headers(...named), content: json(name) };
}

const done = (description: string): Response => ({ description, headers: headers() });

export const listRuns: Operation = {
  operationId: "listRuns",
  summary: "Completed runs, the newest first",
  parameters: [
    inQuery("robot", false, "Of this robot alone.", Name),
    inQuery(
      "limit",
      false,
      "Runs of one page.",
      Type.Integer({ minimum: 1, maximum: LIMITS.runsListedMax, default: LIMITS.runsListedDefault }),
    ),
    inQuery("after", false, "`next` of the page before.", Type.String()),
  ],
  responses: { "200": ok("A page of runs.", "RunList") },
};

export const runUsage: Operation = {
  operationId: "runUsage",
  summary: "What the account stores, and this month's metering",
  responses: { "200": ok("Bytes, runs and requests.", "RunUsage") },
};

export const getRun: Operation = {
  operationId: "getRun",
  summary: "The manifest of a completed run",
  parameters: [ROBOT, RUN],
  responses: { "200": ok("The run and its files.", "RunManifest") },
};

export const deleteRun: Operation = {
  operationId: "deleteRun",
  summary: "Delete every file of a run",
  description:
    "In any state, uploads on their way included. The record goes at once, the bytes a minute later. A download that has begun goes on; one from an object store may break off, and can be resumed until the bytes are removed.",
  parameters: [ROBOT, RUN],
  responses: { "204": done("The run is gone.") },
};

export const completeRun: Operation = {
  operationId: "completeRun",
  summary: "Complete a run, so that it is listed and readable",
  description:
    "The list must name every stored file, and no other; no path may be a folder of another one, as `a` of `a/b`. From then on the run does not change. Repeated with the same list, it answers the same manifest.",
  parameters: [ROBOT, RUN],
  requestBody: { description: "The files.", required: true, content: json("RunListing") },
  responses: { "200": ok("The manifest.", "RunManifest") },
};

export const putFile: Operation = {
  operationId: "putFile",
  summary: `Upload a file of at most ${fileMiB} MiB`,
  description:
    "`Content-Length` is needed. The file is there whole and durable, or not at all; one at the same path is replaced. A body that breaks off leaves nothing.",
  parameters: [ROBOT, RUN, PATH, ...DIGESTS],
  requestBody: { description: "The bytes of the file.", required: true, content: BYTES },
  responses: {
    "200": ok("It has replaced a file.", "StoredFile", "ETag"),
    "201": ok("It is new.", "StoredFile", "ETag"),
  },
};

const FILE_HEADERS = ["ETag", "Repr-Digest", "Accept-Ranges", "Last-Modified", "Content-Disposition"] as const;

/** The type follows from the file's name. */
const ANY_BYTES = { "*/*": BYTES["application/octet-stream"] };

const CONDITIONS = [
  inHeader("If-None-Match", "`ETag`s of what the client has."),
  inHeader("If-Modified-Since", "A date, where there is no `If-None-Match`."),
];

const FRESH: Response = {
  description: "The client has it already.",
  headers: headers("ETag", "Last-Modified", "Accept-Ranges"),
};

export const getFile: Operation = {
  operationId: "getFile",
  summary: "Download a file of a completed run",
  description:
    "With one range in `Range` a part of it; with several, or a malformed one, the whole. The type of the content is told by the path's end.",
  parameters: [
    ROBOT,
    RUN,
    PATH,
    inHeader("Range", "`bytes=FROM-TO`, `bytes=FROM-` or `bytes=-COUNT`."),
    inHeader("If-Range", "An `ETag`: a range only of this very file, otherwise the whole."),
    ...CONDITIONS,
  ],
  responses: {
    "200": { description: "The whole file.", headers: headers(...FILE_HEADERS), content: ANY_BYTES },
    "206": { description: "The range.", headers: headers(...FILE_HEADERS, "Content-Range"), content: ANY_BYTES },
    "304": FRESH,
    "416": {
      description: `- \`${RUNS.invalid_range.wire}\`: ${RUNS.invalid_range.http}`,
      headers: headers("ETag", "Last-Modified", "Accept-Ranges", "Content-Range"),
      content: errorContent([RUNS.invalid_range.wire]),
    },
  },
};

export const headFile: Operation = {
  operationId: "headFile",
  summary: "The headers of a file of a completed run",
  description: "Those of the whole file, and `Content-Length`. No answer has a body, failures neither.",
  parameters: [ROBOT, RUN, PATH, ...CONDITIONS],
  responses: {
    "200": { description: "The file is there.", headers: headers(...FILE_HEADERS) },
    "304": FRESH,
  },
};

export const deleteFile: Operation = {
  operationId: "deleteFile",
  summary: "Delete a file of an unfinished run",
  parameters: [ROBOT, RUN, PATH],
  responses: { "204": done("The file is gone.") },
};

export const postUpload: Operation = {
  operationId: "postUpload",
  summary: "Start a multipart upload, or finish one",
  description: [
    `Without \`upload_id\` it starts an upload of \`size\` bytes, which are reserved, and owns the path. Parts have \`part_size\` bytes each but the last; they come in any order, several at once. An unfinished upload goes after ${LIMITS.runUploadSeconds / 86_400} days.`,
    "With `upload_id` it finishes that one: the parts become the file, whose SHA-256 is computed from what is stored. While that runs the quota must have room for the file twice, and a repeat is 409. It may take many seconds for a large file, and goes on when the client leaves; a repeat after its end is answered the same until `expires_at`, as long as the file is not deleted and no later upload of its path is finished.",
  ].join("\n\n"),
  parameters: [ROBOT, RUN, PATH, UPLOAD_ID(false)],
  requestBody: {
    description:
      "To start, without `upload_id`: `size`, and `sha256` if it is known. To finish: `parts`, an empty object, or no body at all.",
    required: false,
    content: json("NewUpload"),
  },
  responses: {
    "200": ok("Finished: the file is stored.", "StoredFile", "ETag"),
    "201": ok("Started.", "StartedUpload"),
  },
};

export const getUpload: Operation = {
  operationId: "getUpload",
  summary: "Resume a multipart upload",
  description: "With `upload_id`: the parts that have come. Without: the unfinished uploads of the path, at most one.",
  parameters: [ROBOT, RUN, PATH, UPLOAD_ID(false)],
  responses: {
    "200": {
      description: "What has come, or the unfinished uploads.",
      headers: headers(),
      content: {
        "application/json": {
          schema: {
            anyOf: [{ $ref: "#/components/schemas/UploadState" }, { $ref: "#/components/schemas/UploadList" }],
          },
        },
      },
    },
  },
};

export const putPart: Operation = {
  operationId: "putPart",
  summary: `Upload one part, of at most ${fileMiB} MiB`,
  description: "`Content-Length` is needed. The same part again replaces it.",
  parameters: [
    ROBOT,
    RUN,
    PATH,
    UPLOAD_ID(true),
    inQuery("part", true, "Its number, from 1.", Type.Integer({ minimum: 1 })),
    ...DIGESTS,
  ],
  requestBody: { description: "The bytes of the part.", required: true, content: BYTES },
  responses: { "200": ok("It is stored.", "UploadPart") },
};

export const deleteUpload: Operation = {
  operationId: "deleteUpload",
  summary: "Abort a multipart upload",
  description: "Gives its path and its reservation back.",
  parameters: [ROBOT, RUN, PATH, UPLOAD_ID(true)],
  responses: { "204": done("It is gone.") },
};
